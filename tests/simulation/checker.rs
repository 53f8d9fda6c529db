//! The checker of the simulation. It compares what was committed with what clients and workers saw, and uses only the
//! engine's types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::rejection::Rejection;
use everlog_avro::{PublicTopic, Writer};
use everlog_engine::event::{Attributes, History, HistoryEvent};
use everlog_engine::machine::schedule::WORKFLOW_ID_PREFIX;
use everlog_engine::time::{Duration, Timestamp};
use everlog_log::{Topic, buckets_of};
use everlog_partition::{RunKey, index_differences};
use everlog_store::Space;
use prost::Message;

use crate::clients::TYPE;
use crate::clock::Clock;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::log::{Broker, Nasty, Shared, StoredPartition, index};
use crate::node::{Node, PARTITION, PARTITIONS};
use crate::observations::{Observations, fingerprint};
use crate::public::{Command, Wanted};
use crate::resets;
use crate::schedules;
use crate::updates;
use crate::workflow::LEAF;

/// Everything that does not hold.
pub fn check(broker: &Shared, observations: &Observations, owner: Option<&Node>) -> Vec<String> {
    let mut found = Vec::new();
    let mut broker = broker.lock();
    let (now_ms, incarnation) = (broker.now_ms, broker.incarnation);
    let stored = broker.stored(PARTITION);
    match histories(stored) {
        Ok(histories) => {
            seen_is_true(observations, &histories, &mut found);
            signals(observations, &histories, &mut found);
            resets::check(&observations.taken_back, &histories, &mut found);
            updates::check(&observations.updates, &histories, &mut found);
            let schedule = observations.schedule.as_ref();
            schedules::check(schedule.map_or(0, |used| used.counts.started), &histories, &mut found);
            schedule.into_iter().for_each(|used| used.check(stored, &mut found));
            found.extend(commanded(stored, observations, &histories).err());
            ended(observations, &histories, &mut found);
        }
        Err(what) => found.push(what),
    }
    if let Some(owner) = owner {
        rows_are_the_fold(stored, &owner.disk, &mut found);
    }
    retold(stored, incarnation, now_ms, &mut found);
    found
}

type Histories = BTreeMap<String, Vec<HistoryEvent>>;

/// Every run's events as its history rows have them: gapless and in order, and each of them published once. Events of schedules
/// are published gapless and in order, and stand in no history.
fn histories(stored: &StoredPartition) -> Result<Histories, String> {
    let mut histories = Histories::new();
    for (key, value) in stored.topics[index(Topic::History)].live() {
        let name = key.get(..key.len().saturating_sub(8)).unwrap_or_default();
        let address = RunKey::read(name).and_then(|key| key.address());
        let Some(address) = address else { return Err(format!("a history row under {key:?}")) };
        let history = History::decode(value).map_err(|error| format!("a batch of events: {error}"))?;
        let events = histories.entry(address.run_id.clone()).or_default();
        for event in history.events {
            let expected = events.len() as i64 + 1;
            if event.event_id != expected {
                let id = event.event_id;
                return Err(format!("event {id} of {} stands where {expected} belongs", address.run_id));
            }
            events.push(event);
        }
    }
    let (mut published, mut of_schedules) = (BTreeMap::<String, i64>::new(), BTreeMap::<String, i64>::new());
    let writer = Writer::own(PublicTopic::Event);
    for row in &stored.topics[index(Topic::Events)].rows {
        let bytes = row.value.clone().unwrap_or_default();
        let event = WorkflowEvent::read(&writer, &bytes).map_err(|error| format!("an event: {error}"))?;
        let is_schedule = event.workflow_id.starts_with(WORKFLOW_ID_PREFIX);
        let told = if is_schedule { &mut of_schedules } else { &mut published };
        let last = told.entry(event.run_id.to_string()).or_default();
        if event.event_id != *last + 1 || row.key != event.workflow_id.as_bytes() {
            return Err(format!("event {} of {} is published after {last}", event.event_id, event.run_id));
        }
        *last += 1;
    }
    let lengths = histories.iter().map(|(run_id, events)| (run_id, events.len() as i64));
    if !lengths.eq(published.iter().map(|(run_id, last)| (run_id, *last))) {
        return Err("the published events are not those of the histories".into());
    }
    Ok(histories)
}

fn closes(event: &HistoryEvent) -> bool {
    matches!(
        event.attributes,
        Some(
            Attributes::WorkflowCompleted(_)
                | Attributes::WorkflowFailed(_)
                | Attributes::WorkflowTimedOut(_)
                | Attributes::WorkflowTerminated(_)
                | Attributes::WorkflowCanceled(_)
                | Attributes::WorkflowContinuedAsNew(_)
        )
    )
}

/// What anybody was shown is what is committed.
fn seen_is_true(observations: &Observations, histories: &Histories, found: &mut Vec<String>) {
    for (run_id, seen) in &observations.runs {
        let Some(events) = histories.get(run_id) else {
            if !seen.events.is_empty() {
                found.push(format!("run {run_id} was shown and is in no topic"));
            }
            continue;
        };
        for (event_id, print) in &seen.events {
            let event = usize::try_from(event_id - 1).ok().and_then(|at| events.get(at));
            if event.is_none_or(|event| fingerprint(event) != *print) {
                found.push(format!("event {event_id} of run {run_id} was shown otherwise: now {event:?}"));
            }
        }
    }
}

fn signals(observations: &Observations, histories: &Histories, found: &mut Vec<String>) {
    let mut signaled = signaled(histories);
    for (name, sent) in &observations.signals {
        let runs = signaled.remove(name.as_str()).unwrap_or_default();
        if !is_once(observations, name, &runs) || (sent.acknowledged && runs.is_empty()) {
            let told = if sent.acknowledged { "acknowledged" } else { "not acknowledged" };
            found.push(format!("signal {name} to {} ({told}) is there in {runs:?}", sent.workflow_id));
        }
    }
    for name in signaled.keys().filter(|name| !resets::is_signal(name)) {
        found.push(format!("nobody sent the signal {name}"));
    }
}

/// The runs that each signal is in, as often as it is there.
fn signaled(histories: &Histories) -> BTreeMap<&str, Vec<&str>> {
    let mut signaled: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (run_id, events) in histories {
        for event in events {
            if let Some(Attributes::WorkflowSignaled(signal)) = &event.attributes {
                signaled.entry(signal.signal_name.as_str()).or_default().push(run_id);
            }
        }
    }
    signaled
}

/// What was ordered once happened once at most. A command that was produced again under its id may happen again, but
/// only in another run of the chain: a run knows the ids that it has taken, not those of the run before.
fn is_once(observations: &Observations, name: &str, runs: &[&str]) -> bool {
    let is_it = |command: &&Command| matches!(&command.wanted, Wanted::Signal(wanted) | Wanted::Update(wanted) if wanted == name);
    let produced = observations.commands.iter().filter(is_it).count();
    let distinct: BTreeSet<_> = runs.iter().collect();
    runs.len() <= produced.max(1) && distinct.len() == runs.len()
}

/// Every public command came to an effect or a refusal, once; its outcome is told once, to whoever asked; and what
/// nothing put off happened in the order in which it was produced.
fn commanded(
    stored: &StoredPartition,
    observations: &Observations,
    histories: &Histories,
) -> Result<(), String> {
    let mut effects = signaled(histories);
    effects.extend(updates::completed(histories));
    for (run_id, events) in histories {
        if let Some(Attributes::WorkflowStarted(started)) =
            events.first().and_then(|event| event.attributes.as_ref())
        {
            let kind = started.workflow_type.as_ref().map_or("", |kind| kind.name.as_str());
            effects.entry(kind).or_default().push(run_id);
        }
    }
    let told = places(stored, Topic::Replies, |writer, bytes| {
        Outcome::read(writer, bytes).map(|outcome| (outcome.partition, outcome.offset))
    })?;
    let refused = places(stored, Topic::Rejections, |writer, bytes| {
        Rejection::read(writer, bytes).map(|rejection| (rejection.partition, rejection.offset))
    })?;
    // A topic that was made again has the same places once more.
    let mut asked: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let mut refusals: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
    for command in &observations.commands {
        *asked.entry(command.place).or_default() += u64::from(command.replies);
        let name = match &command.wanted {
            Wanted::Signal(name) | Wanted::Update(name) | Wanted::Run(name) => name.as_str(),
            Wanted::Refusal => "",
        };
        let copy = copies.entry(name).or_default();
        *copy += 1;
        let runs = effects.get(name).map_or(&[][..], Vec::as_slice);
        if !is_once(observations, name, runs) {
            return Err(format!("what {command:?} orders happened in {runs:?}"));
        }
        let happened = runs.len();
        let may_be_known = *copy > 1 && happened == 1;
        if happened == 0 && !may_be_known || name.is_empty() {
            *refusals.entry(command.place).or_default() += 1;
        }
    }
    for row in &stored.topics[index(Topic::Replies)].rows {
        let outcome =
            Outcome::read(&Writer::own(PublicTopic::Outcome), &row.value.clone().unwrap_or_default());
        updates::replied(&outcome.map_err(|error| error.to_string())?, histories)?;
    }
    asked.retain(|_, count| *count > 0);
    if asked != told {
        return Err(format!("outcomes were asked for of {asked:?} and told of {told:?}"));
    }
    for (place, expected) in &refusals {
        let found = refused.get(place).copied().unwrap_or_default();
        if found < *expected {
            return Err(format!("{expected} commands at {place:?} had no effect, {found} were refused"));
        }
    }
    for (place, found) in &refused {
        let expected = refusals.get(place).copied().unwrap_or_default();
        let repeated = observations.commands.iter().any(|command| {
            command.place == *place
                && matches!(&command.wanted, Wanted::Signal(name) | Wanted::Update(name) if copies[name.as_str()] > 1)
        });
        if *found > expected + u64::from(repeated) {
            return Err(format!("{found} refusals of {place:?}, {expected} commands without effect"));
        }
    }
    in_order(observations, histories)
}

type Places = BTreeMap<(u32, u64), u64>;

/// How often each place in the topic of commands is told of.
fn places(
    stored: &StoredPartition,
    topic: Topic,
    read: impl Fn(&Writer, &[u8]) -> Result<(i32, i64), everlog_avro::Error>,
) -> Result<Places, String> {
    let writer =
        Writer::own(if topic == Topic::Replies { PublicTopic::Outcome } else { PublicTopic::Rejection });
    let mut places = Places::new();
    for row in &stored.topics[index(topic)].rows {
        let bytes = row.value.clone().unwrap_or_default();
        let (partition, offset) = read(&writer, &bytes).map_err(|error| format!("{topic:?}: {error}"))?;
        *places.entry((partition as u32, offset as u64)).or_default() += 1;
    }
    Ok(places)
}

fn in_order(observations: &Observations, histories: &Histories) -> Result<(), String> {
    let at_once = observations.commands.iter().filter(|command| command.at_once);
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, command) in at_once.enumerate() {
        if let Wanted::Signal(name) = &command.wanted {
            order.entry(name).or_insert(number);
        }
    }
    for (run_id, events) in histories {
        let mut last = 0;
        for event in events {
            let Some(Attributes::WorkflowSignaled(signal)) = &event.attributes else { continue };
            let Some(number) = order.get(signal.signal_name.as_str()) else { continue };
            if *number < last {
                return Err(format!("{} overtook another in {run_id}", signal.signal_name));
            }
            last = *number;
        }
    }
    Ok(())
}

/// Each run has ended once, and times never run backwards in it by more than buffering explains.
fn ended(observations: &Observations, histories: &Histories, found: &mut Vec<String>) {
    for (workflow_id, run_id) in &observations.started {
        if !histories.contains_key(run_id) {
            found.push(format!("the run {run_id} of {workflow_id} was acknowledged and is not there"));
        }
    }
    let mut chains = 0;
    let mut leaves = BTreeSet::new();
    for (run_id, events) in histories {
        let ends = events.iter().filter(|event| closes(event)).count();
        if ends != 1 || !events.last().is_some_and(closes) {
            found.push(format!("run {run_id} has {ends} ends"));
        }
        if let Some(Attributes::WorkflowStarted(started)) =
            events.first().and_then(|event| event.attributes.as_ref())
        {
            let kind = started.workflow_type.as_ref().map_or("", |kind| &kind.name);
            if started.continued_execution_run_id.is_empty() && kind == TYPE {
                chains += 1;
            }
            if kind == LEAF && !leaves.insert(started.workflow_id.clone()) {
                found.push(format!("the child {} was started twice", started.workflow_id));
            }
        } else {
            found.push(format!("run {run_id} does not begin with its start"));
        }
        found.extend(times(events).map(|what| format!("run {run_id}: {what}")));
        let mut activities: BTreeMap<i64, u64> = BTreeMap::new();
        for event in events {
            if let Some(Attributes::ActivityCompleted(completed)) = &event.attributes {
                *activities.entry(completed.scheduled_event_id).or_default() += 1;
            }
        }
        if activities.values().any(|count| *count > 1) {
            found.push(format!("an activity of {run_id} ended twice"));
        }
    }
    if chains != observations.started.len() {
        found.push(format!("{chains} chains of runs for {} starts", observations.started.len()));
    }
}

/// What is never buffered stands in the order of its time, and no timer fires before it is due.
fn times(events: &[HistoryEvent]) -> Option<String> {
    let at_ms = |event: &HistoryEvent| event.event_time.map_or(0, Timestamp::to_ms);
    let mut last_ms = 0;
    let mut timers: BTreeMap<i64, i64> = BTreeMap::new();
    for event in events {
        let (id, now_ms) = (event.event_id, at_ms(event));
        match &event.attributes {
            Some(
                Attributes::TaskScheduled(_) | Attributes::TaskStarted(_) | Attributes::TaskCompleted(_),
            ) => {
                if now_ms < last_ms {
                    return Some(format!("event {id} is {} ms before what it follows", last_ms - now_ms));
                }
                last_ms = now_ms;
            }
            Some(Attributes::TimerStarted(started)) => {
                let span_ms = started.start_to_fire_timeout.map_or(0, Duration::to_ms);
                timers.insert(id, now_ms + span_ms);
            }
            Some(Attributes::TimerFired(fired)) => {
                let due_ms = timers.get(&fired.started_event_id).copied().unwrap_or(i64::MAX);
                if now_ms < due_ms {
                    return Some(format!("the timer of event {id} fired {} ms early", due_ms - now_ms));
                }
            }
            _other => {}
        }
    }
    None
}

fn live(stored: &StoredPartition) -> BTreeMap<(Space, Bytes), Bytes> {
    let mut rows = BTreeMap::new();
    for (space, topic) in Space::ALL.into_iter().filter_map(|space| Some((space, space.topic()?))) {
        let topic = stored.topics[index(topic)].live();
        rows.extend(topic.into_iter().map(|(key, value)| ((space, key), value)));
    }
    rows
}

fn rows_are_the_fold(stored: &StoredPartition, disk: &Disk, found: &mut Vec<String>) {
    let mut kept = disk.rows();
    kept.retain(|(space, _), _| space.topic().is_some());
    differ("the owner's rows", &kept, "the committed ones", &live(stored), found);
    match index_differences(PARTITION, buckets_of(PARTITION, PARTITIONS), disk.clone(), 3) {
        Ok(differences) => found.extend(differences.into_iter().flatten()),
        Err(error) => found.push(format!("the index cannot be compared: {error}")),
    }
}

type Rows = BTreeMap<(Space, Bytes), Bytes>;

fn differ(one: &str, left: &Rows, other: &str, right: &Rows, found: &mut Vec<String>) {
    for (key, value) in left {
        if right.get(key) != Some(value) {
            let held = if right.contains_key(key) { "otherwise" } else { "not" };
            found.push(format!("{one} have {key:?}, {other} {held}"));
            return;
        }
    }
    if let Some(key) = right.keys().find(|key| !left.contains_key(*key)) {
        found.push(format!("{other} have {key:?}, {one} not"));
    }
}

/// A partition that has nothing but the whole journal comes to the same rows and the same events.
fn retold(stored: &StoredPartition, incarnation: [u8; 16], now_ms: i64, found: &mut Vec<String>) {
    let nasty = Nasty { immediate: true, ..Nasty::calm() };
    let mut fresh = Broker::new(PARTITIONS, nasty, Dice::new(7));
    fresh.incarnation = incarnation;
    fresh.now_ms = now_ms;
    fresh.stored(PARTITION).journal.clone_from(&stored.journal);
    fresh.stored(PARTITION).last_stamp_ms = stored.last_stamp_ms;
    let fresh = Shared::new(fresh);
    let clock = Clock::new(now_ms);
    let mut node = Node::start(0, &fresh, &clock.shared(), Disk::default());
    if let Err(error) = node.recover(u64::MAX, now_ms) {
        found.push(format!("the whole journal cannot be applied: {error}"));
        return;
    }
    // One turn appends, the next hears of it, commits, and hears of that.
    for turn in 0..20 {
        clock.advance(now_ms + turn * 200);
        if let Err(error) = node.turn(usize::MAX, clock.now_ms()) {
            found.push(format!("the whole journal cannot be committed: {error}"));
            return;
        }
    }
    let mut fresh = fresh.lock();
    let again = fresh.stored(PARTITION);
    if again.position.is_none() {
        found.push("the whole journal was applied and never committed".into());
        return;
    }
    differ("the committed rows", &live(stored), "those of the whole journal", &live(again), found);
    let values = |stored: &StoredPartition| -> Vec<Option<Bytes>> {
        stored.topics[index(Topic::Events)].rows.iter().map(|row| row.value.clone()).collect()
    };
    if values(stored) != values(again) {
        found.push("the events are not those of the whole journal".into());
    }
    drop(Arc::new(node.die()));
}
