//! Schedules: one client makes a schedule, triggers and pauses it, and looks what has become of its times.

pub mod account;

use std::collections::BTreeMap;

use everlog_engine::event::{Attributes, HistoryEvent};
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::{
    CreateSchedule, DeleteSchedule, PatchRecord, PatchSchedule, TriggerRecord,
};
use everlog_engine::machine::schedule::{Schedule, WORKFLOW_ID_PREFIX};
use everlog_engine::machine::start::Begin;
use everlog_engine::request::Request;
use everlog_engine::{Rejection, Reply};
use everlog_partition::Want;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{IntervalSpec, ScheduleSpec, SpecDuration, SpecTime};
use everlog_schedules::state::{NextTimeKind, SchedulePolicies, ScheduleState};

use crate::clients::{ClientContext, address, beginning, input};
use crate::dice::Dice;
use crate::node::{PARTITION, PARTITIONS};
use crate::schedules::account::{CATCHUP_MS, UsedSchedule};
use crate::workflow::{Program, Step};

/// The type of the workflows that a schedule starts.
pub const TYPE: &str = "Fired";

const POLICIES: [OverlapPolicy; 6] = [
    OverlapPolicy::Skip,
    OverlapPolicy::BufferOne,
    OverlapPolicy::BufferAll,
    OverlapPolicy::CancelOther,
    OverlapPolicy::TerminateOther,
    OverlapPolicy::AllowAll,
];

/// A Workflow Id of the partition.
fn id_of_the_partition(prefix: &str) -> String {
    let ids = (0..).map(|number| format!("{prefix}fired{number}"));
    let mut ids = ids.filter(|id| address(id, "").partition(PARTITIONS) == PARTITION);
    ids.next().expect("the ids do not end")
}

/// A definition whose times end with the things that break, and the seconds from one time to the next. There is one partition,
/// so all runs have one id.
fn definition(end_ms: i64, dice: &mut Dice) -> (ScheduleDefinition, i64) {
    let interval_s = dice.span(1, 4);
    let interval = Some(SpecDuration { seconds: interval_s, nanos: 0 });
    let steps = if dice.permille(500) { vec![Step::Timer] } else { Vec::new() };
    let overlap = POLICIES[dice.index(POLICIES.len())];
    let definition = ScheduleDefinition {
        spec: ScheduleSpec {
            intervals: vec![IntervalSpec { interval, phase: None }],
            end: Some(SpecTime::of_ms(end_ms)),
            ..ScheduleSpec::default()
        },
        policies: SchedulePolicies {
            overlap: overlap.into(),
            catchup_window: Some(SpecDuration { seconds: CATCHUP_MS / 1_000, nanos: 0 }),
            keep_original_workflow_id: true,
            ..SchedulePolicies::default()
        },
        workflow_id: id_of_the_partition(""),
        action: Begin {
            request_id: String::new(),
            ..beginning(TYPE, "", &Program { generations: 0, steps }, dice)
        },
    };
    (definition, interval_s)
}

impl ClientContext {
    /// Makes a schedule, triggers and pauses it some times, waits until nothing is to come of it, and deletes it.
    pub async fn schedule(self, chaos_ms: i64, mut dice: Dice) {
        let end_ms = self.clock.now_ms() + dice.span(chaos_ms / 2, chaos_ms + 3_000);
        let (definition, interval_s) = definition(end_ms, &mut dice);
        let create = CreateSchedule { request_id: "mine".into(), definition, ..CreateSchedule::default() };
        self.until_taken(Request::CreateSchedule(Box::new(create)), &mut dice).await;
        let triggers = dice.below(4);
        for number in 0..triggers {
            self.clock.sleep(dice.span(50, 3_000)).await;
            let trigger = PatchRecord { trigger: Some(TriggerRecord::default()), ..PatchRecord::default() };
            self.until_patched(format!("trigger-{number}"), trigger, &mut dice).await;
            if dice.permille(250) {
                let pause = PatchRecord { pause: "for a while".into(), ..PatchRecord::default() };
                self.until_patched(format!("pause-{number}"), pause, &mut dice).await;
                self.clock.sleep(dice.span(50, 5_000)).await;
                let unpause = PatchRecord { unpause: "and on".into(), ..PatchRecord::default() };
                self.until_patched(format!("unpause-{number}"), unpause, &mut dice).await;
            }
        }
        let state = self.until_settled(&mut dice).await;
        let span_ms = (state.create_ms, end_ms);
        let used = UsedSchedule { interval_s, span_ms, triggers, counts: state.counts };
        self.observations.borrow_mut().schedule = Some(used);
        self.until_taken(Request::DeleteSchedule(DeleteSchedule {}), &mut dice).await;
        self.observations.borrow_mut().people_left -= 1;
    }

    async fn until_patched(&self, request_id: String, patch: PatchRecord, dice: &mut Dice) {
        self.until_taken(Request::PatchSchedule(PatchSchedule { request_id, patch }), dice).await;
    }

    /// Asks for something again and again, until it is known to be done.
    async fn until_taken(&self, request: Request, dice: &mut Dice) {
        let id = id_of_the_partition(WORKFLOW_ID_PREFIX);
        let deletes = matches!(request, Request::DeleteSchedule(_));
        loop {
            if let Some(router) = self.router(dice) {
                let call = router.order(input(&id, "", request.clone()));
                match self.call("a request to a schedule", dice, call).await {
                    Ok(Reply::Schedule(_) | Reply::Done) => return,
                    Ok(Reply::Rejected(Rejection::NotFound(_))) if deletes => return,
                    Err(_) => {}
                    Ok(other) => {
                        let what = format!("{request:?} yields {other:?}");
                        self.observations.borrow_mut().violate(what);
                        return;
                    }
                }
            }
            self.rest(dice).await;
        }
    }

    /// The schedule, once there are no times, and nothing waits or runs.
    async fn until_settled(&self, dice: &mut Dice) -> ScheduleState {
        let id = id_of_the_partition(WORKFLOW_ID_PREFIX);
        loop {
            if let Some(router) = self.router(dice) {
                let call = router.read(address(&id, ""), Want::State);
                if let Ok(Some(reading)) = self.call("a read", dice, call).await {
                    let state = reading.run.schedule.as_deref().map(Schedule::state);
                    let is_over = |state: &&ScheduleState| {
                        state.next_kind() == NextTimeKind::Never
                            && state.buffer.is_empty()
                            && !state.is_running()
                    };
                    if let Some(state) = state.filter(is_over) {
                        return state.clone();
                    }
                }
            }
            self.rest(dice).await;
        }
    }
}

/// As many runs are there as a schedule says that it has started.
pub fn check(fired: u64, histories: &BTreeMap<String, Vec<HistoryEvent>>, found: &mut Vec<String>) {
    let is_fired =
        |events: &&Vec<HistoryEvent>| match events.first().and_then(|event| event.attributes.as_ref()) {
            Some(Attributes::WorkflowStarted(started)) => {
                started.workflow_type.as_ref().is_some_and(|kind| kind.name == TYPE)
            }
            Some(_) | None => false,
        };
    let there = histories.values().filter(is_fired).count() as u64;
    if there != fired {
        found.push(format!("a schedule has started {fired} runs, and {there} are there"));
    }
}
