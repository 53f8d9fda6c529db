//! Schedules under clocks that are set: each time comes to one action or to one counted reason, and none comes twice.

use everlog_engine::level;
use everlog_engine::machine::schedule::definition::ScheduleDefinition;
use everlog_engine::machine::schedule::request::CreateSchedule;
use everlog_engine::machine::schedule::{Schedule, WORKFLOW_ID_PREFIX};
use everlog_engine::machine::start::Begin;
use everlog_engine::request::Request;
use everlog_partition::Want;
use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::{IntervalSpec, ScheduleSpec, SpecDuration};
use everlog_schedules::state::{SchedulePolicies, ScheduleState};

use crate::clients::{address, input};
use crate::harness::Harness;
use crate::node::{PARTITION, PARTITIONS};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// A schedule at a node, and its id.
struct MinuteSchedule {
    harness: Harness,
    id: String,
}

impl MinuteSchedule {
    /// Each minute, with a window of ten. Its first run has no worker and goes on, so that all others are skipped.
    fn create() -> Self {
        let seconds = |seconds| Some(SpecDuration { seconds, nanos: 0 });
        let mut ids = (0..).map(|number| format!("{WORKFLOW_ID_PREFIX}minute{number}"));
        let is_here = |id: &String| address(id, "").partition(PARTITIONS) == PARTITION;
        let id = ids.find(is_here).unwrap();
        let mut workflow_ids = (0..).map(|number| format!("minute{number}"));
        let definition = ScheduleDefinition {
            spec: ScheduleSpec {
                intervals: vec![IntervalSpec { interval: seconds(60), phase: None }],
                ..ScheduleSpec::default()
            },
            policies: SchedulePolicies {
                overlap: OverlapPolicy::Skip.into(),
                catchup_window: seconds(600),
                keep_original_workflow_id: true,
                ..SchedulePolicies::default()
            },
            workflow_id: workflow_ids.find(is_here).unwrap(),
            action: Begin {
                workflow_type: "Fired".into(),
                task_queue: "nobody".into(),
                retention_ms: 24 * HOUR_MS,
                ..Begin::default()
            },
        };
        let create = CreateSchedule { request_id: "mine".into(), definition, ..CreateSchedule::default() };
        let mut harness = Harness::at_level(0, 0, level::LATEST);
        let router = harness.node.router.clone();
        let request = input(&id, "", Request::CreateSchedule(Box::new(create)));
        harness.call(async move { router.order(request).await }).unwrap();
        Self { harness, id }
    }

    /// What has become of its times: so many were started, skipped, missed.
    fn counts(&mut self) -> [u64; 3] {
        let (router, address) = (self.harness.node.router.clone(), address(&self.id, ""));
        let reading = self.harness.call(async move { router.read(address, Want::State).await });
        let reading = reading.unwrap().unwrap();
        let state: &ScheduleState = reading.run.schedule.as_deref().map(Schedule::state).unwrap();
        [state.counts.started, state.counts.skipped, state.counts.missed]
    }
}

#[test]
fn a_clock_that_is_set_forward_makes_times_late_that_lie_behind_the_window() {
    let mut minutes = MinuteSchedule::create();
    minutes.harness.pass(3 * MINUTE_MS);
    assert_eq!(minutes.counts(), [1, 2, 0]);
    minutes.harness.set_clocks(HOUR_MS);
    minutes.harness.pass(3 * MINUTE_MS);
    // Of the 63 times since, 50 were more than ten minutes late.
    assert_eq!(minutes.counts(), [1, 15, 50]);
}

#[test]
fn a_clock_that_is_set_back_brings_no_time_again() {
    let mut minutes = MinuteSchedule::create();
    minutes.harness.pass(30 * MINUTE_MS);
    assert_eq!(minutes.counts(), [1, 29, 0]);
    minutes.harness.set_clocks(-20 * MINUTE_MS);
    minutes.harness.pass(20 * MINUTE_MS);
    assert_eq!(minutes.counts(), [1, 29, 0], "the time of the journal stands");
    minutes.harness.pass(5 * MINUTE_MS);
    assert_eq!(minutes.counts(), [1, 34, 0]);
}

#[test]
fn clocks_that_are_set_forward_and_back_leave_out_no_time() {
    let mut minutes = MinuteSchedule::create();
    for _ in 0..10 {
        minutes.harness.pass(MINUTE_MS);
        minutes.harness.set_clocks(5 * MINUTE_MS);
        minutes.harness.pass(MINUTE_MS);
        minutes.harness.set_clocks(-5 * MINUTE_MS);
    }
    minutes.harness.pass(5 * MINUTE_MS);
    assert_eq!(minutes.counts(), [1, 24, 0]);
}
