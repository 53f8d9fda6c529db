//! Each feature of docs/compatibility.md that is there names tests that show it, and agrees with docs/api.md.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::table::{State, quoted, root, rows, state};

/// A column of tests: where a name of it is looked for.
#[derive(Clone, Copy)]
enum Sdk {
    Python,
    Go,
    TypeScript,
    Java,
}

const SDKS: [Sdk; 4] = [Sdk::Python, Sdk::Go, Sdk::TypeScript, Sdk::Java];

impl Sdk {
    /// The program of tests/samples that shows this pattern.
    fn sample(self, pattern: &str) -> PathBuf {
        let samples = root().join("tests/samples");
        match self {
            Self::Python => samples.join("python").join(pattern).join("main.py"),
            Self::Go => samples.join("go").join(pattern).join("main.go"),
            Self::TypeScript => {
                samples.join("typescript/src").join(pattern.replace('_', "-")).join("main.ts")
            }
            Self::Java => {
                samples.join("java/src/main/java/samples").join(pattern.replace('_', "")).join("Main.java")
            }
        }
    }

    /// True where there is a test of this name: `samples/PATTERN`; in Python a suite or SUITE.CASE; else a case.
    fn has(self, name: &str) -> bool {
        if let Some(pattern) = name.strip_prefix("samples/") {
            return self.sample(pattern).is_file();
        }
        let read = |path: String| std::fs::read_to_string(root().join(path)).unwrap_or_default();
        match self {
            Self::Python => {
                let (suite, case) = name.split_once('.').unwrap_or((name, ""));
                let function = if case.is_empty() { String::new() } else { format!("async def {case}(") };
                let text = read(format!("tests/sdk/python/{suite}.py"));
                text.contains("\n@case(") && text.contains(&function)
            }
            Self::Go => ["main.go", "visibility.go", "schedules.go"]
                .iter()
                .any(|file| read(format!("tests/sdk/go/{file}")).contains(&format!("\"{name}\""))),
            Self::TypeScript => {
                read("tests/sdk/typescript/src/main.ts".into()).contains(&format!("\n  {name}: "))
            }
            Self::Java => {
                let text = read("tests/sdk/java/src/main/java/programs/Main.java".into());
                text.contains(&format!(".put(\"{name}\","))
            }
        }
    }
}

/// What docs/api.md says of each method.
fn methods() -> anyhow::Result<BTreeMap<String, State>> {
    let rows = rows("docs/api.md", None)?;
    let method = |row: Vec<String>| Some((quoted(&row[0]).next()?.to_owned(), state(&row[1])?));
    Ok(rows.into_iter().filter_map(method).collect())
}

#[test]
fn every_feature_names_tests_that_there_are() -> anyhow::Result<()> {
    let methods = methods()?;
    let mut problems = Vec::new();
    for row in rows("docs/compatibility.md", Some("Features of the SDKs"))? {
        let [feature, said, tests @ ..] = row.as_slice() else { continue };
        let mut problem = |words: String| problems.push(format!("{feature}: {words}"));
        if tests.len() != SDKS.len() {
            problem(format!("{} columns of tests", tests.len()));
        }
        for (sdk, cell) in SDKS.into_iter().zip(tests) {
            let gone = quoted(cell).filter(|name| !sdk.has(name));
            gone.for_each(|name| problem(format!("there is no test {name}")));
        }
        let mut shown = tests.iter().flat_map(|cell| quoted(cell));
        match state(said) {
            Some(State::Served) if shown.next().is_none() => problem("names no test".into()),
            Some(State::Absent) if shown.any(|name| !name.starts_with("refused.")) => {
                problem("is not there, and has tests".into());
            }
            _ => {}
        }
        for method in quoted(feature).filter(|name| name.starts_with(char::is_uppercase)) {
            match methods.get(method) {
                Some(listed) if Some(*listed) == state(said) => {}
                listed => problem(format!("{method}: docs/api.md says {listed:?}")),
            }
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    Ok(())
}
