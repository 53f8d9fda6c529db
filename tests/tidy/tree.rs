//! The files of the clone, and the way a test tells what is wrong with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are no part of what is written by hand.
const SKIPPED: &[&str] = &[".git", ".venv", "__pycache__", "everlog-data", "node_modules", "target"];
/// What ./everlog writes for cargo on this machine.
const UNKEPT: &str = ".cargo/rocksdb.toml";

/// A text file of the clone.
pub struct File {
    /// From the root of the clone, with `/`.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A Rust file that only tests are built from.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/")
    }
}

/// The root of the clone.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests package is a folder of the clone").to_path_buf()
}

/// All text files of the clone, in the order of their paths.
pub fn files() -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the clone can be read") {
            let entry = entry.expect("a folder of the clone can be read");
            let kind = entry.file_type().expect("a file of the clone has a type");
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                let path = entry.path().strip_prefix(&root).expect("found under the root").to_path_buf();
                let path = path.to_str().expect("names are UTF-8").replace('\\', "/");
                if path != UNKEPT {
                    found.push(File { path, text });
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Fails with all problems at once.
pub fn none(problems: &[String], advice: &str) {
    assert!(problems.is_empty(), "\n{advice}\n  {}\n", problems.join("\n  "));
}

/// Nothing is longer than `wall` but the `exceptions`, and these may only shrink.
pub fn ratchet(lengths: &BTreeMap<String, usize>, wall: usize, exceptions: &[(&str, usize)]) -> Vec<String> {
    let allowed: BTreeMap<&str, usize> = exceptions.iter().copied().collect();
    let mut problems = Vec::new();
    for (name, &lines) in lengths {
        match allowed.get(name.as_str()) {
            None if lines > wall => problems.push(format!("{name}: {lines} lines, {wall} is the wall")),
            Some(&most) if lines > most => {
                problems.push(format!("{name}: grew from {most} to {lines} lines"))
            }
            Some(&most) if lines < most => {
                problems.push(format!("{name}: shrank to {lines} lines, lower the exception of {most}"));
            }
            _ => {}
        }
    }
    let gone = allowed.keys().filter(|name| !lengths.contains_key(**name));
    problems.extend(gone.map(|name| format!("{name}: is gone, remove the exception")));
    problems
}

#[test]
fn a_ratchet_turns_one_way() {
    let lengths = |lines| BTreeMap::from([("a".to_owned(), lines)]);
    assert_eq!(ratchet(&lengths(10), 10, &[]), [] as [&str; 0]);
    assert_eq!(ratchet(&lengths(11), 10, &[]), ["a: 11 lines, 10 is the wall"]);
    assert_eq!(ratchet(&lengths(12), 10, &[("a", 12)]), [] as [&str; 0]);
    assert_eq!(ratchet(&lengths(13), 10, &[("a", 12)]), ["a: grew from 12 to 13 lines"]);
    assert_eq!(ratchet(&lengths(11), 10, &[("a", 12)]), ["a: shrank to 11 lines, lower the exception of 12"]);
    assert_eq!(ratchet(&BTreeMap::new(), 10, &[("a", 12)]), ["a: is gone, remove the exception"]);
}
