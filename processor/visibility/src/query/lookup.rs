//! What an index can look up for a filter: tests that every match passes, and the ranges that follow from them.
//!
//! These are hints. What an index finds by them is tested by the whole filter.

use std::ops::RangeInclusive;

use crate::attribute::{Attribute, AttributeSource, SystemAttribute};
use crate::query::filter::{Condition, Filter, FilterNode, RangeOperator, Test};
use crate::query::literal::Literal;
use crate::record::Values;
use crate::value::Value;

/// The attribute that sets inner runs apart from those which lists show.
pub const NAMESPACE_DIVISION: &str = "TemporalNamespaceDivision";

/// Every `WorkflowExecutionStatus` that a run can have.
const STATUSES: RangeInclusive<i32> = 1..=8;
/// Those without a close time: Running and Paused.
const OPEN_STATUSES: [i32; 2] = [1, 8];

/// Which namespace divisions a filter's matches are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceDivision<'a> {
    /// In none: ordinary runs.
    Without,
    /// In one of these.
    Within(Vec<&'a str>),
    /// In any or none.
    Any,
}

/// A part of the postfix list that is one operand: from its first node to its last.
#[derive(Clone, Copy)]
struct NodeSpan {
    first: usize,
    last: usize,
}

impl Filter {
    /// The tests that stand alone or are joined by AND only: each match passes each of them.
    pub fn conjuncts(&self) -> impl Iterator<Item = &Test> {
        self.required().into_iter().filter(|operand| operand.first == operand.last).filter_map(|operand| {
            match self.nodes().get(operand.last) {
                Some(FilterNode::Test(test)) => Some(test),
                Some(FilterNode::Not | FilterNode::And | FilterNode::Or) | None => None,
            }
        })
    }

    /// The Workflow Ids of which one is that of every match; none where a match may have any.
    pub fn workflow_ids(&self) -> Option<Vec<&str>> {
        let workflow_id = AttributeSource::System(SystemAttribute::WorkflowId);
        self.conjuncts().filter(|test| test.attribute.source == workflow_id).find_map(Test::strings)
    }

    /// The statuses that a match can have, as numbers of `WorkflowExecutionStatus`, ascending.
    ///
    /// `CloseTime` counts as well: a run has one exactly if it is neither Running nor Paused.
    pub fn statuses(&self) -> Vec<i32> {
        let close_time = AttributeSource::System(SystemAttribute::CloseTime);
        let of_close_time = self.conjuncts().filter(|test| test.attribute.source == close_time);
        let wants_open: Vec<_> = of_close_time.map(|test| test.condition == Condition::IsNull).collect();
        let alone: Vec<_> =
            self.required().into_iter().filter_map(|operand| self.of_status(operand)).collect();
        let can_match = |status: &i32| {
            let is_open = OPEN_STATUSES.contains(status);
            wants_open.iter().all(|wanted| *wanted == is_open)
                && alone.iter().all(|filter| filter.matches(&StatusOnly(*status)))
        };
        STATUSES.filter(can_match).collect()
    }

    /// The least and the greatest value that a match can have of `StartTime`, `ExecutionTime` or `CloseTime`, in ns.
    /// An empty range matches nothing. A range that is not the whole one excludes runs without a value.
    pub fn times(&self, attribute: SystemAttribute) -> RangeInclusive<i64> {
        let source = AttributeSource::System(attribute);
        let (mut least, mut greatest) = (i64::MIN, i64::MAX);
        for test in self.conjuncts().filter(|test| test.attribute.source == source) {
            let (from, to) = match &test.condition {
                Condition::AnyOf(literals) => match (literals.first(), literals.last()) {
                    (Some(Literal::Time(first)), Some(Literal::Time(last))) => (*first, *last),
                    _other => continue,
                },
                Condition::Compare(range, Literal::Time(ns)) => match range {
                    RangeOperator::Less => (i64::MIN, ns.saturating_sub(1)),
                    RangeOperator::LessOrEqual => (i64::MIN, *ns),
                    RangeOperator::Greater => (ns.saturating_add(1), i64::MAX),
                    RangeOperator::GreaterOrEqual => (*ns, i64::MAX),
                },
                Condition::Compare(..)
                | Condition::IsNull
                | Condition::StartsWith(_)
                | Condition::HasPhrase(_) => continue,
            };
            (least, greatest) = (least.max(from), greatest.min(to));
        }
        least..=greatest
    }

    /// Which namespace divisions the matches are in.
    pub fn namespace_division(&self) -> NamespaceDivision<'_> {
        let is_division = |test: &&Test| test.attribute.is_named(NAMESPACE_DIVISION);
        for test in self.conjuncts().filter(is_division) {
            if test.condition == Condition::IsNull {
                return NamespaceDivision::Without;
            }
            if let Some(divisions) = test.strings() {
                return NamespaceDivision::Within(divisions);
            }
        }
        NamespaceDivision::Any
    }

    /// The operands that are joined by AND only, the last one first.
    fn required(&self) -> Vec<NodeSpan> {
        let sizes = self.sizes();
        let operand = |last: usize| NodeSpan { first: (last + 1).saturating_sub(sizes[last]), last };
        let mut open: Vec<_> = self.nodes().len().checked_sub(1).map(operand).into_iter().collect();
        let mut required = Vec::new();
        while let Some(next) = open.pop() {
            match self.nodes()[next.last] {
                FilterNode::And => {
                    let right = operand(next.last - 1);
                    open.push(operand(right.first - 1));
                    open.push(right);
                }
                FilterNode::Test(_) | FilterNode::Not | FilterNode::Or => required.push(next),
            }
        }
        required
    }

    /// Of each node, how many nodes its operand has. A filter is balanced, so that operands are there.
    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = Vec::with_capacity(self.nodes().len());
        for (place, node) in self.nodes().iter().enumerate() {
            let size = match node {
                FilterNode::Test(_) => 1,
                FilterNode::Not => 1 + sizes[place - 1],
                FilterNode::And | FilterNode::Or => {
                    let right = sizes[place - 1];
                    1 + right + sizes[place - 1 - right]
                }
            };
            sizes.push(size);
        }
        sizes
    }

    /// An operand as a filter, if it tests the status and nothing else.
    fn of_status(&self, operand: NodeSpan) -> Option<Filter> {
        let status = AttributeSource::System(SystemAttribute::ExecutionStatus);
        let nodes = self.nodes().get(operand.first..=operand.last)?;
        let is_of_status = |node: &FilterNode| match node {
            FilterNode::Test(test) => test.attribute.source == status,
            FilterNode::Not | FilterNode::And | FilterNode::Or => true,
        };
        nodes.iter().all(is_of_status).then(|| Filter::new(nodes.to_vec()).ok()).flatten()
    }
}

impl Test {
    /// The strings of which the value, or some element of it, is one; none of another condition.
    pub fn strings(&self) -> Option<Vec<&str>> {
        let Condition::AnyOf(literals) = &self.condition else { return None };
        literals.iter().map(Literal::as_str).collect()
    }
}

/// A run of which only the status is known.
struct StatusOnly(i32);

impl Values for StatusOnly {
    fn value(&self, _attribute: &Attribute) -> Option<Value<'_>> {
        Some(Value::Int(self.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::query::{Query, RunAttributes};

    fn filter(text: &str) -> Filter {
        let custom = BTreeMap::from([("Color".to_owned(), 2), ("Colors".to_owned(), 7)]);
        Query::for_list(text, &RunAttributes { custom: &custom }).expect(text).filter
    }

    #[test]
    fn conjuncts_are_what_every_match_passes() {
        let named = |text: &str| {
            let filter = filter(text);
            let names = filter.conjuncts().map(|test| match &test.attribute.source {
                AttributeSource::System(system) => format!("{system:?}"),
                AttributeSource::Named(name) => name.clone(),
            });
            names.collect::<Vec<_>>().join(" ")
        };
        let hidden = NAMESPACE_DIVISION;
        assert_eq!(named("Color = 'a'"), format!("{hidden} Color"));
        assert_eq!(
            named("Color = 'a' AND (RunId = 'b' AND Colors = 'c')"),
            format!("{hidden} Colors RunId Color")
        );
        assert_eq!(named("Color = 'a' AND (RunId = 'b' OR Colors = 'c')"), format!("{hidden} Color"));
        assert_eq!(named("Color = 'a' OR RunId = 'b'"), hidden);
        assert_eq!(named("NOT Color = 'a' AND Colors IN ('b', 'c')"), format!("{hidden} Colors"));
        assert_eq!(named("NOT (Color = 'a' AND RunId = 'b')"), hidden);
        assert_eq!(named("Color BETWEEN 'a' AND 'b'"), format!("{hidden} Color Color"));
        assert_eq!(named("TemporalNamespaceDivision IS NOT NULL"), "");
        assert_eq!(named(""), hidden);
    }

    #[test]
    fn a_workflow_id_is_pinned_by_each_match() {
        let ids = |text| filter(text).workflow_ids().map(|ids| ids.join(" "));
        assert_eq!(ids("WorkflowId = 'a'").as_deref(), Some("a"));
        assert_eq!(ids("Color = 'x' AND WorkflowId IN ('b', 'a', 'b')").as_deref(), Some("a b"));
        assert_eq!(ids("ScheduleId = 'a'").as_deref(), Some("temporal-sys-scheduler:a"));
        assert_eq!(ids("WorkflowId = 5").as_deref(), Some("5"));
        for text in ["", "WorkflowId != 'a'", "WorkflowId > 'a'", "WorkflowId = 'a' OR Color = 'b'"] {
            assert_eq!(ids(text), None, "{text}");
        }
    }

    #[test]
    fn statuses_are_those_that_can_match() {
        let statuses = |text| filter(text).statuses();
        let all: Vec<_> = STATUSES.collect();
        assert_eq!(statuses(""), all);
        assert_eq!(statuses("ExecutionStatus = 'Running'"), [1]);
        assert_eq!(statuses("ExecutionStatus IN ('Failed', 'Completed') AND Color = 'a'"), [2, 3]);
        assert_eq!(statuses("ExecutionStatus != 'Running'"), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(statuses("ExecutionStatus = 1 OR NOT (ExecutionStatus < 7)"), [1, 7, 8]);
        assert_eq!(statuses("ExecutionStatus = 1 OR Color = 'a'"), all);
        let none: [i32; 0] = [];
        assert_eq!(statuses("ExecutionStatus = 1 AND ExecutionStatus = 2"), none);
        assert_eq!(statuses("ExecutionStatus IS NULL"), none);
        assert_eq!(statuses("CloseTime IS NULL"), OPEN_STATUSES);
        assert_eq!(statuses("CloseTime > 5 AND ExecutionStatus < 3"), [2]);
        assert_eq!(statuses("NOT CloseTime IS NULL"), all, "a hint may say too much");
    }

    #[test]
    fn times_are_bounded_by_every_conjunct() {
        let times = |text| filter(text).times(SystemAttribute::StartTime);
        assert_eq!(times("Color = 'a'"), i64::MIN..=i64::MAX);
        assert_eq!(times("StartTime > 5 AND StartTime <= 9"), 6..=9);
        assert_eq!(times("StartTime >= 5 AND StartTime < 9 AND CloseTime > 7"), 5..=8);
        assert_eq!(times("StartTime BETWEEN 5 AND 9"), 5..=9);
        assert_eq!(times("StartTime = '1970-01-01T00:00:00.000000005Z'"), 5..=5);
        assert_eq!(times("StartTime IN (7, 5, 9)"), 5..=9);
        assert_eq!(times("StartTime > 5 OR Color = 'a'"), i64::MIN..=i64::MAX);
        assert!(times("StartTime > 9 AND StartTime < 5").is_empty());
        assert!(times(&format!("StartTime > {} AND StartTime < {}", i64::MAX, i64::MIN)).is_empty());
    }

    #[test]
    fn inner_runs_are_hidden_unless_the_filter_names_their_division() {
        let division = |text| match filter(text).namespace_division() {
            NamespaceDivision::Without => "without".to_owned(),
            NamespaceDivision::Within(divisions) => divisions.join(" "),
            NamespaceDivision::Any => "any".to_owned(),
        };
        assert_eq!(division(""), "without");
        assert_eq!(division("Color = 'a' OR Color = 'b'"), "without");
        assert_eq!(division("TemporalNamespaceDivision IS NULL"), "without");
        assert_eq!(division("TemporalNamespaceDivision = 'a'"), "a");
        assert_eq!(division("Color = 'x' AND TemporalNamespaceDivision IN ('a', 'b')"), "a b");
        assert_eq!(division("TemporalNamespaceDivision != 'a'"), "any");
        assert_eq!(division("Color = 'x' OR TemporalNamespaceDivision = 'a'"), "any");
    }
}
