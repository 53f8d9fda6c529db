//! What the worker orders: commands encoded once, and the completion that carries them.

use std::collections::HashMap;

use bytes::Bytes;
use everlog_temporal_api::command::{
    CompleteWorkflowExecutionCommandAttributes, ProtocolMessageCommandAttributes,
    RecordMarkerCommandAttributes, ScheduleActivityTaskCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes, StartTimerCommandAttributes,
};
use everlog_temporal_api::common::{ActivityType, WorkflowType};
use everlog_temporal_api::enums::CommandType;
use everlog_temporal_api::protocol;
use everlog_temporal_api::query::WorkflowQueryResult;
use everlog_temporal_api::taskqueue::{StickyExecutionAttributes, TaskQueue};
use prost::Message;
use prost_types::Duration;

const ACTIVITY_TIMEOUT_SECONDS: i64 = 60;

/// `RespondWorkflowTaskCompletedRequest` as far as it is needed here, with encoded commands.
#[derive(Clone, PartialEq, Message)]
pub struct Completion {
    #[prost(bytes = "bytes", tag = "1")]
    pub task_token: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub commands: Vec<Bytes>,
    #[prost(string, tag = "3")]
    pub identity: String,
    #[prost(message, optional, tag = "4")]
    pub sticky_attributes: Option<StickyExecutionAttributes>,
    #[prost(bool, tag = "5")]
    pub return_new_workflow_task: bool,
    #[prost(bool, tag = "6")]
    pub force_create_new_workflow_task: bool,
    #[prost(map = "string, message", tag = "8")]
    pub query_results: HashMap<String, WorkflowQueryResult>,
    #[prost(string, tag = "9")]
    pub namespace: String,
    #[prost(message, repeated, tag = "11")]
    pub messages: Vec<protocol::Message>,
}

/// `Command`, with the attributes that are used here.
#[derive(Clone, PartialEq, Message)]
struct Command {
    #[prost(enumeration = "CommandType", tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    schedule_activity: Option<ScheduleActivityTaskCommandAttributes>,
    #[prost(message, optional, tag = "3")]
    start_timer: Option<StartTimerCommandAttributes>,
    #[prost(message, optional, tag = "4")]
    complete: Option<CompleteWorkflowExecutionCommandAttributes>,
    #[prost(message, optional, tag = "10")]
    record_marker: Option<RecordMarkerCommandAttributes>,
    #[prost(message, optional, tag = "12")]
    start_child: Option<StartChildWorkflowExecutionCommandAttributes>,
    #[prost(message, optional, tag = "15")]
    protocol_message: Option<ProtocolMessageCommandAttributes>,
}

/// Completes the workflow.
pub fn complete(result: Bytes) -> Bytes {
    encoded(Command {
        kind: CommandType::CompleteWorkflowExecution.into(),
        complete: Some(CompleteWorkflowExecutionCommandAttributes { result: Some(result) }),
        ..Default::default()
    })
}

/// Schedules activity `number` of a workflow.
pub fn schedule_activity(number: u32, task_queue: &str, input: Bytes) -> Bytes {
    let attributes = ScheduleActivityTaskCommandAttributes {
        activity_id: number.to_string(),
        activity_type: Some(ActivityType { name: "step".into() }),
        task_queue: Some(TaskQueue { name: task_queue.into(), ..Default::default() }),
        input: Some(input),
        start_to_close_timeout: Some(Duration { seconds: ACTIVITY_TIMEOUT_SECONDS, nanos: 0 }),
        ..Default::default()
    };
    encoded(Command {
        kind: CommandType::ScheduleActivityTask.into(),
        schedule_activity: Some(attributes),
        ..Default::default()
    })
}

/// Starts timer `number` of a workflow.
pub fn start_timer(number: u32, delay_ms: u64) -> Bytes {
    let delay = std::time::Duration::from_millis(delay_ms);
    let attributes = StartTimerCommandAttributes {
        timer_id: number.to_string(),
        start_to_fire_timeout: Some(Duration {
            seconds: delay.as_secs() as i64,
            nanos: delay.subsec_nanos() as i32,
        }),
    };
    encoded(Command {
        kind: CommandType::StartTimer.into(),
        start_timer: Some(attributes),
        ..Default::default()
    })
}

/// Starts a child of this type and id.
pub fn start_child(workflow_id: String, workflow_type: &str, task_queue: &str, input: Bytes) -> Bytes {
    let attributes = StartChildWorkflowExecutionCommandAttributes {
        workflow_id,
        workflow_type: Some(WorkflowType { name: workflow_type.into() }),
        task_queue: Some(TaskQueue { name: task_queue.into(), ..Default::default() }),
        input: Some(input),
        ..Default::default()
    };
    encoded(Command {
        kind: CommandType::StartChildWorkflowExecution.into(),
        start_child: Some(attributes),
        ..Default::default()
    })
}

/// Records a marker with details.
pub fn record_marker(details: Bytes) -> Bytes {
    let attributes = RecordMarkerCommandAttributes {
        marker_name: "mark".into(),
        details: [("details".to_string(), details)].into(),
        ..Default::default()
    };
    encoded(Command {
        kind: CommandType::RecordMarker.into(),
        record_marker: Some(attributes),
        ..Default::default()
    })
}

/// Stands where the message of this id takes effect.
pub fn protocol_message(message_id: &str) -> Bytes {
    encoded(Command {
        kind: CommandType::ProtocolMessage.into(),
        protocol_message: Some(ProtocolMessageCommandAttributes { message_id: message_id.into() }),
        ..Default::default()
    })
}

fn encoded(command: Command) -> Bytes {
    command.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use everlog_temporal_api::workflowservice::RespondWorkflowTaskCompletedRequest;

    use super::*;

    #[test]
    fn a_completion_reads_as_the_real_request() {
        let completion = Completion {
            task_token: "token".into(),
            commands: vec![
                schedule_activity(1, "queue", Bytes::new()),
                start_timer(1, 1_500),
                start_child("child".into(), "nothing", "queue", Bytes::new()),
                record_marker(Bytes::from_static(b"details")),
                protocol_message("1/answer"),
                complete(Bytes::new()),
            ],
            identity: "worker".into(),
            sticky_attributes: Some(StickyExecutionAttributes::default()),
            return_new_workflow_task: true,
            force_create_new_workflow_task: true,
            query_results: [("q".to_string(), WorkflowQueryResult::default())].into(),
            namespace: "default".into(),
            messages: vec![protocol::Message { id: "1/answer".into(), ..Default::default() }],
        };
        let wire = completion.encode_to_vec();
        let request = RespondWorkflowTaskCompletedRequest::decode(wire.as_slice()).unwrap();
        assert_eq!(request.encode_to_vec(), wire);
        assert_eq!((request.commands.len(), request.namespace.as_str()), (6, "default"));
    }
}
