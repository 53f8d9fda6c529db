//! The commands of docs/compatibility.md are those that a server takes from a worker.

use anyhow::Context;
use everlog_engine::command::Command;
use everlog_temporal_api::DESCRIPTOR;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_temporal_api::workflowservice::TerminateWorkflowExecutionRequest;
use everlog_tests::caller::{Caller, execution};
use everlog_tests::server::Server;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_types::FileDescriptorSet;

use crate::table::{State, compare, rows, values};

/// What a feature that is not there yet is refused with.
const LATER: &str = "not supported yet";

/// The field of `Command` with the attributes of this type.
fn field(name: &str) -> anyhow::Result<u32> {
    let files = FileDescriptorSet::decode(DESCRIPTOR)?.file;
    let commands = files.iter().flat_map(|file| &file.message_type).find(|found| found.name() == "Command");
    let type_name = format!(".temporal.api.command.v1.{name}CommandAttributes");
    let fields = &commands.context("Command")?.field;
    let field = fields.iter().find(|field| field.type_name() == type_name).context(type_name)?;
    Ok(field.number().try_into()?)
}

/// A command of this type whose attributes are there, and empty.
fn command(number: i32, name: &str) -> anyhow::Result<Command> {
    let mut bytes = Vec::new();
    encode_key(1, WireType::Varint, &mut bytes);
    encode_varint(number.try_into()?, &mut bytes);
    encode_key(field(name)?, WireType::LengthDelimited, &mut bytes);
    encode_varint(0, &mut bytes);
    Ok(Command::decode(bytes.as_slice())?)
}

/// Served is a command that does something, or that is refused for what it says.
fn outcome(history: &[HistoryEvent]) -> State {
    let is_later = |event: &HistoryEvent| match &event.attributes {
        Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) => {
            failed.failure.as_ref().is_none_or(|failure| failure.message.contains(LATER))
        }
        _ => false,
    };
    let last = history.last().and_then(|event| event.attributes.as_ref());
    let without_effect = matches!(last, Some(Attributes::WorkflowTaskCompletedEventAttributes(_)));
    if without_effect || history.iter().any(is_later) { State::Absent } else { State::Served }
}

#[tokio::test]
async fn the_list_of_commands_is_true() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    let mut commands = Vec::new();
    for (number, name) in values("CommandType", "COMMAND_TYPE_")? {
        caller.start_patient(&name).await?;
        let task = caller.take().await?.with_context(|| format!("no task for {name}"))?;
        // What is wrong with it stands in the history.
        drop(caller.complete(task, vec![command(number, &name)?]).await);
        let history = caller.history(&name).await?;
        anyhow::ensure!(history.len() > 1, "{name} has {} events", history.len());
        commands.push((name.clone(), outcome(&history)));
        let request = TerminateWorkflowExecutionRequest {
            namespace: "default".into(),
            workflow_execution: execution(&name),
            ..Default::default()
        };
        // It may have closed itself.
        drop(caller.send(request).await);
    }
    compare(&commands, &rows("docs/compatibility.md", Some("Commands"))?);
    Ok(())
}
