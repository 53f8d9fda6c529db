//! Updates that come as commands: whoever asked hears the outcome once, when there is one, whatever falls in between.

use bytes::Bytes;
use everlog_avro::outcome::Outcome;
use everlog_engine::command::CommandAttributes as CommandOrder;
use everlog_engine::machine::close;
use everlog_engine::machine::update::{Admit, Body as Saying, Message, Meta, Refer, given};
use everlog_engine::request::Request;
use everlog_wire::Body;
use everlog_wire::public_command::PublicCommand;
use prost::Message as _;

use super::harness::{Harness, begin, forwarded};

/// A worker's outcome of an update.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    meta: Option<Meta>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    outcome: Option<Bytes>,
}

/// Success, without a value.
const OUTCOME: Bytes = Bytes::from_static(b"\x0a\x00");
/// Temporal's `Acceptance`, of a message `m` behind event 1.
const ACCEPTANCE: &[u8] = b"\x0a\x01m\x10\x01";

fn update(offset: u64, update_id: &str) -> Body {
    let request = Bytes::from_static(b"\x0a\x00");
    let admit = Admit { update_id: update_id.into(), request, patient: true, ..Admit::default() };
    Body::PublicCommand(forwarded(offset, Request::Update(admit)))
}

fn says(update_id: &str, name: &str, value: Vec<u8>) -> Message {
    let type_url = format!("type.googleapis.com/temporal.api.update.v1.{name}");
    let body = Some(Saying { type_url, value: value.into() });
    Message { id: format!("{update_id}/{name}"), protocol_instance_id: update_id.into(), body }
}

fn accepts(update_id: &str) -> Message {
    says(update_id, "Acceptance", ACCEPTANCE.to_vec())
}

fn responds(update_id: &str) -> Message {
    let meta = Some(Meta { update_id: update_id.into(), identity: String::new() });
    says(update_id, "Response", Response { meta, outcome: Some(OUTCOME) }.encode_to_vec())
}

fn rejects(update_id: &str) -> Message {
    // Failure with a message.
    says(update_id, "Rejection", b"\x22\x04\x0a\x02no".to_vec())
}

impl Harness {
    /// A worker takes the task, which brings these updates, and says this of them.
    fn answer(&mut self, brought: &[&str], messages: Vec<Message>, mut orders: Vec<CommandOrder>) {
        let task = self.workflow_task();
        let ids: Vec<_> = given(&task.run).iter().map(|update| update.update_id.clone()).collect();
        assert_eq!(ids, brought);
        let refers = messages.iter().map(|message| Refer { message_id: message.id.clone() });
        orders.splice(0..0, refers.map(CommandOrder::ProtocolMessage));
        self.complete_with(&task, orders, |complete| complete.messages = messages);
    }

    /// Offset, status and code of each outcome.
    fn told(&mut self) -> Vec<(i64, String, Option<String>)> {
        let told = |outcome: Outcome| (outcome.offset, outcome.status, outcome.code);
        self.outcomes().into_iter().map(told).collect()
    }
}

fn is(offset: i64, status: &str) -> (i64, String, Option<String>) {
    (offset, status.into(), None)
}

#[test]
fn an_outcome_is_told_once_to_everyone_who_asked_for_it() {
    let mut harness = Harness::build();
    harness.bring(vec![
        Body::PublicCommand(forwarded(0, begin())),
        update(1, "u1"),
        update(2, "u1"),
        update(3, "u2"),
    ]);
    harness.crash();
    harness.settle();
    assert_eq!(harness.told(), [is(0, "started")]);
    harness.crash();
    harness.answer(&["u1", "u2"], vec![accepts("u1"), rejects("u2")], Vec::new());
    harness.crash();
    harness.settle();
    assert_eq!(harness.told(), [is(0, "started"), is(3, "failed")]);
    harness.bring(vec![update(4, "u3"), update(5, "u1")]);
    harness.crash();
    harness.answer(&["u3"], vec![responds("u1"), accepts("u3"), responds("u3")], Vec::new());
    // Once before and once after it is committed; and who asks after that has it at once.
    harness.crash();
    harness.settle();
    harness.crash();
    harness.bring(vec![update(6, "u1")]);
    harness.settle();
    let mut told = harness.told().split_off(2);
    told.sort();
    assert_eq!(told, [1, 2, 4, 5, 6].map(|offset| is(offset, "completed")));
    let outcomes = harness.outcomes();
    assert!(outcomes[2..].iter().all(|outcome| outcome.result.as_ref().is_some_and(Vec::is_empty)));
    assert_eq!(outcomes[1].update_id.as_deref(), Some("u2"));
    assert!(harness.rejections().is_empty());
}

#[test]
fn an_update_waits_while_tasks_fail_and_goes_over_to_the_next_run() {
    let mut harness = Harness::build();
    harness.bring(vec![Body::PublicCommand(forwarded(0, begin())), update(1, "u1")]);
    let task = harness.workflow_task();
    harness.fail(&task);
    harness.crash();
    harness.settle();
    harness.answer(&["u1"], Vec::new(), vec![CommandOrder::ContinueAsNew(Box::default())]);
    harness.crash();
    harness.settle();
    harness.advance(5_000);
    harness.answer(&["u1"], vec![accepts("u1"), responds("u1")], Vec::new());
    harness.settle();
    assert_eq!(harness.told(), [is(0, "started"), is(1, "completed")]);
    let runs: Vec<_> = harness.outcomes().into_iter().map(|outcome| outcome.run_id).collect();
    assert_ne!(runs[1], runs[0], "another run has answered it");
}

#[test]
fn an_update_with_a_start_whose_run_never_answered_begins_anew() {
    let mut harness = Harness::build();
    let start = |offset, request_id: &str| {
        let Request::Start(mut begin) = begin() else { panic!("not a start") };
        begin.request_id = request_id.into();
        let request = Bytes::from_static(b"\x0a\x00");
        begin.update = Some(Admit { update_id: "u1".into(), request, patient: true, ..Admit::default() });
        Body::PublicCommand(forwarded(offset, Request::Start(begin)))
    };
    harness.bring(vec![start(0, "one")]);
    harness.answer(
        &["u1"],
        vec![accepts("u1")],
        vec![CommandOrder::CompleteWorkflow(close::Complete::default())],
    );
    harness.bring(vec![start(1, "another")]);
    harness.crash();
    harness.answer(&["u1"], vec![accepts("u1"), responds("u1")], Vec::new());
    harness.bring(vec![start(2, "a third")]);
    harness.settle();
    assert_eq!(harness.told(), [is(0, "failed"), is(1, "completed"), is(2, "completed")]);
    let runs: Vec<_> = harness.outcomes().into_iter().map(|outcome| outcome.run_id).collect();
    assert!(runs[1] != runs[0] && runs[2] == runs[1], "{runs:?}");
}

#[test]
fn an_update_that_nobody_took_is_refused_with_the_end_of_its_run() {
    let mut harness = Harness::build();
    let silent = |offset, update_id: &str| match update(offset, update_id) {
        Body::PublicCommand(forwarded) => Body::PublicCommand(PublicCommand { reply_to: None, ..forwarded }),
        other => other,
    };
    harness.bring(vec![Body::PublicCommand(forwarded(0, begin())), update(1, "taken"), silent(2, "silent")]);
    harness.answer(&["taken", "silent"], vec![accepts("taken"), accepts("silent")], Vec::new());
    harness.bring(vec![update(3, "late"), silent(4, "silent too")]);
    let end = Request::Terminate(close::Terminate::default());
    harness.bring(vec![Body::PublicCommand(forwarded(5, end))]);
    harness.crash();
    harness.settle();
    let refused = (3, "refused".into(), Some("not_found".into()));
    let mut told = harness.told();
    told.sort();
    assert_eq!(told, [is(0, "started"), is(1, "failed"), refused, is(5, "done")]);
    let rejections: Vec<_> = harness.rejections().iter().map(|rejection| rejection.offset).collect();
    assert_eq!(rejections, [3, 4]);
}
