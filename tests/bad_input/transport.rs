//! Rows about what surrounds a request, and about whole services that come later.

use bytes::Bytes;
use everlog_temporal_api::workflowservice::{GetSystemInfoRequest, StartWorkflowExecutionRequest};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request};

use crate::row::{Action, Row, later, refused, row, story, taken};
use crate::starts::truncated;
use crate::world::{empty, observation, path_of};

macro_rules! method {
    ($name:literal) => {
        concat!("/temporal.api.workflowservice.v1.WorkflowService/", $name)
    };
}

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    use Code::{FailedPrecondition, Internal, Unimplemented};
    vec![
        row(17, "protobuf cut short", story(truncated), refused(Internal, "").unlike("the codec's own words")),
        row(75, "a bad JWT: nobody looks at it", system_info(|m| { m.insert("authorization", "Bearer garbage".parse().expect("ASCII")); }),
            taken("").until("authorisation")),
        row(75, "a token without Bearer: nobody looks at it", system_info(|m| { m.insert("authorization", "garbage".parse().expect("ASCII")); }),
            taken("").until("authorisation")),
        row(76, "SDK version not supported", versioned("temporal-go", "99.0.0"),
            refused(FailedPrecondition, "").with("ClientVersionNotSupportedFailure")),
        row(76, "SDK version that is none", versioned("temporal-go", "newest"), refused(Code::InvalidArgument, "")),
        row(76, "SDK that nobody knows", versioned("temporal-cobol", "0.0.1"), taken("")),
        row(77, "unknown method", empty(method!("Nonsense")), refused(Unimplemented, "Nonsense is not served")),
        row(77, "unknown service", empty("/temporal.api.nonsense.v1.Nonsense/Nothing"), refused(Unimplemented, "Nothing is not served")),
        row(77, "method of the service that comes later", empty(method!("ListWorkerDeployments")), later("worker deployments")),
        // No input is known that leads to an internal error: the end of the test looks for panics instead.
        row(78, "internal error", empty(method!("GetSystemInfo")), taken("")),
    ]
}

fn system_info(edit: fn(&mut MetadataMap)) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let mut call = Request::new(Bytes::from(GetSystemInfoRequest {}.encode_to_vec()));
            edit(call.metadata_mut());
            Ok(observation(world.call(&path_of::<GetSystemInfoRequest>(), call).await))
        })
    })
}

/// A start by a client that names itself.
fn versioned(name: &'static str, version: &'static str) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let start = world.start_of(&world.fresh("run"));
            let mut call = Request::new(Bytes::from(start.encode_to_vec()));
            call.metadata_mut().insert("client-name", name.parse()?);
            call.metadata_mut().insert("client-version", version.parse()?);
            Ok(observation(world.call(&path_of::<StartWorkflowExecutionRequest>(), call).await))
        })
    })
}
