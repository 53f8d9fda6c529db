//! Queries of a seed: tests of attributes of all types, joined at random, and the same with a word too few, too many or in the wrong place.

use std::fmt;

use everlog_tests::dice::Dice;

use super::runs::{INTS, LISTED, RUNS, WORDS};

/// One of so many queries is damaged.
const DAMAGED_PERMILLE: u32 = 250;
/// Pages are smaller than most lists.
const PAGE_MAX: i64 = 9;
/// Joined tests, one in the other.
const DEPTH_MAX: u64 = 3;

/// A list or a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    pub is_count: bool,
    /// Runs of a page; of a list only.
    pub page_size: i32,
    /// `<start 7>` stands for the moment when run 7 started, `<run 7>` for its id.
    pub text: String,
}

impl fmt::Display for ListQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = if self.is_count { "count" } else { "list" };
        write!(formatter, "{call} {} {}", self.page_size, self.text)
    }
}

/// Asked of every namespace: what is answered otherwise on purpose, and what people ask most.
const ALWAYS: &[(bool, &str)] = &[
    (false, ""),
    (true, ""),
    (true, "GROUP BY ExecutionStatus"),
    (true, "WorkflowType = 'order' GROUP BY ExecutionStatus"),
    (true, "GROUP BY WorkflowType"),
    (true, "GROUP BY SeekKeyword"),
    (true, "GROUP BY ExecutionStatus, WorkflowType"),
    (false, "ORDER BY StartTime DESC"),
    (false, "ExecutionStatus = 'Running' ORDER BY StartTime"),
    (false, "ORDER BY SeekInt"),
    (false, "CloseTime > '2020-01-01T00:00:00Z'"),
    (false, "CloseTime IS NULL"),
    (false, "TemporalNamespaceDivision IS NOT NULL"),
];

/// So many queries of these dice.
pub fn of_seed(dice: &mut Dice, count: usize) -> Vec<ListQuery> {
    let mut queries: Vec<_> = ALWAYS
        .iter()
        .map(|(is_count, text)| ListQuery { is_count: *is_count, page_size: 1_000, text: (*text).to_owned() })
        .collect();
    while queries.len() < count {
        let is_count = dice.permille(250);
        let depth = dice.below(DEPTH_MAX + 1);
        let mut text = joined(dice, depth);
        if is_count && dice.permille(300) {
            text.push_str(" GROUP BY ExecutionStatus");
        }
        if dice.permille(DAMAGED_PERMILLE) {
            text = damaged(dice, &text);
        }
        let page_size = if is_count { 0 } else { dice.span(1, PAGE_MAX) as i32 };
        queries.push(ListQuery { is_count, page_size, text });
    }
    queries
}

fn one_of<'a>(dice: &mut Dice, choices: &[&'a str]) -> &'a str {
    choices[dice.index(choices.len())]
}

fn joined(dice: &mut Dice, depth: u64) -> String {
    if depth == 0 {
        return test(dice);
    }
    match dice.below(5) {
        0 => test(dice),
        1 => format!("{} ({})", one_of(dice, &["NOT", "not"]), joined(dice, depth - 1)),
        2 | 3 => {
            let joint = one_of(dice, &["AND", "OR", "and", "or"]);
            format!("({}) {joint} ({})", joined(dice, depth - 1), joined(dice, depth - 1))
        }
        _bare => format!("{} {} {}", test(dice), one_of(dice, &["AND", "OR"]), joined(dice, depth - 1)),
    }
}

const ORDERED: &[&str] = &["=", "!=", "<>", "<", "<=", ">", ">="];
const EQUAL: &[&str] = &["=", "!="];

/// A test that is valid.
fn test(dice: &mut Dice) -> String {
    match dice.below(14) {
        0 | 1 => keyword(dice, "SeekKeyword", WORDS),
        2 => keyword(dice, "WorkflowType", &["order", "invoice", "nobody"]),
        3 => keyword(dice, "`Seek-Dash`", WORDS),
        4 => status(dice),
        5 => match dice.below(3) {
            0 => null(dice, "SeekList"),
            1 => format!("SeekList {} {}", one_of(dice, &["IN", "NOT IN"]), values(dice, LISTED)),
            _one => format!("SeekList {} '{}'", one_of(dice, EQUAL), one_of(dice, LISTED)),
        },
        6 => match dice.below(4) {
            0 => null(dice, "SeekText"),
            _words => {
                let word =
                    one_of(dice, &["quick", "fox", "Order", "4711", "brown quick", "nothing", "shipped fox"]);
                format!("SeekText {} '{word}'", one_of(dice, EQUAL))
            }
        },
        7 => number(dice, "SeekInt", INTS),
        8 => number(dice, "SeekDouble", &["0", "0.5", "1.5", "2", "5", "7.25"]),
        9 => match dice.below(3) {
            0 => null(dice, "SeekBool"),
            _value => format!("SeekBool {} {}", one_of(dice, EQUAL), one_of(dice, &["true", "false"])),
        },
        10 => moment(dice, "SeekTime"),
        11 => {
            let name = one_of(dice, &["StartTime", "ExecutionTime"]);
            let run = dice.index(RUNS);
            format!("{name} {} '<start {run}>'", one_of(dice, ORDERED))
        }
        12 => {
            let run = dice.index(RUNS);
            match dice.below(3) {
                0 => format!("RunId = '<run {run}>'"),
                1 => format!("WorkflowId IN ('run-{run}', 'run-3', 'nobody')"),
                _prefix => format!("WorkflowId STARTS_WITH 'run-{}'", dice.below(4)),
            }
        }
        _of_the_server => match dice.below(4) {
            0 => null(dice, "BuildIds"),
            1 => null(dice, "ParentWorkflowId"),
            2 => format!("HistoryLength {} {}", one_of(dice, ORDERED), dice.below(8)),
            _closed => {
                let (operator, run) = (one_of(dice, &["<", "<=", ">", ">="]), dice.index(RUNS));
                format!("(ExecutionStatus != 'Running' AND CloseTime {operator} '<start {run}>')")
            }
        },
    }
}

fn null(dice: &mut Dice, name: &str) -> String {
    format!("{name} {}", one_of(dice, &["IS NULL", "IS NOT NULL", "is null"]))
}

fn quoted(dice: &mut Dice, word: &str) -> String {
    if word.contains('\'') || dice.permille(300) { format!("\"{word}\"") } else { format!("'{word}'") }
}

/// Two values in brackets.
fn values(dice: &mut Dice, words: &[&str]) -> String {
    let (one, other) = (one_of(dice, words), one_of(dice, words));
    format!("({}, {})", quoted(dice, one), quoted(dice, other))
}

fn keyword(dice: &mut Dice, name: &str, words: &[&str]) -> String {
    let word = one_of(dice, words);
    let (value, other) = (quoted(dice, word), one_of(dice, words));
    match dice.below(6) {
        0 => null(dice, name),
        1 => format!("{name} {} {}", one_of(dice, &["IN", "NOT IN"]), values(dice, words)),
        2 => format!("{name} BETWEEN {value} AND {}", quoted(dice, other)),
        3 => {
            let prefix: String = word.chars().take(1 + dice.index(3)).filter(|sign| *sign != '\'').collect();
            format!("{name} {} '{prefix}'", one_of(dice, &["STARTS_WITH", "NOT STARTS_WITH", "starts_with"]))
        }
        _compared => format!("{name} {} {value}", one_of(dice, ORDERED)),
    }
}

fn status(dice: &mut Dice) -> String {
    let names = ["Running", "Completed", "Failed", "Canceled", "Terminated", "ContinuedAsNew", "TimedOut"];
    match dice.below(4) {
        0 => format!("ExecutionStatus IN {}", values(dice, &names)),
        1 => format!("ExecutionStatus {} {}", one_of(dice, ORDERED), dice.below(8)),
        _named => format!("ExecutionStatus {} '{}'", one_of(dice, EQUAL), one_of(dice, &names)),
    }
}

fn number(dice: &mut Dice, name: &str, numbers: &[&str]) -> String {
    let (one, other) = (one_of(dice, numbers), one_of(dice, numbers));
    match dice.below(5) {
        0 => null(dice, name),
        1 => format!("{name} {} ({one}, {other})", one_of(dice, &["IN", "NOT IN"])),
        2 => format!("{name} {} {one} AND {other}", one_of(dice, &["BETWEEN", "NOT BETWEEN"])),
        _compared => format!("{name} {} {one}", one_of(dice, ORDERED)),
    }
}

/// At no moment that a run has: there a server on SQLite compares texts.
fn moment(dice: &mut Dice, name: &str) -> String {
    let value = format!("'2026-01-0{}T12:00:00Z'", 1 + dice.below(8));
    match dice.below(3) {
        0 => null(dice, name),
        _compared => format!("{name} {} {value}", one_of(dice, &["<", "<=", ">", ">="])),
    }
}

/// What is put into a query that is damaged.
const STRAY: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    "=",
    "!=",
    "==",
    "<",
    "'x'",
    "\"",
    "'",
    "`",
    "5",
    "-1.5",
    "NULL",
    "IN",
    "BETWEEN",
    "IS",
    "LIKE",
    "Nonsense",
    "SeekInt",
    "SeekList",
    "SeekText",
    "SeekBool",
    "WorkflowId",
    "true",
    ",",
    ";",
    "--",
    "/*",
    "*",
    "0x1F",
    ":x",
    "x()",
    "LIMIT 1",
    "HAVING",
    "STARTS_WITH",
    "GROUP BY SeekInt",
    "1e3",
    "'2026-01-01'",
    "%",
    "+",
    "REGEXP",
    "order",
    "select",
];

/// A word less, more, or another, somewhere.
fn damaged(dice: &mut Dice, text: &str) -> String {
    let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
    let place = dice.index(words.len());
    match dice.below(5) {
        0 => drop(words.remove(place)),
        1 => words.insert(place, one_of(dice, STRAY).to_owned()),
        2 => words[place] = one_of(dice, STRAY).to_owned(),
        3 => words.swap(place, (place * 7 + 1) % text.split(' ').count()),
        _cut => words.truncate(place),
    }
    words.join(" ")
}
