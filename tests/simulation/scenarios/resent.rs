//! A signal is sent again under its request id, after the run that a reset made has continued as another run.

use everlog_engine::Reply;
use everlog_engine::command;
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::{reset, signal};
use everlog_engine::request::Request;
use everlog_partition::{TaskKind, Want};
use prost::Message;

use crate::clients::input;
use crate::harness::{Harness, ids};
use crate::scenarios::behind::{DAY_MS, complete};

fn order(harness: &mut Harness, id: &str, order: Request) -> Reply {
    let (router, input) = (harness.node.router.clone(), input(id, "", order));
    harness.call(async move { router.order(input).await }).unwrap()
}

/// Of the current run: whether it continues another, and its signals.
fn current(harness: &mut Harness, id: &str) -> (bool, usize) {
    let want = Want::History { from_event_id: 1, batches_max: 0 };
    let reading = harness.read(id, want).unwrap().unwrap();
    let events = History::decode(reading.page.history).unwrap().events;
    let is_signal = |attributes: &Attributes| matches!(attributes, Attributes::WorkflowSignaled(_));
    let signals = events.iter().filter(|event| event.attributes.as_ref().is_some_and(is_signal)).count();
    let is_second = events.iter().any(|event| match &event.attributes {
        Some(Attributes::WorkflowStarted(started)) => !started.continued_execution_run_id.is_empty(),
        _other => false,
    });
    (is_second, signals)
}

#[test]
fn it_counts_once() {
    let mut harness = Harness::build(0, 0);
    let id = ids().next().unwrap();
    harness.start(&id, DAY_MS);
    let former = harness.poll(TaskKind::Workflow);
    let back = reset::Reset {
        finish_event_id: 3,
        reason: "again".into(),
        request_id: "reset".into(),
        ..reset::Reset::default()
    };
    assert!(matches!(order(&mut harness, &id, Request::Reset(back)), Reply::Started(_)));
    drop(former);
    let signal = signal::Signal { name: "go".into(), request_id: "go".into(), ..signal::Signal::default() };
    assert_eq!(order(&mut harness, &id, Request::Signal(signal.clone())), Reply::Done);
    assert_eq!(current(&mut harness, &id), (false, 1));
    let task = harness.poll(TaskKind::Workflow);
    complete(&mut harness, &id, task, vec![command::CommandAttributes::ContinueAsNew(Box::default())]);
    assert_eq!(current(&mut harness, &id), (true, 0));
    assert_eq!(order(&mut harness, &id, Request::Signal(signal)), Reply::Done);
    assert_eq!(current(&mut harness, &id), (true, 0));
}
