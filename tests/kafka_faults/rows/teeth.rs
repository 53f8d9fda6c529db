//! The checker sees what it must see: each kind of damage, planted into a story that is right.

use std::time::Duration;

use anyhow::ensure;
use everlog_tests::patience;

use crate::checker::check;
use crate::client::TASK_TIMEOUT_S;
use crate::event::Event;
use crate::ledger::Via;
use crate::polls::{Got, Poll};
use crate::queues::ROUNDS;
use crate::rows::kin_teeth::KIN;
use crate::scene::{Outcome, Scene, Size};
use crate::site::Site;
use crate::story::{Mark, Story};
use everlog_tests::fate::Fate;

/// Longer than a hand-over takes, and shorter than patience lasts.
const LONG_MS: i64 = 60_000;

type Damage = (&'static str, fn(&mut Story));

/// The same with what is said of it, at least.
pub type Told = (&'static str, &'static str, fn(&mut Story));

const DAMAGES: &[Damage] = &[
    ("an event is gone", |story| drop(story.events.remove(5))),
    ("an event is there twice", |story| {
        let again = story.events[7].clone();
        story.events.insert(8, again);
    }),
    ("two events are exchanged", |story| {
        let place = pair(story);
        story.events.swap(place, place + 1);
    }),
    ("an event is in another partition", |story| story.events[3].partition += 1),
    ("a timer fires early", |story| {
        first(story, "TimerStarted").numbers.insert("start_to_fire_timeout_ms".into(), 600_000);
    }),
    ("an acknowledged signal is lost", |story| {
        let signal = first(story, "WorkflowExecutionSignaled");
        signal.texts.insert("identity".into(), "nobody".into());
    }),
    ("an order has two effects", |story| {
        let identity = first(story, "WorkflowExecutionSignaled").text("identity").to_owned();
        for event in story.events.iter_mut().filter(|event| event.kind == "WorkflowExecutionSignaled") {
            event.texts.insert("identity".into(), identity.clone());
        }
    }),
    ("a refused order has an effect", |story| story.calls[0].fate = Fate::Refused),
    ("a run never ends", |story| {
        story.events.retain(|event| !event.is_closing());
    }),
    ("a transaction is torn", |story| {
        let mark = story.marks.iter().position(|mark| mark.topic == "events").expect("there are events");
        story.marks.remove(mark);
    }),
    ("a transaction has no end", |story| {
        let of = |mark: &Mark| (mark.partition, mark.fence, mark.commit);
        let event = story.marks.iter().find(|mark| mark.topic == "events").map(of);
        let mark = story.marks.iter().position(|mark| mark.is_position && Some(of(mark)) == event);
        let mark = mark.expect("it has a position");
        story.marks.remove(mark);
    }),
    ("a former owner commits late", |story| {
        let mut late =
            story.marks.iter().rfind(|mark| mark.topic == "events").expect("there are events").clone();
        late.fence = 0;
        story.marks.push(late);
    }),
    ("the changelog is behind", |story| {
        story.heads.values_mut().next().expect("there are runs").next_event_id -= 1;
    }),
    ("the history topic lacks an event", |story| {
        story.kept.values_mut().next().expect("there are runs").pop();
    }),
    ("the node tells another history", |story| {
        story.told.values_mut().next().expect("it was asked").swap(0, 1);
    }),
    ("what was seen is not there any more", |story| {
        story.seen.values_mut().next().expect("somebody read along").value = None;
    }),
    ("what is there was not seen", |story| {
        story.seen.pop_first();
    }),
    ("a chain is broken", |story| {
        let first = story.events.iter_mut().find(|event| !event.text("new_run_id").is_empty());
        first.expect("there are chains").texts.insert("new_run_id".into(), "another".into());
    }),
    ("a completed task left less", |story| {
        let task = first(story, "TimerStarted");
        task.numbers.insert("workflow_task_completed_event_id".into(), 0);
    }),
    ("an answer to nothing", |story| {
        first(story, "ActivityTaskCompleted").numbers.insert("started_event_id".into(), 1);
    }),
    ("a command has no reply", |story| drop(story.replies.remove(0))),
    ("a command has two replies", |story| {
        let again = story.replies[0].clone();
        story.replies.push(again);
    }),
    ("an aborted record has an effect", |story| {
        let record = story.calls.iter_mut().find(|call| call.via == Via::Record && call.fate == Fate::Acked);
        record.expect("some came as records").fate = Fate::Refused;
    }),
    ("signals change their order", |story| {
        let calls = &mut story.calls;
        let is_signal = |call: &crate::ledger::Call| {
            matches!(call.deed, crate::ledger::Deed::Signal { in_order: true, .. })
        };
        let one = calls.iter().position(is_signal).expect("signals were sent");
        let id = calls[one].workflow_id.clone();
        let other = calls.iter().rposition(|call| is_signal(call) && call.workflow_id == id);
        calls.swap(one, other.expect("two to each workflow"));
    }),
];

/// Damages of which it matters what is said of them.
const NAMED: &[Told] = &[
    ("a stale answer", "a stale answer", |story| {
        let read = story.reads.last_mut().expect("registers were read");
        read.saw = read.acknowledged - 1;
    }),
    ("a call without an answer", "hangs", |story| delay(story, patience::most())),
    ("a call without an answer amid trouble", "hangs", |story| {
        delay(story, patience::most());
        let ended_ms = story.waits[0].ended_ms;
        story.troubles = Some(vec![(ended_ms - 1_000, ended_ms - 1_000)]);
    }),
    ("a call to a node that has slept and does not answer", "hangs", |story| {
        story.waits.first_mut().expect("there were calls").asleep = patience::most();
        delay(story, patience::most());
    }),
    ("a task that nobody gets for long", "after there was no trouble", |story| {
        let started = first(story, "WorkflowTaskStarted");
        started.time_ms += LONG_MS;
    }),
    ("a worker gets what could be had for long", "after there was no trouble", |story| {
        let last = polls_of_tasks(story).max_by_key(|poll| poll.ended_ms);
        last.expect("there were workflow tasks").since_ms -= LONG_MS;
    }),
    ("a task that is handed out to nobody", "reached nobody", |story| {
        poll_of_a_task(story).got = Got::Nothing;
    }),
    ("a task that comes again only when its time is over", "reached nobody", |story| {
        let started = first(story, "WorkflowTaskStarted").clone();
        let end = story.events.iter_mut().find(|event| {
            event.run_id == started.run_id && event.number("started_event_id") == Some(started.event_id)
        });
        let end = end.expect("it has an end");
        (end.kind, end.time_ms) = ("WorkflowTaskTimedOut".into(), started.time_ms + TASK_TIMEOUT_S * 1_000);
        story.polls.get_mut(started.text("identity")).expect("it had a poll").got = Got::Nothing;
    }),
    ("the way to a worker breaks though nothing is harmed", "reached nobody", |story| {
        poll_of_a_task(story).got = Got::Broke;
    }),
    ("a sticky task that nobody gets", "the sticky task", |story| {
        let end = first(story, "WorkflowTaskCompleted");
        end.kind = "WorkflowTaskTimedOut".into();
        end.time_ms += LONG_MS;
        end.numbers.remove("started_event_id");
    }),
    ("an attempt of an activity that is handed out to nobody", "attempt 1 reached nobody", |story| {
        let mut attempts = story.polls.values_mut().filter_map(|poll| match &mut poll.got {
            Got::Activity { attempt, .. } => Some(attempt),
            _no_activity => None,
        });
        *attempts.next().expect("there were activities") += 1;
    }),
    ("an activity that nobody gets", "reached nobody", |story| {
        let scheduled = first(story, "ActivityTaskScheduled");
        scheduled.time_ms -= LONG_MS;
        let (own, since_ms) = (scheduled.run_id.clone(), scheduled.time_ms);
        story.polls.retain(|_, poll| !matches!(&poll.got, Got::Activity { run_id, .. } if *run_id == own));
        go_past(story, &own, since_ms);
    }),
    ("a lower fence commits later", "stands behind fence", |story| {
        let mut late = story.terms.positions.last().expect("there are commits").clone();
        late.fence = 0;
        story.terms.positions.push(late);
    }),
    ("a lower term commits later", "stands behind fence", |story| {
        let mut late = story.terms.positions.last().expect("there are commits").clone();
        late.term = late.term.wrapping_sub(1);
        let high = story.terms.positions.iter_mut().find(|position| position.partition == late.partition);
        high.expect("it is there").term = u64::MAX;
        story.terms.positions.push(late);
    }),
    ("a position of another term", "the last owner is that of", |story| {
        story.terms.positions.last_mut().expect("there are commits").term += 1;
    }),
    ("a commit past the next owner's record", "committed past the Owner record of another", |story| {
        let last = story.terms.positions.last().expect("there are commits").clone();
        let own = story.terms.owners.iter().rposition(|owner| owner.partition == last.partition);
        let own = own.expect("it has an owner");
        let mut next = story.terms.owners[own].clone();
        (next.node, next.instance, next.offset) = ("another".into(), vec![0], last.applied - 1);
        story.terms.owners.insert(own + 1, next);
    }),
    ("a record of a superseded term has an effect", "of a superseded term", |story| {
        for record in &mut story.terms.records {
            record.term = Some(u64::MAX);
        }
    }),
];

/// What is no damage.
const HARMLESS: &[Damage] = &[
    ("a call that is answered late", |story| delay(story, patience::most() - Duration::from_millis(1))),
    ("a task that waits while nobody goes past", |story| {
        let first = polls_of_tasks(story).min_by_key(|poll| poll.ended_ms);
        first.expect("there were workflow tasks").since_ms -= LONG_MS;
    }),
    ("the way to a worker breaks amid trouble", |story| {
        let poll = poll_of_a_task(story);
        poll.got = Got::Broke;
        let moment_ms = poll.ended_ms;
        story.troubles = Some(vec![(moment_ms, moment_ms)]);
    }),
];

fn first<'a>(story: &'a mut Story, kind: &str) -> &'a mut Event {
    story.events.iter_mut().find(|event| event.kind == kind).expect("a story has all kinds")
}

/// Polls by which workers got workflow tasks.
fn polls_of_tasks(story: &mut Story) -> impl Iterator<Item = &mut Poll> {
    story.polls.values_mut().filter(|poll| matches!(poll.got, Got::WorkflowTask { .. }))
}

fn poll_of_a_task(story: &mut Story) -> &mut Poll {
    polls_of_tasks(story).next().expect("there were workflow tasks")
}

/// Workers get activities in the partition of a run, one after the other, from a moment on.
fn go_past(story: &mut Story, run_id: &str, from_ms: i64) {
    for (since_ms, round) in (from_ms + 1..).step_by(2).zip(0..ROUNDS) {
        let got = Got::Activity { run_id: run_id.into(), activity_id: "another".into(), attempt: 1 };
        story.polls.insert(format!("past-{round}"), Poll { got, since_ms, ended_ms: since_ms + 1 });
    }
}

/// A call has its answer when its node was awake for so long.
fn delay(story: &mut Story, awake: Duration) {
    let wait = story.waits.first_mut().expect("there were calls");
    wait.took = wait.asleep + awake;
}

/// Two events of one run that stand beside each other.
fn pair(story: &Story) -> usize {
    story.events.windows(2).position(|pair| pair[0].run_id == pair[1].run_id).expect("a run has many")
}

/// A life without faults, which is right, and then each damage.
pub async fn all(site: Site, size: Size) -> anyhow::Result<Outcome> {
    let scene = Scene::open(&site, "teeth", size, &[]).await?;
    let (mut load, _) = scene.load_with_records()?;
    load.further(size.open as u64).await?;
    let (mut outcome, mut story) = scene.finish(load, Outcome::default()).await?;
    ensure!(outcome.violations.is_empty(), "a life without faults: {:#?}", outcome.violations);
    story.troubles = Some(Vec::new());
    let found = check(&story);
    ensure!(found.is_empty(), "a life without trouble: {found:#?}");
    for (name, harm) in HARMLESS {
        let mut story = story.clone();
        harm(&mut story);
        let found = check(&story);
        ensure!(found.is_empty(), "{name}: {found:#?}");
    }
    for (name, damage) in DAMAGES {
        let mut story = story.clone();
        damage(&mut story);
        outcome.injected += 1;
        if check(&story).is_empty() {
            outcome.violations.push(format!("{name}: nothing is found"));
        } else {
            outcome.seen += 1;
        }
    }
    for (name, words, damage) in NAMED.iter().chain(KIN) {
        let mut story = story.clone();
        damage(&mut story);
        outcome.injected += 1;
        let found = check(&story);
        if found.iter().any(|found| found.contains(words)) {
            outcome.seen += 1;
        } else {
            outcome.violations.push(format!("{name}: found is {:?}", found.first()));
        }
    }
    outcome.how = format!("{} kinds", DAMAGES.len() + NAMED.len() + KIN.len());
    Ok(outcome)
}
