//! State rows: splits a run into rows that change at different rates, and builds it from them again.
//!
//! The key of a row is the run's key and a suffix: one byte for the kind, then the row's id within the kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::event::History;
use everlog_engine::machine::activity::Activity;
use everlog_engine::machine::attached_requests::Attached;
use everlog_engine::machine::child::Child;
use everlog_engine::machine::continuation::Chain;
use everlog_engine::machine::external_workflow::External;
use everlog_engine::machine::schedule::definition::{
    Schedule, ScheduleDefinition, ScheduleProgress, ScheduleResults,
};
use everlog_engine::machine::timer::Timer;
use everlog_engine::machine::update::Update;
use everlog_engine::{ExecutionInfo, Properties, Run, Start};
use prost::Message;

use crate::Error;

const HEAD: u8 = b'h';
const START: u8 = b's';
const PROPERTIES: u8 = b'p';
const BUFFERED: u8 = b'b';
const ACTIVITY: u8 = b'a';
const TIMER: u8 = b't';
const CHILD: u8 = b'c';
const EXTERNAL: u8 = b'e';
const CHAIN: u8 = b'n';
const UPDATE: u8 = b'u';
const ATTACHED: u8 = b'i';
const DEFINITION: u8 = b'd';
const PROGRESS: u8 = b'g';
const RESULTS: u8 = b'l';
/// These two are neighbours: a run is loaded without them.
const DONE: u8 = b'q';
const REQUEST: u8 = b'r';
/// Behind all others: a run is loaded without them.
const PROMISE: u8 = b'z';

/// The suffix of the row that remembers a signal's request id.
pub fn request_suffix(request_id: &str) -> Vec<u8> {
    let mut suffix = Vec::with_capacity(1 + request_id.len());
    suffix.push(REQUEST);
    suffix.extend_from_slice(request_id.as_bytes());
    suffix
}

/// The suffix of the row that holds the event of an update's outcome.
pub fn done_suffix(update_id: &str) -> Vec<u8> {
    let mut suffix = request_suffix(update_id);
    suffix[0] = DONE;
    suffix
}

/// Prefix of the suffixes of deferred replies to an update; an id follows.
pub fn promise_prefix(update_id: &str) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(5 + update_id.len());
    prefix.push(PROMISE);
    prefix.extend_from_slice(&(update_id.len() as u32).to_be_bytes());
    prefix.extend_from_slice(update_id.as_bytes());
    prefix
}

/// True of the suffix of a row that is part of the run itself, rather than looked up one by one.
pub fn is_part(suffix: &[u8]) -> bool {
    !matches!(suffix.first(), Some(&(REQUEST | DONE | PROMISE)))
}

/// Behind the suffixes of all parts of a run.
pub const PARTS_END: [u8; 1] = [PROMISE];

/// Behind the rows that are looked up one by one and stand among the parts of a run.
pub const LOOKED_UP_END: [u8; 1] = [REQUEST + 1];

/// What a row of a run says of it, for whoever counts.
#[derive(Clone, Debug, PartialEq)]
pub enum RowFacts {
    /// Its head.
    Head(Box<ExecutionInfo>),
    /// A scheduled activity.
    Activity,
    /// A started timer.
    Timer,
    /// Another part, or a row that is looked up alone.
    Other,
}

/// What a row of a run says of it.
///
/// # Errors
/// [`Error::Decode`].
pub fn facts(suffix: &[u8], value: &[u8]) -> Result<RowFacts, Error> {
    Ok(match suffix.first() {
        Some(&HEAD) => RowFacts::Head(Box::new(decode("the head of a run", value)?)),
        Some(&ACTIVITY) => RowFacts::Activity,
        Some(&TIMER) => RowFacts::Timer,
        Some(_) | None => RowFacts::Other,
    })
}

/// The row of a run for another journal: without the offsets of the one that it was made from. None where it has none.
///
/// # Errors
/// [`Error::Decode`]: it is damaged, or a later release has written it.
pub fn without_offsets(suffix: &[u8], value: &[u8]) -> Result<Option<Bytes>, Error> {
    match suffix.first() {
        Some(&HEAD) => {
            let head: ExecutionInfo = decode_whole("the head of a run", value)?;
            Ok((head.close_offset != 0)
                .then(|| ExecutionInfo { close_offset: 0, ..head }.encode_to_vec().into()))
        }
        Some(&START) => {
            let start: Start = decode_whole("the start of a run", value)?;
            Ok((start.start_offset != 0).then(|| Start { start_offset: 0, ..start }.encode_to_vec().into()))
        }
        Some(_) | None => Ok(None),
    }
}

/// Every row that differs between two states of a run; a row without a value is deleted.
pub fn diff(old: Option<&Run>, new: &Run, mut emit: impl FnMut(&[u8], Option<Bytes>)) {
    if old.is_none_or(|old| old.head != new.head) {
        emit(&[HEAD], Some(new.head.encode_to_vec().into()));
    }
    if old.is_none() {
        emit(&[START], Some(new.start.encode_to_vec().into()));
    }
    if old.is_none_or(|old| !old.properties.is_same(&new.properties) && old.properties != new.properties) {
        emit(&[PROPERTIES], Some(new.properties.encode_to_vec().into()));
    }
    if old.is_none_or(|old| !old.buffered.is_same(&new.buffered)) {
        diff_buffered(old, new, &mut emit);
    }
    if old.is_none_or(|old| !old.activities.is_same(&new.activities)) {
        diff_numbered(ACTIVITY, old.map(|old| old.activities.as_ref()), &new.activities, &mut emit);
    }
    if old.is_none_or(|old| !old.timers.is_same(&new.timers)) {
        diff_timers(old, new, &mut emit);
    }
    if old.is_none_or(|old| !old.children.is_same(&new.children)) {
        diff_numbered(CHILD, old.map(|old| old.children.as_ref()), &new.children, &mut emit);
    }
    if old.is_none_or(|old| !old.externals.is_same(&new.externals)) {
        diff_numbered(EXTERNAL, old.map(|old| old.externals.as_ref()), &new.externals, &mut emit);
    }
    match (old.and_then(|old| old.chain.as_ref()), &new.chain) {
        (Some(before), Some(now)) if Arc::ptr_eq(before, now) => {}
        (_, Some(now)) => emit(&[CHAIN], Some(now.encode_to_vec().into())),
        (Some(_), None) => emit(&[CHAIN], None),
        (None, None) => {}
    }
    if old.is_none_or(|old| !old.updates.is_same(&new.updates)) {
        diff_updates(old, new, &mut emit);
    }
    if old.is_none_or(|old| !old.attached.is_same(&new.attached)) {
        diff_attached(old, new, &mut emit);
    }
    if let Some(schedule) = &new.schedule {
        diff_schedule(old.and_then(|old| old.schedule.as_deref()), schedule, &mut emit);
    }
}

fn diff_buffered(old: Option<&Run>, new: &Run, emit: &mut impl FnMut(&[u8], Option<Bytes>)) {
    if !new.buffered.is_empty() {
        let events = History { events: new.buffered.as_ref().clone() };
        emit(&[BUFFERED], Some(events.encode_to_vec().into()));
    } else if old.is_some_and(|old| !old.buffered.is_empty()) {
        emit(&[BUFFERED], None);
    }
}

/// Rows that have the id of an event in their suffix.
fn diff_numbered<M: Message>(
    kind: u8,
    old: Option<&BTreeMap<i64, Arc<M>>>,
    new: &BTreeMap<i64, Arc<M>>,
    emit: &mut impl FnMut(&[u8], Option<Bytes>),
) {
    for (id, part) in new {
        let before = old.and_then(|old| old.get(id));
        if before.is_some_and(|before| Arc::ptr_eq(before, part)) {
            continue;
        }
        emit(&numbered_suffix(kind, *id), Some(part.encode_to_vec().into()));
    }
    for id in old.into_iter().flat_map(BTreeMap::keys).filter(|id| !new.contains_key(id)) {
        emit(&numbered_suffix(kind, *id), None);
    }
}

fn diff_timers(old: Option<&Run>, new: &Run, emit: &mut impl FnMut(&[u8], Option<Bytes>)) {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| old.timers.as_ref());
    for (id, timer) in new.timers.iter() {
        if before.get(id) != Some(timer) {
            emit(&timer_suffix(id), Some(timer.encode_to_vec().into()));
        }
    }
    for id in before.keys().filter(|id| !new.timers.contains_key(id.as_str())) {
        emit(&timer_suffix(id), None);
    }
}

fn diff_updates(old: Option<&Run>, new: &Run, emit: &mut impl FnMut(&[u8], Option<Bytes>)) {
    let none = BTreeMap::new();
    let before = old.map_or(&none, |old| old.updates.as_ref());
    for (id, update) in new.updates.iter() {
        if before.get(id) != Some(update) {
            emit(&update_suffix(id), Some(update.encode_to_vec().into()));
        }
    }
    for id in before.keys().filter(|id| !new.updates.contains_key(id.as_str())) {
        emit(&update_suffix(id), None);
    }
}

/// None of them ever goes.
fn diff_attached(old: Option<&Run>, new: &Run, emit: &mut impl FnMut(&[u8], Option<Bytes>)) {
    for (id, attached) in new.attached.iter() {
        if old.is_none_or(|old| old.attached.get(id) != Some(attached)) {
            emit(&attached_suffix(id), Some(attached.encode_to_vec().into()));
        }
    }
}

/// A schedule stays one. A firing changes its progress only.
fn diff_schedule(old: Option<&Schedule>, new: &Schedule, emit: &mut impl FnMut(&[u8], Option<Bytes>)) {
    if old.is_none_or(|old| !Arc::ptr_eq(&old.plan, &new.plan)) {
        emit(&[DEFINITION], Some(new.definition().encode_to_vec().into()));
    }
    if old.is_none_or(|old| !Arc::ptr_eq(&old.progress, &new.progress)) {
        emit(&[PROGRESS], Some(new.progress.encode_to_vec().into()));
    }
    if old.is_none_or(|old| !Arc::ptr_eq(&old.results, &new.results)) {
        emit(&[RESULTS], Some(new.results.encode_to_vec().into()));
    }
}

fn attached_suffix(id: &str) -> Vec<u8> {
    let mut suffix = timer_suffix(id);
    suffix[0] = ATTACHED;
    suffix
}

fn update_suffix(id: &str) -> Vec<u8> {
    let mut suffix = timer_suffix(id);
    suffix[0] = UPDATE;
    suffix
}

fn numbered_suffix(kind: u8, id: i64) -> [u8; 9] {
    let mut suffix = [kind; 9];
    suffix[1..].copy_from_slice(&id.to_be_bytes());
    suffix
}

fn timer_suffix(id: &str) -> Vec<u8> {
    let mut suffix = Vec::with_capacity(1 + id.len());
    suffix.push(TIMER);
    suffix.extend_from_slice(id.as_bytes());
    suffix
}

/// Puts a run together from its rows.
#[derive(Default)]
pub struct Builder {
    start: Option<Start>,
    head: Option<ExecutionInfo>,
    properties: Properties,
    activities: BTreeMap<i64, Arc<Activity>>,
    timers: BTreeMap<String, Timer>,
    children: BTreeMap<i64, Arc<Child>>,
    externals: BTreeMap<i64, Arc<External>>,
    buffered: History,
    chain: Option<Chain>,
    updates: BTreeMap<String, Arc<Update>>,
    attached: BTreeMap<String, Attached>,
    definition: Option<ScheduleDefinition>,
    progress: ScheduleProgress,
    results: ScheduleResults,
}

impl Builder {
    /// Takes one row.
    ///
    /// # Errors
    /// [`Error::Decode`]: the row is damaged or of an unknown kind.
    pub fn row(&mut self, suffix: &[u8], value: &[u8]) -> Result<(), Error> {
        match suffix.first() {
            Some(&HEAD) => self.head = Some(decode("the head of a run", value)?),
            Some(&START) => self.start = Some(decode("the start of a run", value)?),
            Some(&PROPERTIES) => self.properties = decode("the properties of a run", value)?,
            Some(&BUFFERED) => self.buffered = decode("the buffered events of a run", value)?,
            Some(&ACTIVITY) => {
                let activity: Activity = decode("an activity", value)?;
                self.activities.insert(activity.scheduled_event_id, Arc::new(activity));
            }
            Some(&TIMER) => {
                let timer: Timer = decode("a timer", value)?;
                self.timers.insert(timer.timer_id.clone(), timer);
            }
            Some(&CHILD) => {
                let child: Child = decode("a child", value)?;
                self.children.insert(child.initiated_event_id, Arc::new(child));
            }
            Some(&EXTERNAL) => {
                let external: External = decode("a signal or request on its way", value)?;
                self.externals.insert(external.initiated_event_id, Arc::new(external));
            }
            Some(&CHAIN) => self.chain = Some(decode("what a run hands on", value)?),
            Some(&UPDATE) => {
                let update: Update = decode("an update", value)?;
                self.updates.insert(update.update_id.clone(), Arc::new(update));
            }
            Some(&ATTACHED) => {
                let attached: Attached = decode("a request that has found a run", value)?;
                self.attached.insert(attached.request_id.clone(), attached);
            }
            Some(&DEFINITION) => self.definition = Some(decode("the definition of a schedule", value)?),
            Some(&PROGRESS) => self.progress = decode("the progress of a schedule", value)?,
            Some(&RESULTS) => self.results = decode("the results of a schedule", value)?,
            Some(&(REQUEST | DONE | PROMISE)) => {}
            Some(_) | None => {
                return Err(Error::Decode {
                    what: "a state row",
                    detail: format!("unknown kind {suffix:?}"),
                });
            }
        }
        Ok(())
    }

    /// The run; none where there were no rows.
    ///
    /// # Errors
    /// [`Error::Decode`]: some of its rows are missing.
    pub fn finish(self) -> Result<Option<Run>, Error> {
        match (self.start, self.head) {
            (None, None) => Ok(None),
            (Some(start), Some(head)) => Ok(Some(Run {
                schedule: self.definition.map(|definition| {
                    Arc::new(Schedule::of_rows(&start, definition, self.progress, self.results))
                }),
                start: Arc::new(start),
                head,
                properties: self.properties.into(),
                activities: self.activities.into(),
                timers: self.timers.into(),
                children: self.children.into(),
                externals: self.externals.into(),
                buffered: self.buffered.events.into(),
                chain: self.chain.map(Arc::new),
                updates: self.updates.into(),
                attached: self.attached.into(),
            })),
            (Some(_), None) | (None, Some(_)) => {
                Err(Error::Decode { what: "a run", detail: "its head or its start is missing".into() })
            }
        }
    }
}

fn decode<M: Message + Default>(what: &'static str, value: &[u8]) -> Result<M, Error> {
    M::decode(value).map_err(|error| Error::decode(what, &error))
}

/// A message that is written as it was read.
fn decode_whole<M: Message + Default>(what: &'static str, value: &[u8]) -> Result<M, Error> {
    let message: M = decode(what, value)?;
    if message.encoded_len() != value.len() {
        let detail = "it has fields that this release does not know".into();
        return Err(Error::Decode { what, detail });
    }
    Ok(message)
}
