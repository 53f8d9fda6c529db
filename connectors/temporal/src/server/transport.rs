//! The outermost layer: RPCs that are not served are refused by name, and refusals of requests that could not be read get
//! the texts that SDKs know.

use everlog_temporal_api::codec;
use everlog_temporal_api::enums::{ResourceExhaustedCause, ResourceExhaustedScope};
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::{Code, Status};

use crate::codec::status::exhausted;
use crate::metrics::Metrics;
use crate::rpc;

/// How tonic refuses a message that is too large.
const TOO_LARGE: &str = "Error, decoded message length too large: found ";
/// How prost refuses bytes that are not a message.
const UNREADABLE: &str = "failed to decode Protobuf message";
/// Of an RPC's name in a refusal; the longest name of the API has 44.
const NAME_CHARS_MAX: usize = 100;

/// Replaces the refusal of an unread request, and counts it.
pub(crate) fn guarded(
    response: Response<Body>,
    metrics: &Metrics,
    message_bytes_max: usize,
) -> Response<Body> {
    let Some(status) = response.extensions().get::<Status>() else {
        return response;
    };
    let Some(status) = unread(status, message_bytes_max) else {
        return response;
    };
    metrics.count_unread(&status);
    status.into_http()
}

/// The refusal of a request that no handler saw, with Temporal's text; none if a handler answered.
fn unread(status: &Status, message_bytes_max: usize) -> Option<Status> {
    let too_large = |message: String| Some(too_large(message));
    let message = status.message();
    match status.code() {
        Code::OutOfRange if message.starts_with(TOO_LARGE) => {
            let found: String = message[TOO_LARGE.len()..].chars().take_while(char::is_ascii_digit).collect();
            too_large(format!("grpc: received message larger than max ({found} vs. {message_bytes_max})"))
        }
        Code::ResourceExhausted if message.starts_with(codec::TOO_LARGE) => too_large(message.to_owned()),
        Code::Internal if message.starts_with(codec::UNREADABLE) => Some(Status::internal(message)),
        Code::Internal if message.contains(UNREADABLE) => {
            Some(Status::internal(format!("grpc: error unmarshalling request: {message}")))
        }
        _handled => None,
    }
}

/// Refuses a path of the API that the table of RPCs does not have, by the name of its RPC.
pub(crate) fn served(path: &str) -> Result<(), Status> {
    if rpc::is_served(path) {
        return Ok(());
    }
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().take(NAME_CHARS_MAX).collect();
    Err(Status::unimplemented(format!("{name} is not served by Everlog, see docs/api.md")))
}

/// The refusal of a message that is too large.
pub(crate) fn too_large(message: String) -> Status {
    let (cause, scope) = (ResourceExhaustedCause::Unspecified, ResourceExhaustedScope::Unspecified);
    exhausted(cause, scope, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_large_is_refused_in_the_words_that_sdks_look_for() {
        let status = Status::out_of_range(
            "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes",
        );
        let status = unread(&status, 4 << 20).expect("it is put into other words");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.message(), "grpc: received message larger than max (5000000 vs. 4194304)");
    }

    #[test]
    fn an_rpc_that_is_not_served_is_refused_by_its_name() {
        let service = "/temporal.api.workflowservice.v1.WorkflowService";
        assert!(served(&format!("{service}/GetSystemInfo")).is_ok());
        let refusal = |path: &str| served(path).expect_err("it is refused");
        let absent = refusal(&format!("{service}/ListNexusEndpoints"));
        assert_eq!(absent.code(), Code::Unimplemented);
        assert_eq!(absent.message(), "ListNexusEndpoints is not served by Everlog, see docs/api.md");
        assert!(refusal(&format!("{service}/{}", "x".repeat(5_000))).message().len() < 200);
        assert_eq!(refusal("/temporal.api.workflowservice.v1.WorkflowService").code(), Code::Unimplemented);
    }

    #[test]
    fn answers_of_handlers_pass_unchanged() {
        assert!(unread(&Status::not_found("no"), 1).is_none());
        assert!(unread(&Status::unimplemented("no"), 1).is_none());
        assert!(unread(&Status::internal("internal error"), 1).is_none());
        assert!(unread(&Status::resource_exhausted("namespace rate limit exceeded"), 1).is_none());
    }
}
