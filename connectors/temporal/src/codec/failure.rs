//! Failures that the gateway reads, truncates or writes. All others pass through as bytes.

use bytes::Bytes;
use everlog_temporal_api::enums::TimeoutType;
use everlog_temporal_api::failure::failure::FailureInfo;
use everlog_temporal_api::failure::{ApplicationFailureInfo, Failure, ServerFailureInfo, TimeoutFailureInfo};
use prost::Message;

use crate::limits::Limits;

/// The depth of causes that a truncated failure keeps.
const CAUSES_MAX: usize = 20;
/// Bytes that a text field takes beside its text: tag and length.
const TEXT_BYTES: usize = 4;

/// True if the failure is an application failure, raised by user code.
pub(crate) fn is_application(failure: &Bytes) -> bool {
    Failure::decode(failure.clone())
        .is_ok_and(|failure| matches!(failure.failure_info, Some(FailureInfo::ApplicationFailureInfo(_))))
}

/// A non-retryable server failure with a cause.
pub(crate) fn server(message: &str, cause: Option<Bytes>) -> Bytes {
    let info = FailureInfo::ServerFailureInfo(ServerFailureInfo { non_retryable: true });
    let failure = Failure { message: message.into(), cause, failure_info: Some(info), ..Failure::default() };
    failure.encode_to_vec().into()
}

/// An application failure; `is_final`: there is no retry.
pub(crate) fn application(message: &str, r#type: &str, is_final: bool) -> Bytes {
    let info =
        ApplicationFailureInfo { r#type: r#type.into(), non_retryable: is_final, ..Default::default() };
    let failure_info = Some(FailureInfo::ApplicationFailureInfo(info));
    Failure { message: message.into(), failure_info, ..Failure::default() }.encode_to_vec().into()
}

/// The failure of a run that timed out and is retried.
pub(crate) fn run_timeout() -> Bytes {
    let info = TimeoutFailureInfo { timeout_type: TimeoutType::StartToClose.into(), ..Default::default() };
    let failure = Failure {
        message: "workflow timeout".into(),
        source: "Server".into(),
        failure_info: Some(FailureInfo::TimeoutFailureInfo(info)),
        ..Failure::default()
    };
    failure.encode_to_vec().into()
}

/// Replaces a failure that exceeds the limit of a payload: a non-retryable failure with the truncated one as its cause.
pub(crate) fn oversize(failure: &Bytes, limits: &Limits) -> Bytes {
    server("Failure exceeds size limit.", Some(cut(failure, limits.cut_failure_bytes)))
}

/// The failure if it has at most `bytes_max` bytes; else truncated, with the important fields first.
pub(crate) fn cut(failure: &Bytes, bytes_max: usize) -> Bytes {
    if failure.len() <= bytes_max {
        return failure.clone();
    }
    beginning(failure, bytes_max, CAUSES_MAX).encode_to_vec().into()
}

/// Truncates each text to the room that is left, counted as Temporal's server counts it, and drops details and other payloads.
fn beginning(failure: &Bytes, mut left: usize, causes_max: usize) -> Failure {
    let read = Failure::decode(failure.clone()).unwrap_or_default();
    let fitting = |text: &str, left: &mut usize| {
        let end = text.floor_char_boundary(*left);
        *left = left.saturating_sub(if end == 0 { 0 } else { end + TEXT_BYTES });
        text[..end].to_owned()
    };
    let failure_info = match read.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(application)) => {
            let r#type = fitting(&application.r#type, &mut left);
            left = left.saturating_sub(2 * TEXT_BYTES);
            let non_retryable = application.non_retryable;
            let kept = ApplicationFailureInfo { r#type, non_retryable, ..ApplicationFailureInfo::default() };
            Some(FailureInfo::ApplicationFailureInfo(kept))
        }
        Some(FailureInfo::ServerFailureInfo(server)) => {
            left = left.saturating_sub(TEXT_BYTES);
            Some(FailureInfo::ServerFailureInfo(server))
        }
        _with_details => None,
    };
    let source = fitting(&read.source, &mut left);
    let message = fitting(&read.message, &mut left);
    let stack_trace = fitting(&read.stack_trace, &mut left);
    let cause = read.cause.filter(|_cause| left > TEXT_BYTES && causes_max > 0);
    let cause =
        cause.map(|cause| beginning(&cause, left - TEXT_BYTES, causes_max - 1).encode_to_vec().into());
    Failure { message, source, stack_trace, cause, failure_info, ..Failure::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(message: &str) -> Bytes {
        let info = ApplicationFailureInfo {
            r#type: "Broken".into(),
            non_retryable: true,
            details: Some(vec![b'd'; 1_000].into()),
            ..Default::default()
        };
        let failure = Failure {
            message: message.into(),
            stack_trace: "at line 1".into(),
            failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
            ..Failure::default()
        };
        failure.encode_to_vec().into()
    }

    #[test]
    fn a_failure_that_fits_is_not_touched() {
        let failure = application("no");
        assert_eq!(cut(&failure, 10_000), failure);
        assert!(is_application(&failure));
    }

    #[test]
    fn a_failure_that_is_too_large_keeps_its_kind_and_the_beginning_of_its_message() {
        let cut = cut(&application(&"ü".repeat(10_000)), 2_000);
        assert!(cut.len() <= 2_000);
        let read = Failure::decode(cut.clone()).expect("still a failure");
        assert!(read.message.starts_with('ü') && read.message.len() > 1_000);
        let Some(FailureInfo::ApplicationFailureInfo(info)) = read.failure_info else {
            panic!("another kind")
        };
        assert_eq!((info.r#type.as_str(), info.non_retryable, info.details), ("Broken", true, None));
        assert!(is_application(&cut));
    }

    #[test]
    fn what_caused_a_failure_that_is_too_large_is_kept_as_far_as_there_is_room() {
        let failure = Failure {
            message: "outer".into(),
            source: "worker".into(),
            cause: Some(application(&"x".repeat(10_000))),
            ..Failure::default()
        };
        let cut = cut(&failure.encode_to_vec().into(), 500);
        let read = Failure::decode(cut).expect("still a failure");
        assert_eq!((read.message.as_str(), read.source.as_str()), ("outer", "worker"));
        let cause = Failure::decode(read.cause.expect("the cause")).expect("a failure");
        assert_eq!((cause.message.len(), cause.stack_trace.as_str()), (459, ""));
    }

    #[test]
    fn a_failure_of_the_server_is_not_the_users() {
        assert!(!is_application(&server("no", None)));
        assert!(!is_application(&Bytes::from_static(b"\xff\xff")));
    }
}
