//! A replica: the states, rows and histories that follow from deciding a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::event::{Attributes, History, HistoryEvent};
use everlog_engine::machine::reset::{HistoryBatches, continued_by, is_kept};
use everlog_engine::machine::update::Done;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Ending, Grace, Outcome, Run, Settings, Stamp, Step, View, decide};
use everlog_wire::rows::{self, Builder};
use everlog_wire::{Body, Record};

use super::audit::Audit;
use super::{laws, rebuilt};

/// So many runs of a chain are asked whether they know a request.
const LOOKS_MAX: usize = 64;

#[derive(Default, PartialEq)]
pub struct Replica {
    runs: BTreeMap<String, StoredRun>,
    current: BTreeMap<String, String>,
    seen: BTreeSet<(String, String)>,
    done: BTreeMap<(String, String), Done>,
    /// The id of the run that began last.
    latest_run_id: String,
    /// All that is over, in order.
    pub endings: Vec<Ending>,
}

/// A run with all that is remembered of it.
#[derive(PartialEq)]
pub struct StoredRun {
    pub run: Arc<Run>,
    pub events: Vec<HistoryEvent>,
    /// The first event of each batch.
    pub batches: Vec<i64>,
    pub audit: Audit,
    rows: BTreeMap<Vec<u8>, Bytes>,
}

impl Replica {
    /// Decides a record twice, the second time from the rows alone, checks the laws, and takes over what it yields.
    pub fn take(&mut self, record: &Bytes, stamp: &Stamp, settings: &Settings) -> Outcome {
        let read = Record::read(record.clone()).expect("a record is read as it was written");
        assert_eq!(read.encode(), record, "a record keeps its bytes");
        let Some(Body::Input(input)) = read.body else { panic!("only orders are in the journal") };
        let view = self.view(&input, |stored| stored.run.clone());
        let outcome = decide(&view, &input, stamp, settings);
        let from_rows = self.view(&input, |stored| Arc::new(stored.reload()));
        assert_eq!(outcome, decide(&from_rows, &input, stamp, settings), "the same record, another decision");
        laws::of_outcome(&view, &input, &outcome);
        self.absorb(&input, &outcome, stamp);
        outcome
    }

    fn view(&self, input: &RequestRecord, run_of: impl Fn(&StoredRun) -> Arc<Run>) -> View {
        let named = match input.run_id.as_str() {
            "" => self.current.get(&input.workflow_id),
            run_id => Some(&input.run_id).filter(|_| !run_id.is_empty()),
        };
        let stored = named.and_then(|run_id| self.runs.get(run_id));
        let stored = stored.filter(|stored| stored.run.start.workflow_id == input.workflow_id);
        let run = stored.map(&run_of);
        let current = match input.request {
            Some(Request::Start(_)) => run.clone(),
            Some(Request::Reset(_)) => {
                let current = self.current.get(&input.workflow_id);
                current.and_then(|run_id| self.runs.get(run_id)).map(&run_of)
            }
            Some(_) | None => None,
        };
        let seen = self.taker(input, run.as_ref(), current.as_ref()).map(&run_of);
        let past = match (&input.request, stored) {
            (Some(Request::Reset(_)), Some(stored)) => self.past(stored),
            _nothing_is_read => Vec::new(),
        };
        let mut done = BTreeMap::new();
        for (run, id) in run.iter().flat_map(|run| input.update_ids(run).into_iter().map(move |id| (run, id)))
        {
            let found = self.done.get(&(run.start.run_id.clone(), id.to_owned()));
            done.extend(found.map(|found| (id.to_owned(), *found)));
        }
        let done_before = match (&input.request, &seen) {
            (Some(Request::Start(begin)), Some(taker)) if Some(taker) != run.as_ref() => {
                let update_id = begin.update.as_ref().map(|update| update.update_id.clone());
                update_id.and_then(|id| self.done.get(&(taker.start.run_id.clone(), id)).copied())
            }
            _other => None,
        };
        View { run, current, is_namespace_deleted: false, seen, done, done_before, past }
    }

    /// The run that has taken the input's request: the addressed one, or one before it in its chain.
    fn taker(
        &self,
        input: &RequestRecord,
        run: Option<&Arc<Run>>,
        current: Option<&Arc<Run>>,
    ) -> Option<&StoredRun> {
        if let Some(id) = input.signal_request_id() {
            let has = |run: &Run| self.seen.contains(&(run.start.run_id.clone(), id.to_owned()));
            return self.in_chain(run?, input.run_id.is_empty(), has);
        }
        let id = input.creation_request_id()?;
        self.in_chain(current?, true, |run| run.start.request_id == id || run.attached.contains_key(id))
    }

    fn in_chain(&self, run: &Run, looks_back: bool, has: impl Fn(&Run) -> bool) -> Option<&StoredRun> {
        let before = |stored: &&StoredRun| {
            let start = &stored.run.start;
            let former = Some(&start.former_run_id).filter(|run_id| !run_id.is_empty());
            self.runs.get(former.unwrap_or(&start.continued_run_id))
        };
        let looks = if looks_back { LOOKS_MAX } else { 1 };
        std::iter::successors(self.runs.get(&run.start.run_id), before)
            .take(looks)
            .find(|stored| has(&stored.run))
    }

    /// What is written of a run, and of those that it went on as.
    fn past(&self, base: &StoredRun) -> Vec<HistoryBatches> {
        let mut past = Vec::new();
        let mut next = Some(base);
        while let Some(stored) = next.take() {
            let is_base = past.is_empty();
            let batches = stored.histories().filter(|batch| is_base || batch.events.iter().any(is_kept));
            past.push(HistoryBatches { run_id: stored.run.start.run_id.clone(), batches: batches.collect() });
            let follower = stored.events.last().and_then(continued_by);
            next = follower.and_then(|run_id| self.runs.get(run_id));
        }
        past
    }

    /// Every history tells its run's state.
    pub fn rebuild(&self) {
        for stored in self.runs.values() {
            rebuilt::of(&stored.run, &stored.histories().collect::<Vec<_>>());
        }
    }

    fn absorb(&mut self, input: &RequestRecord, outcome: &Outcome, stamp: &Stamp) {
        for step in &outcome.steps {
            self.absorb_step(step, stamp);
        }
        if let (Some(step), Some(seen)) = (outcome.steps.last(), &outcome.seen) {
            self.seen.insert((step.run.start.run_id.clone(), seen.clone()));
        }
        if let Some(current) = &outcome.current {
            self.current.insert(input.workflow_id.clone(), current.run_id.clone());
        }
        if outcome.expired {
            self.expire(input);
        }
        let named = self.runs.values().filter(|stored| stored.run.start.workflow_id == input.workflow_id);
        for stored in named.filter(|stored| stored.run.is_open()) {
            let current = self.current.get(&input.workflow_id);
            assert_eq!(
                current,
                Some(&stored.run.start.run_id),
                "a run is open and its Workflow Id means another"
            );
        }
    }

    fn absorb_step(&mut self, step: &Step, stamp: &Stamp) {
        let run_id = &step.run.start.run_id;
        if !self.runs.contains_key(run_id) {
            laws::of_new_run(&self.latest_run_id, run_id, stamp);
            assert_eq!(step.run.start.start_offset, stamp.offset, "the run does not know where it began");
            self.latest_run_id.clone_from(run_id);
        }
        let begin = || StoredRun {
            run: Arc::new(Run::begin(step.run.start.as_ref().clone())),
            events: Vec::new(),
            batches: Vec::new(),
            audit: Audit::default(),
            rows: BTreeMap::new(),
        };
        let stored = self.runs.entry(run_id.clone()).or_insert_with(begin);
        laws::of_step(&stored.run, step, stamp);
        self.endings.extend(step.endings(Some(&stored.run)));
        let old = Some(stored.run.as_ref()).filter(|_| !stored.rows.is_empty());
        rows::diff(old, &step.run, |suffix, value| {
            match value {
                Some(value) => stored.rows.insert(suffix.to_vec(), value),
                None => stored.rows.remove(suffix),
            };
        });
        stored.run = step.run.clone();
        assert_eq!(stored.reload(), *stored.run, "the rows say something else than the state");
        stored.batches.extend(step.batches().iter().map(|batch| batch[0].event_id));
        for batch in step.batches() {
            for event in &batch {
                let Some(Attributes::UpdateCompleted(completed)) = &event.attributes else { continue };
                let update_id = completed.meta.as_ref().map_or("", |meta| &meta.update_id);
                let done = Done { event_id: event.event_id, batch_event_id: batch[0].event_id };
                let before = self.done.insert((run_id.clone(), update_id.to_owned()), done);
                assert!(before.is_none(), "update {update_id} was completed twice");
            }
        }
        for event in step.events() {
            stored.audit.event(event);
            stored.events.push(event.clone());
        }
        for request_id in step.requests_taken_over() {
            self.seen.insert((run_id.clone(), request_id.to_owned()));
        }
        stored.audit.state(&stored.run);
    }

    fn expire(&mut self, input: &RequestRecord) {
        let run_id = match input.run_id.as_str() {
            "" => self.current.get(&input.workflow_id).cloned().unwrap_or_default(),
            run_id => run_id.to_owned(),
        };
        self.runs.remove(&run_id);
        self.seen.retain(|(of, _)| *of != run_id);
        self.done.retain(|(of, _), _| *of != run_id);
        self.current.retain(|_, current| *current != run_id);
    }

    /// The current run of a workflow.
    pub fn current_run(&self, workflow_id: &str) -> Option<&Run> {
        self.runs.get(self.current.get(workflow_id)?).map(|stored| stored.run.as_ref())
    }

    /// All that is remembered of a run.
    pub fn stored(&self, run_id: &str) -> Option<&StoredRun> {
        self.runs.get(run_id)
    }

    /// Every run.
    pub fn all(&self) -> impl Iterator<Item = &StoredRun> {
        self.runs.values()
    }

    /// Events in all histories.
    pub fn events(&self) -> usize {
        self.runs.values().map(|stored| stored.events.len()).sum()
    }

    /// The earliest moment at which an open run wants to be woken: time, workflow, run.
    pub fn next_deadline(&self, grace: Grace) -> Option<(i64, String, String)> {
        let open = self.runs.values().map(|stored| &stored.run).filter(|run| run.is_open());
        let due = open.filter_map(|run| {
            let due_ms = run.next_deadline_ms(grace)?;
            Some((due_ms, run.start.workflow_id.clone(), run.start.run_id.clone()))
        });
        due.min()
    }
}

impl StoredRun {
    /// The events, batch by batch.
    pub fn histories(&self) -> impl Iterator<Item = History> {
        let place = |first: &i64| self.events.partition_point(|event| event.event_id < *first);
        let places: Vec<_> = self.batches.iter().map(place).chain([self.events.len()]).collect();
        let places = (0..self.batches.len()).map(move |batch| places[batch]..places[batch + 1]);
        places.map(|place| History { events: self.events[place].to_vec() })
    }

    /// The run as its rows have it.
    fn reload(&self) -> Run {
        let mut builder = Builder::default();
        for (suffix, value) in &self.rows {
            builder.row(suffix, value).expect("a row is read as it was written");
        }
        builder.finish().expect("the rows are complete").expect("there are rows")
    }
}
