//! What orders and rows say of versions of workers.

use everlog_engine::Properties;
use everlog_engine::api_types::VersioningBehavior;
use everlog_engine::command::{Command, CommandAttributes as CommandOrder};
use everlog_engine::machine::worker_versioning::Versioning;
use everlog_engine::machine::{activity, child, close, start, workflow_task_completed};
use everlog_engine::request::Request;

use crate::events::{overriding, version};

/// Orders with what they say of versions of workers.
pub fn orders() -> [Request; 2] {
    let commands = [
        CommandOrder::ScheduleActivity(Box::new(activity::Schedule {
            use_workflow_build_id: true,
            ..Default::default()
        })),
        CommandOrder::StartChild(Box::new(child::Start { inherit_build_id: true, ..Default::default() })),
        CommandOrder::ContinueAsNew(Box::new(close::ContinueAsNew {
            inherit_build_id: true,
            ..Default::default()
        })),
    ];
    let command = |order: CommandOrder| Command {
        command_type: order.command_type(),
        order: Some(order),
        ..Default::default()
    };
    [
        Request::Start(Box::new(start::Begin {
            versioning_override: Some(overriding()),
            inherited_pinned_version: Some(version()),
            ..Default::default()
        })),
        Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            commands: commands.map(command).into(),
            versioning_behavior: VersioningBehavior::AutoUpgrade.into(),
            deployment_name: "deployment".into(),
            deployment_version: Some(version()),
            ..Default::default()
        })),
    ]
}

/// What a run shows of itself, with a version of its workers.
pub fn properties() -> Properties {
    let versioning = Versioning {
        overriding: Some(overriding()),
        behavior: VersioningBehavior::Pinned.into(),
        version: Some(version()),
        inherited: true,
    };
    Properties { versioning: Some(versioning), deployment_name: "deployment".into(), ..Properties::default() }
}
