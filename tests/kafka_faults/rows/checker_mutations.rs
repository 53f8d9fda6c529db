//! Mutations of correct observations. The checker must find each.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use everlog_tests::patience;

use crate::checker::lineage::Lineage;
use crate::checker::queues::ROUNDS;
use crate::checker::{cause, check};
use crate::client::TASK_TIMEOUT_S;
use crate::client_log::Via;
use crate::cluster::FaultCluster;
use crate::environment::{Environment, Outcome, Size};
use crate::event::{Event, RUNNING};
use crate::observations::{Mark, Observations};
use crate::polls::{Got, Poll};
use crate::program;
use crate::rows::kin_mutations::KIN;
use everlog_tests::fate::Fate;

/// Longer than a hand-over takes, and shorter than patience lasts.
const LONG_MS: i64 = 60_000;

type Damage = (&'static str, fn(&mut Observations));

/// The same with the least that the checker must report.
pub type NamedDamage = (&'static str, &'static str, fn(&mut Observations));

const DAMAGES: &[Damage] = &[
    ("an event is gone", |observations| drop(observations.events.remove(5))),
    ("an event is there twice", |observations| {
        let again = observations.events[7].clone();
        observations.events.insert(8, again);
    }),
    ("two events are exchanged", |observations| {
        let place = pair(observations);
        observations.events.swap(place, place + 1);
    }),
    ("an event is in another partition", |observations| observations.events[3].partition += 1),
    ("a timer fires early", |observations| {
        let fired = first(observations, "TimerFired").clone();
        let is_its_start = |event: &&mut Event| {
            event.run_id == fired.run_id && Some(event.event_id) == fired.number("started_event_id")
        };
        let started = observations.events.iter_mut().find(is_its_start).expect("it was started");
        started.numbers.insert("start_to_fire_timeout_ms".into(), 600_000);
    }),
    ("an acknowledged signal is lost", |observations| {
        let signal = of_a_call(observations, "WorkflowExecutionSignaled");
        signal.texts.insert("identity".into(), "nobody".into());
    }),
    ("an order has two effects", |observations| {
        let identity = of_a_call(observations, "WorkflowExecutionSignaled").text("identity").to_owned();
        for event in observations.events.iter_mut().filter(|event| event.kind == "WorkflowExecutionSignaled")
        {
            event.texts.insert("identity".into(), identity.clone());
        }
    }),
    ("a refused order has an effect", |observations| observations.calls[0].fate = Fate::Refused),
    ("a run never ends", |observations| {
        observations.events.retain(|event| !event.is_closing());
    }),
    ("a transaction is torn", |observations| {
        let mark =
            observations.marks.iter().position(|mark| mark.topic == "events").expect("there are events");
        observations.marks.remove(mark);
    }),
    ("a transaction has no end", |observations| {
        let of = |mark: &Mark| (mark.partition, mark.fence, mark.commit);
        let event = observations.marks.iter().find(|mark| mark.topic == "events").map(of);
        let mark = observations.marks.iter().position(|mark| mark.is_position && Some(of(mark)) == event);
        let mark = mark.expect("it has a position");
        observations.marks.remove(mark);
    }),
    ("a former owner commits late", |observations| {
        let mut late =
            observations.marks.iter().rfind(|mark| mark.topic == "events").expect("there are events").clone();
        late.fence = 0;
        observations.marks.push(late);
    }),
    ("the changelog is behind", |observations| {
        observations.heads.values_mut().next().expect("there are runs").next_event_id -= 1;
    }),
    ("the history topic lacks an event", |observations| {
        observations.kept.values_mut().next().expect("there are runs").pop();
    }),
    ("the node tells another history", |observations| {
        observations.told.values_mut().next().expect("it was asked").swap(0, 1);
    }),
    ("a list has another status", |observations| {
        let mut listed = observations.listed.iter_mut().flat_map(|listed| listed.values_mut());
        listed.find(|run| run.status != RUNNING).expect("some have closed").status += 1;
    }),
    ("a run is not listed", |observations| {
        let known = observations.told.keys().next().expect("it was asked").clone();
        observations.listed.as_mut().expect("it was asked").remove(&known);
    }),
    ("what was seen is not there any more", |observations| {
        observations.seen.values_mut().next().expect("somebody read along").value = None;
    }),
    ("what is there was not seen", |observations| {
        observations.seen.pop_first();
    }),
    ("a chain is broken", |observations| {
        let first = observations.events.iter_mut().find(|event| !event.text("new_run_id").is_empty());
        first.expect("there are chains").texts.insert("new_run_id".into(), "another".into());
    }),
    ("a completed task left less", |observations| {
        let task = first(observations, "TimerStarted");
        task.numbers.insert("workflow_task_completed_event_id".into(), 0);
    }),
    ("an answer to nothing", |observations| {
        first(observations, "ActivityTaskCompleted").numbers.insert("started_event_id".into(), 1);
    }),
    ("a command has no reply", |observations| drop(observations.replies.remove(0))),
    ("a command has two replies", |observations| {
        let again = observations.replies[0].clone();
        observations.replies.push(again);
    }),
    ("an aborted record has an effect", |observations| {
        let record =
            observations.calls.iter_mut().find(|call| call.via == Via::Record && call.fate == Fate::Acked);
        record.expect("some came as records").fate = Fate::Refused;
    }),
    ("signals change their order", |observations| {
        let calls = &mut observations.calls;
        let is_signal = |call: &crate::client_log::Call| {
            matches!(call.deed, crate::client_log::Deed::Signal { in_order: true, .. })
        };
        let one = calls.iter().position(is_signal).expect("signals were sent");
        let id = calls[one].workflow_id.clone();
        let other = calls.iter().rposition(|call| is_signal(call) && call.workflow_id == id);
        calls.swap(one, other.expect("two to each workflow"));
    }),
];

/// Mutations of which the report matters.
const NAMED: &[NamedDamage] = &[
    ("a stale answer", "a stale answer", |observations| {
        let read = observations.reads.last_mut().expect("registers were read");
        read.saw = read.acknowledged - 1;
    }),
    ("a call without an answer", "hangs", |observations| delay(observations, patience::most())),
    ("a call without an answer amid trouble", "hangs", |observations| {
        delay(observations, patience::most());
        let ended_ms = observations.waits[0].ended_ms;
        observations.troubles = Some(vec![(ended_ms - 1_000, ended_ms - 1_000)]);
    }),
    ("a call to a node that has slept and does not answer", "hangs", |observations| {
        observations.waits.first_mut().expect("there were calls").asleep = patience::most();
        delay(observations, patience::most());
    }),
    ("a task that nobody gets for long", "after there was no trouble", |observations| {
        let started = first(observations, "WorkflowTaskStarted");
        started.time_ms += LONG_MS;
    }),
    ("a worker gets what could be had for long", "after there was no trouble", |observations| {
        let last = polls_of_tasks(observations).max_by_key(|poll| poll.ended_ms);
        last.expect("there were workflow tasks").since_ms -= LONG_MS;
    }),
    ("a task that is handed out to nobody", "reached nobody", |observations| {
        poll_of_a_task(observations).got = Got::Nothing;
    }),
    ("a task that comes again only when its time is over", "reached nobody", |observations| {
        let started = first(observations, "WorkflowTaskStarted").clone();
        let end = observations.events.iter_mut().find(|event| {
            event.run_id == started.run_id && event.number("started_event_id") == Some(started.event_id)
        });
        let end = end.expect("it has an end");
        (end.kind, end.time_ms) = ("WorkflowTaskTimedOut".into(), started.time_ms + TASK_TIMEOUT_S * 1_000);
        observations.polls.get_mut(started.text("identity")).expect("it had a poll").got = Got::Nothing;
    }),
    ("the way to a worker breaks though nothing is harmed", "reached nobody", |observations| {
        poll_of_a_task(observations).got = Got::Broke;
    }),
    ("a sticky task that nobody gets", "the sticky task", |observations| {
        let end = first(observations, "WorkflowTaskCompleted");
        end.kind = "WorkflowTaskTimedOut".into();
        end.time_ms += LONG_MS;
        end.numbers.remove("started_event_id");
    }),
    ("an attempt of an activity that is handed out to nobody", "attempt 1 reached nobody", |observations| {
        let mut attempts = observations.polls.values_mut().filter_map(|poll| match &mut poll.got {
            Got::Activity { attempt, .. } => Some(attempt),
            _no_activity => None,
        });
        *attempts.next().expect("there were activities") += 1;
    }),
    ("an activity that nobody gets", "reached nobody", |observations| {
        let scheduled = first(observations, "ActivityTaskScheduled");
        scheduled.time_ms -= LONG_MS;
        let (own, since_ms) = (scheduled.run_id.clone(), scheduled.time_ms);
        observations
            .polls
            .retain(|_, poll| !matches!(&poll.got, Got::Activity { run_id, .. } if *run_id == own));
        go_past(observations, &own, since_ms);
    }),
    ("a lower fence commits later", "stands behind fence", |observations| {
        let mut late = observations.terms.positions.last().expect("there are commits").clone();
        late.fence = 0;
        observations.terms.positions.push(late);
    }),
    ("a lower term commits later", "stands behind fence", |observations| {
        let mut late = observations.terms.positions.last().expect("there are commits").clone();
        late.term = late.term.wrapping_sub(1);
        let high =
            observations.terms.positions.iter_mut().find(|position| position.partition == late.partition);
        high.expect("it is there").term = u64::MAX;
        observations.terms.positions.push(late);
    }),
    ("a position of another term", "the last owner is that of", |observations| {
        observations.terms.positions.last_mut().expect("there are commits").term += 1;
    }),
    ("a commit past the next owner's record", "committed past the Owner record of another", |observations| {
        let last = observations.terms.positions.last().expect("there are commits").clone();
        let own = observations.terms.owners.iter().rposition(|owner| owner.partition == last.partition);
        let own = own.expect("it has an owner");
        let mut next = observations.terms.owners[own].clone();
        (next.node, next.instance, next.offset) = ("another".into(), vec![0], last.applied - 1);
        observations.terms.owners.insert(own + 1, next);
    }),
    ("a record of a superseded term has an effect", "of a superseded term", |observations| {
        for record in &mut observations.terms.records {
            record.term = Some(u64::MAX);
        }
    }),
];

/// Mutations that are correct observations too.
const HARMLESS: &[Damage] = &[
    ("a call that is answered late", |observations| {
        delay(observations, patience::most() - Duration::from_millis(1))
    }),
    ("a task that waits while nobody goes past", |observations| {
        let first = polls_of_tasks(observations).min_by_key(|poll| poll.ended_ms);
        first.expect("there were workflow tasks").since_ms -= LONG_MS;
    }),
    ("the way to a worker breaks amid trouble", |observations| {
        let poll = poll_of_a_task(observations);
        poll.got = Got::Broke;
        let moment_ms = poll.ended_ms;
        observations.troubles = Some(vec![(moment_ms, moment_ms)]);
    }),
];

fn first<'a>(observations: &'a mut Observations, kind: &str) -> &'a mut Event {
    observations.events.iter_mut().find(|event| event.kind == kind).expect("observations have all kinds")
}

/// An event that a call of the load has brought about: others come of runs, and are judged where those are.
fn of_a_call<'a>(observations: &'a mut Observations, kind: &str) -> &'a mut Event {
    let lineage = Lineage::of(observations);
    let is_of_a_call = |event: &Event| event.kind == kind && cause(&lineage, event).is_some();
    let place = observations.events.iter().position(is_of_a_call).expect("calls bring about all kinds");
    &mut observations.events[place]
}

/// Polls by which workers got workflow tasks.
fn polls_of_tasks(observations: &mut Observations) -> impl Iterator<Item = &mut Poll> {
    observations.polls.values_mut().filter(|poll| matches!(poll.got, Got::WorkflowTask { .. }))
}

/// The poll by which a worker got a workflow task that it completed: one that is given back may have reached nobody.
fn poll_of_a_task(observations: &mut Observations) -> &mut Poll {
    let is_end = |event: &&Event| {
        event.kind == "WorkflowTaskCompleted" && !event.workflow_id.starts_with(program::PREFIX)
    };
    let started_by = |end: &Event| (end.run_id.clone(), end.number("started_event_id").unwrap_or(0));
    let completed: BTreeSet<_> = observations.events.iter().filter(is_end).map(started_by).collect();
    let is_completed = |event: &&Event| completed.contains(&(event.run_id.clone(), event.event_id));
    let started = observations.events.iter().filter(is_completed);
    let is_of_a_poll = |identity: &&str| {
        observations.polls.get(*identity).is_some_and(|poll| matches!(poll.got, Got::WorkflowTask { .. }))
    };
    let identity = started.map(|event| event.text("identity")).find(is_of_a_poll);
    let identity = identity.expect("tasks are completed").to_owned();
    observations.polls.get_mut(&identity).expect("it is there")
}

/// Workers get activities in the partition of a run, one after the other, from a moment on.
fn go_past(observations: &mut Observations, run_id: &str, from_ms: i64) {
    for (since_ms, round) in (from_ms + 1..).step_by(2).zip(0..ROUNDS) {
        let got = Got::Activity { run_id: run_id.into(), activity_id: "another".into(), attempt: 1 };
        observations.polls.insert(format!("past-{round}"), Poll { got, since_ms, ended_ms: since_ms + 1 });
    }
}

/// A call has its answer when its node was awake for so long.
fn delay(observations: &mut Observations, awake: Duration) {
    let wait = observations.waits.first_mut().expect("there were calls");
    wait.took = wait.asleep + awake;
}

/// Two events of one run that stand beside each other.
fn pair(observations: &Observations) -> usize {
    observations.events.windows(2).position(|pair| pair[0].run_id == pair[1].run_id).expect("a run has many")
}

/// A run without faults, which is correct, and then each mutation.
pub async fn all(cluster: FaultCluster, size: Size) -> anyhow::Result<Outcome> {
    let environment = Environment::open(&cluster, "mutations", size, &[]).await?;
    let (mut load, _) = environment.load_with_records()?;
    load.further(size.open as u64).await?;
    let (mut outcome, mut observations) = environment.finish(load, Outcome::default()).await?;
    ensure!(outcome.violations.is_empty(), "a run without faults: {:#?}", outcome.violations);
    observations.troubles = Some(Vec::new());
    let found = check(&observations);
    ensure!(found.is_empty(), "a run without trouble: {found:#?}");
    for (name, harm) in HARMLESS {
        let mut observations = observations.clone();
        harm(&mut observations);
        let found = check(&observations);
        ensure!(found.is_empty(), "{name}: {found:#?}");
    }
    for (name, damage) in DAMAGES {
        let mut observations = observations.clone();
        damage(&mut observations);
        outcome.injected += 1;
        if check(&observations).is_empty() {
            outcome.violations.push(format!("{name}: nothing is found"));
        } else {
            outcome.seen += 1;
        }
    }
    for (name, words, damage) in NAMED.iter().chain(KIN) {
        let mut observations = observations.clone();
        damage(&mut observations);
        outcome.injected += 1;
        let found = check(&observations);
        if found.iter().any(|found| found.contains(words)) {
            outcome.seen += 1;
        } else {
            outcome.violations.push(format!("{name}: found is {:?}", found.first()));
        }
    }
    outcome.how = format!("{} kinds", DAMAGES.len() + NAMED.len() + KIN.len());
    Ok(outcome)
}
