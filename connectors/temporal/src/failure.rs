//! Failures that the gateway reads, cuts or writes; everywhere else they pass through unread.

use bytes::Bytes;
use everlog_temporal_api::enums::TimeoutType;
use everlog_temporal_api::failure::failure::FailureInfo;
use everlog_temporal_api::failure::{ApplicationFailureInfo, Failure, ServerFailureInfo, TimeoutFailureInfo};
use prost::Message;

use crate::limits::Limits;

/// True where the failure was raised by the user's code.
pub(crate) fn is_application(failure: &Bytes) -> bool {
    Failure::decode(failure.clone())
        .is_ok_and(|failure| matches!(failure.failure_info, Some(FailureInfo::ApplicationFailureInfo(_))))
}

/// A final failure that the server raises, with another one behind it.
pub(crate) fn server(message: &str, cause: Option<Bytes>) -> Bytes {
    let info = FailureInfo::ServerFailureInfo(ServerFailureInfo { non_retryable: true });
    let failure = Failure {
        message: message.into(),
        source: "Server".into(),
        cause,
        failure_info: Some(info),
        ..Failure::default()
    };
    failure.encode_to_vec().into()
}

/// Why a run that took too long is followed by another one.
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

/// What stands for a failure that is larger than a payload may be: final, with what fits of it behind.
pub(crate) fn oversize(failure: &Bytes, limits: &Limits) -> Bytes {
    server("Failure exceeds size limit.", Some(cut(failure, limits.cut_failure_bytes)))
}

/// The failure itself where it has at most `bytes_max` bytes, else what of its message and kind fits.
pub(crate) fn cut(failure: &Bytes, bytes_max: usize) -> Bytes {
    if failure.len() <= bytes_max {
        return failure.clone();
    }
    let read = Failure::decode(failure.clone()).unwrap_or_default();
    // Room for the few bytes around the message and for the error's type.
    let mut end = bytes_max.saturating_sub(512).min(read.message.len());
    while !read.message.is_char_boundary(end) {
        end -= 1;
    }
    let failure = Failure {
        message: read.message[..end].to_owned(),
        source: if read.source.len() <= 64 { read.source } else { String::new() },
        failure_info: read.failure_info.and_then(bare),
        ..Failure::default()
    };
    failure.encode_to_vec().into()
}

/// The kind without what the user put into it.
fn bare(info: FailureInfo) -> Option<FailureInfo> {
    match info {
        FailureInfo::ApplicationFailureInfo(application) if application.r#type.len() <= 256 => {
            let ApplicationFailureInfo { r#type, non_retryable, next_retry_delay, category, .. } =
                application;
            let kept =
                ApplicationFailureInfo { r#type, non_retryable, next_retry_delay, category, details: None };
            Some(FailureInfo::ApplicationFailureInfo(kept))
        }
        FailureInfo::ServerFailureInfo(server) => Some(FailureInfo::ServerFailureInfo(server)),
        _with_details => None,
    }
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
    fn a_failure_of_the_server_is_not_the_users() {
        assert!(!is_application(&server("no", None)));
        assert!(!is_application(&Bytes::from_static(b"\xff\xff")));
    }
}
