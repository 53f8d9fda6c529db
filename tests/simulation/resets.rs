//! Resets: one client resets a workflow again and again while others signal it, and what must hold at the end.

use std::collections::{BTreeMap, BTreeSet};

use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::reset::Reset;
use everlog_engine::machine::signal;
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply};
use everlog_partition::{Reading, Want};

use crate::clients::{ClientContext, address, beginning, input};
use crate::dice::Dice;
use crate::workflow::Program;

/// The type of the workflows that are taken back.
pub const TYPE: &str = "TakenBack";
/// What their signals' names begin with.
const SIGNAL: &str = "back/";

/// One reset, as whoever ordered it was told.
#[derive(Clone, Debug)]
pub struct Back {
    pub base_run_id: String,
    pub run_id: String,
    /// The first event that was not taken over.
    pub finish_event_id: i64,
}

/// A workflow that is taken back, as those who do it know it.
#[derive(Clone, Debug, Default)]
pub struct TakenBack {
    pub first_run_id: String,
    /// In the order in which they were ordered; each goes back in the run that the one before has made.
    pub backs: Vec<Back>,
    /// Names of all signals, and whether each was acknowledged.
    pub signals: BTreeMap<String, bool>,
    /// No reset comes any more.
    pub stays: bool,
}

pub fn is_signal(name: &str) -> bool {
    name.starts_with(SIGNAL)
}

impl ClientContext {
    /// Starts a workflow, and takes it back some times, each until that is known to be done.
    pub async fn take_back(self, workflow_id: String, program: Program, times: usize, mut dice: Dice) {
        let begin = beginning(TYPE, &workflow_id, &program, &mut dice);
        let order = Request::Start(Box::new(begin));
        let mut run_id = self.until_made(&workflow_id, "", order, &mut dice).await;
        self.taken_back(&workflow_id, |found| found.first_run_id.clone_from(&run_id));
        for number in 0..times {
            self.clock.sleep(dice.span(50, 3_000)).await;
            let finish_event_id = self.a_task_end(&workflow_id, &run_id, &mut dice).await;
            let reset = Reset {
                finish_event_id,
                reason: "to begin again".into(),
                request_id: format!("{workflow_id}/{number}"),
                ..Reset::default()
            };
            let made = self.until_made(&workflow_id, &run_id, Request::Reset(reset), &mut dice).await;
            let base_run_id = std::mem::replace(&mut run_id, made.clone());
            let back = Back { base_run_id, run_id: made, finish_event_id };
            self.taken_back(&workflow_id, |found| found.backs.push(back));
        }
        self.taken_back(&workflow_id, |found| found.stays = true);
        while self.looked_at(&workflow_id, &run_id, &mut dice).await.run.is_open() {
            self.rest(&mut dice).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    /// Signals whichever run is the current one, until nobody takes the workflow back any more.
    pub async fn signal_current(self, workflow_id: String, mut dice: Dice) {
        let mut number = 0;
        while !self.observations.borrow().taken_back.get(&workflow_id).is_some_and(|found| found.stays) {
            number += 1;
            let name = format!("{SIGNAL}{workflow_id}/{number}");
            self.taken_back(&workflow_id, |found| _ = found.signals.insert(name.clone(), false));
            self.send_to_current(&workflow_id, name, &mut dice).await;
            self.clock.sleep(dice.span(50, 800)).await;
        }
        self.observations.borrow_mut().people_left -= 1;
    }

    async fn send_to_current(&self, workflow_id: &str, name: String, dice: &mut Dice) {
        let order =
            signal::Signal { name: name.clone(), request_id: name.clone(), ..signal::Signal::default() };
        loop {
            if let Some(router) = self.router(dice) {
                let order = input(workflow_id, "", Request::Signal(order.clone()));
                match self.call("a signal", dice, router.order(order)).await {
                    Ok(Reply::Done) => {
                        self.taken_back(workflow_id, |found| _ = found.signals.insert(name, true));
                        return;
                    }
                    // It is not started yet, or has just closed.
                    Ok(Reply::Rejected(Rejection::NotFound(_))) => return,
                    Ok(Reply::Rejected(Rejection::Busy(_))) | Err(_) => {}
                    Ok(other) => {
                        return self
                            .observations
                            .borrow_mut()
                            .violate(format!("signal {name} yields {other:?}"));
                    }
                }
            }
            self.rest(dice).await;
        }
    }

    /// Orders it again and again; the run that it has made.
    async fn until_made(&self, workflow_id: &str, run_id: &str, order: Request, dice: &mut Dice) -> String {
        loop {
            if let Some(router) = self.router(dice) {
                let input = input(workflow_id, run_id, order.clone());
                match self.call("a start or a reset", dice, router.order(input)).await {
                    Ok(Reply::Started(started)) => return started.run_id,
                    Ok(Reply::Rejected(Rejection::AlreadyStarted { run_id, .. })) => return run_id,
                    Ok(Reply::Rejected(Rejection::Busy(_))) | Err(_) => {}
                    Ok(other) => {
                        let what = format!("{order:?} to {workflow_id} yields {other:?}");
                        self.observations.borrow_mut().violate(what);
                    }
                }
            }
            self.rest(dice).await;
        }
    }

    /// The end of one of the run's workflow tasks, once it has one.
    async fn a_task_end(&self, workflow_id: &str, run_id: &str, dice: &mut Dice) -> i64 {
        loop {
            let reading = self.looked_at(workflow_id, run_id, dice).await;
            let events = crate::workers::events(reading.page.history.clone()).unwrap_or_default();
            let ends: Vec<_> =
                events.iter().filter(|event| ends_task(event)).map(|event| event.event_id).collect();
            if !ends.is_empty() {
                return ends[dice.index(ends.len())];
            }
            self.rest(dice).await;
        }
    }

    async fn looked_at(&self, workflow_id: &str, run_id: &str, dice: &mut Dice) -> Reading {
        loop {
            if let Some(router) = self.router(dice) {
                let want = Want::History { from_event_id: 1, batches_max: 0 };
                let call = router.read(address(workflow_id, run_id), want);
                match self.call("a read", dice, call).await {
                    Ok(Some(reading)) => return reading,
                    Ok(None) => {
                        let what = format!("run {run_id} of {workflow_id} is not known");
                        self.observations.borrow_mut().violate(what);
                    }
                    Err(_) => {}
                }
            }
            self.rest(dice).await;
        }
    }

    fn taken_back(&self, workflow_id: &str, change: impl FnOnce(&mut TakenBack)) {
        change(self.observations.borrow_mut().taken_back.entry(workflow_id.to_owned()).or_default());
    }
}

fn ends_task(event: &HistoryEvent) -> bool {
    matches!(
        event.attributes,
        Some(Attributes::TaskCompleted(_) | Attributes::TaskFailed(_) | Attributes::TaskTimedOut(_))
    )
}

/// Each reset made one run, which begins as its base did; whatever was acknowledged to any of them is in the last one once.
pub fn check(
    workflows: &BTreeMap<String, TakenBack>,
    histories: &BTreeMap<String, Vec<HistoryEvent>>,
    found: &mut Vec<String>,
) {
    for (workflow_id, workflow) in workflows {
        found.extend(violated(workflow, histories).map(|what| format!("{workflow_id}: {what}")));
    }
    let made = workflows.values().flat_map(|workflow| {
        std::iter::once(&workflow.first_run_id).chain(workflow.backs.iter().map(|back| &back.run_id))
    });
    let made: BTreeSet<_> = made.collect();
    let there: BTreeSet<_> =
        histories.iter().filter(|(_, events)| kind(events) == TYPE).map(|(run_id, _)| run_id).collect();
    if made != there {
        found.push(format!("starts and resets made {made:?}, and there are {there:?}"));
    }
}

fn violated(workflow: &TakenBack, histories: &BTreeMap<String, Vec<HistoryEvent>>) -> Option<String> {
    let empty = Vec::new();
    let events_of = |run_id: &str| histories.get(run_id).unwrap_or(&empty);
    for Back { base_run_id, run_id, finish_event_id } in &workflow.backs {
        let (base, made) = (events_of(base_run_id), events_of(run_id));
        let taken = usize::try_from(finish_event_id - 1).unwrap_or_default();
        if made.len() <= taken || base.get(..taken) != made.get(..taken) {
            return Some(format!("run {run_id} does not begin as {base_run_id} did"));
        }
        if !matches!(made[taken].attributes, Some(Attributes::TaskFailed(_))) {
            return Some(format!("the task that {run_id} goes back to has not failed: {:?}", made[taken]));
        }
    }
    let runs = std::iter::once(&workflow.first_run_id).chain(workflow.backs.iter().map(|back| &back.run_id));
    for run_id in runs {
        let names = signals(events_of(run_id));
        let distinct: BTreeSet<_> = names.iter().collect();
        if distinct.len() != names.len() {
            return Some(format!("a signal is in {run_id} more than once: {names:?}"));
        }
        if let Some(name) = names.iter().find(|name| !workflow.signals.contains_key(**name)) {
            return Some(format!("nobody sent the signal {name}"));
        }
    }
    let last = workflow.backs.last().map_or(&workflow.first_run_id, |back| &back.run_id);
    let stored = signals(events_of(last));
    let mut acknowledged = workflow.signals.iter().filter(|(_, acknowledged)| **acknowledged);
    let lost = acknowledged.find(|(name, _)| !stored.contains(&name.as_str()));
    lost.map(|(name, _)| format!("signal {name} was acknowledged and is not in {last}"))
}

/// Names of the signals in a history.
fn signals(events: &[HistoryEvent]) -> Vec<&str> {
    let attributes = events.iter().filter_map(|event| event.attributes.as_ref());
    let names = attributes.filter_map(|attributes| match attributes {
        Attributes::WorkflowSignaled(signal) => Some(signal.signal_name.as_str()),
        _other => None,
    });
    names.collect()
}

/// The type of a run's workflow.
pub fn kind(events: &[HistoryEvent]) -> &str {
    match events.first().and_then(|event| event.attributes.as_ref()) {
        Some(Attributes::WorkflowStarted(started)) => {
            started.workflow_type.as_ref().map_or("", |kind| kind.name.as_str())
        }
        _other => "",
    }
}

mod tests {
    use everlog_engine::api_types::WorkflowType;
    use everlog_engine::machine::signal::Signaled;
    use everlog_engine::machine::start::Started;
    use everlog_engine::machine::workflow_task;

    use super::*;

    fn history(attributes: Vec<Attributes>) -> Vec<HistoryEvent> {
        let ids = 1..;
        let event = |(event_id, attributes)| HistoryEvent {
            event_id,
            attributes: Some(attributes),
            ..HistoryEvent::default()
        };
        ids.zip(attributes).map(event).collect()
    }

    fn started() -> Attributes {
        let workflow_type = Some(WorkflowType { name: TYPE.into() });
        Attributes::WorkflowStarted(Box::new(Started { workflow_type, ..Started::default() }))
    }

    fn signaled(name: &str) -> Attributes {
        Attributes::WorkflowSignaled(Signaled { signal_name: name.into(), ..Signaled::default() })
    }

    /// A run that ended its first task, and the one that went back to it; a signal came before the reset and one after.
    fn harness() -> (TakenBack, BTreeMap<String, Vec<HistoryEvent>>) {
        let failed = || Attributes::TaskFailed(workflow_task::Failed::default());
        let base = history(vec![started(), workflow_task::Completed::default().into(), signaled("back/1")]);
        let made = history(vec![started(), failed(), signaled("back/1"), signaled("back/2")]);
        let workflow = TakenBack {
            first_run_id: "base".into(),
            backs: vec![Back { base_run_id: "base".into(), run_id: "made".into(), finish_event_id: 2 }],
            signals: [("back/1".to_owned(), true), ("back/2".to_owned(), true)].into(),
            stays: true,
        };
        (workflow, [("base".to_owned(), base), ("made".to_owned(), made)].into())
    }

    fn found(change: impl FnOnce(&mut TakenBack, &mut BTreeMap<String, Vec<HistoryEvent>>)) -> String {
        let (mut workflow, mut histories) = harness();
        change(&mut workflow, &mut histories);
        let mut found = Vec::new();
        check(&[("w".to_owned(), workflow)].into(), &histories, &mut found);
        found.join("; ")
    }

    #[test]
    fn each_damage_is_found() {
        assert_eq!(found(|_, _| {}), "");
        let lost = found(|_, histories| _ = histories.get_mut("made").unwrap().pop());
        assert!(lost.contains("signal back/2 was acknowledged and is not in made"), "{lost}");
        let doubled = found(|_, histories| {
            let made = histories.get_mut("made").unwrap();
            made.push(made[3].clone());
        });
        assert!(doubled.contains("more than once"), "{doubled}");
        let second = found(|_, histories| {
            let copy = histories["made"].clone();
            histories.insert("again".into(), copy);
        });
        assert!(second.contains("there are"), "{second}");
        let other = found(|_, histories| histories.get_mut("made").unwrap()[0].event_id = 7);
        assert!(other.contains("does not begin as base did"), "{other}");
        let goes_on = found(|_, histories| {
            let end = histories["base"][1].clone();
            histories.get_mut("made").unwrap()[1] = end;
        });
        assert!(goes_on.contains("has not failed"), "{goes_on}");
        let forged = found(|workflow, _| _ = workflow.signals.remove("back/1"));
        assert!(forged.contains("nobody sent the signal back/1"), "{forged}");
    }
}
