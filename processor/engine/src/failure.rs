//! Failures: carried as opaque bytes, read only as far as a retry depends on them, written where the server speaks.

use bytes::Bytes;
use prost::Message;

use crate::api_types::TimeoutType;
use crate::time::Duration;

/// The part of a failure that decisions look at, and what the server's own failures are made of.
/// Field numbers are those of Temporal's `Failure`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// What went wrong, for people.
    #[prost(string, tag = "1")]
    pub message: String,
    /// Who says so.
    #[prost(string, tag = "2")]
    pub source: String,
    /// The failure behind this one, opaque.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub cause: Option<Bytes>,
    /// What kind of failure it is.
    #[prost(oneof = "Info", tags = "5, 6, 7, 8, 9")]
    pub info: Option<Info>,
}

/// The kinds of failures that decisions tell apart.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(missing_docs)]
pub enum Info {
    #[prost(message, tag = "5")]
    Application(Application),
    #[prost(message, tag = "6")]
    Timeout(Timeout),
    #[prost(message, tag = "7")]
    Canceled(Empty),
    #[prost(message, tag = "8")]
    Terminated(Empty),
    #[prost(message, tag = "9")]
    Server(Server),
}

/// Raised by the user's code.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Application {
    /// The error's type, as retry policies name it.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// No retry whatever the policy says.
    #[prost(bool, tag = "2")]
    pub non_retryable: bool,
    /// The next attempt waits this long whatever the policy says.
    #[prost(message, optional, tag = "4")]
    pub next_retry_delay: Option<Duration>,
}

/// A deadline passed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Timeout {
    /// Which one.
    #[prost(enumeration = "TimeoutType", tag = "1")]
    pub timeout_type: i32,
    /// What the activity reported last, opaque.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub last_heartbeat_details: Option<Bytes>,
}

/// Raised by the server.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Server {
    /// No retry.
    #[prost(bool, tag = "1")]
    pub non_retryable: bool,
}

/// A failure that no decision looks at: a reset has left behind what was under way.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct LeftBehind {
    #[prost(string, tag = "1")]
    message: String,
    #[prost(message, optional, tag = "10")]
    info: Option<Reset>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Reset {
    /// What the activity reported last, opaque.
    #[prost(bytes = "bytes", optional, tag = "1")]
    last_heartbeat_details: Option<Bytes>,
}

/// A kind without content that matters here.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Empty {}

/// Why a workflow task failed, in the server's words.
pub(crate) fn of_task(message: &str) -> Bytes {
    server(message, false, None)
}

/// A failure of an activity that the server raises; it is final.
pub(crate) fn of_activity(message: &str) -> Bytes {
    server(message, true, None)
}

/// Why a task, or an attempt, is not gone on with: the reason of a reset.
pub(crate) fn of_reset(reason: &str, last_heartbeat_details: Option<Bytes>) -> Bytes {
    let info = Some(Reset { last_heartbeat_details });
    LeftBehind { message: reason.into(), info }.encode_to_vec().into()
}

/// Stands for a failure that is larger than `bytes_max`; a quarter of that is kept of it as the cause.
pub(crate) fn too_large(failure: &Bytes, bytes_max: i64) -> Bytes {
    server("Failure exceeds size limit.", true, Some(kept(failure, bytes_max / 4)))
}

/// Why an update failed or was rejected, in the server's words; it is final.
pub(crate) fn of_update(message: &str, r#type: &str) -> Bytes {
    let info = Application { r#type: r#type.into(), non_retryable: true, next_retry_delay: None };
    let info = Some(Info::Application(info));
    Failure { message: message.into(), source: "Server".into(), cause: None, info }.encode_to_vec().into()
}

fn server(message: &str, non_retryable: bool, cause: Option<Bytes>) -> Bytes {
    let info = Some(Info::Server(Server { non_retryable }));
    Failure { message: message.into(), source: String::new(), cause, info }.encode_to_vec().into()
}

/// A passed deadline of an activity, with the last attempt's failure behind it.
pub(crate) fn timeout(
    timeout_type: TimeoutType,
    message: &str,
    heartbeat: Option<Bytes>,
    cause: Option<Bytes>,
) -> Bytes {
    let info = Timeout { timeout_type: timeout_type.into(), last_heartbeat_details: heartbeat };
    let info = Some(Info::Timeout(info));
    Failure { message: message.into(), source: "Server".into(), cause, info }.encode_to_vec().into()
}

/// The failure as it is kept in the state: whole, or cut down to its message where it is larger than `bytes_max`.
pub(crate) fn kept(failure: &Bytes, bytes_max: i64) -> Bytes {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(0);
    if failure.len() <= bytes_max {
        return failure.clone();
    }
    let read = Failure::decode(failure.clone()).unwrap_or_default();
    let part = bytes_max / 4;
    Failure {
        message: cut(&read.message, bytes_max / 2),
        source: cut(&read.source, part / 2),
        cause: None,
        info: read.info.map(|info| bare(info, part / 2)),
    }
    .encode_to_vec()
    .into()
}

fn bare(info: Info, bytes_max: usize) -> Info {
    match info {
        Info::Timeout(timeout) => Info::Timeout(Timeout { last_heartbeat_details: None, ..timeout }),
        Info::Application(application) => {
            Info::Application(Application { r#type: cut(&application.r#type, bytes_max), ..application })
        }
        Info::Canceled(_) | Info::Terminated(_) | Info::Server(_) => info,
    }
}

/// The beginning of a text, whole characters, at most `bytes_max` bytes.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_failure_is_never_larger_than_its_limit() {
        let info = Info::Application(Application { r#type: "ö".repeat(9_000), ..Application::default() });
        let large =
            Failure { message: "ü".repeat(9_000), source: "x".repeat(9_000), cause: None, info: Some(info) };
        let large: Bytes = large.encode_to_vec().into();
        for bytes_max in [64, 256, 4_096, 20_000] {
            let small = kept(&large, bytes_max);
            assert!(
                small.len() <= usize::try_from(bytes_max).expect("positive"),
                "{bytes_max}: {}",
                small.len()
            );
            assert!(matches!(Failure::decode(small).expect("a failure").info, Some(Info::Application(_))));
        }
        assert_eq!(kept(&large, 1 << 20), large);
        assert_eq!(kept(&Bytes::from_static(b"\xff\xff"), 1), Bytes::new());
    }

    #[test]
    fn a_failure_that_is_too_large_leaves_a_quarter_as_the_cause() {
        let large = Failure { message: "x".repeat(9_000), ..Failure::default() };
        let told = Failure::decode(too_large(&large.encode_to_vec().into(), 4_096)).expect("a failure");
        assert_eq!(told.message, "Failure exceeds size limit.");
        assert_eq!(told.info, Some(Info::Server(Server { non_retryable: true })));
        let cause = Failure::decode(told.cause.expect("a cause")).expect("a failure");
        assert_eq!(cause.message, "x".repeat(512));
    }
}
