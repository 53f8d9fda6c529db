//! How far a job is: what people read of it, and the cursor from which another attempt goes on. Both are payloads of a heartbeat.
//!
//! The cursor names the runs of the current page that are not done, because a list asked again would leave out those that no
//! longer match. So each run counts once, however often its operation is repeated.

use bytes::Bytes;
use everlog_engine::api_types::{Fields, MapEntry};
use everlog_engine::payload::{Payload, Payloads};
use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, Status};

/// Failures that a job remembers: the last ones.
pub(crate) const FAILURES_MAX: usize = 100;
/// Bytes of the text of one. All of them stay far below the limit of a payload, with ids of the longest too.
const MESSAGE_BYTES_MAX: usize = 500;
/// The key of the counts in the memo of a job that has ended, as on Temporal's server.
pub(crate) const STATS_MEMO: &str = "batch_operation_stats";

/// A run that the job works at.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct BatchItem {
    #[prost(string, tag = "1")]
    pub workflow_id: String,
    /// Empty if the run named is the current one, and is not there.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// Among the executions that the caller names, so that one that is named twice is worked at twice; else 0.
    #[prost(uint64, tag = "3")]
    pub number: u64,
}

/// Where the job goes on.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BatchCursor {
    /// The runs of the current page that are not done.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<BatchItem>,
    /// The token of the page after it; empty for the first page.
    #[prost(bytes = "bytes", tag = "2")]
    pub next: Bytes,
    /// No page comes after it.
    #[prost(bool, tag = "3")]
    pub is_last: bool,
}

/// An operation that has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFailure {
    pub workflow_id: String,
    pub run_id: String,
    /// The code of the refusal, as gRPC writes it.
    pub code: String,
    pub message: String,
}

/// What people read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchReport {
    /// The runs that there are to work at, as counted at the beginning.
    pub total: i64,
    /// Runs that are done.
    pub complete: i64,
    /// Runs whose operation has failed.
    pub failed: i64,
    /// The last failures, oldest first.
    pub failures: Vec<RunFailure>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchProgress {
    pub report: BatchReport,
    pub cursor: BatchCursor,
}

fn payload(encoding: &'static str, data: Vec<u8>) -> Payload {
    let metadata = vec![MapEntry { key: "encoding".into(), value: Bytes::from_static(encoding.as_bytes()) }];
    Payload { metadata, data: data.into() }
}

/// A JSON value as an encoded payload.
pub(crate) fn json_payload(value: &Value) -> Bytes {
    payload("json/plain", value.to_string().into_bytes()).encode_to_vec().into()
}

impl RunFailure {
    fn of(item: BatchItem, status: &Status) -> Self {
        let message = status.message();
        let message = message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned();
        Self {
            workflow_id: item.workflow_id,
            run_id: item.run_id,
            code: code_name(status.code()).into(),
            message,
        }
    }

    fn json(&self) -> Value {
        let Self { workflow_id, run_id, code, message } = self;
        json!({"workflowId": workflow_id, "runId": run_id, "code": code, "message": message})
    }

    fn read(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Self {
            workflow_id: text("workflowId"),
            run_id: text("runId"),
            code: text("code"),
            message: text("message"),
        }
    }
}

impl BatchReport {
    fn payload(&self) -> Payload {
        let failures: Vec<_> = self.failures.iter().map(RunFailure::json).collect();
        let Self { total, complete, failed, .. } = self;
        let shown = json!({"total": total, "complete": complete, "failed": failed, "failures": failures});
        payload("json/plain", shown.to_string().into_bytes())
    }

    /// Encoded payloads with the report alone: the result of a job.
    pub(crate) fn result(&self) -> Bytes {
        Payloads { payloads: vec![self.payload()] }.encode_to_vec().into()
    }

    /// The report in payloads of a heartbeat or of a result.
    pub(crate) fn read(payloads: Option<&Bytes>) -> Option<Self> {
        let payloads = Payloads::decode(payloads?.clone()).ok()?;
        let value: Value = serde_json::from_slice(&payloads.payloads.first()?.data).ok()?;
        let count = |key: &str| value[key].as_i64();
        let failures = value["failures"].as_array()?.iter().map(RunFailure::read).collect();
        Some(Self {
            total: count("total")?,
            complete: count("complete")?,
            failed: count("failed")?,
            failures,
        })
    }

    /// The counts as an encoded memo. Temporal's server has no total.
    pub(crate) fn memo(&self) -> Bytes {
        let stats = json!({"NumSuccess": self.complete, "NumFailure": self.failed, "NumTotal": self.total});
        let entry = MapEntry { key: STATS_MEMO.into(), value: json_payload(&stats) };
        Fields { entries: vec![entry] }.encode_to_vec().into()
    }

    /// The counts in a memo, without failures.
    pub(crate) fn of_memo(memo: &[MapEntry]) -> Option<Self> {
        let entry = memo.iter().find(|entry| entry.key == STATS_MEMO)?;
        let payload = Payload::decode(entry.value.clone()).ok()?;
        let value: Value = serde_json::from_slice(&payload.data).ok()?;
        let count = |key: &str| value[key].as_i64();
        let (complete, failed) = (count("NumSuccess")?, count("NumFailure")?);
        let total = count("NumTotal").unwrap_or(complete + failed);
        Some(Self { total, complete, failed, failures: Vec::new() })
    }
}

impl BatchProgress {
    /// The details of a heartbeat.
    pub(crate) fn details(&self) -> Bytes {
        let cursor = payload("binary/protobuf", self.cursor.encode_to_vec());
        Payloads { payloads: vec![self.report.payload(), cursor] }.encode_to_vec().into()
    }

    /// What such details say; none at the first attempt.
    pub(crate) fn read(details: Option<&Bytes>) -> Option<Self> {
        let report = BatchReport::read(details)?;
        let payloads = Payloads::decode(details?.clone()).ok()?;
        let cursor = BatchCursor::decode(payloads.payloads.get(1)?.data.clone()).ok()?;
        Some(Self { report, cursor })
    }

    /// The operation at a run of the current page has ended.
    pub(crate) fn done(&mut self, item: BatchItem, outcome: Result<(), Status>) {
        let Some(place) = self.cursor.items.iter().position(|other| *other == item) else { return };
        self.cursor.items.remove(place);
        match outcome {
            Ok(()) => self.report.complete += 1,
            Err(status) => {
                self.report.failed += 1;
                if self.report.failures.len() == FAILURES_MAX {
                    self.report.failures.remove(0);
                }
                self.report.failures.push(RunFailure::of(item, &status));
            }
        }
    }

    /// Nothing is left. What left the list before its turn is not counted any more.
    pub(crate) fn finish(&mut self) {
        self.report.total = self.report.complete + self.report.failed;
    }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: u64) -> BatchItem {
        BatchItem { workflow_id: format!("order-{number}"), run_id: "run".into(), number }
    }

    fn begun() -> BatchProgress {
        let cursor = BatchCursor { items: (0..300).map(item).collect(), next: "next".into(), is_last: false };
        BatchProgress { report: BatchReport { total: 301, ..BatchReport::default() }, cursor }
    }

    #[test]
    fn an_attempt_goes_on_where_the_last_heartbeat_was() {
        let mut progress = begun();
        progress.done(item(3), Ok(()));
        progress.done(item(1), Err(Status::failed_precondition("it is paused")));
        let again = BatchProgress::read(Some(&progress.details())).expect("it was just written");
        assert_eq!(again, progress);
        assert_eq!(BatchProgress::read(None), None);
        assert_eq!(BatchProgress::read(Some(&Bytes::from_static(b"\xff"))), None);
        assert_eq!(
            BatchProgress::read(Some(&progress.report.result())),
            None,
            "a result is no place to go on from"
        );
    }

    #[test]
    fn a_run_counts_once() {
        let mut progress = begun();
        progress.done(item(7), Ok(()));
        progress.done(item(7), Ok(()));
        progress.done(item(8), Err(Status::internal("no")));
        assert_eq!((progress.report.complete, progress.report.failed), (1, 1));
        assert_eq!(progress.cursor.items.len(), 298);
        progress.finish();
        assert_eq!(progress.report.total, 2);
    }

    #[test]
    fn the_last_failures_are_kept_with_the_beginnings_of_their_texts() {
        let mut progress = begun();
        for number in 0..150 {
            progress.done(item(number), Err(Status::invalid_argument("ä".repeat(1_000))));
        }
        let report = BatchReport::read(Some(&progress.report.result())).expect("it was just written");
        assert_eq!((report.failed, report.failures.len()), (150, FAILURES_MAX));
        let last = report.failures.last().expect("there are some");
        assert_eq!((last.workflow_id.as_str(), last.code.as_str()), ("order-149", "INVALID_ARGUMENT"));
        assert_eq!(last.message, "ä".repeat(MESSAGE_BYTES_MAX / 2));
        let longest = "\u{1}".repeat(1_000);
        let mut worst = BatchProgress::default();
        for number in 0..u64::try_from(FAILURES_MAX).expect("small") {
            let item = BatchItem { workflow_id: longest.clone(), run_id: longest.clone(), number };
            worst.cursor.items.push(item.clone());
            worst.done(item, Err(Status::internal(&longest)));
        }
        assert!(worst.details().len() < 2 << 20, "{} bytes as JSON escapes them", worst.details().len());
    }

    #[test]
    fn counts_are_read_from_a_memo_of_either_server() {
        let report = BatchReport { total: 9, complete: 5, failed: 1, failures: Vec::new() };
        let fields = Fields::decode(report.memo()).expect("it was just written");
        assert_eq!(BatchReport::of_memo(&fields.entries), Some(report));
        let value = json_payload(&json!({"NumSuccess": 3, "NumFailure": 2}));
        let theirs = [MapEntry { key: STATS_MEMO.into(), value }];
        assert_eq!(BatchReport::of_memo(&theirs).map(|report| report.total), Some(5));
        assert_eq!(BatchReport::of_memo(&[]), None);
    }
}
