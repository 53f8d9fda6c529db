//! Converts a command to a request to the engine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use everlog_engine::api_types::{self, ConflictPolicy};
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::{activity_attempt, cancel, close, continuation, signal, update};
use everlog_engine::payload::UserMetadata;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::time::Duration;
use prost::Message;

use crate::blob::Blob;
use crate::command::json::JsonPayload;
use crate::command::schedule_request;
use crate::command::shape::{Cancel, Command, Complete, Fail, Signal, Start, Terminate, Update};
use crate::command::validate::{invalid, policies, run_id, span_ms};
use crate::command::{
    Code, CommandContext, CommandLimits, CommandOptions, CommandRecord, CommandRefusal, NamespaceLookup,
    RecordCoordinates,
};
use crate::event::RetryPolicy;
use crate::failure::{Application, Encoded, Info};
use crate::payload::Payload;
use crate::proto_update;

/// A payload, however it was written.
pub(super) trait AnyPayload {
    fn payload(self) -> Payload<'static>;
}

impl AnyPayload for Payload<'static> {
    fn payload(self) -> Payload<'static> {
        self
    }
}

impl AnyPayload for JsonPayload {
    fn payload(self) -> Payload<'static> {
        self.0
    }
}

/// What every order needs to know of its command.
pub(super) struct Frame<'a> {
    pub(super) rules: &'a CommandLimits<'a>,
    /// By name.
    pub(super) namespace: &'a str,
    retention_ms: i64,
    /// Under this id the order is taken once.
    pub(super) request_id: String,
    pub(super) identity: String,
}

/// The order that a command gives.
pub(super) fn input<P: AnyPayload>(
    record: &CommandRecord<'_>,
    key: &str,
    command: Command<P>,
    rules: &CommandLimits<'_>,
    world: &impl CommandContext,
    ask: &CommandOptions,
) -> Result<RequestRecord, CommandRefusal> {
    if command.workflow_id.as_deref().is_some_and(|id| !id.is_empty() && id != key) {
        return Err(CommandRefusal::new(Code::KeyMismatch, "the key is not the id that the command names"));
    }
    let workflow_id = if command.r#type.ends_with("_schedule") {
        schedule_request::workflow_id(rules, key)?
    } else {
        rules.id("WorkflowId", key)?;
        key.to_owned()
    };
    let (namespace_id, retention_ms) = match world.namespace(&ask.namespace) {
        NamespaceLookup::Open { id, retention_ms } => (id, retention_ms),
        NamespaceLookup::Closed => {
            let reason = format!("the namespace {:?} is not open to commands", ask.namespace);
            return Err(CommandRefusal::new(Code::NamespaceClosed, reason));
        }
        NamespaceLookup::Unknown => {
            let reason = format!("there is no namespace {:?}", ask.namespace);
            return Err(CommandRefusal::new(Code::NamespaceUnknown, reason));
        }
    };
    let identity = command.identity.clone().unwrap_or_default();
    rules.length("Identity", &identity)?;
    let request_id = ask.command_id.clone().unwrap_or_else(|| request_id(&record.place));
    rules.length("RequestId", &request_id)?;
    let frame = Frame { rules, namespace: &ask.namespace, retention_ms, request_id, identity };
    let run_id = run_id("RunId", command.run_id.clone())?;
    let input = RequestRecord { namespace_id, workflow_id, run_id, ..RequestRecord::default() };
    parts_match(&command)?;
    frame.order(input, command, world)
}

/// A request id for a command without one: the same whenever the record is read.
fn request_id(place: &RecordCoordinates<'_>) -> String {
    let mut id = String::with_capacity(64);
    for byte in place.incarnation {
        write!(id, "{byte:02x}").expect("a string takes all");
    }
    write!(id, "-{}-{}", place.partition, place.offset).expect("a string takes all");
    id
}

/// Parts that the type does not name would be dropped without a word.
fn parts_match<P>(command: &Command<P>) -> Result<(), CommandRefusal> {
    let parts: [(&str, bool, &[&str]); 18] = [
        ("start", command.start.is_some(), &["start", "signal_with_start", "update_with_start"]),
        ("signal", command.signal.is_some(), &["signal", "signal_with_start"]),
        ("update", command.update.is_some(), &["update", "update_with_start"]),
        ("cancel", command.cancel.is_some(), &["cancel"]),
        ("terminate", command.terminate.is_some(), &["terminate"]),
        ("complete_activity", command.complete_activity.is_some(), &["complete_activity"]),
        ("fail_activity", command.fail_activity.is_some(), &["fail_activity"]),
        ("create_schedule", command.create_schedule.is_some(), &["create_schedule"]),
        ("update_schedule", command.update_schedule.is_some(), &["update_schedule"]),
        ("patch_schedule", command.patch_schedule.is_some(), &["patch_schedule"]),
        ("delete_schedule", false, &["delete_schedule"]),
        ("pause_activity", command.pause_activity.is_some(), &["pause_activity"]),
        ("unpause_activity", command.unpause_activity.is_some(), &["unpause_activity"]),
        ("reset_activity", command.reset_activity.is_some(), &["reset_activity"]),
        ("update_activity_options", command.update_activity_options.is_some(), &["update_activity_options"]),
        ("pause", command.pause.is_some(), &["pause"]),
        ("unpause", command.unpause.is_some(), &["unpause"]),
        ("update_options", command.update_options.is_some(), &["update_options"]),
    ];
    if !parts.iter().any(|(_, _, types)| types.contains(&command.r#type.as_str())) {
        let reason = format!("this release knows no command {:?}", command.r#type);
        return Err(CommandRefusal::new(Code::CommandUnknown, reason));
    }
    for (part, is_there, types) in parts {
        if is_there && !types.contains(&command.r#type.as_str()) {
            let reason = format!("a command {:?} has no part {part:?}", command.r#type);
            return Err(CommandRefusal::new(Code::CommandIncomplete, reason));
        }
    }
    Ok(())
}

pub(super) fn needed<T>(part: &str, given: Option<T>) -> Result<T, CommandRefusal> {
    given.ok_or_else(|| CommandRefusal::new(Code::CommandIncomplete, format!("the part {part:?} is missing")))
}

impl Frame<'_> {
    fn order<P: AnyPayload>(
        &self,
        input: RequestRecord,
        command: Command<P>,
        world: &impl CommandContext,
    ) -> Result<RequestRecord, CommandRefusal> {
        match command.r#type.as_str() {
            "start" => {
                let begin = self.start(needed("start", command.start)?, world)?;
                Ok(Self::of_no_run(input, Request::Start(Box::new(begin)))?)
            }
            "signal_with_start" => {
                let signal = self.signal(needed("signal", command.signal)?)?;
                let begin = self.start(needed("start", command.start)?, world)?;
                if begin.conflict_policy == i32::from(ConflictPolicy::Fail) {
                    return Err(invalid(
                        "WorkflowIdConflictPolicy Fail is not supported for SignalWithStartWorkflowExecution.",
                    ));
                }
                Ok(Self::of_no_run(input, Request::Start(Box::new(Begin { signal: Some(signal), ..begin })))?)
            }
            "signal" => {
                let signal = self.signal(needed("signal", command.signal)?)?;
                Ok(RequestRecord { request: Some(Request::Signal(signal)), ..input })
            }
            "update" => {
                let is_run_named = !input.run_id.is_empty();
                let update = self.update(needed("update", command.update)?, is_run_named)?;
                Ok(RequestRecord { request: Some(Request::Update(update)), ..input })
            }
            "update_with_start" => {
                let update = self.update(needed("update", command.update)?, false)?;
                let begin = self.start(needed("start", command.start)?, world)?;
                if begin.conflict_policy == i32::from(ConflictPolicy::Unspecified) {
                    return Err(invalid("WorkflowIdConflictPolicy is required for UpdateWithStart."));
                }
                Ok(Self::of_no_run(input, Request::Start(Box::new(Begin { update: Some(update), ..begin })))?)
            }
            "cancel" => self.cancel(input, command.cancel.unwrap_or_default()),
            "terminate" => self.terminate(input, command.terminate.unwrap_or_default()),
            "complete_activity" => {
                self.complete(input, needed("complete_activity", command.complete_activity)?, world)
            }
            "fail_activity" => self.fail(input, needed("fail_activity", command.fail_activity)?, world),
            "create_schedule" => {
                self.create_schedule(input, needed("create_schedule", command.create_schedule)?, world)
            }
            "update_schedule" => {
                self.update_schedule(input, needed("update_schedule", command.update_schedule)?, world)
            }
            "patch_schedule" => self.patch_schedule(input, needed("patch_schedule", command.patch_schedule)?),
            "delete_schedule" => Ok(Self::delete_schedule(input)),
            _of_operators => self.operate(input, command),
        }
    }

    fn of_no_run(input: RequestRecord, order: Request) -> Result<RequestRecord, CommandRefusal> {
        if input.run_id.is_empty() {
            Ok(RequestRecord { request: Some(order), ..input })
        } else {
            Err(invalid("a start names no run: run_id has to be absent"))
        }
    }

    pub(super) fn start<P: AnyPayload>(
        &self,
        start: Start<P>,
        world: &impl CommandContext,
    ) -> Result<Begin, CommandRefusal> {
        let rules = self.rules;
        rules.id("WorkflowType", &start.workflow_type)?;
        rules.task_queue(&start.task_queue)?;
        let (memo_keys, attributes) = (keys(&start.memo), keys(&start.search_attributes));
        let (input, header) = (list(start.input), map(start.header));
        let (memo, search_attributes) = (map(start.memo), map(start.search_attributes));
        rules.blob(input.as_ref())?;
        rules.blob(header.as_ref())?;
        rules.memo(memo.as_ref(), memo_keys)?;
        rules.search_attributes(search_attributes.as_ref(), attributes)?;
        let typed = search_attributes.map(|given| world.typed(self.namespace, &given));
        let search_attributes = typed.transpose().map_err(invalid)?;
        let user_metadata = metadata(start.summary, start.details);
        rules.user_metadata(user_metadata.as_ref())?;
        let (reuse_policy, conflict_policy) =
            policies(start.reuse_policy.as_deref(), start.conflict_policy.as_deref())?;
        let cron_schedule = start.cron_schedule.unwrap_or_default();
        let start_delay_ms = span_ms("WorkflowStartDelay", start.start_delay_ms)?;
        if !cron_schedule.is_empty() && start_delay_ms > 0 {
            return Err(invalid("CronSchedule and WorkflowStartDelay may not be used together."));
        }
        let retry_policy = start.retry_policy.map(policy);
        continuation::check(retry_policy.as_ref(), &cron_schedule).map_err(invalid)?;
        Ok(Begin {
            request_id: self.request_id.clone(),
            workflow_type: start.workflow_type,
            task_queue: start.task_queue,
            input,
            execution_timeout_ms: span_ms("WorkflowExecutionTimeout", start.workflow_execution_timeout_ms)?,
            run_timeout_ms: span_ms("WorkflowRunTimeout", start.workflow_run_timeout_ms)?,
            task_timeout_ms: span_ms("WorkflowTaskTimeout", start.workflow_task_timeout_ms)?,
            identity: self.identity.clone(),
            memo,
            search_attributes,
            header,
            reuse_policy,
            conflict_policy,
            start_delay_ms,
            user_metadata,
            links: Vec::new(),
            priority: rules.priority(start.priority)?,
            eager: false,
            retention_ms: self.retention_ms,
            signal: None,
            continued_failure: None,
            last_completion_result: None,
            parent: None,
            retry_policy,
            cron_schedule,
            update: None,
            on_conflict: None,
            versioning_override: None,
            inherited_pinned_version: None,
            watcher: None,
        })
    }

    fn signal<P: AnyPayload>(&self, given: Signal<P>) -> Result<signal::Signal, CommandRefusal> {
        self.rules.id("SignalName", &given.name)?;
        let (input, header) = (list(given.input), map(given.header));
        self.rules.blob(input.as_ref())?;
        self.rules.blob(header.as_ref())?;
        Ok(signal::Signal {
            name: given.name,
            input,
            identity: self.identity.clone(),
            header,
            request_id: self.request_id.clone(),
            links: Vec::new(),
        })
    }

    /// A record waits for as long as it takes: nobody has to ask again.
    fn update<P: AnyPayload>(
        &self,
        given: Update<P>,
        this_run_only: bool,
    ) -> Result<update::Admit, CommandRefusal> {
        let update_id = given.id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.request_id.clone());
        self.rules.length("UpdateId", &update_id)?;
        self.rules.id("UpdateName", &given.name)?;
        let (args, header) = (list(given.input), map(given.header));
        self.rules.blob(args.as_ref())?;
        self.rules.blob(header.as_ref())?;
        let meta = update::Meta { update_id: update_id.clone(), identity: self.identity.clone() };
        let input = proto_update::Input { header, name: given.name, args };
        let request = proto_update::Request { meta: Some(meta), input: Some(input) };
        Ok(update::Admit {
            update_id,
            request: request.encode_to_vec().into(),
            first_run_id: String::new(),
            this_run_only,
            patient: true,
        })
    }

    fn cancel(&self, input: RequestRecord, given: Cancel) -> Result<RequestRecord, CommandRefusal> {
        let reason = given.reason.unwrap_or_default();
        self.rules.reason(&reason)?;
        let (input, first_run_id) = of_chain(input, given.first_run_id)?;
        let identity = self.identity.clone();
        let order = cancel::Request { reason, identity, first_run_id, links: Vec::new() };
        Ok(RequestRecord { request: Some(Request::Cancel(order)), ..input })
    }

    fn terminate<P: AnyPayload>(
        &self,
        input: RequestRecord,
        given: Terminate<P>,
    ) -> Result<RequestRecord, CommandRefusal> {
        let (reason, details) = (given.reason.unwrap_or_default(), list(given.details));
        self.rules.reason(&reason)?;
        self.rules.blob(details.as_ref())?;
        let (input, first_run_id) = of_chain(input, given.first_run_id)?;
        let identity = self.identity.clone();
        let order = close::Terminate { reason, details, identity, first_run_id, links: Vec::new() };
        Ok(RequestRecord { request: Some(Request::Terminate(order)), ..input })
    }

    fn complete<P: AnyPayload>(
        &self,
        input: RequestRecord,
        given: Complete<P>,
        world: &impl CommandContext,
    ) -> Result<RequestRecord, CommandRefusal> {
        let (input, target) = self.target(input, given.activity_id, given.token, world)?;
        let order = activity_attempt::Complete {
            target: Some(target),
            result: list(given.result),
            identity: self.identity.clone(),
            ..activity_attempt::Complete::default()
        };
        Ok(RequestRecord { request: Some(Request::CompleteActivity(order)), ..input })
    }

    fn fail<P: AnyPayload>(
        &self,
        input: RequestRecord,
        given: Fail<P>,
        world: &impl CommandContext,
    ) -> Result<RequestRecord, CommandRefusal> {
        let (input, target) = self.target(input, given.activity_id, given.token, world)?;
        let info = Application {
            r#type: given.error_type.unwrap_or_default(),
            non_retryable: given.non_retryable,
            details: list(given.details),
            next_retry_delay: match span_ms("NextRetryDelay", given.next_retry_delay_ms)? {
                0 => None,
                delay_ms => Some(Duration::from_ms(delay_ms)),
            },
            category: 0,
        };
        let failure = Encoded {
            message: given.message,
            source: given.source.unwrap_or_default(),
            stack_trace: given.stack_trace.unwrap_or_default(),
            info: Some(Info::Application(info)),
            ..Encoded::default()
        };
        let order = activity_attempt::Fail {
            target: Some(target),
            failure: Some(failure.encode_to_vec().into()),
            identity: self.identity.clone(),
            last_heartbeat_details: list(given.last_heartbeat_details),
            ..activity_attempt::Fail::default()
        };
        Ok(RequestRecord { request: Some(Request::FailActivity(order)), ..input })
    }

    /// The attempt that is meant, by the activity's id or by a token that says the same as the rest of the command.
    fn target(
        &self,
        input: RequestRecord,
        activity_id: Option<String>,
        token: Option<Blob>,
        world: &impl CommandContext,
    ) -> Result<(RequestRecord, activity_attempt::Target), CommandRefusal> {
        let activity_id = activity_id.unwrap_or_default();
        let Some(Blob(token)) = token else {
            self.rules.id("ActivityId", &activity_id)?;
            return Ok((
                input,
                activity_attempt::Target { activity_id, ..activity_attempt::Target::default() },
            ));
        };
        if !activity_id.is_empty() {
            return Err(invalid("an activity is named by its id or by a task token, not by both"));
        }
        let token = world.token(&token);
        let token =
            token.ok_or_else(|| CommandRefusal::new(Code::Token, "Error deserializing task token."))?;
        if token.namespace_id != input.namespace_id || token.workflow_id != input.workflow_id {
            return Err(CommandRefusal::new(
                Code::KeyMismatch,
                "the task token is of another workflow than the key",
            ));
        }
        if !input.run_id.is_empty() && input.run_id != token.run_id {
            return Err(invalid("the task token is of another run than run_id"));
        }
        Ok((RequestRecord { run_id: token.run_id, ..input }, token.target))
    }
}

/// Where the first run of a chain is named, the current run of that chain is meant, whatever other run is named.
fn of_chain(
    input: RequestRecord,
    first_run_id: Option<String>,
) -> Result<(RequestRecord, String), CommandRefusal> {
    let first_run_id = run_id("FirstExecutionRunId", first_run_id)?;
    match first_run_id.as_str() {
        "" => Ok((input, first_run_id)),
        _chain => Ok((RequestRecord { run_id: String::new(), ..input }, first_run_id)),
    }
}

pub(super) fn policy(given: RetryPolicy<'_>) -> api_types::RetryPolicy {
    let names = given.non_retryable_error_types.into_iter();
    api_types::RetryPolicy {
        initial_interval: given.initial_interval_ms.map(Duration::from_ms),
        backoff_coefficient: given.backoff_coefficient,
        maximum_interval: given.maximum_interval_ms.map(Duration::from_ms),
        maximum_attempts: given.maximum_attempts,
        non_retryable_error_types: names.map(Cow::into_owned).collect(),
    }
}

fn list<P: AnyPayload>(given: Option<Vec<P>>) -> Option<Bytes> {
    let payloads: Vec<_> = given?.into_iter().map(AnyPayload::payload).collect();
    Some(Payload::encode_all(&payloads))
}

pub(super) fn map<P: AnyPayload>(given: Option<BTreeMap<String, P>>) -> Option<Bytes> {
    let fields = given?.into_iter().map(|(key, value)| (key.into(), value.payload())).collect();
    Some(Payload::encode_fields(&fields))
}

pub(super) fn keys<P>(given: &Option<BTreeMap<String, P>>) -> usize {
    given.as_ref().map_or(0, BTreeMap::len)
}

fn metadata<P: AnyPayload>(summary: Option<P>, details: Option<P>) -> Option<Bytes> {
    if summary.is_none() && details.is_none() {
        return None;
    }
    let encode = |given: Option<P>| given.map(|value| value.payload().encode());
    Some(UserMetadata { summary: encode(summary), details: encode(details) }.encode_to_vec().into())
}
