//! A record of a public topic as one row of a table: id, time, type, and the fields that matter. Columns have fixed
//! widths, because rows are printed as they come. JSON has everything, a row has not.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Timelike};
use everlog_config::logs::visible;
use everlog_log_kafka::topics::topic_io::Record;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json_line::DecodedRecord;

/// Widths of the columns id, time and type, in characters. A longer cell shifts the rest of its row.
const WIDTHS: [usize; 3] = [24, 24, 34];
/// Characters of the last column; the rest is cut off.
const DETAILS_CHARS_MAX: usize = 160;
/// Fields of events that are shown, in this order.
const DETAILS: [&str; 16] = [
    "workflow_type",
    "activity_type",
    "activity_id",
    "timer_id",
    "start_to_fire_timeout_ms",
    "signal_name",
    "update_name",
    "update_id",
    "workflow_id",
    "task_queue",
    "input",
    "result",
    "failure",
    "cause",
    "reason",
    "timeout_type",
];

/// The first line.
pub fn heading() -> String {
    row("WORKFLOW ID", "TIME (UTC)", "TYPE", "DETAILS")
}

/// The row of a record. `json` is its line of JSON.
///
/// # Errors
/// `json` is no object: a bug of this release.
pub fn line(record: &Record, decoded: &DecodedRecord, json: &str) -> Result<String> {
    let key = || record.key.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json)?;
    Ok(match decoded {
        DecodedRecord::Event(event) => {
            let attributes = fields.get(&snake_case(&event.r#type));
            let attributes = attributes.map(|object| serde_json::from_str(object.get())).transpose()?;
            let details = details(&DETAILS, &attributes.unwrap_or_default());
            row(&event.workflow_id, &utc(event.time), &event.r#type, &details)
        }
        DecodedRecord::Outcome(outcome) => {
            let id = outcome.workflow_id.as_deref().map_or_else(key, Into::into);
            let shown = ["run_id", "code", "reason", "update_id", "result", "failure"];
            row(&id, &utc(outcome.time), &outcome.status, &details(&shown, &fields))
        }
        DecodedRecord::Rejection(rejection) => {
            row(&key(), &utc(rejection.time), &rejection.code, &details(&["reason"], &fields))
        }
        DecodedRecord::Unreadable(why) => row(&key(), "", "(unreadable)", why),
    })
}

fn row(id: &str, time: &str, kind: &str, details: &str) -> String {
    let [id_width, time_width, kind_width] = WIDTHS;
    let details: String = details.chars().take(DETAILS_CHARS_MAX).collect();
    let [id, time, kind, details] = [id, time, kind, &details].map(visible::line);
    format!("{id:<id_width$}  {time:<time_width$}  {kind:<kind_width$}  {details}").trim_end().to_owned()
}

fn details(names: &[&str], fields: &BTreeMap<String, Box<RawValue>>) -> String {
    let shown = |name: &&str| Some(format!("{name}={}", text(name, fields.get(*name)?)));
    names.iter().filter_map(shown).collect::<Vec<_>>().join(" ")
}

/// A text as it is, of a failure its message, everything else as JSON.
fn text(name: &str, value: &RawValue) -> String {
    match serde_json::from_str(value.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(causes)) if name == "failure" => {
            causes.first().and_then(|cause| cause["message"].as_str()).unwrap_or_default().to_owned()
        }
        Ok(_) | Err(_) => value.get().to_owned(),
    }
}

/// A time in ms since 1970-01-01 UTC as `2026-11-30T01:02:03.456Z`; as a number where no calendar has it.
fn utc(time_ms: i64) -> String {
    let Some(time) = DateTime::from_timestamp_millis(time_ms) else { return time_ms.to_string() };
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let millis = time.timestamp_subsec_millis();
    format!("{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", time.date_naive())
}

/// The name of the field with the attributes of an event of this type.
fn snake_case(kind: &str) -> String {
    let mut name = String::with_capacity(kind.len() + 4);
    for character in kind.chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use everlog_avro::event::{WorkflowEvent, WorkflowExecutionSignaled};
    use everlog_avro::payload::{JSON, Payload};
    use everlog_avro::rejection::Rejection;

    use super::*;
    use crate::json_line;

    fn shown(decoded: &DecodedRecord) -> String {
        let record = Record { key: Some("order-1".into()), ..Record::default() };
        let json = json_line::line("everlog.events", &record, decoded).expect("a line");
        line(&record, decoded, &json).expect("a row")
    }

    fn signaled(name: &str) -> DecodedRecord {
        let payload = Payload { encoding: JSON.into(), text: Some("[1.50]".into()), ..Payload::default() };
        let signaled = WorkflowExecutionSignaled {
            signal_name: name.to_owned().into(),
            input: Some(vec![payload]),
            identity: None,
            header: None,
            external_workflow_id: None,
            external_run_id: None,
            request_id: None,
        };
        DecodedRecord::Event(Box::new(WorkflowEvent {
            workflow_id: "order-1".into(),
            r#type: "WorkflowExecutionSignaled".into(),
            time: 1_796_000_523_456,
            workflow_execution_signaled: Some(Box::new(signaled)),
            ..WorkflowEvent::default()
        }))
    }

    #[test]
    fn a_row_has_the_id_the_time_the_type_and_what_matters_below_its_heading() {
        let (heading, row) = (heading(), shown(&signaled("approved")));
        assert_eq!(
            row,
            "order-1                   2026-11-30T01:02:03.456Z  WorkflowExecutionSignaled           \
             signal_name=approved input=[[1.50]]"
        );
        assert_eq!(heading.find("DETAILS"), row.find("signal_name"));
        assert_eq!(heading.find("TIME"), row.find("2026"));
    }

    #[test]
    fn rejections_and_records_that_cannot_be_decoded_have_rows_too() {
        let rejection =
            Rejection { code: "not_json".into(), reason: "no\nJSON".into(), ..Rejection::default() };
        let row = shown(&DecodedRecord::Rejection(Box::new(rejection)));
        assert!(row.starts_with("order-1 ") && row.ends_with("reason=no\\nJSON"), "{row}");
        assert!(row.contains("  1970-01-01T00:00:00.000Z  not_json  "), "{row}");
        assert!(shown(&DecodedRecord::Unreadable("cut off".into())).ends_with("cut off"));
    }

    #[test]
    fn a_row_is_bounded_and_a_time_of_no_calendar_is_a_number() {
        assert!(shown(&signaled(&"x".repeat(10_000))).chars().count() < 300);
        assert_eq!(utc(i64::MAX), i64::MAX.to_string());
    }
}
