//! Writes a life from a seed.
//!
//! Hardly a time of a specification passes during a life: all are in the years from 2090 on, or before 2022, but for
//! specifications that have one time, some seconds behind their step. So a life goes the same way whenever it is played.

use everlog_tests::dice::Dice;
use serde_json::{Value, json};

use crate::lives::life::{Life, LifeAct, LifeStep, RunFate, SOON, UpdateToken, WhichRun};

const STEPS_MIN: i64 = 6;
const STEPS_MAX: i64 = 14;
/// Times that one step backfills: the runs of a step are known by the ten actions that a description has.
const BACKFILLED_MAX: i64 = 8;
/// Steps that wait for a time.
const SOON_MAX: usize = 2;
/// 2090-01-01, a Sunday.
const FUTURE_S: i64 = 3_786_912_000;
/// 2021-01-01.
const PAST_S: i64 = 1_609_459_200;
const DAY_S: i64 = 86_400;

const SKIP: &str = "SCHEDULE_OVERLAP_POLICY_SKIP";
const BUFFER_ONE: &str = "SCHEDULE_OVERLAP_POLICY_BUFFER_ONE";
const BUFFER_ALL: &str = "SCHEDULE_OVERLAP_POLICY_BUFFER_ALL";
const CANCEL_OTHER: &str = "SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER";
const TERMINATE_OTHER: &str = "SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER";
const ALLOW_ALL: &str = "SCHEDULE_OVERLAP_POLICY_ALLOW_ALL";
const UNSPECIFIED: &str = "SCHEDULE_OVERLAP_POLICY_UNSPECIFIED";
/// Those by which no two runs are open at a time; the last two end what is open.
const EXCLUSIVE: &[&str] = &[SKIP, BUFFER_ONE, BUFFER_ALL, CANCEL_OTHER, TERMINATE_OTHER];
const PATIENT: usize = 3;

/// Where backfills find times: from when on, and how far one is from the next.
#[derive(Clone, Copy, Debug)]
struct TimeGrid {
    from_s: i64,
    each_s: i64,
}

/// A life that is being written.
#[derive(Debug)]
pub struct LifeAuthor {
    dice: Dice,
    steps: Vec<LifeStep>,
    /// Its last definition.
    schedule: Value,
    grid: TimeGrid,
    /// The schedule is there.
    is_there: bool,
    /// Actions overlap each other. They do so in a part of a life, as a Temporal server forgets them at once.
    overlaps: bool,
    is_hasty: bool,
    keeps_id: bool,
    /// Actions may end others.
    ends_others: bool,
    triggers: i64,
    /// Steps that may yet wait for a time.
    soon_left: usize,
    /// Steps that have asked for actions since nothing was open, less those that have ended one.
    open: i64,
}

impl LifeAuthor {
    /// The life of a seed.
    pub fn write(seed: u64) -> Life {
        let mut dice = Dice::new(seed);
        let is_hasty = dice.permille(80);
        let keeps_id = !is_hasty && dice.permille(100);
        let ends_others = dice.permille(500);
        let mut author = Self {
            overlaps: !keeps_id && dice.permille(150),
            dice,
            steps: Vec::new(),
            schedule: Value::Null,
            grid: TimeGrid { from_s: FUTURE_S, each_s: 600 },
            is_there: false,
            is_hasty,
            keeps_id,
            ends_others,
            triggers: 0,
            soon_left: SOON_MAX,
            open: 0,
        };
        let length = author.dice.span(STEPS_MIN, STEPS_MAX);
        author.create();
        while (author.steps.len() as i64) < length {
            author.next();
        }
        Life { seed, steps: author.steps, is_hasty, keeps_id }
    }

    fn push(&mut self, act: LifeAct) {
        let step = LifeStep { act, overlaps: self.overlaps };
        match &step.act {
            LifeAct::Drain => self.open = 0,
            LifeAct::Run { fate: RunFate::ContinuesAsNew | RunFate::IsAskedToCancel, .. } => {}
            LifeAct::Run { .. } => self.open -= 1,
            _other if step.asks_for_actions() => self.open += 1,
            _other => {}
        }
        self.steps.push(step);
    }

    fn exclusive(&mut self) -> &'static str {
        EXCLUSIVE[self.dice.index(if self.ends_others { EXCLUSIVE.len() } else { PATIENT })]
    }

    fn next(&mut self) {
        if !self.is_there {
            return if self.dice.permille(800) { self.create() } else { self.patch() };
        }
        match self.dice.below(100) {
            0..=17 => self.trigger(),
            18..=33 => self.backfill(),
            34..=67 => self.run(),
            68..=74 => self.pause(),
            75..=78 => self.patch(),
            79..=90 => self.update(),
            91..=93 => self.delete(),
            94 => self.create(),
            _rest => self.change_mode(),
        }
    }

    fn create(&mut self) {
        if !self.is_there {
            let schedule = self.new_schedule();
            self.schedule = self.with_a_time_of_its_own(schedule);
            self.is_there = true;
        }
        let patch = match self.dice.below(3) {
            0 => self.mixed_patch(),
            _none => Value::Null,
        };
        self.push(LifeAct::Create { schedule: self.schedule.clone(), patch });
    }

    fn trigger(&mut self) {
        let trigger = self.trigger_request();
        self.push(LifeAct::Patch { patch: json!({ "trigger_immediately": trigger }) });
    }

    fn trigger_request(&mut self) -> Value {
        let overlap_policy = self.overlap();
        if self.dice.permille(600) {
            return json!({ "overlap_policy": overlap_policy });
        }
        // No two of a life are the same second, and none is a time of a specification.
        self.triggers += 1;
        let seconds = PAST_S - 40 * DAY_S + self.triggers * 61;
        json!({ "overlap_policy": overlap_policy, "scheduled_time": {"seconds": seconds} })
    }

    fn backfill(&mut self) {
        let ranges = self.ranges();
        self.push(LifeAct::Patch { patch: json!({ "backfill_request": ranges }) });
    }

    fn ranges(&mut self) -> Value {
        let count = if self.dice.permille(200) { 2 } else { 1 };
        let mut left = BACKFILLED_MAX;
        let ranges = (0..count).map(|_range| {
            let TimeGrid { from_s, each_s } = self.grid;
            let times = self.dice.span(1, (left - 1).clamp(1, 5));
            left -= times;
            let start_s = from_s + self.dice.span(0, 6) * each_s - self.dice.span(0, 1) * 7;
            // From one time to another, both included; or the wrong way round.
            let end_s = start_s + (times - 1) * each_s + 7 * self.dice.span(0, 1);
            let [start_s, end_s] =
                if self.dice.permille(40) { [end_s + 1, start_s] } else { [start_s, end_s] };
            json!({
                "start_time": {"seconds": start_s},
                "end_time": {"seconds": end_s},
                "overlap_policy": self.overlap(),
            })
        });
        ranges.collect()
    }

    /// The policy of an action: by its own word, or by the schedule's.
    fn overlap(&mut self) -> &'static str {
        let own = self.schedule["policies"]["overlap_policy"].as_str().unwrap_or_default();
        let is_overlapping = own == ALLOW_ALL;
        if is_overlapping == self.overlaps && self.dice.permille(500) {
            return UNSPECIFIED;
        }
        if self.overlaps { ALLOW_ALL } else { self.exclusive() }
    }

    fn run(&mut self) {
        if self.is_hasty || self.open <= 0 {
            return self.trigger();
        }
        let which = if self.dice.permille(500) { WhichRun::Oldest } else { WhichRun::Newest };
        let fate = match self.dice.below(100) {
            // What overlapping runs leave is lost at a Temporal server.
            0..=37 if self.overlaps => RunFate::IsTerminated,
            0..=29 => RunFate::Completes(self.dice.below(100)),
            30..=37 => RunFate::CompletesWithoutResult,
            38..=54 if self.overlaps => RunFate::EndsCancelled,
            38..=54 => RunFate::Fails,
            55..=64 => RunFate::EndsCancelled,
            65..=74 => RunFate::ContinuesAsNew,
            75..=89 => RunFate::IsTerminated,
            90..=95 => RunFate::IsAskedToCancel,
            _rest => RunFate::IsDeleted,
        };
        self.push(LifeAct::Run { which, fate });
    }

    fn pause(&mut self) {
        let notes = format!("note {}", self.dice.below(100));
        let patch = match self.dice.below(9) {
            0..=4 => json!({ "pause": notes }),
            5..=7 => json!({ "unpause": notes }),
            _both => json!({ "pause": notes, "unpause": "and back" }),
        };
        self.push(LifeAct::Patch { patch });
    }

    fn patch(&mut self) {
        let patch = self.mixed_patch();
        self.push(LifeAct::Patch { patch });
    }

    fn mixed_patch(&mut self) -> Value {
        let mut patch = json!({});
        if self.dice.permille(600) {
            patch["trigger_immediately"] = self.trigger_request();
        }
        if self.dice.permille(400) {
            patch["backfill_request"] = self.ranges();
        }
        if self.dice.permille(250) {
            patch["pause"] = "paused beside".into();
        }
        if self.dice.permille(150) {
            patch["unpause"] = "unpaused beside".into();
        }
        patch
    }

    fn update(&mut self) {
        let token = match self.dice.below(10) {
            0..=4 => UpdateToken::None,
            5..=7 => UpdateToken::Latest,
            _wrong => UpdateToken::Wrong,
        };
        let mut schedule = self.schedule.clone();
        let fresh = self.new_schedule_beside();
        // What a user edits: some parts of it.
        let parts = ["spec", "action", "policies", "state"];
        let edited = self.dice.index(parts.len());
        for (number, part) in parts.iter().enumerate() {
            if number == edited || self.dice.permille(250) {
                schedule[*part] = fresh.0[*part].clone();
            }
        }
        let has_new_spec = schedule["spec"] == fresh.0["spec"];
        let schedule = self.with_a_time_of_its_own(schedule);
        if token != UpdateToken::Wrong {
            if has_new_spec {
                self.grid = fresh.1;
            }
            self.schedule = schedule.clone();
        }
        self.push(LifeAct::Update { schedule, token });
    }

    fn delete(&mut self) {
        // The next schedule would find a run with the id that it keeps.
        if self.keeps_id {
            self.push(LifeAct::Drain);
        }
        self.push(LifeAct::Delete);
        self.is_there = false;
    }

    /// From actions that exclude each other to such that overlap, or back. Nothing of the one is left beside the other.
    fn change_mode(&mut self) {
        self.push(LifeAct::Drain);
        self.overlaps = !self.overlaps && !self.keeps_id;
    }

    fn new_schedule(&mut self) -> Value {
        let (schedule, grid) = self.new_schedule_beside();
        self.grid = grid;
        schedule
    }

    /// A schedule whose time, if it is soon, goes by alike at both: what it starts is not lost there for overlapping, and
    /// does not miss its catch-up window while it waits.
    fn with_a_time_of_its_own(&mut self, mut schedule: Value) -> Value {
        if !is_soon(&schedule) {
            return schedule;
        }
        // A Temporal server does not go on from a time at which the schedule was paused.
        let is_paused = schedule["state"]["paused"] == true;
        let policies = &mut schedule["policies"];
        if self.overlaps || self.soon_left == 0 || is_paused || policies["overlap_policy"] == ALLOW_ALL {
            schedule["spec"] = json!({});
            return schedule;
        }
        self.soon_left -= 1;
        policies.as_object_mut().map(|policies| policies.remove("catchup_window"));
        self.open += 1;
        schedule
    }

    fn new_schedule_beside(&mut self) -> (Value, TimeGrid) {
        let (spec, grid) = self.spec();
        let schedule = json!({ "spec": spec, "action": self.action(), "policies": self.policies(), "state": self.state() });
        (schedule, grid)
    }

    fn spec(&mut self) -> (Value, TimeGrid) {
        let day_s = FUTURE_S + self.dice.span(0, 300) * DAY_S;
        let grid = |from_s, each_s| TimeGrid { from_s, each_s };
        let at = |seconds: i64| json!({ "seconds": seconds });
        let soon = json!({ "seconds": SOON });
        match self.dice.below(9) {
            0 | 1 => {
                let each_s = [600, 900, 3_600][self.dice.index(3)];
                let phase_s = self.dice.span(0, 2) * 100;
                let mut spec = json!({
                    "interval": [{"interval": format!("{each_s}s"), "phase": format!("{phase_s}s")}],
                    "start_time": at(day_s),
                });
                if self.dice.permille(300) {
                    spec["end_time"] = at(day_s + 8 * each_s);
                }
                (spec, grid(day_s + phase_s, each_s))
            }
            2 => {
                let minute = json!([{"start": 0, "end": 59, "step": 20}]);
                let calendar = json!({
                    "second": [{"start": 5}],
                    "minute": minute,
                    "hour": [{"start": 0, "end": 23}],
                    "day_of_month": [{"start": 1, "end": 31}],
                    "month": [{"start": 1, "end": 12}],
                    "day_of_week": [{"start": 0, "end": 6}],
                    "year": [{"start": 2090}],
                    "comment": "three an hour",
                });
                (json!({ "structured_calendar": [calendar] }), grid(day_s + 5, 1_200))
            }
            3 => {
                let cron = json!(["30 */2 * * * 2090 # each other hour"]);
                let spec = json!({ "cron_string": cron, "timezone_name": "Europe/Berlin" });
                (spec, grid(day_s + 1_800, 7_200))
            }
            4 => {
                let calendar = json!([{"hour": "*", "minute": "0-30/15", "year": "2090"}]);
                let excluded = json!([{"hour": "2", "minute": "*"}]);
                (json!({ "calendar": calendar, "exclude_calendar": excluded }), grid(day_s, 900))
            }
            5 => {
                let interval = json!([{"interval": "1800s"}]);
                let ended = PAST_S + 5 * DAY_S;
                let spec = json!({ "interval": interval, "start_time": at(PAST_S), "end_time": at(ended) });
                (spec, grid(PAST_S + 60, 1_800))
            }
            6 | 7 => {
                let interval = json!([{"interval": "1s"}]);
                (json!({ "interval": interval, "start_time": soon, "end_time": soon }), grid(day_s, 600))
            }
            _no_times => (json!({}), grid(day_s, 600)),
        }
    }

    fn action(&mut self) -> Value {
        let text = |text: &str| json!({"metadata": {"encoding": "json/plain"}, "data": format!("{text:?}")});
        let kind = ["order", "report"][self.dice.index(2)];
        let mut start = json!({
            "workflow_id": "~w",
            "workflow_type": {"name": kind},
            "task_queue": {"name": "~q"},
        });
        if self.dice.permille(500) {
            start["input"] = json!({ "payloads": [text(&format!("input {}", self.dice.below(10)))] });
        }
        if self.dice.permille(300) {
            start["memo"] = json!({ "fields": {"why": text("a memo")} });
        }
        if self.dice.permille(300) {
            start["search_attributes"] = json!({ "indexed_fields": {"CustomKeywordField": text("a word")} });
        }
        if self.dice.permille(150) {
            start["header"] = json!({ "fields": {"trace": text("a trace")} });
        }
        if self.dice.permille(200) {
            start["workflow_execution_timeout"] = "86400s".into();
            start["workflow_task_timeout"] = "9s".into();
        }
        if self.dice.permille(150) {
            start["retry_policy"] = json!({ "initial_interval": "1s", "maximum_attempts": 2 });
        }
        if self.is_hasty {
            start["workflow_run_timeout"] = "1s".into();
        }
        json!({ "start_workflow": start })
    }

    fn policies(&mut self) -> Value {
        let overlap = match (self.overlaps, self.dice.below(10)) {
            (_any, 0) => UNSPECIFIED,
            (true, 1..=6) => ALLOW_ALL,
            (_any, _rest) => self.exclusive(),
        };
        let mut policies = json!({ "overlap_policy": overlap, "keep_original_workflow_id": self.keeps_id });
        if self.dice.permille(300) {
            policies["catchup_window"] = ["5s", "60s", "86400s"][self.dice.index(3)].into();
        }
        // Those that overlap are not seen to fail at a Temporal server.
        policies["pause_on_failure"] = (!self.overlaps && self.dice.permille(450)).into();
        policies
    }

    fn state(&mut self) -> Value {
        let mut state = json!({ "paused": self.dice.permille(250) });
        if self.dice.permille(400) {
            state["notes"] = format!("state {}", self.dice.below(100)).into();
        }
        if self.dice.permille(300) {
            state["limited_actions"] = true.into();
            state["remaining_actions"] = self.dice.below(4).into();
        }
        state
    }
}

/// The only time of a schedule comes soon.
fn is_soon(schedule: &Value) -> bool {
    schedule.pointer("/spec/start_time/seconds").is_some_and(|seconds| seconds == SOON)
}
