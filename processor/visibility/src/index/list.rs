//! One page of one partition's part of a list, read in slices between which the partition goes on.
//!
//! A list is what it was at the position at which its first page began: runs that began later are not in it, and one that has
//! closed since then stands where it stood while it was open. So each run that matched then, and still exists and matches, comes exactly
//! once, whatever happens between two slices or two pages. What comes is its present record.
//!
//! A list in its own order, or by start, is read in the order of its rows. Any other is gathered: all rows are visited, and the
//! first of the page are kept.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::index::order_key::{KeySpan, ListPosition, OrderKey};
use crate::index::plan::{Driver, ListOrder, RowSpan, ScanPlan, Stream};
use crate::index::rows::{Error, IndexRows};
use crate::index::walk::{
    CHUNK_ROWS_MAX, IndexEntry, MergedStreams, SEEK_ROWS, chunk, entry_of_row, entry_of_run,
};
use crate::query::{Filter, SortOrder};
use crate::record::Record;

/// What a caller asks of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRequest {
    /// The namespace's UUID.
    pub namespace_id: Uuid,
    /// Which runs.
    pub filter: Filter,
    /// `ORDER BY`; none is the list's own order.
    pub order: Option<SortOrder>,
    /// The position at which the list began. Of a first page it is where the partition stands.
    pub position: ListPosition,
    /// Runs behind this key; none from the beginning.
    pub after: Option<OrderKey>,
    /// Runs in the page, at most.
    pub rows_max: usize,
    /// Bytes of their records, at most, but for the first run.
    pub bytes_max: usize,
    /// Rows that are visited for the page, about; where they do not do, it is short. Lists that are gathered visit all that they must.
    pub visits_max: usize,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// Where it stands.
    pub key: OrderKey,
    /// What it shows.
    pub record: Record,
}

/// A page of a partition's runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage {
    /// In order.
    pub runs: Vec<ListedRun>,
    /// Up to where the page has every run, itself included; none where nothing follows.
    pub reached: Option<OrderKey>,
}

/// A page that is being read.
pub struct ListScan {
    plan: ScanPlan,
    order: Option<SortOrder>,
    position: ListPosition,
    rows_max: usize,
    bytes_max: usize,
    visits_left: usize,
    stage: ListStage,
    /// Everything up to here was looked at.
    at: Option<OrderKey>,
    /// Runs that may come, and are not met by going on in the order of the rows.
    kept: BTreeSet<OrderKey>,
    /// From here on some that might be kept are not.
    kept_end: Option<OrderKey>,
    runs: Vec<ListedRun>,
    bytes: usize,
    /// Some run was looked at: a page that is cut short comes no less far.
    has_moved: bool,
}

enum ListStage {
    /// Nothing was read.
    Begin,
    /// Of the streams: runs that closed since the list began are looked for among the newest closed ones.
    Closed { streams: Vec<Stream>, from: Option<OrderKey> },
    /// The streams are read in order.
    InOrder { streams: Vec<Stream>, region: Region },
    /// Rows are visited, those before `passed` were, and the first of the page are kept.
    Gather { spans: Vec<RowSpan>, passed: Vec<u8> },
    /// What is kept is the page.
    Kept,
    /// The page is there.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    Open,
    Closed,
}

impl Region {
    fn of(self, stream: &Stream) -> Option<&KeySpan> {
        match self {
            Self::Open => stream.open.as_ref(),
            Self::Closed => stream.closed.as_ref(),
        }
    }
}

/// How a slice ends.
enum Slice {
    /// Its budget is spent.
    Spent,
    /// Another stage follows.
    Next,
    /// The page has everything up to `at`.
    Full,
    /// Nothing follows.
    End,
}

impl ListScan {
    /// A page of which nothing was read.
    pub fn new(request: ListRequest) -> Self {
        Self {
            plan: ScanPlan::new(request.namespace_id, request.filter),
            order: request.order,
            position: request.position,
            rows_max: request.rows_max.max(1),
            bytes_max: request.bytes_max,
            visits_left: request.visits_max.max(1),
            stage: ListStage::Begin,
            at: request.after,
            kept: BTreeSet::new(),
            kept_end: None,
            runs: Vec::new(),
            bytes: 0,
            has_moved: false,
        }
    }

    /// Reads on, about as many rows as `budget` says; the page, once it is there. Every change up to here must be in the rows, and those
    /// since the last call must have been told to [`ListScan::changed`].
    ///
    /// # Errors
    /// The rows cannot be read, or are damaged.
    pub fn read<R: IndexRows>(
        &mut self,
        rows: &R,
        budget: usize,
    ) -> Result<Option<ListPage>, Error<R::Error>> {
        let mut left = budget.max(1);
        loop {
            let slice = match std::mem::replace(&mut self.stage, ListStage::Done) {
                ListStage::Begin => self.begin(rows)?,
                ListStage::Closed { streams, from } => {
                    self.look_for_closed(rows, streams, from, &mut left)?
                }
                ListStage::InOrder { streams, region } => self.in_order(rows, streams, region, &mut left)?,
                ListStage::Gather { spans, passed } => self.gather(rows, spans, passed, &mut left)?,
                ListStage::Kept => self.take_kept(rows)?,
                ListStage::Done => Slice::End,
            };
            match slice {
                Slice::Spent => return Ok(None),
                Slice::Next => {}
                Slice::Full => return Ok(Some(self.page(self.at))),
                Slice::End => return Ok(Some(self.page(None))),
            }
        }
    }

    /// A run has changed since the last slice: see [`change`](crate::index::change).
    pub fn changed(&mut self, namespace_id: Uuid, after: Option<&Record>) {
        let Some(after) = after.filter(|_| namespace_id == self.plan.namespace_id) else { return };
        let is_met = match &self.stage {
            // Closed since the list began, it stands among rows that may have been read.
            ListStage::Closed { .. } | ListStage::InOrder { .. } => {
                self.order.is_some() || after.is_open() || after.close_offset < self.position.offset
            }
            ListStage::Gather { .. } => false,
            ListStage::Begin | ListStage::Kept | ListStage::Done => true,
        };
        if !is_met {
            self.keep(after);
        }
    }

    fn begin<R: IndexRows>(&mut self, rows: &R) -> Result<Slice, Error<R::Error>> {
        let order = ListOrder::of(self.order);
        let driver = self.plan.driver(order, rows)?;
        self.stage = match driver {
            Driver::Streams(streams) if order == ListOrder::Own => {
                let closes = self.plan.may_be_open && self.plan.may_be_closed;
                let is_among_open = self.at.is_none_or(|at| at.while_open().is_none());
                match closes && is_among_open {
                    true => ListStage::Closed { streams, from: None },
                    false => ListStage::InOrder { streams, region: Region::Open },
                }
            }
            Driver::Streams(streams) if streams.iter().all(|stream| stream.is_by_start) => {
                ListStage::InOrder { streams, region: Region::Open }
            }
            driver => ListStage::Gather { spans: driver.spans(), passed: Vec::new() },
        };
        Ok(Slice::Next)
    }

    /// Keeps the runs that stand behind `at` as open ones and have closed since the list began: they are the newest closed ones.
    fn look_for_closed<R: IndexRows>(
        &mut self,
        rows: &R,
        streams: Vec<Stream>,
        from: Option<OrderKey>,
        left: &mut usize,
    ) -> Result<Slice, Error<R::Error>> {
        let mut from = from;
        let span = KeySpan::closed(self.position.ms..=i64::MAX);
        let mut merged =
            MergedStreams::new(rows, &streams, |stream| stream.closed.as_ref().map(|_| &span), from.as_ref());
        let begun = from;
        while let Some(key) = merged.peek(left)? {
            if *left == 0 && from != begun {
                drop(merged);
                self.stage = ListStage::Closed { streams, from };
                return Ok(Slice::Spent);
            }
            from = Some(key);
            if key.while_open() <= self.at && self.at.is_some() {
                merged.pass(key);
                continue;
            }
            if let Some(entry) = merged.take(key)?
                && entry.record.close_offset >= self.position.offset
            {
                self.keep(&entry.record);
            }
        }
        drop(merged);
        self.stage = ListStage::InOrder { streams, region: Region::Open };
        Ok(Slice::Next)
    }

    fn in_order<R: IndexRows>(
        &mut self,
        rows: &R,
        streams: Vec<Stream>,
        region: Region,
        left: &mut usize,
    ) -> Result<Slice, Error<R::Error>> {
        let begun = self.at;
        let mut merged = MergedStreams::new(rows, &streams, |stream| region.of(stream), self.at.as_ref());
        loop {
            let budget = *left;
            let row = merged.peek(left)?;
            self.visits_left = self.visits_left.saturating_sub(budget - *left);
            let kept = self.kept.first().copied();
            let Some(key) = [row, kept].into_iter().flatten().min() else { break };
            let is_long = self.visits_left == 0 && self.has_moved;
            if self.kept_end.is_some_and(|end| key >= end) || is_long || self.is_full() {
                return Ok(Slice::Full);
            }
            if *left == 0 && self.at != begun {
                drop(merged);
                self.stage = ListStage::InOrder { streams, region };
                return Ok(Slice::Spent);
            }
            self.kept.remove(&key);
            let mut entry = None;
            if row == Some(key) {
                entry = merged.take(key)?;
            }
            if kept == Some(key) && entry.is_none() {
                entry = entry_of_run(rows, self.plan.namespace_id, key.run_id())?;
            }
            if !self.add(key, entry) {
                return Ok(Slice::Full);
            }
        }
        drop(merged);
        if self.kept_end.is_some() {
            return Ok(Slice::Full);
        }
        if region == Region::Closed || streams.iter().all(|stream| stream.closed.is_none()) {
            return Ok(Slice::End);
        }
        self.stage = ListStage::InOrder { streams, region: Region::Closed };
        Ok(Slice::Next)
    }

    fn gather<R: IndexRows>(
        &mut self,
        rows: &R,
        spans: Vec<RowSpan>,
        passed: Vec<u8>,
        left: &mut usize,
    ) -> Result<Slice, Error<R::Error>> {
        let mut passed = passed;
        for (from, to) in &spans {
            let mut from = from.max(&passed).clone();
            while from < *to {
                if *left == 0 {
                    self.stage = ListStage::Gather { spans, passed };
                    return Ok(Slice::Spent);
                }
                let chunk = chunk(rows, &from, to, (*left).min(CHUNK_ROWS_MAX))?;
                *left = left.saturating_sub(SEEK_ROWS + chunk.rows.len());
                for (row, value) in &chunk.rows {
                    let entry = entry_of_row(rows, row, value)?;
                    self.keep(&entry.record);
                }
                passed.clone_from(&chunk.next);
                from = chunk.next;
            }
        }
        self.stage = ListStage::Kept;
        Ok(Slice::Next)
    }

    fn take_kept<R: IndexRows>(&mut self, rows: &R) -> Result<Slice, Error<R::Error>> {
        while let Some(key) = self.kept.first().copied() {
            if self.is_full() {
                return Ok(Slice::Full);
            }
            self.kept.remove(&key);
            let entry = entry_of_run(rows, self.plan.namespace_id, key.run_id())?;
            if !self.add(key, entry) {
                return Ok(Slice::Full);
            }
        }
        Ok(if self.kept_end.is_some() { Slice::Full } else { Slice::End })
    }

    /// Keeps a run that may come in this page. The last of too many goes.
    fn keep(&mut self, record: &Record) {
        let Some(key) = OrderKey::at(record, self.order, self.position) else { return };
        let is_behind = self.at.is_none_or(|at| key > at) && self.kept_end.is_none_or(|end| key < end);
        if !is_behind || !self.plan.filter.matches(record) {
            return;
        }
        self.kept.insert(key);
        if self.kept.len() > self.rows_max {
            self.kept_end = self.kept.pop_last();
        }
    }

    /// Takes the run into the page if it stands at this key and matches; false where it does not fit in any more.
    fn add(&mut self, key: OrderKey, entry: Option<IndexEntry>) -> bool {
        let stands = |entry: &IndexEntry| {
            OrderKey::at(&entry.record, self.order, self.position) == Some(key)
                && self.plan.filter.matches(&entry.record)
        };
        if let Some(IndexEntry { record, bytes }) = entry.filter(stands) {
            if !self.runs.is_empty() && self.bytes + bytes > self.bytes_max {
                return false;
            }
            self.bytes += bytes;
            self.runs.push(ListedRun { key, record });
        }
        (self.at, self.has_moved) = (Some(key), true);
        true
    }

    fn is_full(&self) -> bool {
        self.runs.len() >= self.rows_max
    }

    fn page(&mut self, reached: Option<OrderKey>) -> ListPage {
        self.stage = ListStage::Done;
        ListPage { runs: std::mem::take(&mut self.runs), reached }
    }
}
