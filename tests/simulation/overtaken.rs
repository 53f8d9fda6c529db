//! Letters of a partition to itself of which one has got lost on the way to the journal, and those behind it have not.

use everlog_engine::api_types::Execution;
use everlog_engine::command;
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::external_workflow;
use everlog_partition::{Delivery, Want};
use prost::Message;

use crate::behind::{DAY_MS, complete};
use crate::house::{House, ids};

/// Letters that one task sends.
const LETTERS: usize = 4;

fn signal(to: &str, number: usize) -> command::CommandAttributes {
    command::CommandAttributes::SignalExternal(Box::new(external_workflow::SignalOther {
        execution: Some(Execution { workflow_id: to.into(), run_id: String::new() }),
        signal_name: number.to_string(),
        ..external_workflow::SignalOther::default()
    }))
}

fn heard(house: &mut House, id: &str) -> Vec<String> {
    let want = Want::History { from_event_id: 1, batches_max: 0 };
    let reading = house.read(id, want).unwrap().unwrap();
    let events = History::decode(reading.page.history).unwrap().events;
    let signals = events.into_iter().filter_map(|event| match event.attributes {
        Some(Attributes::WorkflowSignaled(signaled)) => Some(signaled.signal_name),
        _other => None,
    });
    signals.collect()
}

#[test]
fn they_are_all_taken_once_and_in_order() {
    let mut house = House::build(0, 0);
    let (sender, receiver) = {
        let mut ids = ids();
        (ids.next().unwrap(), ids.next().unwrap())
    };
    house.start(&sender, DAY_MS);
    let task = house.poll(false);
    assert!(matches!(&task, Delivery::Workflow(task) if task.run.start.workflow_id == sender));
    house.start(&receiver, DAY_MS);
    house.broker.lock().loses_first_of = LETTERS;
    complete(&mut house, &sender, task, (0..LETTERS).map(|number| signal(&receiver, number)).collect());
    house.until(|house| heard(house, &receiver).len() == LETTERS);
    assert_eq!(house.broker.lock().loses_first_of, 0, "the first one got lost");
    assert_eq!(
        heard(&mut house, &receiver),
        (0..LETTERS).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}
