//! Outbox messages of a partition to itself. One is lost on its way to the journal, and later ones are not.

use everlog_engine::api_types::Execution;
use everlog_engine::command;
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::external_workflow;
use everlog_partition::{Delivery, TaskKind, Want};
use prost::Message;

use crate::harness::{Harness, ids};
use crate::scenarios::behind::{DAY_MS, complete};

/// Letters that one task sends.
const LETTERS: usize = 4;

fn signal(to: &str, number: usize) -> command::CommandAttributes {
    command::CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        execution: Some(Execution { workflow_id: to.into(), run_id: String::new() }),
        signal_name: number.to_string(),
        ..external_workflow::SignalOther::default()
    }))
}

fn heard(harness: &mut Harness, id: &str) -> Vec<String> {
    let want = Want::History { from_event_id: 1, batches_max: 0 };
    let reading = harness.read(id, want).unwrap().unwrap();
    let events = History::decode(reading.page.history).unwrap().events;
    let signals = events.into_iter().filter_map(|event| match event.attributes {
        Some(Attributes::WorkflowSignaled(signaled)) => Some(signaled.signal_name),
        _other => None,
    });
    signals.collect()
}

#[test]
fn they_are_all_taken_once_and_in_order() {
    let mut harness = Harness::build(0, 0);
    let (sender, receiver) = {
        let mut ids = ids();
        (ids.next().unwrap(), ids.next().unwrap())
    };
    harness.start(&sender, DAY_MS);
    let task = harness.poll(TaskKind::Workflow);
    assert!(matches!(&task, Delivery::Workflow(task) if task.run.start.workflow_id == sender));
    harness.start(&receiver, DAY_MS);
    harness.broker.lock().loses_first_of = LETTERS;
    complete(&mut harness, &sender, task, (0..LETTERS).map(|number| signal(&receiver, number)).collect());
    harness.until(|harness| heard(harness, &receiver).len() == LETTERS);
    assert_eq!(harness.broker.lock().loses_first_of, 0, "the first one got lost");
    assert_eq!(
        heard(&mut harness, &receiver),
        (0..LETTERS).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}
