//! Updates: callers hear how far theirs are, at once and after a crash, and nobody is left hanging.

use bytes::Bytes;
use everlog_engine::Reply;
use everlog_engine::command::{Command, CommandAttributes as CommandOrder};
use everlog_engine::machine::update::{Admit, Body, Message, Meta, Refer, Stage, UpdateStanding, given};
use everlog_engine::machine::{close, workflow_task, workflow_task_completed};
use everlog_engine::request::{Request, RequestRecord};
use everlog_partition::{Address, TaskKind, UpdateCall, UpdateNews};
use prost::Message as _;

use super::harness::{Harness, NAMESPACE, workflow};

/// A worker's outcome of an update.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    outcome: Option<Bytes>,
}

const OUTCOME: Bytes = Bytes::from_static(b"\x0a\x00");
/// Temporal's `Acceptance`, of a message `m` behind event 1.
const ACCEPTANCE: &[u8] = b"\x0a\x01m\x10\x01";

fn message(update_id: &str, name: &str, value: Vec<u8>) -> Message {
    Message {
        id: format!("{update_id}/{name}"),
        protocol_instance_id: update_id.into(),
        body: Some(Body {
            type_url: format!("type.googleapis.com/temporal.api.update.v1.{name}"),
            value: value.into(),
        }),
    }
}

fn accepts(update_id: &str) -> Message {
    message(update_id, "Acceptance", ACCEPTANCE.to_vec())
}

fn responds(update_id: &str) -> Message {
    let meta = Some(Meta { update_id: update_id.into(), identity: String::new() });
    message(update_id, "Response", Response { meta, outcome: Some(OUTCOME) }.encode_to_vec())
}

fn rejects(update_id: &str) -> Message {
    message(update_id, "Rejection", Vec::new())
}

impl Harness {
    /// A run at rest.
    fn at_rest() -> Self {
        let mut harness = Self::build();
        harness.start();
        let task = workflow(harness.poll(TaskKind::Workflow));
        harness.complete(&task.run, Vec::new());
        harness
    }

    fn update(&mut self, update_id: &str) -> UpdateCall<Reply> {
        let router = self.router.clone();
        let order = Admit {
            update_id: update_id.into(),
            request: Bytes::from_static(b"\x0a\x00"),
            first_run_id: String::new(),
            this_run_only: false,
            patient: false,
        };
        let input = RequestRecord {
            namespace_id: NAMESPACE.into(),
            workflow_id: "order-1".into(),
            run_id: String::new(),
            sender: None,
            request: Some(Request::Update(order)),
        };
        self.call(Box::pin(async move { router.update(input).await })).expect("it is answered")
    }

    fn look_at(&mut self, update_id: &str) -> UpdateCall<Option<UpdateStanding>> {
        let (router, update_id) = (self.router.clone(), update_id.to_owned());
        let address =
            Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: String::new() };
        self.call(Box::pin(async move { router.await_update(address, update_id).await }))
            .expect("it is answered")
    }

    /// A worker takes the task, which brings these updates, and says this.
    fn answer(&mut self, brought: &[&str], messages: Vec<Message>, orders: Vec<CommandOrder>) {
        let task = workflow(self.poll(TaskKind::Workflow));
        let ids: Vec<_> = given(&task.run).iter().map(|update| update.update_id.clone()).collect();
        assert_eq!(ids, brought);
        let refers = messages.iter().map(|message| Refer { message_id: message.id.clone() });
        let orders = refers.map(CommandOrder::ProtocolMessage).chain(orders);
        let commands = orders.map(|order| Command {
            command_type: order.command_type(),
            order: Some(order),
            ..Command::default()
        });
        let reply = self.order(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
            token: task.run.head.task.as_ref().map(workflow_task::Task::token),
            commands: commands.collect(),
            messages,
            ..workflow_task_completed::Complete::default()
        })));
        assert!(matches!(reply, Reply::Completed(_)), "{reply:?}");
    }
}

fn stage_of(reply: &Reply) -> &Stage {
    let Reply::Update(standing) = reply else { panic!("not about an update: {reply:?}") };
    &standing.stage
}

fn next<T>(call: &mut UpdateCall<T>) -> Option<Stage> {
    match call.news.try_recv() {
        Ok(UpdateNews::UpdateStanding(standing)) => Some(standing.stage),
        Ok(other) => panic!("it ended: {other:?}"),
        Err(_nothing) => None,
    }
}

#[test]
fn callers_hear_of_every_stage() {
    let mut harness = Harness::at_rest();
    let mut caller = harness.update("u1");
    let mut same = harness.update("u1");
    let mut watcher = harness.look_at("u1");
    assert_eq!((stage_of(&caller.first), stage_of(&same.first)), (&Stage::Admitted, &Stage::Admitted));
    assert_eq!(watcher.first.as_ref().map(|standing| &standing.stage), Some(&Stage::Admitted));
    harness.answer(&["u1"], vec![accepts("u1")], Vec::new());
    assert_eq!(next(&mut caller), Some(Stage::Accepted));
    let late = harness.update("u1");
    assert_eq!(stage_of(&late.first), &Stage::Accepted);
    assert_eq!(next(&mut caller), None);
    let reply = harness.order(Request::Signal(everlog_engine::machine::signal::Signal::default()));
    assert_eq!(reply, Reply::Done);
    harness.answer(&[], vec![responds("u1")], Vec::new());
    assert_eq!(next(&mut same), Some(Stage::Accepted));
    for mut call in [caller, same, late] {
        assert_eq!(next(&mut call), Some(Stage::Completed(OUTCOME)));
    }
    assert_eq!(
        (next(&mut watcher), next(&mut watcher)),
        (Some(Stage::Accepted), Some(Stage::Completed(OUTCOME)))
    );
}

#[test]
fn an_admitted_update_and_an_outcome_outlive_a_crash() {
    let mut harness = Harness::at_rest();
    let mut lost = harness.update("u1");
    harness.crash();
    assert!(lost.news.try_recv().is_err() && lost.news.is_closed(), "nobody is left hanging");
    let mut again = harness.update("u1");
    assert_eq!(stage_of(&again.first), &Stage::Admitted);
    harness.answer(&["u1"], vec![accepts("u1"), responds("u1")], Vec::new());
    assert_eq!(next(&mut again), Some(Stage::Completed(OUTCOME)), "accepted and answered in one task");
    harness.crash();
    assert_eq!(stage_of(&harness.update("u1").first), &Stage::Completed(OUTCOME));
    let closes = CommandOrder::CompleteWorkflow(close::Complete { result: None });
    let mut unfinished = harness.update("u2");
    harness.answer(&["u2"], vec![accepts("u2")], vec![closes]);
    assert!(matches!(next(&mut unfinished), Some(Stage::Completed(_))), "accepted as the run closed");
    harness.crash();
    assert_eq!(stage_of(&harness.update("u1").first), &Stage::Completed(OUTCOME));
    let ended = harness.look_at("u2").first.expect("it is known");
    assert!(matches!(ended.stage, Stage::Completed(_)), "it failed with its run: {ended:?}");
    assert_eq!(harness.look_at("u3").first, None);
}

#[test]
fn an_update_is_taken_once_although_the_house_falls_at_every_step() {
    let mut harness = Harness::at_rest();
    for id in ["u1", "u2"] {
        drop(harness.update(id));
        harness.crash();
        assert_eq!(stage_of(&harness.update(id).first), &Stage::Admitted);
        harness.crash();
        let lost = workflow(harness.poll(TaskKind::Workflow));
        harness.crash();
        assert_eq!(given(&lost.run).len(), 1);
        harness.advance(60_000);
        harness.answer(&[id], vec![accepts(id)], Vec::new());
        harness.crash();
        assert_eq!(stage_of(&harness.update(id).first), &Stage::Accepted);
        assert_eq!(
            harness.order(Request::Signal(everlog_engine::machine::signal::Signal::default())),
            Reply::Done
        );
        harness.crash();
        harness.answer(&[], vec![responds(id)], Vec::new());
        harness.crash();
        assert_eq!(stage_of(&harness.update(id).first), &Stage::Completed(OUTCOME));
    }
    let names = harness.names();
    let count = |name: &str| names.iter().filter(|known| **known == name).count();
    assert_eq!((count("UpdateAccepted"), count("UpdateCompleted")), (2, 2));
}

#[test]
fn a_refused_update_is_forgotten_when_its_callers_are_told() {
    let mut harness = Harness::at_rest();
    let before = harness.names();
    let mut caller = harness.update("u1");
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.speculative), Some(true));
    let reply = harness.order(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
        token: task.run.head.task.as_ref().map(workflow_task::Task::token),
        messages: vec![rejects("u1")],
        ..workflow_task_completed::Complete::default()
    })));
    let Reply::Completed(completed) = reply else { panic!("it is completed: {reply:?}") };
    assert_eq!(completed.reset_event_id, 3);
    assert!(matches!(next(&mut caller), Some(Stage::Completed(_))));
    assert_eq!(harness.names(), before);
    assert_eq!(harness.look_at("u1").first, None);
}

#[test]
fn callers_of_a_run_that_ends_or_whose_completion_is_refused_are_told() {
    let mut harness = Harness::at_rest();
    let mut caller = harness.update("u1");
    let task = workflow(harness.poll(TaskKind::Workflow));
    let token = task.run.head.task.as_ref().map(workflow_task::Task::token);
    harness.order(Request::FailTask(workflow_task::Fail { token, ..workflow_task::Fail::default() }));
    assert!(caller.news.try_recv().is_err(), "it comes again with the next task");
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(given(&task.run).len(), 1);
    let reply = harness.order(Request::CompleteTask(Box::new(workflow_task_completed::Complete {
        token: task.run.head.task.as_ref().map(workflow_task::Task::token),
        messages: vec![Message { body: None, ..rejects("u1") }],
        ..workflow_task_completed::Complete::default()
    })));
    assert!(matches!(reply, Reply::Rejected(_)), "{reply:?}");
    assert_eq!(caller.news.try_recv(), Ok(UpdateNews::TaskFailed));
    let mut caller = harness.update("u2");
    harness.order(Request::Terminate(close::Terminate::default()));
    assert_eq!(caller.news.try_recv(), Ok(UpdateNews::Closed));
    let refused = harness.update("u3").first;
    assert!(matches!(refused, Reply::Rejected(_)), "{refused:?}");
}

#[test]
fn a_caller_waits_on_in_the_run_that_continues_its_own() {
    let mut harness = Harness::at_rest();
    let mut caller = harness.update("u1");
    let task = workflow(harness.poll(TaskKind::Workflow));
    let first_run_id = task.run.start.run_id.clone();
    harness.complete(&task.run, vec![CommandOrder::ContinueAsNew(Box::default())]);
    harness.answer(&["u1"], vec![accepts("u1")], Vec::new());
    let Ok(UpdateNews::UpdateStanding(standing)) = caller.news.try_recv() else { panic!("it is accepted") };
    assert_eq!(standing.stage, Stage::Accepted);
    assert_ne!(standing.run_id, first_run_id);
}
