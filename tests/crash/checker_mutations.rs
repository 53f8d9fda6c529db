//! Mutations of a correct client log and of correct histories. The checker must find each.

use everlog_temporal_api::enums::EventType;
use everlog_temporal_api::full::temporal::api::history::v1::HistoryEvent;
use everlog_temporal_api::full::temporal::api::history::v1::history_event::Attributes;
use everlog_tests::fate::Fate;

use crate::checker::{Run, check, signal_name};
use crate::client_log::{ClientLog, Note};
use crate::node::{Blow, NodeDir};
use crate::scenario::live;

/// A step with much behind it: a directory has been made, a run has gone on for a while.
const LATE_STEP: u64 = 250;

type Story = (ClientLog, Vec<Run>);
type Damage = (&'static str, fn(&mut Story));

const DAMAGES: [Damage; 17] = [
    ("a run is gone", |(_, runs)| drop(runs.pop())),
    ("a history lost its end", |(_, runs)| drop(runs[0].events.pop())),
    ("a history has a gap", |(_, runs)| drop(runs[0].events.remove(3))),
    ("a history ends twice", |(_, runs)| {
        let end = runs[0].events.last().cloned();
        renumbered(&mut runs[0], end);
    }),
    ("a signal is there twice", |(_, runs)| {
        let signal = runs[0].events.iter().find(|event| signal_name(event).is_some()).cloned();
        runs[0].events.pop();
        renumbered(&mut runs[0], signal);
    }),
    ("a signal nobody sent", |(client_log, _)| {
        let signal = client_log.calls.iter_mut().find(|call| matches!(call.note, Note::Signal(..)));
        signal.expect("the script sends signals").identity = "nobody".into();
    }),
    ("a refused call has an effect", |(client_log, _)| client_log.calls[0].fate = Fate::Refused),
    ("an acknowledged call has none", |(client_log, _)| {
        let mut call = client_log.calls[0].clone();
        call.identity = "another".into();
        client_log.calls.push(call);
    }),
    ("a run has another id", |(_, runs)| runs[0].run_id = "another".into()),
    ("a completion left more", |(client_log, _)| {
        let commands = client_log.calls.iter_mut().find_map(|call| match &mut call.note {
            Note::Commands(commands) => Some(commands),
            Note::Nothing | Note::Signal(..) | Note::Heartbeat(_) | Note::Failure(_) => None,
        });
        commands.expect("the script completes tasks").push(EventType::MarkerRecorded);
    }),
    ("a task is handed out twice", |(client_log, _)| client_log.tasks.push(client_log.tasks[0].clone())),
    ("a task showed another history", |(client_log, _)| client_log.tasks[0].events[0].version += 1),
    ("an attempt is handed out twice", |(client_log, _)| {
        client_log.attempts.push(client_log.attempts[0].clone())
    }),
    ("an attempt after its failure", |(client_log, _)| {
        client_log.attempts[0].before.push((Note::Failure(1), Fate::Acked));
    }),
    ("a heartbeat is forgotten", |(client_log, _)| {
        client_log.attempts[1].before.push((Note::Heartbeat(7), Fate::Acked));
    }),
    ("a query misses a signal", |(client_log, _)| client_log.queries[0].acked.push("unseen".into())),
    ("a timer fires early", |(_, runs)| {
        for event in &mut runs[0].events {
            if let Some(Attributes::TimerStartedEventAttributes(timer)) = &mut event.attributes {
                timer.start_to_fire_timeout = Some(prost_types::Duration { seconds: 60, nanos: 0 });
            }
        }
    }),
];

/// Puts an event behind the others, with the number of its place.
fn renumbered(run: &mut Run, event: Option<HistoryEvent>) {
    let event_id = run.events.len() as i64 + 1;
    run.events.extend(event.map(|event| HistoryEvent { event_id, ..event }));
}

#[tokio::test]
async fn the_checker_finds_every_planted_damage() -> anyhow::Result<()> {
    let (outcome, client_log, runs) = live(&NodeDir::new(&[])?, 0, Blow::Kill, false).await?;
    anyhow::ensure!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
    let story: Story = (client_log.open().clone(), runs);
    for (name, damage) in DAMAGES {
        let mut story = story.clone();
        damage(&mut story);
        let found = check(&story.0, &story.1);
        anyhow::ensure!(!found.is_empty(), "{name}: nothing is found");
        println!("{name}: {}", found.join("; "));
    }
    Ok(())
}

/// Without syncs a loss of power must lose what was acknowledged, or the walk would not notice a missing sync.
#[tokio::test]
async fn without_syncs_a_loss_of_power_is_found() -> anyhow::Result<()> {
    let node_dir = NodeDir::new(&[("EVERLOG_LOG__SYNC", "never")])?;
    let (outcome, ..) = live(&node_dir, LATE_STEP, Blow::Kill, true).await?;
    anyhow::ensure!(outcome.interrupted && outcome.lost_bytes > 0, "the power did not fail: {outcome:?}");
    anyhow::ensure!(!outcome.violations.is_empty(), "nothing is found: {outcome:?}");
    println!("{}", outcome.violations.join("; "));
    Ok(())
}
