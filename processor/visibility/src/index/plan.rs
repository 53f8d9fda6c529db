//! Which rows are visited for a filter: those of its most selective test, if the index has rows for one, else the entries.

use std::ops::RangeInclusive;

use uuid::Uuid;

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::index::key::{Division, ENTRY, LOOKUP, START, behind, run_row};
use crate::index::lookup::{self, parts_of_any};
use crate::index::order_key::KeySpan;
use crate::index::rows::{Error, IndexRows};
use crate::query::{Condition, Filter, FilterNode, Literal, NamespaceDivision, SortOrder, Test};

/// Streams that are merged; where there would be more, their rows are gathered.
const STREAMS_MAX: usize = 64;
/// Rows that are counted of each test to find the most selective one.
const PROBED_ROWS_MAX: usize = 128;
/// Spans in which they are counted; of more of them there are many rows.
const PROBED_SPANS_MAX: usize = 1_000;
/// Tests that are compared.
const CANDIDATES_MAX: usize = 8;
/// Every status that a closed run can have.
const CLOSED_STATUSES: usize = 6;
const NS_PER_MS: i64 = 1_000_000;

/// Rows between two keys: `from <= key < to`.
pub(crate) type RowSpan = (Vec<u8>, Vec<u8>);

/// Rows with one prefix, in the order of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    /// An order key follows, or of a stream by start the part of one behind its first byte.
    pub prefix: Vec<u8>,
    pub is_by_start: bool,
    /// Of the order keys; none where no match is open.
    pub open: Option<KeySpan>,
    /// The same of closed ones.
    pub closed: Option<KeySpan>,
}

/// The rows that are visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// Merged in the order of the list.
    Streams(Vec<Stream>),
    /// In any order: sorted by key, without overlap.
    Spans(Vec<RowSpan>),
}

/// What is known of a filter's matches before any row is read.
#[derive(Clone, Debug)]
pub(crate) struct ScanPlan {
    pub namespace_id: Uuid,
    pub filter: Filter,
    pub may_be_open: bool,
    pub may_be_closed: bool,
    statuses: Vec<i32>,
    divisions: Vec<Division>,
    start_ms: RangeInclusive<i64>,
    close_ms: RangeInclusive<i64>,
}

/// A test that the index has rows for.
struct Candidate {
    driver: Driver,
    /// How selective tests of its attribute are in general; less is better.
    rank: u8,
    rows: usize,
}

impl ScanPlan {
    pub(crate) fn new(namespace_id: Uuid, filter: Filter) -> Self {
        let statuses = filter.statuses();
        let may_be_open = statuses.iter().any(|status| is_open(*status));
        let may_be_closed = statuses.iter().any(|status| !is_open(*status));
        let flags = match filter.namespace_division() {
            NamespaceDivision::Without => &[false][..],
            NamespaceDivision::Within(_) => &[true][..],
            NamespaceDivision::Any => &[false, true][..],
        };
        let divisions = flags.iter().map(|is_inner| Division { namespace_id, is_inner: *is_inner }).collect();
        let start_ms = in_ms(&filter.times(SystemAttribute::StartTime));
        let close_ms = in_ms(&filter.times(SystemAttribute::CloseTime));
        // A run closes when it has begun.
        let close_ms = *close_ms.start().max(start_ms.start())..=*close_ms.end();
        Self { namespace_id, filter, may_be_open, may_be_closed, statuses, divisions, start_ms, close_ms }
    }

    /// Rows of which each match has one; of a list in its own order those that stand in it, if that costs little.
    pub(crate) fn driver<R: IndexRows>(&self, order: ListOrder, rows: &R) -> Result<Driver, Error<R::Error>> {
        if !self.may_be_open && !self.may_be_closed {
            return Ok(Driver::Streams(Vec::new()));
        }
        let mut candidates: Vec<_> =
            self.filter.conjuncts().filter_map(|test| self.candidate(test)).collect();
        candidates.extend(self.status_candidate());
        candidates.extend(self.union_candidate());
        candidates.sort_by_key(|candidate| candidate.rank);
        candidates.truncate(CANDIDATES_MAX);
        for candidate in &mut candidates {
            candidate.rows = probe(&candidate.driver, rows)?;
        }
        let fallback = self.fallback(order);
        let cost = |candidate: &Candidate| {
            (candidate.rows, matches!(candidate.driver, Driver::Spans(_)), candidate.rank)
        };
        let best = candidates.into_iter().min_by_key(cost);
        Ok(match best {
            None => fallback,
            Some(Candidate { driver, rows, .. }) if rows < PROBED_ROWS_MAX => driver,
            // Gathering so many for each page costs more than looking for them in the list's order.
            Some(Candidate { driver: Driver::Spans(_), .. }) if order != ListOrder::None => fallback,
            Some(Candidate { driver: Driver::Streams(_), .. }) if order == ListOrder::ByStart => fallback,
            Some(Candidate { driver, .. }) => driver,
        })
    }

    /// The entries, or the rows by start.
    fn fallback(&self, order: ListOrder) -> Driver {
        let is_bounded = *self.start_ms.end() < i64::MAX && self.may_be_closed;
        match order {
            ListOrder::ByStart => {
                Driver::Streams(self.divisions.iter().map(|one| self.by_start(*one)).collect())
            }
            ListOrder::None if is_bounded => {
                let streams = self.divisions.iter().map(|one| self.by_start(*one));
                Driver::Spans(sorted(streams.flat_map(|stream| stream.spans()).collect()))
            }
            ListOrder::Own | ListOrder::None => {
                let prefix = |division: &Division| division.prefix(ENTRY).to_vec();
                let streams = self.divisions.iter().map(|division| self.stream(prefix(division)));
                Driver::Streams(streams.collect())
            }
        }
    }

    fn by_start(&self, division: Division) -> Stream {
        let prefix = division.prefix(START).to_vec();
        let open = Some(KeySpan::open(self.start_ms.clone()));
        Stream { prefix, is_by_start: true, open, closed: None }
    }

    fn stream(&self, prefix: Vec<u8>) -> Stream {
        let open = self.may_be_open.then(|| KeySpan::open(self.start_ms.clone()));
        let closed = self.may_be_closed.then(|| KeySpan::closed(self.close_ms.clone()));
        Stream { prefix, is_by_start: false, open, closed }
    }

    fn candidate(&self, test: &Test) -> Option<Candidate> {
        let attribute = &test.attribute;
        let rank = rank(&attribute.source)?;
        let spans = match &test.condition {
            Condition::AnyOf(literals)
                if attribute.source == AttributeSource::System(SystemAttribute::RunId) =>
            {
                let driver = Driver::Spans(self.runs(literals));
                return Some(Candidate { driver, rank, rows: 0 });
            }
            Condition::AnyOf(_)
                if attribute.source == AttributeSource::System(SystemAttribute::ExecutionStatus) =>
            {
                return None;
            }
            Condition::AnyOf(literals) => {
                let parts = parts_of_any(attribute, literals)?;
                return Some(Candidate { driver: self.parts(&parts), rank, rows: 0 });
            }
            Condition::Compare(range, literal) => lookup::spans_of_range(attribute, *range, literal)?,
            Condition::StartsWith(prefix) => lookup::spans_of_prefix(attribute, prefix)?,
            Condition::IsNull | Condition::HasPhrase(_) => return None,
        };
        let row = |division: &Division, part: &[u8]| [&division.prefix(LOOKUP)[..], part].concat();
        let both = |division: &Division, (from, to): &RowSpan| (row(division, from), row(division, to));
        let of = |division: &Division| spans.iter().map(|span| both(division, span)).collect::<Vec<_>>();
        let driver = Driver::Spans(sorted(self.divisions.iter().flat_map(of).collect()));
        Some(Candidate { driver, rank, rows: 0 })
    }

    /// Closed runs are found by their status, open ones are the first entries.
    fn status_candidate(&self) -> Option<Candidate> {
        let closed: Vec<_> = self.statuses.iter().filter(|status| !is_open(**status)).collect();
        if closed.is_empty() || closed.len() == CLOSED_STATUSES {
            return None;
        }
        let attribute = Attribute {
            source: AttributeSource::System(SystemAttribute::ExecutionStatus),
            kind: AttributeType::Keyword,
        };
        let literals: Vec<_> = closed.iter().map(|status| Literal::Int(i64::from(**status))).collect();
        let Driver::Streams(mut streams) = self.parts(&parts_of_any(&attribute, &literals)?) else {
            return None;
        };
        streams.iter_mut().for_each(|stream| stream.open = None);
        if self.may_be_open {
            let entries = self.divisions.iter().map(|division| self.stream(division.prefix(ENTRY).to_vec()));
            streams.extend(entries.map(|stream| Stream { closed: None, ..stream }));
        }
        Some(Candidate { driver: Driver::Streams(streams), rank: 5, rows: 0 })
    }

    /// The rows of the whole filter, where an OR joins tests that each have some.
    fn union_candidate(&self) -> Option<Candidate> {
        let nodes = self.filter.nodes();
        if !nodes.contains(&FilterNode::Or) {
            return None;
        }
        let mut operands: Vec<Option<Union>> = Vec::new();
        for node in nodes {
            let found = match node {
                FilterNode::Test(test) => self.candidate(test).map(Union::of),
                FilterNode::Not => operands.pop().and(None),
                FilterNode::And => {
                    let both = [operands.pop().flatten(), operands.pop().flatten()];
                    both.into_iter().flatten().min_by_key(|union| union.rank)
                }
                FilterNode::Or => match (operands.pop().flatten(), operands.pop().flatten()) {
                    (Some(one), Some(other)) => Some(one.or(other)),
                    (None, _) | (_, None) => None,
                },
            };
            operands.push(found);
        }
        operands.pop().flatten().map(Union::candidate)
    }

    fn parts(&self, parts: &[Vec<u8>]) -> Driver {
        let prefix = |division: &Division, part: &[u8]| [&division.prefix(LOOKUP)[..], part].concat();
        let of = |division: &Division| {
            parts.iter().map(|part| self.stream(prefix(division, part))).collect::<Vec<_>>()
        };
        Driver::of(self.divisions.iter().flat_map(of).collect())
    }

    fn runs(&self, literals: &[Literal]) -> Vec<RowSpan> {
        let ids = literals.iter().filter_map(|literal| Uuid::parse_str(literal.as_str()?).ok());
        let rows = ids.map(|run_id| run_row(self.namespace_id, run_id).to_vec());
        sorted(rows.map(|row| (row.clone(), behind(&row))).collect())
    }
}

/// How the matches are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOrder {
    /// As lists are without `ORDER BY`.
    Own,
    /// The newest start first.
    ByStart,
    /// They are counted, or have to be gathered before they can be sorted.
    None,
}

impl ListOrder {
    pub(crate) fn of(order: Option<SortOrder>) -> Self {
        match order {
            None => Self::Own,
            Some(SortOrder { by: SystemAttribute::StartTime, is_descending: true }) => Self::ByStart,
            Some(_) => Self::None,
        }
    }
}

impl Stream {
    /// Its rows.
    pub(crate) fn spans(&self) -> Vec<RowSpan> {
        [&self.open, &self.closed].into_iter().flatten().map(|span| self.rows(&span.from, &span.to)).collect()
    }

    /// Its rows between two order keys.
    pub(crate) fn rows(&self, from: &[u8], to: &[u8]) -> RowSpan {
        let row = |key: &[u8]| match (self.is_by_start, key) {
            (true, [0, rest @ ..]) => [&self.prefix, rest].concat(),
            (true, _behind) => behind(&self.prefix),
            (false, key) => [&self.prefix, key].concat(),
        };
        (row(from), row(to))
    }
}

/// Rows of tests that an OR joins.
struct Union {
    streams: Vec<Stream>,
    spans: Vec<RowSpan>,
    rank: u8,
}

impl Union {
    fn of(candidate: Candidate) -> Self {
        let rank = candidate.rank;
        match candidate.driver {
            Driver::Streams(streams) => Self { streams, spans: Vec::new(), rank },
            Driver::Spans(spans) => Self { streams: Vec::new(), spans, rank },
        }
    }

    /// The rows of both. The shorter is moved: there may be thousands, one by one.
    fn or(self, other: Self) -> Self {
        let rows = |union: &Self| union.streams.len() + union.spans.len();
        let (mut long, short) = if rows(&self) < rows(&other) { (other, self) } else { (self, other) };
        long.streams.extend(short.streams);
        long.spans.extend(short.spans);
        Self { rank: long.rank.max(short.rank), ..long }
    }

    fn candidate(self) -> Candidate {
        let Self { streams, mut spans, rank } = self;
        let driver = match spans.is_empty() {
            true => Driver::of(streams),
            false => {
                spans.extend(streams.iter().flat_map(Stream::spans));
                Driver::Spans(sorted(spans))
            }
        };
        Candidate { driver, rank, rows: 0 }
    }
}

impl Driver {
    fn of(streams: Vec<Stream>) -> Self {
        match streams.len() {
            0..=STREAMS_MAX => Self::Streams(streams),
            _more => Self::Spans(sorted(streams.iter().flat_map(Stream::spans).collect())),
        }
    }

    /// Its rows, sorted by key and without overlap.
    pub(crate) fn spans(&self) -> Vec<RowSpan> {
        match self {
            Self::Streams(streams) => sorted(streams.iter().flat_map(Stream::spans).collect()),
            Self::Spans(spans) => spans.clone(),
        }
    }
}

/// Counts the rows of a driver, as far as it matters.
fn probe<R: IndexRows>(driver: &Driver, rows: &R) -> Result<usize, Error<R::Error>> {
    let mut count = 0;
    let spans = driver.spans();
    if spans.len() > PROBED_SPANS_MAX {
        return Ok(PROBED_ROWS_MAX);
    }
    for (from, to) in spans {
        rows.scan(&from, &to, &mut |_, _| {
            count += 1;
            count < PROBED_ROWS_MAX
        })
        .map_err(Error::Rows)?;
        if count >= PROBED_ROWS_MAX {
            break;
        }
    }
    Ok(count)
}

/// Sorts spans, and joins those that overlap.
fn sorted(mut spans: Vec<RowSpan>) -> Vec<RowSpan> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut joined: Vec<RowSpan> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = to.max(std::mem::take(&mut last.1)),
            Some(_) | None => joined.push((from, to)),
        }
    }
    joined
}

/// How selective a test of the attribute is in general; none where there are no rows for it.
fn rank(source: &AttributeSource) -> Option<u8> {
    Some(match source {
        AttributeSource::System(SystemAttribute::WorkflowId | SystemAttribute::RunId) => 0,
        AttributeSource::System(SystemAttribute::ParentWorkflowId | SystemAttribute::RootWorkflowId) => 1,
        AttributeSource::Named(_) => 2,
        AttributeSource::System(SystemAttribute::ExecutionStatus) => 5,
        AttributeSource::System(SystemAttribute::WorkflowType | SystemAttribute::TaskQueue) => 6,
        AttributeSource::System(
            SystemAttribute::StartTime
            | SystemAttribute::ExecutionTime
            | SystemAttribute::CloseTime
            | SystemAttribute::ExecutionDuration
            | SystemAttribute::HistoryLength
            | SystemAttribute::HistorySizeBytes
            | SystemAttribute::StateTransitionCount
            | SystemAttribute::ParentRunId
            | SystemAttribute::RootRunId,
        ) => return None,
    })
}

/// Running and Paused.
fn is_open(status: i32) -> bool {
    matches!(status, 1 | 8)
}

/// The ms that moments of a range lie in. The ends of a range of ns stand for all that is beyond them.
fn in_ms(ns: &RangeInclusive<i64>) -> RangeInclusive<i64> {
    if ns.is_empty() {
        #[expect(clippy::reversed_empty_ranges, reason = "nothing is in it")]
        return 1..=0;
    }
    let least = if *ns.start() == i64::MIN { i64::MIN } else { ns.start().div_euclid(NS_PER_MS) };
    let greatest = if *ns.end() == i64::MAX { i64::MAX } else { ns.end().div_euclid(NS_PER_MS) };
    least..=greatest
}
