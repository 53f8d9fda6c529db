//! What a real Temporal server answered to some 1,400 queries, and what this crate answers to the same.
//!
//! The recording is data (visibility-recorded/recorded.jsonl, made by record.py beside it). Every answer is the server's,
//! or a difference that is allowed below for a reason; `visibility-recorded/differences.txt` shows both answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use everlog_visibility::attribute::{Attribute, AttributeSource, AttributeType, SYSTEM};
use everlog_visibility::query::{Query, QueryError, RunAttributes, parse_datetime};
use everlog_visibility::record::Values;
use everlog_visibility::value::Value;
use expect_test::expect_file;
use serde_json::Value as Json;

const RECORDED: &str = include_str!("visibility-recorded/recorded.jsonl");

/// A run as the server lists it.
struct Run(serde_json::Map<String, Json>);

impl Values for Run {
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>> {
        let name = match &attribute.source {
            AttributeSource::Named(name) => name.as_str(),
            AttributeSource::System(system) => SYSTEM.iter().find(|(_, known)| known == system)?.0,
        };
        let value = self.0.get(name)?;
        if name == "ExecutionStatus" {
            return value.as_i64().map(Value::Int);
        }
        let text = |value: &'_ Json| value.as_str().map(|text| Cow::Owned(text.to_owned()));
        match attribute.kind {
            AttributeType::Keyword | AttributeType::Text => text(value).map(Value::String),
            AttributeType::KeywordList => {
                let elements: Vec<_> = value.as_array()?.iter().filter_map(text).collect();
                (!elements.is_empty()).then_some(Value::List(elements))
            }
            AttributeType::Int => value.as_i64().map(Value::Int),
            AttributeType::Double => value.as_f64().map(Value::Double),
            AttributeType::Bool => value.as_bool().map(Value::Bool),
            AttributeType::Datetime => parse_datetime(value.as_str()?).map(Value::Time),
        }
    }
}

struct Recording {
    runs: Vec<Run>,
    custom: BTreeMap<String, i32>,
    answers: Vec<Json>,
}

fn recording() -> Recording {
    let mut lines = RECORDED.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let mut next = |key: &str| lines.next().expect("a line")[key].take();
    let Json::Array(runs) = next("runs") else { panic!("no runs") };
    let run = |run| match run {
        Json::Object(values) => Run(values),
        other => panic!("{other}"),
    };
    let custom = serde_json::from_value(next("custom")).expect("types");
    Recording { runs: runs.into_iter().map(run).collect(), custom, answers: lines.collect() }
}

/// The answer of this crate, in the words of the recording.
fn answer(recording: &Recording, recorded: &Json) -> Json {
    let names = RunAttributes { custom: &recording.custom };
    let matching = |query: &Query| -> Vec<usize> {
        let places = recording.runs.iter().enumerate();
        places.filter(|(_, run)| query.filter.matches(*run)).map(|(place, _)| place).collect()
    };
    let refused = |error: QueryError| Json::from(error.to_string());
    if let Some(query) = recorded["list"].as_str() {
        return Query::for_list(query, &names).map_or_else(refused, |query| matching(&query).into());
    }
    let query = recorded["count"].as_str().expect("a list or a count");
    Query::for_count(query, &names).map_or_else(refused, |query| {
        let Some(by) = &query.group_by else { return matching(&query).len().into() };
        let mut groups = BTreeMap::<String, usize>::new();
        for place in matching(&query) {
            let shown = match recording.runs[place].value(by) {
                Some(Value::Int(status)) => {
                    let status = i32::try_from(status).expect("a status");
                    everlog_visibility::query::status_name(status).expect("a known status").to_owned()
                }
                Some(Value::String(text)) => text.into_owned(),
                other => format!("{other:?}"),
            };
            *groups.entry(shown).or_default() += 1;
        }
        serde_json::to_value(groups).expect("a map of numbers")
    })
}

/// The answer of the server: the runs sorted, a total, groups, or the text of a refusal.
fn expected(recorded: &Json) -> Json {
    if let Some(text) = recorded["text"].as_str() {
        return match recorded["code"].as_str() {
            Some("INVALID_ARGUMENT") => text.into(),
            Some(other) => format!("{other}: {text}").into(),
            None => panic!("{recorded}"),
        };
    }
    if let Some(runs) = recorded["runs"].as_array() {
        return runs.iter().filter_map(Json::as_u64).collect::<BTreeSet<_>>().into_iter().collect();
    }
    let query = recorded["count"].as_str().expect("a count").to_ascii_lowercase();
    recorded[if query.contains("group by") { "groups" } else { "total" }].clone()
}

/// Why answers may differ, and in which queries they do.
const DIFFERENCES: &[(&str, &[&str])] = &[
    ("names keep their spelling in messages", &["Status = 'x'", "Date > 1"]),
    ("a byte that is unknown is shown as the character it is of", &["ä = 1", "MyInt = 1 ä"]),
    (
        "SQLite's converter damages values with a double quote",
        &[
            r#"MyKeyword = "it's \"so\"""#,
            r#"MyKeyword = 'it\'s "so"'"#,
            r#"MyKeyword = 'it''s "so"'"#,
            r#"MyKeyword = "it's ""so""""#,
        ],
    ),
    (
        "prefixes and elements are compared with regard to case, as on PostgreSQL and Elasticsearch",
        &[
            "MyKeyword STARTS_WITH 'r'",
            "MyKeyword STARTS_WITH 'R'",
            "MyKeyword NOT STARTS_WITH 'r'",
            "MyList = 'RED'",
            "MyList = 'blue'",
        ],
    ),
    ("letters keep their accents, as on Elasticsearch", &["MyText = 'cafe'"]),
    (
        "an open run has no close time",
        &[
            "CloseTime > '2020-01-01T00:00:00Z'",
            "CloseTime != '2020-01-01T00:00:00Z'",
            "NOT CloseTime < '2020-01-01T00:00:00Z'",
            "CloseTime = '9999-12-31T23:59:59Z'",
        ],
    ),
    (
        "a moment equals itself, however many digits its fraction has",
        &[
            "MyTime = '2026-01-02T03:04:05Z'",
            "MyTime = '2026-01-02T03:04:05.250Z'",
            "MyTime = '2026-01-02T03:04:05.25Z'",
        ],
    ),
    ("RFC 3339 has two digits for the hour", &["StartTime > '2020-01-01T1:00:00Z'"]),
    ("numbers in hexadecimal and binary quotes are refused", &["MyInt = x'01'", "MyInt = b'01'"]),
    ("newer servers know it", &["TemporalReportedProblems IS NULL"]),
    ("more columns are grouped by, in counts", &["GROUP BY WorkflowType"]),
    (
        "what is never served is refused before its end is read",
        &[
            "MyList = ('red', 'green')",
            "MyTime > current_timestamp - interval 1 day",
            "case when MyInt = 1 then 1 else 2 end = 1",
            "(select 1 from t) = MyInt",
            "default = 1",
            "MyInt = 1 UNION SELECT 1",
        ],
    ),
];

#[test]
fn answers_are_those_of_the_server() {
    let recording = recording();
    assert!(recording.answers.len() > 1_000, "{}", recording.answers.len());
    let mut differences = BTreeMap::new();
    for recorded in &recording.answers {
        let query = recorded["list"].as_str().or(recorded["count"].as_str()).expect("a query");
        let (ours, theirs) = (answer(&recording, recorded), expected(recorded));
        if ours != theirs {
            differences.insert(query, format!("{query}\n    ours   {ours}\n    theirs {theirs}\n"));
        }
    }
    let mut shown = String::new();
    for (reason, queries) in DIFFERENCES {
        shown.push_str(&format!("-- {reason}\n"));
        for query in *queries {
            shown.push_str(&differences.remove(query).unwrap_or_else(|| panic!("no difference: {query}")));
        }
    }
    // An id of the server's own, which is another in each recording.
    let (before, after) = shown.split_once("please retry (").expect("a caught panic");
    let shown = format!("{before}please retry (id){}", after.get("afa7a8eb)".len()..).unwrap_or_default());
    expect_file!["visibility-recorded/differences.txt"].assert_eq(&shown);
    assert!(differences.is_empty(), "not allowed: {}", differences.into_values().collect::<String>());
}
