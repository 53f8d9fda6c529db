//! A public command in JSON, made from the options of `everlog command send`.

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::value::RawValue;

use crate::json_line::Fields;

/// The command.
#[derive(Debug, Subcommand)]
pub enum CommandKind {
    /// Start a run.
    Start(StartOptions),
    /// Send a signal to the open run.
    Signal(SignalOptions),
    /// Send a signal; start a run first if none is open.
    SignalWithStart(SignalWithStart),
    /// Send an update to the open run; the outcome has its result.
    Update(UpdateOptions),
    /// Send an update; start a run first if none is open.
    UpdateWithStart(UpdateWithStart),
    /// Request the cancellation of the open run.
    Cancel(Reason),
    /// Terminate the open run at once.
    Terminate(Reason),
    /// Complete an activity with a result.
    CompleteActivity(CompleteOptions),
    /// Fail the current attempt of an activity.
    FailActivity(FailOptions),
    /// Send a command in JSON from the standard input, as schemas/README.md describes it.
    Json,
}

/// The options of a start.
#[derive(Args, Debug)]
pub struct StartOptions {
    /// The workflow type, as workers register it.
    #[arg(long, value_name = "NAME")]
    workflow_type: String,
    /// The task queue that its workers poll.
    #[arg(long, value_name = "NAME")]
    task_queue: String,
    /// An argument, in JSON; may be repeated.
    #[arg(long, value_name = "JSON")]
    input: Vec<String>,
    /// If a run of the Workflow Id is open: Fail, UseExisting or TerminateExisting.
    #[arg(long, value_name = "POLICY")]
    conflict_policy: Option<String>,
    /// If a run of the Workflow Id is closed: AllowDuplicate, AllowDuplicateFailedOnly or RejectDuplicate.
    #[arg(long, value_name = "POLICY")]
    reuse_policy: Option<String>,
    /// The timeout of the run, in milliseconds.
    #[arg(long, value_name = "MS")]
    run_timeout_ms: Option<i64>,
    /// The delay of its first workflow task, in milliseconds.
    #[arg(long, value_name = "MS")]
    start_delay_ms: Option<i64>,
}

/// A signal.
#[derive(Args, Debug)]
pub struct SignalOptions {
    /// The signal's name.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// An argument of the signal, in JSON; may be repeated.
    #[arg(long, value_name = "JSON")]
    input: Vec<String>,
    /// The run [default: the current one].
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// A signal and a start.
#[derive(Args, Debug)]
pub struct SignalWithStart {
    /// The signal's name.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// An argument of the signal, in JSON; may be repeated.
    #[arg(long, value_name = "JSON")]
    signal_input: Vec<String>,
    #[command(flatten)]
    start: StartOptions,
}

/// An update.
#[derive(Args, Debug)]
pub struct UpdateOptions {
    /// The name of the update's handler.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// An argument of the update, in JSON; may be repeated.
    #[arg(long, value_name = "JSON")]
    input: Vec<String>,
    /// The update's id; a run accepts it once [default: the command's id].
    #[arg(long, value_name = "ID")]
    update_id: Option<String>,
    /// The run [default: the current one].
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// An update and a start.
#[derive(Args, Debug)]
pub struct UpdateWithStart {
    /// The name of the update's handler.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// An argument of the update, in JSON; may be repeated.
    #[arg(long, value_name = "JSON")]
    update_input: Vec<String>,
    /// The update's id; a run accepts it once [default: the command's id].
    #[arg(long, value_name = "ID")]
    update_id: Option<String>,
    #[command(flatten)]
    start: StartOptions,
}

/// The reason to end a run.
#[derive(Args, Debug)]
pub struct Reason {
    /// The reason, for the history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The run [default: the current one].
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// The completion of an activity.
#[derive(Args, Debug)]
pub struct CompleteOptions {
    /// The activity's id.
    #[arg(long, value_name = "ID")]
    activity_id: String,
    /// The activity's result, in JSON.
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
    /// The run [default: the current one].
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// The failure of an activity.
#[derive(Args, Debug)]
pub struct FailOptions {
    /// The activity's id.
    #[arg(long, value_name = "ID")]
    activity_id: String,
    /// The message of the failure.
    #[arg(long, value_name = "TEXT")]
    message: String,
    /// The type of the error, for retry policies.
    #[arg(long, value_name = "NAME")]
    error_type: Option<String>,
    /// Do not retry, whatever the retry policy says.
    #[arg(long)]
    non_retryable: bool,
    /// The run [default: the current one].
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

impl CommandKind {
    /// The command in JSON. `input` reads the standard input, where a command comes from there.
    ///
    /// # Errors
    /// A value is no JSON.
    pub fn json(&self, input: impl FnOnce() -> Result<String>) -> Result<String> {
        let mut command = Fields::default();
        match self {
            Self::Start(start) => {
                command.put("type", "start")?;
                command.put_raw("start", start.json()?);
            }
            Self::Signal(signal) => {
                command.put("type", "signal")?;
                command.put("run_id", &signal.run_id)?;
                command.put_raw("signal", named(&signal.name, &signal.input)?);
            }
            Self::SignalWithStart(both) => {
                command.put("type", "signal_with_start")?;
                command.put_raw("signal", named(&both.name, &both.signal_input)?);
                command.put_raw("start", both.start.json()?);
            }
            Self::Update(update) => {
                command.put("type", "update")?;
                command.put("run_id", &update.run_id)?;
                let members = identified(&update.update_id, &update.name, &update.input)?;
                command.put_raw("update", members);
            }
            Self::UpdateWithStart(both) => {
                command.put("type", "update_with_start")?;
                let members = identified(&both.update_id, &both.name, &both.update_input)?;
                command.put_raw("update", members);
                command.put_raw("start", both.start.json()?);
            }
            Self::Cancel(reason) => reason.put("cancel", &mut command)?,
            Self::Terminate(reason) => reason.put("terminate", &mut command)?,
            Self::CompleteActivity(complete) => {
                command.put("type", "complete_activity")?;
                command.put("run_id", &complete.run_id)?;
                let mut members = Fields::default();
                members.put("activity_id", &complete.activity_id)?;
                members.put_raw("result", values("--result", complete.result.as_slice())?);
                command.put_raw("complete_activity", members.to_string());
            }
            Self::FailActivity(fail) => {
                command.put("type", "fail_activity")?;
                command.put("run_id", &fail.run_id)?;
                let mut members = Fields::default();
                members.put("activity_id", &fail.activity_id)?;
                members.put("message", &fail.message)?;
                members.put("error_type", &fail.error_type)?;
                members.put("non_retryable", &fail.non_retryable)?;
                command.put_raw("fail_activity", members.to_string());
            }
            Self::Json => {
                let input = input()?;
                let value: &RawValue =
                    serde_json::from_str(&input).context("what stands on the standard input is no JSON")?;
                ensure!(
                    value.get().starts_with('{'),
                    "a command is an object, as schemas/README.md describes it"
                );
                return Ok(value.get().to_owned());
            }
        }
        Ok(command.to_string())
    }
}

impl StartOptions {
    fn json(&self) -> Result<String> {
        let mut start = Fields::default();
        start.put("workflow_type", &self.workflow_type)?;
        start.put("task_queue", &self.task_queue)?;
        start.put_raw("input", values("--input", &self.input)?);
        start.put("conflict_policy", &self.conflict_policy)?;
        start.put("reuse_policy", &self.reuse_policy)?;
        start.put("workflow_run_timeout_ms", &self.run_timeout_ms)?;
        start.put("start_delay_ms", &self.start_delay_ms)?;
        Ok(start.to_string())
    }
}

impl Reason {
    fn put(&self, kind: &str, command: &mut Fields) -> Result<()> {
        command.put("type", kind)?;
        command.put("run_id", &self.run_id)?;
        let mut members = Fields::default();
        members.put("reason", &self.reason)?;
        command.put_raw(kind, members.to_string());
        Ok(())
    }
}

fn named(name: &str, input: &[String]) -> Result<String> {
    let mut signal = Fields::default();
    signal.put("name", name)?;
    signal.put_raw("input", values("--input", input)?);
    Ok(signal.to_string())
}

fn identified(id: &Option<String>, name: &str, input: &[String]) -> Result<String> {
    let mut update = Fields::default();
    update.put("id", id)?;
    update.put("name", name)?;
    update.put_raw("input", values("--input", input)?);
    Ok(update.to_string())
}

/// A list of values as they were written; null where there are none.
fn values(flag: &str, texts: &[String]) -> Result<String> {
    if texts.is_empty() {
        return Ok("null".into());
    }
    for text in texts {
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            bail!(
                "{flag} {text} is no JSON: {error}; a text stands in quotes, such as '\"{}\"'",
                text.replace('"', "")
            );
        }
    }
    Ok(format!("[{}]", texts.join(",")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use everlog_avro::command::{
        CommandContext, CommandLimits, CommandRecord, CommandVerdict, NamespaceLookup, RecordCoordinates,
        SchemaLookup, Token, read,
    };
    use everlog_avro::{Bounds, PublicTopic};
    use everlog_engine::Settings;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        order: CommandKind,
    }

    fn json(words: &str) -> Result<String> {
        let words = words.split_whitespace();
        Line::try_parse_from(std::iter::once("x").chain(words))?
            .order
            .json(|| Ok(r#" {"type": "cancel"} "#.into()))
    }

    struct Anything;

    impl CommandContext for Anything {
        fn namespace(&self, _name: &str) -> NamespaceLookup {
            NamespaceLookup::Open { id: "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2".into(), retention_ms: 1 }
        }
        fn schema(&self, _id: u32) -> SchemaLookup<'_> {
            SchemaLookup::Unknown
        }
        fn typed(&self, _namespace: &str, given: &bytes::Bytes) -> Result<bytes::Bytes, String> {
            Ok(given.clone())
        }
        fn token(&self, _token: &bytes::Bytes) -> Option<Token> {
            None
        }
    }

    #[test]
    fn every_order_is_one_that_a_node_takes() {
        let start = "--workflow-type Order --task-queue orders";
        for words in [
            format!("start {start}"),
            format!(
                "start {start} --input {{\"total\":12}} --input null --conflict-policy UseExisting --run-timeout-ms 5000"
            ),
            format!("start {start} --reuse-policy RejectDuplicate --start-delay-ms 10"),
            "signal --name approved --input \"Ann\" --input true".into(),
            format!("signal-with-start --name add --signal-input 1 {start} --input 2"),
            "update --name add --input 1 --update-id add-1".into(),
            format!("update-with-start --name add --update-input 1 {start} --conflict-policy UseExisting"),
            "cancel --reason enough".into(),
            "terminate".into(),
            "complete-activity --activity-id charge --result [1]".into(),
            "fail-activity --activity-id charge --message declined --error-type Declined --non-retryable"
                .into(),
            "json".into(),
        ] {
            let json = json(&words).expect(&words);
            let settings = Settings::standard();
            let rules = CommandLimits {
                settings: &settings,
                namespace_default: "default",
                reply_topics: &[],
                bounds: Bounds::default(),
                now_ms: 0,
            };
            let place = RecordCoordinates {
                topic: PublicTopic::Command.topic(),
                incarnation: [1; 16],
                partition: 0,
                offset: 0,
            };
            let record =
                CommandRecord { place, key: Some(b"order-1"), value: Some(json.as_bytes()), headers: &[] };
            let verdict = read(&record, &rules, &Anything);
            assert!(matches!(verdict, CommandVerdict::Accepted(_)), "{words}: {json}: {verdict:?}");
        }
    }

    #[test]
    fn a_value_that_is_no_json_is_refused_with_how_a_text_is_written() {
        let error = json("signal --name approved --input Ann").expect_err("no JSON").to_string();
        assert!(error.contains("--input Ann is no JSON") && error.contains("'\"Ann\"'"), "{error}");
    }
}
