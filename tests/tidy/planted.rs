//! Bugs of `tests/differential/planted.toml`: each can still be planted, whatever has become of the code around it.

use std::fs;

use toml::{Table, Value};

use crate::tree::{none, root};

const LIST: &str = "tests/differential/planted.toml";
/// How many there are at the least.
const BUGS_MIN: usize = 10;

#[test]
fn every_planted_bug_has_its_place() {
    let list: Table = read(LIST).parse().expect("the list is TOML");
    let bugs = list.get("bug").and_then(Value::as_array).expect("the list has bugs");
    assert!(bugs.len() >= BUGS_MIN, "{} planted bugs are too few", bugs.len());
    let wrong = bugs.iter().zip(1..).filter_map(|(bug, number)| {
        let why = fault(bug)?;
        Some(format!("{LIST}: bug {number}: {why}"))
    });
    none(&wrong.collect::<Vec<_>>(), "give them other words, or another place:");
}

/// What keeps a bug from being planted: a text that is not there exactly once.
fn fault(bug: &Value) -> Option<String> {
    let said = |key: &str| bug.get(key).and_then(Value::as_str).unwrap_or_default();
    if let Some(key) = ["claim", "file", "right", "wrong"].into_iter().find(|key| said(key).is_empty()) {
        return Some(format!("it has no {key}"));
    }
    let (right, text) = (said("right"), bug.get("text").and_then(Value::as_str).unwrap_or(said("right")));
    if text.matches(right).count() != 1 {
        return Some(format!("{right:?} is not exactly once in {text:?}"));
    }
    let file = said("file");
    (read(file).matches(text).count() != 1).then(|| format!("{text:?} is not exactly once in {file}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

#[test]
fn bugs_without_a_place_are_found() {
    let fault = |rest: &str| {
        let bug = format!("claim = 'it is'\nfile = 'Cargo.toml'\nwrong = 'x'\n{rest}");
        fault(&Value::Table(bug.parse().expect("it is TOML")))
    };
    assert_eq!(fault("right = '[workspace.package]'"), None);
    assert_eq!(fault("right = 'workspace'\ntext = '[workspace.package]'"), None);
    assert_eq!(fault(""), Some("it has no right".to_owned()));
    assert_eq!(
        fault("right = 'workspace'"),
        Some("\"workspace\" is not exactly once in Cargo.toml".to_owned())
    );
    assert_eq!(
        fault("right = 'gone'\ntext = '[workspace.package]'"),
        Some("\"gone\" is not exactly once in \"[workspace.package]\"".to_owned())
    );
}
