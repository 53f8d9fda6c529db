//! The README of the schemas does not lie: its examples are commands, its codes are all there are.

use everlog_avro::PublicTopic;
use everlog_avro::command::{Code, CommandVerdict};

use crate::world::read;

const README: &str = include_str!("../../../../schemas/README.md");

#[test]
fn the_examples_of_the_readme_are_commands() {
    let blocks: Vec<_> =
        README.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 7, "one of each kind");
    for block in blocks {
        for command in block.split("\n\n").filter(|command| !command.trim().is_empty()) {
            let verdict = read(command.as_bytes(), &[]);
            assert!(matches!(verdict, CommandVerdict::Accepted(_)), "{command}\n{verdict:?}");
        }
    }
}

#[test]
fn the_codes_of_the_readme_are_all_there_are() {
    for code in Code::ALL {
        assert!(README.contains(&format!("| `{}` |", code.name())), "{} is not in the README", code.name());
    }
    let rows = README.lines().filter(|line| line.starts_with("| `")).count();
    let nouns =
        PublicTopic::ALL.iter().filter(|noun| README.contains(&format!("| `{}` |", noun.topic()))).count();
    assert_eq!(
        (rows, nouns),
        (Code::ALL.len() + PublicTopic::ALL.len() + HEADERS.len(), PublicTopic::ALL.len())
    );
    for header in HEADERS {
        assert!(README.contains(&format!("| `{header}` |")), "the header {header} is not in the README");
    }
}

const HEADERS: [&str; 7] =
    ["namespace", "command-id", "reply-topic", "correlation-id", "deliver-at", "traceparent", "content-type"];
