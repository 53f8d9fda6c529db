//! Errors as Temporal's SDKs know them: code, message, and the details that SDKs turn into typed exceptions.

use bytes::Bytes;
use everlog_engine::Rejection;
use everlog_partition::CallFailure;
use everlog_temporal_api::enums::{NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope};
use everlog_temporal_api::{errordetails, rpc};
use prost::{Message, Name};
use prost_types::Any;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::codec::failure;

/// Bytes of a message. It is sent in a header, and clients bound their headers.
const MESSAGE_BYTES_MAX: usize = 2_000;
/// Bytes of a failure in the details, which are sent in a header as well.
const FAILURE_BYTES_MAX: usize = 4_000;

const CAUSE_HEADER: &str = "x-resource-exhausted-cause";
const SCOPE_HEADER: &str = "x-resource-exhausted-scope";

/// INVALID_ARGUMENT: the request can never succeed.
pub(crate) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(shortened(message.into()))
}

/// PERMISSION_DENIED: the request is not permitted to anybody.
pub(crate) fn denied(message: impl Into<String>) -> Status {
    detailed(Code::PermissionDenied, message.into(), &errordetails::PermissionDeniedFailure::default())
}

/// NOT_FOUND: the run, task or activity does not exist any more.
pub(crate) fn not_found(message: impl Into<String>) -> Status {
    detailed(Code::NotFound, message.into(), &errordetails::NotFoundFailure::default())
}

/// No namespace has this name.
pub(crate) fn namespace_not_found(namespace: &str) -> Status {
    let detail = errordetails::NamespaceNotFoundFailure { namespace: namespace.into() };
    detailed(Code::NotFound, format!("Namespace {namespace} is not found."), &detail)
}

/// The namespace of this name is deleted.
pub(crate) fn namespace_deleted(namespace: &str) -> Status {
    invalid_state(
        namespace,
        NamespaceState::Deleted,
        &[NamespaceState::Registered, NamespaceState::Deprecated],
    )
}

/// The namespace of this name is deleted or deprecated, and no workflow starts in it.
pub(crate) fn namespace_not_registered(namespace: &str, state: NamespaceState) -> Status {
    invalid_state(namespace, state, &[NamespaceState::Registered])
}

fn invalid_state(namespace: &str, state: NamespaceState, allowed: &[NamespaceState]) -> Status {
    let detail = errordetails::NamespaceInvalidStateFailure {
        namespace: namespace.into(),
        state: state.into(),
        allowed_states: allowed.iter().map(|state| (*state).into()).collect(),
    };
    let names = if allowed.len() > 1 { "Registered or Deprecated" } else { "Registered" };
    let state = if state == NamespaceState::Deleted { "Deleted" } else { "Deprecated" };
    let message = format!("Namespace has invalid state: {state}. Must be {names}.");
    detailed(Code::FailedPrecondition, message, &detail)
}

/// A namespace of this name exists.
pub(crate) fn namespace_exists(namespace: &str) -> Status {
    let message = format!("Namespace {namespace} already exists.");
    detailed(Code::AlreadyExists, message, &errordetails::NamespaceAlreadyExistsFailure::default())
}

/// The run cannot do that now.
pub(crate) fn not_ready(message: impl Into<String>) -> Status {
    detailed(Code::FailedPrecondition, message.into(), &errordetails::WorkflowNotReadyFailure::default())
}

/// The handler of a query failed.
pub(crate) fn query_failed(message: String, failure: Option<Bytes>) -> Status {
    let failure = failure.map(|failure| failure::cut(&failure, FAILURE_BYTES_MAX));
    detailed(Code::InvalidArgument, message, &errordetails::QueryFailedFailure { failure })
}

/// RESOURCE_EXHAUSTED, with cause and scope.
pub(crate) fn exhausted(
    cause: ResourceExhaustedCause,
    scope: ResourceExhaustedScope,
    message: impl Into<String>,
) -> Status {
    let detail = errordetails::ResourceExhaustedFailure { cause: cause.into(), scope: scope.into() };
    let mut metadata = MetadataMap::new();
    metadata.insert(CAUSE_HEADER, MetadataValue::from_static(cause_name(cause)));
    metadata.insert(SCOPE_HEADER, MetadataValue::from_static(scope_name(scope)));
    let message = shortened(message.into());
    let details = details(Code::ResourceExhausted, &message, &detail);
    Status::with_details_and_metadata(Code::ResourceExhausted, message, details, metadata)
}

/// The budget of calls is exhausted.
pub(crate) fn overloaded() -> Status {
    let (cause, scope) = (ResourceExhaustedCause::SystemOverloaded, ResourceExhaustedScope::System);
    exhausted(cause, scope, "too many calls at once")
}

/// The header by which a node says that another one owns the partition, and that the call took no effect.
const MOVED_HEADER: &str = "everlog-moved";

/// The partition has another owner, and the call took no effect.
pub(crate) fn moved() -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(MOVED_HEADER, MetadataValue::from_static("1"));
    Status::with_metadata(Code::Unavailable, CallFailure::Moved.to_string(), metadata)
}

/// True of a response with this refusal.
pub(crate) fn is_moved(headers: &HeaderMap) -> bool {
    headers.contains_key(MOVED_HEADER)
}

/// The status of a failure of the partition.
pub(crate) fn of_failure(failure: CallFailure) -> Status {
    match failure {
        CallFailure::Busy => {
            let (cause, scope) = (ResourceExhaustedCause::SystemOverloaded, ResourceExhaustedScope::System);
            exhausted(cause, scope, failure.to_string())
        }
        CallFailure::Full => {
            let (cause, scope) =
                (ResourceExhaustedCause::PersistenceStorageLimit, ResourceExhaustedScope::System);
            exhausted(cause, scope, failure.to_string())
        }
        CallFailure::NamespaceCrowded { .. } => {
            let (cause, scope) = (ResourceExhaustedCause::ConcurrentLimit, ResourceExhaustedScope::Namespace);
            exhausted(cause, scope, failure.to_string())
        }
        CallFailure::Crowded { .. } => {
            let (cause, scope) = (ResourceExhaustedCause::ConcurrentLimit, ResourceExhaustedScope::System);
            exhausted(cause, scope, failure.to_string())
        }
        CallFailure::Unavailable | CallFailure::Indexing { .. } => Status::unavailable(failure.to_string()),
        CallFailure::TooManyGroups { .. } => invalid(format!("invalid query: {failure}")),
        CallFailure::Moved => moved(),
        CallFailure::Internal => Status::internal(failure.to_string()),
    }
}

/// The status of a rejection by the engine.
pub(crate) fn of_rejection(rejection: Rejection) -> Status {
    match rejection {
        Rejection::NotFound(message) => not_found(message),
        Rejection::InvalidArgument(message) => invalid(message),
        Rejection::Busy(message) => {
            exhausted(ResourceExhaustedCause::BusyWorkflow, ResourceExhaustedScope::Namespace, message)
        }
        Rejection::NotReady(message) => not_ready(message),
        Rejection::TooManyAtOnce(message) => {
            exhausted(ResourceExhaustedCause::ConcurrentLimit, ResourceExhaustedScope::Namespace, message)
        }
        Rejection::NamespaceUnknown(name) => namespace_not_found(&name),
        // The rejection has the UUID only, because the name has changed.
        Rejection::NamespaceDeleted(id) => namespace_deleted(&id),
        Rejection::TooMany(message) | Rejection::Outdated(message) => {
            Status::failed_precondition(shortened(message))
        }
        Rejection::AlreadyStarted { message, run_id, first_run_id, request_id } => {
            let detail = errordetails::WorkflowExecutionAlreadyStartedFailure {
                start_request_id: request_id,
                run_id,
                first_execution_run_id: first_run_id,
            };
            detailed(Code::AlreadyExists, message, &detail)
        }
    }
}

/// The reply is of another kind than the request: an error of the server.
pub(crate) fn unexpected_reply() -> Status {
    Status::internal("unexpected reply")
}

/// The cause and scope of a RESOURCE_EXHAUSTED status, for metrics.
pub(crate) fn exhaustion(status: &Status) -> (&str, &str) {
    let text =
        |name| status.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or("Unspecified");
    (text(CAUSE_HEADER), text(SCOPE_HEADER))
}

/// A status with a typed detail.
pub(crate) fn detailed<D: Message + Name>(code: Code, message: String, detail: &D) -> Status {
    let message = shortened(message);
    let details = details(code, &message, detail);
    Status::with_details(code, message, details)
}

fn details<D: Message + Name>(code: Code, message: &str, detail: &D) -> Bytes {
    let any = Any { type_url: D::type_url(), value: detail.encode_to_vec() };
    rpc::Status { code: code.into(), message: message.into(), details: vec![any] }.encode_to_vec().into()
}

fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
    }
    message
}

fn cause_name(cause: ResourceExhaustedCause) -> &'static str {
    match cause {
        ResourceExhaustedCause::Unspecified => "Unspecified",
        ResourceExhaustedCause::RpsLimit => "RpsLimit",
        ResourceExhaustedCause::ConcurrentLimit => "ConcurrentLimit",
        ResourceExhaustedCause::SystemOverloaded => "SystemOverloaded",
        ResourceExhaustedCause::PersistenceLimit => "PersistenceLimit",
        ResourceExhaustedCause::BusyWorkflow => "BusyWorkflow",
        ResourceExhaustedCause::ApsLimit => "ApsLimit",
        ResourceExhaustedCause::PersistenceStorageLimit => "PersistenceStorageLimit",
        ResourceExhaustedCause::CircuitBreakerOpen => "CircuitBreakerOpen",
        ResourceExhaustedCause::OpsLimit => "OpsLimit",
        ResourceExhaustedCause::WorkerDeploymentLimits => "WorkerDeploymentLimits",
        ResourceExhaustedCause::BandwidthLimit => "BandwidthLimit",
    }
}

fn scope_name(scope: ResourceExhaustedScope) -> &'static str {
    match scope {
        ResourceExhaustedScope::Unspecified => "Unspecified",
        ResourceExhaustedScope::Namespace => "Namespace",
        ResourceExhaustedScope::System => "System",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail<D: Message + Name + Default>(status: &Status) -> D {
        let read = rpc::Status::decode(status.details()).expect("details are a google.rpc.Status");
        assert_eq!(read.code, i32::from(status.code()));
        assert_eq!(read.message, status.message());
        read.details[0].to_msg().expect("the first detail is of this type")
    }

    #[test]
    fn a_start_that_clashes_tells_the_run_in_the_way() {
        let status = of_rejection(Rejection::AlreadyStarted {
            message: "Workflow execution is already running.".into(),
            run_id: "run".into(),
            first_run_id: "first".into(),
            request_id: "request".into(),
        });
        assert_eq!(status.code(), Code::AlreadyExists);
        let detail: errordetails::WorkflowExecutionAlreadyStartedFailure = detail(&status);
        assert_eq!(
            (
                detail.run_id.as_str(),
                detail.first_execution_run_id.as_str(),
                detail.start_request_id.as_str()
            ),
            ("run", "first", "request")
        );
    }

    #[test]
    fn an_unknown_namespace_is_named_in_the_details() {
        let status = namespace_not_found("shop");
        assert_eq!((status.code(), status.message()), (Code::NotFound, "Namespace shop is not found."));
        assert_eq!(detail::<errordetails::NamespaceNotFoundFailure>(&status).namespace, "shop");
    }

    #[test]
    fn a_deleted_namespace_is_named_with_what_it_would_have_to_be() {
        let status = of_rejection(Rejection::NamespaceDeleted("id".into()));
        let message = "Namespace has invalid state: Deleted. Must be Registered or Deprecated.";
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, message));
        let detail: errordetails::NamespaceInvalidStateFailure = detail(&status);
        assert_eq!((detail.namespace.as_str(), detail.state()), ("id", NamespaceState::Deleted));
        assert_eq!(detail.allowed_states, [1, 2]);
        let message = "Namespace has invalid state: Deleted. Must be Registered.";
        assert_eq!(namespace_not_registered("shop", NamespaceState::Deleted).message(), message);
        let message = "Namespace has invalid state: Deprecated. Must be Registered.";
        assert_eq!(namespace_not_registered("shop", NamespaceState::Deprecated).message(), message);
    }

    #[test]
    fn exhaustion_tells_its_cause_in_details_and_headers() {
        let status = of_rejection(Rejection::Busy("Workflow is closing, try again.".into()));
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(exhaustion(&status), ("BusyWorkflow", "Namespace"));
        let detail: errordetails::ResourceExhaustedFailure = detail(&status);
        assert_eq!(detail.cause(), ResourceExhaustedCause::BusyWorkflow);
    }

    #[test]
    fn a_failed_query_keeps_its_failure() {
        let failure =
            everlog_temporal_api::failure::Failure { message: "no such query".into(), ..Default::default() };
        let status = query_failed("no such query".into(), Some(failure.encode_to_vec().into()));
        let detail: errordetails::QueryFailedFailure = detail(&status);
        assert_eq!(detail.failure.as_deref(), Some(failure.encode_to_vec().as_slice()));
    }

    #[test]
    fn a_message_never_grows_beyond_what_headers_bear() {
        let status = query_failed("ä".repeat(100_000), Some(vec![b'x'; 100_000].into()));
        assert!(status.message().len() <= MESSAGE_BYTES_MAX);
        assert!(status.details().len() <= MESSAGE_BYTES_MAX + FAILURE_BYTES_MAX + 500);
    }
}
