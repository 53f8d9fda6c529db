//! Tables of the documentation, and the enums of Temporal's API as the descriptors have them.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use prost::Message;
use prost_types::FileDescriptorSet;

/// The root of the clone.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a page says of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// `yes`, or `partly: WHAT`.
    Served,
    /// `no`, `not yet`, or `never: WHY`.
    Absent,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Served { "is served" } else { "is not served" })
    }
}

/// The state that a cell holds; none where it holds something else.
pub fn state(cell: &str) -> Option<State> {
    match cell.split_once(": ").unwrap_or((cell, "")) {
        ("yes", "") => Some(State::Served),
        ("partly", what) if !what.is_empty() => Some(State::Served),
        ("no" | "not yet", "") => Some(State::Absent),
        ("never", why) if !why.is_empty() => Some(State::Absent),
        _ => None,
    }
}

/// The cells of the rows whose second one is a state, in the section of this heading or, without one, on the whole page.
/// The tables of a section have no other rows.
///
/// # Errors
/// The page cannot be read, or has not such rows.
pub fn rows(page: &str, heading: Option<&str>) -> anyhow::Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(root().join(page)).with_context(|| page.to_owned())?;
    let section = match heading {
        None => text.as_str(),
        Some(heading) => {
            let (_, rest) =
                text.split_once(&format!("\n## {heading}\n")).with_context(|| heading.to_owned())?;
            rest.split("\n## ").next().unwrap_or(rest)
        }
    };
    let cells = |line: &str| {
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
    };
    let all: Vec<_> = section.lines().filter_map(cells).collect();
    let is_state = |row: &&Vec<String>| row.get(1).is_some_and(|cell| state(cell).is_some());
    let is_head =
        |row: &&Vec<String>| row.get(1).is_some_and(|cell| cell == "state" || cell.starts_with("--"));
    let strange = all.iter().find(|row| heading.is_some() && !is_state(row) && !is_head(row));
    anyhow::ensure!(strange.is_none(), "{page} says something else than a state: {strange:?}");
    let rows: Vec<_> = all.iter().filter(is_state).cloned().collect();
    anyhow::ensure!(!rows.is_empty(), "{page} has no rows of {heading:?}");
    Ok(rows)
}

/// What stands in backticks.
pub fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The values of an enum of the API but UNSPECIFIED: `EVENT_TYPE_TIMER_FIRED` of `EventType` is (18, `TimerFired`).
///
/// # Errors
/// There is no such enum.
pub fn values(of: &str, prefix: &str) -> anyhow::Result<Vec<(i32, String)>> {
    let files = FileDescriptorSet::decode(everlog_temporal_api::DESCRIPTOR)?.file;
    let found = files.iter().flat_map(|file| &file.enum_type).find(|found| found.name() == of);
    let values = &found.with_context(|| of.to_owned())?.value;
    let named = values.iter().filter(|value| value.number() != 0).map(|value| {
        let name = value.name().strip_prefix(prefix).unwrap_or(value.name());
        (value.number(), name.split('_').map(capitalised).collect())
    });
    Ok(named.collect())
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    format!("{first}{}", rest.to_lowercase())
}

/// Compares what there is with the rows of a section, by the names in their first cells.
pub fn compare(there_is: &[(String, State)], rows: &[Vec<String>]) {
    let mut problems = Vec::new();
    for (name, actual) in there_is {
        match rows.iter().filter(|row| quoted(&row[0]).eq([name.as_str()])).collect::<Vec<_>>()[..] {
            [row] if state(&row[1]) == Some(*actual) => {}
            [row] => problems.push(format!("{name} {actual}; the page says: {}", row[1])),
            _ => problems.push(format!("{name} {actual}; the page does not have it once")),
        }
    }
    let known = |row: &&Vec<String>| there_is.iter().any(|(name, _)| quoted(&row[0]).eq([name.as_str()]));
    problems.extend(rows.iter().filter(|row| !known(row)).map(|row| format!("there is no {}", row[0])));
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_state_is_one_of_a_few_words() {
    for cell in ["yes", "partly: in one namespace"] {
        assert_eq!(state(cell), Some(State::Served), "{cell}");
    }
    for cell in ["no", "not yet", "never: a server never writes it"] {
        assert_eq!(state(cell), Some(State::Absent), "{cell}");
    }
    for cell in ["", "partly", "never: ", "yes: mostly", "state"] {
        assert_eq!(state(cell), None, "{cell}");
    }
}
