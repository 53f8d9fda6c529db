//! Random lives: whatever is done to a schedule, its times have one outcome each, and it never runs two where it may not.

use std::collections::BTreeSet;

use everlog_schedules::overlap::OverlapPolicy;
use everlog_schedules::spec::ScheduleSpec;
use everlog_schedules::state::{ActionOpening, ScheduleSettings};
use proptest::prelude::*;

use crate::world::*;

/// Something that happens to a schedule.
#[derive(Clone, Debug)]
enum Verb {
    /// Time passes, alarms come in time.
    Pass(i64),
    /// Time passes, and no alarm comes.
    Stall(i64),
    /// The clock steps back.
    StepBack(i64),
    /// A start is answered: which, and how.
    Answer(usize, Answer),
    /// A run ends: which, and how.
    Close(usize, i32),
    Trigger(OverlapPolicy),
    /// A backfill of so many times of the past.
    Backfill(i64, OverlapPolicy),
    Pause,
    Unpause,
    Update(OverlapPolicy),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Started,
    Taken,
    Refused,
    Later,
}

fn policy(with_allow_all: bool) -> impl Strategy<Value = OverlapPolicy> {
    use OverlapPolicy::{AllowAll, BufferAll, BufferOne, CancelOther, Skip, TerminateOther, Unspecified};
    let mut policies = vec![Unspecified, Skip, BufferOne, BufferAll, CancelOther, TerminateOther];
    if with_allow_all {
        policies.push(AllowAll);
    }
    proptest::sample::select(policies)
}

/// What happens without a user.
fn steady_verb() -> impl Strategy<Value = Verb> {
    let answers =
        [Answer::Started, Answer::Started, Answer::Started, Answer::Taken, Answer::Refused, Answer::Later];
    let answer = proptest::sample::select(answers.to_vec());
    let ends = proptest::sample::select(vec![COMPLETED, FAILED, CANCELED, TIMED_OUT]);
    prop_oneof![
        6 => (0..10 * MINUTE_MS).prop_map(Verb::Pass),
        1 => (0..4 * HOUR_MS).prop_map(Verb::Stall),
        1 => (0..10 * MINUTE_MS).prop_map(Verb::StepBack),
        8 => (any::<usize>(), answer).prop_map(|(which, how)| Verb::Answer(which, how)),
        4 => (any::<usize>(), ends).prop_map(|(which, how)| Verb::Close(which, how)),
    ]
}

fn verb(with_allow_all: bool) -> impl Strategy<Value = Verb> {
    prop_oneof![
        20 => steady_verb(),
        2 => policy(with_allow_all).prop_map(Verb::Trigger),
        1 => (0_i64..200, policy(with_allow_all)).prop_map(|(count, policy)| Verb::Backfill(count, policy)),
        1 => Just(Verb::Pause),
        1 => Just(Verb::Unpause),
        1 => policy(with_allow_all).prop_map(Verb::Update),
    ]
}

fn spec(jitter_ms: i64) -> ScheduleSpec {
    ScheduleSpec { jitter: Some(span(jitter_ms)), ..every(MINUTE_MS) }
}

fn nth<T: Copy>(all: impl ExactSizeIterator<Item = T>, which: usize) -> Option<T> {
    let length = all.len();
    if length == 0 { None } else { all.into_iter().nth(which % length) }
}

fn happen(world: &mut World, verb: &Verb, jitter_ms: i64) {
    match verb {
        Verb::Pass(ms) => world.go_to(world.now_ms + ms),
        Verb::Stall(ms) => {
            world.now_ms += ms;
            world.wake();
        }
        Verb::StepBack(ms) => world.now_ms -= ms,
        Verb::Answer(which, how) => {
            let Some(number) = nth(world.starting.keys().copied(), *which) else { return };
            let opening = match how {
                Answer::Started => world.started(number),
                Answer::Taken => ActionOpening::WorkflowIdTaken,
                Answer::Refused => ActionOpening::Refused,
                Answer::Later => ActionOpening::Later { delay_ms: 20 * SECOND_MS },
            };
            world.answer(number, opening);
        }
        Verb::Close(which, how) => {
            if let Some(number) = nth(world.open.keys().copied(), *which) {
                world.close(number, *how);
            }
        }
        Verb::Trigger(policy) => {
            let mut patch = trigger();
            patch.trigger.as_mut().expect("a trigger").overlap = *policy;
            world.patch(&patch);
        }
        Verb::Backfill(count, policy) => {
            // Times of a day of its own.
            let end_ms = START_MS - DAY_MS * (1 + world.state.last_backfill as i64);
            world.patch(&backfill(end_ms - count * MINUTE_MS, end_ms, *policy));
        }
        Verb::Pause => world.patch(&pause()),
        Verb::Unpause => world.patch(&unpause()),
        Verb::Update(policy) => {
            let settings = world.state.settings.clone();
            world.update(&spec(jitter_ms), policies(*policy), settings);
        }
    }
}

/// What holds at all times.
fn check(world: &World, with_allow_all: bool) -> Result<(), TestCaseError> {
    if !with_allow_all {
        prop_assert!(world.starting.len() + world.open.len() <= 1, "two run: {:?}", world.state.running);
    }
    let known: BTreeSet<u64> = world.state.running.iter().map(|running| running.action.number).collect();
    let real: BTreeSet<u64> = world.starting.keys().chain(world.open.keys()).copied().collect();
    prop_assert_eq!(&known, &real, "it knows what runs");
    // Each action is in one place, or has been counted once.
    let counts = &world.state.counts;
    let gone =
        counts.skipped + counts.dropped + counts.paused + counts.exhausted + counts.clashed + counts.refused;
    let waiting = world.state.buffer.len() + world.starting.len();
    prop_assert_eq!(world.state.last_number, counts.started + gone + waiting as u64);
    let open_ids: BTreeSet<&String> =
        world.state.running.iter().map(|running| &running.workflow_id).collect();
    prop_assert_eq!(open_ids.len(), world.state.running.len(), "two of one Workflow Id");
    // It never falls silent.
    if world.state.may_act() {
        let alarm_ms = world.alarm_ms.expect("an alarm");
        let next_s = world.state.position.searched_s;
        let next = world.nominal_times(next_s, (next_s + 86_400) * 1_000);
        prop_assert!(alarm_ms <= next[0] * 1_000 + 60_000 || alarm_ms <= world.now_ms);
    }
    Ok(())
}

fn live(
    verbs: &[Verb],
    policy: OverlapPolicy,
    jitter_ms: i64,
    with_allow_all: bool,
) -> Result<(), TestCaseError> {
    let mut world =
        World::with(&spec(jitter_ms), policies(policy), ScheduleSettings::default(), None, START_MS);
    for verb in verbs {
        happen(&mut world, verb, jitter_ms);
        check(&world, with_allow_all)?;
    }
    // All scheduled actions are of times of the specification, none twice.
    let scheduled: Vec<i64> =
        world.starts.iter().filter(|start| !start.is_manual).map(|start| start.nominal_s).collect();
    let distinct: BTreeSet<(u64, i64)> = world
        .starts
        .iter()
        .filter(|start| !start.is_manual)
        .map(|start| (start.number, start.nominal_s))
        .collect();
    let times: BTreeSet<i64> = distinct.iter().map(|(_, nominal_s)| *nominal_s).collect();
    prop_assert_eq!(times.len(), distinct.len(), "two actions of one time");
    prop_assert!(scheduled.iter().all(|nominal_s| nominal_s % 60 == 0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_never_run_where_none_allows_it(
        verbs in proptest::collection::vec(verb(false), 1..60),
        policy in policy(false),
        jitter_ms in 0..2 * MINUTE_MS,
    ) {
        live(&verbs, policy, jitter_ms, false)?;
    }

    #[test]
    fn whatever_happens_is_counted_once(
        verbs in proptest::collection::vec(verb(true), 1..60),
        policy in policy(true),
        jitter_ms in 0..2 * MINUTE_MS,
    ) {
        live(&verbs, policy, jitter_ms, true)?;
    }

    #[test]
    fn each_time_has_an_action_or_a_counted_reason(
        verbs in proptest::collection::vec(steady_verb(), 1..60),
        policy in policy(true),
        jitter_ms in 0..2 * MINUTE_MS,
        window_ms in proptest::option::of(0..2 * HOUR_MS),
    ) {
        let mut policies = policies(policy);
        policies.catchup_window = window_ms.map(span);
        let mut world =
            World::with(&spec(jitter_ms), policies, ScheduleSettings::default(), None, START_MS);
        for verb in &verbs {
            happen(&mut world, verb, jitter_ms);
        }
        world.now_ms = world.now_ms.max(START_MS + DAY_MS);
        world.settle();
        world.open_all();
        let due = world.nominal_times(START_MS / 1_000, world.now_ms).len() as u64;
        prop_assert_eq!(world.state.last_number + world.state.counts.missed, due);
    }
}
