//! A count of one partition's matches, read in slices between which the partition goes on: exact as of its last slice.
//!
//! Rows are visited in the order of their keys. Of each change of a run between two slices the count is told: what the run was is taken
//! out where its row has been passed, and what it is comes in where that one's has.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::attribute::{Attribute, AttributeSource, AttributeType, SystemAttribute};
use crate::index::changes::{keys_of_kind, read_count};
use crate::index::key::{COUNTER, Division, LOOKUP, behind, read_counter};
use crate::index::plan::{ListOrder, RowSpan, ScanPlan};
use crate::index::rows::{Error, IndexRows};
use crate::index::walk::{CHUNK_ROWS_MAX, SEEK_ROWS, chunk, entry_of_row};
use crate::query::{Condition, Filter, FilterNode, NAMESPACE_DIVISION, NamespaceDivision};
use crate::record::{Record, Values};
use crate::value::Value;

/// What a caller asks of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct CountRequest {
    /// The namespace's UUID.
    pub namespace_id: Uuid,
    /// Which runs.
    pub filter: Filter,
    /// By which attribute they are counted apart.
    pub group_by: Option<Attribute>,
    /// Groups, at most.
    pub groups_max: usize,
}

/// What the runs of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupValue {
    /// They have no value.
    Missing,
    /// A number, or a status.
    Int(i64),
    /// A keyword.
    Keyword(String),
}

/// How many runs match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// All of them.
    pub count: i64,
    /// By group, where groups were asked for; none of a group is 0.
    pub groups: BTreeMap<GroupValue, i64>,
}

/// A count that is being made.
pub struct CountScan {
    plan: ScanPlan,
    group_by: Option<Attribute>,
    groups_max: usize,
    stage: CountStage,
    counts: RunCounts,
}

enum CountStage {
    Begin,
    /// Rows before `passed` were visited.
    Rows {
        spans: Vec<RowSpan>,
        kinds: Vec<u8>,
        passed: Vec<u8>,
    },
    Done,
}

impl RunCounts {
    /// Both together: counts of different partitions.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        for (group, count) in other.groups {
            *self.groups.entry(group).or_default() += count;
        }
    }
}

impl CountScan {
    /// A count of nothing yet.
    pub fn new(request: CountRequest) -> Self {
        Self {
            plan: ScanPlan::new(request.namespace_id, request.filter),
            group_by: request.group_by,
            groups_max: request.groups_max,
            stage: CountStage::Begin,
            counts: RunCounts::default(),
        }
    }

    /// Reads on, about as many rows as `budget` says; the counts, once they are there. Every change up to here must be in the rows,
    /// counters included, and those since the last call must have been told to [`CountScan::changed`].
    ///
    /// # Errors
    /// The rows cannot be read, or are damaged, or there are too many groups.
    pub fn read<R: IndexRows>(
        &mut self,
        rows: &R,
        budget: usize,
    ) -> Result<Option<RunCounts>, Error<R::Error>> {
        let mut left = budget.max(1);
        if matches!(self.stage, CountStage::Begin) {
            self.begin(rows)?;
        }
        let CountStage::Rows { spans, kinds, mut passed } =
            std::mem::replace(&mut self.stage, CountStage::Done)
        else {
            return Ok(Some(std::mem::take(&mut self.counts)));
        };
        for (from, to) in &spans {
            let mut from = from.max(&passed).clone();
            while from < *to {
                if left == 0 {
                    self.stage = CountStage::Rows { spans, kinds, passed };
                    return Ok(None);
                }
                let chunk = chunk(rows, &from, to, left.min(CHUNK_ROWS_MAX))?;
                left = left.saturating_sub(SEEK_ROWS + chunk.rows.len());
                for (row, value) in &chunk.rows {
                    self.visit(rows, row, value, &spans, &kinds)?;
                }
                // Up to here everything was visited, even where nothing stood.
                passed.clone_from(&chunk.next);
                from = chunk.next;
            }
        }
        self.counts.groups.retain(|_, count| *count != 0);
        Ok(Some(std::mem::take(&mut self.counts)))
    }

    /// A run has changed since the last slice: see [`change`](crate::index::change).
    pub fn changed(&mut self, namespace_id: Uuid, before: Option<&Record>, after: Option<&Record>) {
        let CountStage::Rows { spans, kinds, passed } = &self.stage else { return };
        if namespace_id != self.plan.namespace_id {
            return;
        }
        let counts = |record: &&Record| {
            let row = self.first_row(record, spans, kinds);
            row.is_some_and(|row| row < *passed) && self.plan.filter.matches(*record)
        };
        let (before, after) = (before.filter(counts), after.filter(counts));
        if let Some(before) = before {
            self.add(before, -1);
        }
        if let Some(after) = after {
            self.add(after, 1);
        }
    }

    fn begin<R: IndexRows>(&mut self, rows: &R) -> Result<(), Error<R::Error>> {
        let spans = match is_counted(&self.plan.filter, self.group_by.as_ref()) {
            true => counters(&self.plan),
            false => self.plan.driver(ListOrder::None, rows)?.spans(),
        };
        let mut kinds: Vec<_> = spans.iter().filter_map(|(from, _)| from.first().copied()).collect();
        kinds.dedup();
        self.stage = CountStage::Rows { spans, kinds, passed: Vec::new() };
        Ok(())
    }

    fn visit<R: IndexRows>(
        &mut self,
        rows: &R,
        row: &[u8],
        value: &[u8],
        spans: &[RowSpan],
        kinds: &[u8],
    ) -> Result<(), Error<R::Error>> {
        if row.first() == Some(&COUNTER) {
            return self.visit_counter(row, value);
        }
        let record = entry_of_row(rows, row, value)?.record;
        if !self.plan.filter.matches(&record) {
            return Ok(());
        }
        // A list of keywords may have several rows, and a run rows of several kinds.
        let is_one_of_many = kinds.len() > 1 || row.first() == Some(&LOOKUP);
        if is_one_of_many && self.first_row(&record, spans, kinds).as_deref() != Some(row) {
            return Ok(());
        }
        self.add(&record, 1);
        self.check_groups()
    }

    fn visit_counter<E: std::fmt::Display>(&mut self, row: &[u8], value: &[u8]) -> Result<(), Error<E>> {
        let read = Division::read(row).and_then(|(division, rest)| {
            let (workflow_type, status) = read_counter(rest)?;
            Some((CounterGroup { is_inner: division.is_inner, workflow_type, status }, read_count(value)?))
        });
        let (counted, count) = read.ok_or(Error::Damaged("a counter cannot be read"))?;
        if self.plan.filter.matches(&counted) {
            self.add(&counted, count);
        }
        self.check_groups()
    }

    fn add(&mut self, values: &impl Values, count: i64) {
        self.counts.count += count;
        if let Some(group_by) = &self.group_by {
            let group = match values.value(group_by) {
                Some(Value::String(keyword)) => GroupValue::Keyword(keyword.into_owned()),
                Some(Value::Int(number)) => GroupValue::Int(number),
                Some(Value::List(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_)) | None => {
                    GroupValue::Missing
                }
            };
            *self.counts.groups.entry(group).or_default() += count;
        }
    }

    fn check_groups<E: std::fmt::Display>(&self) -> Result<(), Error<E>> {
        match self.counts.groups.len() <= self.groups_max {
            true => Ok(()),
            false => Err(Error::Groups(self.groups_max)),
        }
    }

    /// The first of the visited rows that a record has; none where it has none among them.
    fn first_row(&self, record: &Record, spans: &[RowSpan], kinds: &[u8]) -> Option<Vec<u8>> {
        let keys = kinds.iter().flat_map(|kind| keys_of_kind(self.plan.namespace_id, record, *kind));
        let is_within = |key: &Vec<u8>| {
            let behind = spans.partition_point(|(from, _)| from <= key);
            behind.checked_sub(1).is_some_and(|span| *key < spans[span].1)
        };
        keys.filter(is_within).min()
    }
}

/// The counters of the divisions that a filter looks into.
fn counters(plan: &ScanPlan) -> Vec<RowSpan> {
    let flags = match plan.filter.namespace_division() {
        NamespaceDivision::Without => &[false][..],
        NamespaceDivision::Within(_) => &[true][..],
        NamespaceDivision::Any => &[false, true][..],
    };
    let prefix = |is_inner: &bool| {
        Division { namespace_id: plan.namespace_id, is_inner: *is_inner }.prefix(COUNTER).to_vec()
    };
    flags.iter().map(prefix).map(|prefix| (prefix.clone(), behind(&prefix))).collect()
}

/// True if a filter asks for nothing but what counters are kept by.
fn is_counted(filter: &Filter, group_by: Option<&Attribute>) -> bool {
    let by = [SystemAttribute::ExecutionStatus, SystemAttribute::WorkflowType].map(AttributeSource::System);
    let is_kept = |node: &FilterNode| match node {
        FilterNode::Test(test) => {
            let is_division = test.attribute.is_named(NAMESPACE_DIVISION);
            by.contains(&test.attribute.source) || is_division && test.condition == Condition::IsNull
        }
        FilterNode::Not | FilterNode::And | FilterNode::Or => true,
    };
    group_by.is_none_or(|group_by| by.contains(&group_by.source)) && filter.nodes().iter().all(is_kept)
}

/// What the runs of a counter have in common.
struct CounterGroup {
    is_inner: bool,
    workflow_type: String,
    status: i32,
}

impl Values for CounterGroup {
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>> {
        match &attribute.source {
            AttributeSource::System(SystemAttribute::ExecutionStatus) => Some(Value::Int(self.status.into())),
            AttributeSource::System(_type) => Some(Value::String(self.workflow_type.as_str().into())),
            // Which one it is, is not asked.
            AttributeSource::Named(_) if self.is_inner && attribute.kind == AttributeType::Keyword => {
                Some(Value::String("".into()))
            }
            AttributeSource::Named(_) => None,
        }
    }
}
