//! What workflow code asks for when it completes a task. Field numbers are those of Temporal's `Command`.

use bytes::Bytes;

use crate::api_types::TaskFailedCause as Cause;
use crate::machine::{
    activity, child, close, external_workflow, marker, memo_and_search_attributes, timer, update,
};

/// One command of a completed workflow task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Command {
    /// Temporal's number of the command type.
    #[prost(int32, tag = "1")]
    pub command_type: i32,
    /// Summary and details for the resulting event, opaque.
    #[prost(bytes = "bytes", optional, tag = "301")]
    pub user_metadata: Option<Bytes>,
    /// Group markers for the resulting event, opaque.
    #[prost(bytes = "bytes", repeated, tag = "302")]
    pub event_group_markers: Vec<Bytes>,
    /// What is asked for.
    #[prost(
        oneof = "CommandAttributes",
        tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19"
    )]
    pub order: Option<CommandAttributes>,
}

/// What is asked for, by kind. The large kinds are boxed: a completion may hold two million commands of two bytes each.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(missing_docs)]
pub enum CommandAttributes {
    #[prost(message, tag = "2")]
    ScheduleActivity(Box<activity::Schedule>),
    #[prost(message, tag = "3")]
    StartTimer(timer::Start),
    #[prost(message, tag = "4")]
    CompleteWorkflow(close::Complete),
    #[prost(message, tag = "5")]
    FailWorkflow(close::Fail),
    #[prost(message, tag = "6")]
    RequestCancelActivity(activity::RequestCancel),
    #[prost(message, tag = "7")]
    CancelTimer(timer::Cancel),
    #[prost(message, tag = "8")]
    CancelWorkflow(close::Cancel),
    #[prost(message, tag = "9")]
    RequestCancelExternal(Box<external_workflow::CancelOther>),
    #[prost(message, tag = "10")]
    RecordMarker(Box<marker::Record>),
    #[prost(message, tag = "11")]
    ContinueAsNew(Box<close::ContinueAsNew>),
    #[prost(message, tag = "12")]
    StartChild(Box<child::Start>),
    #[prost(message, tag = "13")]
    SignalExternal(Box<external_workflow::SignalOther>),
    #[prost(message, tag = "14")]
    UpsertSearchAttributes(memo_and_search_attributes::UpsertSearchAttributes),
    #[prost(message, tag = "15")]
    ProtocolMessage(update::Refer),
    #[prost(message, tag = "17")]
    ModifyProperties(memo_and_search_attributes::Modify),
    #[prost(message, tag = "18")]
    ScheduleNexusOperation(Later),
    #[prost(message, tag = "19")]
    RequestCancelNexusOperation(Later),
}

/// The attributes of a command that is refused: not kept, since they are never looked at.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Later {}

/// What holds of every command of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Temporal's name of the type.
    pub(crate) name: &'static str,
    /// The command ends the run, so it must be the last one of its task.
    pub(crate) closes: bool,
    /// Why a task fails over a command that says nothing sensible.
    pub(crate) bad: Cause,
}

impl Command {
    /// The kind of the command; none of a type that is not known.
    pub(crate) fn kind(&self) -> Option<Kind> {
        let kind = |name, closes, bad| Some(Kind { name, closes, bad });
        match self.command_type {
            1 => kind("ScheduleActivityTask", false, Cause::BadScheduleActivityAttributes),
            2 => kind("RequestCancelActivityTask", false, Cause::BadRequestCancelActivityAttributes),
            3 => kind("StartTimer", false, Cause::BadStartTimerAttributes),
            4 => kind("CompleteWorkflowExecution", true, Cause::BadCompleteWorkflowExecutionAttributes),
            5 => kind("FailWorkflowExecution", true, Cause::BadFailWorkflowExecutionAttributes),
            6 => kind("CancelTimer", false, Cause::BadCancelTimerAttributes),
            7 => kind("CancelWorkflowExecution", true, Cause::BadCancelWorkflowExecutionAttributes),
            8 => kind(
                "RequestCancelExternalWorkflowExecution",
                false,
                Cause::BadRequestCancelExternalWorkflowExecutionAttributes,
            ),
            9 => kind("RecordMarker", false, Cause::BadRecordMarkerAttributes),
            10 => kind("ContinueAsNewWorkflowExecution", true, Cause::BadContinueAsNewAttributes),
            11 => kind("StartChildWorkflowExecution", false, Cause::BadStartChildExecutionAttributes),
            12 => kind("SignalExternalWorkflowExecution", false, Cause::BadSignalWorkflowExecutionAttributes),
            13 => kind("UpsertWorkflowSearchAttributes", false, Cause::BadSearchAttributes),
            14 => kind("ProtocolMessage", false, Cause::BadUpdateWorkflowExecutionMessage),
            16 => kind("ModifyWorkflowProperties", false, Cause::BadModifyWorkflowPropertiesAttributes),
            17 => kind("ScheduleNexusOperation", false, Cause::BadScheduleNexusOperationAttributes),
            18 => kind("RequestCancelNexusOperation", false, Cause::BadRequestCancelNexusOperationAttributes),
            _unknown => None,
        }
    }

    /// What is asked for, if it is what the type says.
    pub(crate) fn said(&self) -> Option<&CommandAttributes> {
        self.order.as_ref().filter(|order| order.command_type() == self.command_type)
    }
}

impl CommandAttributes {
    /// Temporal's number of the command type that goes with these attributes.
    pub fn command_type(&self) -> i32 {
        match self {
            Self::ScheduleActivity(_) => 1,
            Self::RequestCancelActivity(_) => 2,
            Self::StartTimer(_) => 3,
            Self::CompleteWorkflow(_) => 4,
            Self::FailWorkflow(_) => 5,
            Self::CancelTimer(_) => 6,
            Self::CancelWorkflow(_) => 7,
            Self::RequestCancelExternal(_) => 8,
            Self::RecordMarker(_) => 9,
            Self::ContinueAsNew(_) => 10,
            Self::StartChild(_) => 11,
            Self::SignalExternal(_) => 12,
            Self::UpsertSearchAttributes(_) => 13,
            Self::ProtocolMessage(_) => 14,
            Self::ModifyProperties(_) => 16,
            Self::ScheduleNexusOperation(_) => 17,
            Self::RequestCancelNexusOperation(_) => 18,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_command_takes_little_memory() {
        assert!(size_of::<Command>() <= 128, "{} bytes", size_of::<Command>());
    }
}
