//! The filters of ListOpenWorkflowExecutions and ListClosedWorkflowExecutions: they have no query, and none is written.

use crate::attribute::{Attribute, SystemAttribute};
use crate::query::filter::{Condition, Filter, FilterError, FilterNode, RangeOperator, Test};
use crate::query::literal::Literal;
use crate::query::resolve::without_divisions;

/// `WorkflowExecutionStatus`: Running.
const RUNNING: i32 = 1;

/// The first and the last moment that match, in ns since 1970-01-01 UTC; none is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The first one.
    pub earliest_ns: Option<i64>,
    /// The last one.
    pub latest_ns: Option<i64>,
}

/// The one further filter that a request may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LegacyFilter {
    /// None.
    #[default]
    All,
    /// Runs of one Workflow Id.
    WorkflowId(String),
    /// Runs of one type.
    WorkflowType(String),
    /// Runs of one status; of closed runs only.
    Status(i32),
}

impl Filter {
    /// Running runs that started between two moments. Paused ones are left out, as by Temporal's server.
    ///
    /// # Errors
    /// Never: the filter is short.
    pub fn open_runs(started: Moments, filter: LegacyFilter) -> Result<Self, FilterError> {
        let running =
            test(SystemAttribute::ExecutionStatus, Condition::AnyOf(vec![Literal::Int(RUNNING.into())]));
        legacy(vec![running], SystemAttribute::StartTime, started, filter)
    }

    /// Runs that are not Running and closed between two moments. Without moments Paused ones are among them, as by
    /// Temporal's server.
    ///
    /// # Errors
    /// Never: the filter is short.
    pub fn closed_runs(closed: Moments, filter: LegacyFilter) -> Result<Self, FilterError> {
        let running =
            test(SystemAttribute::ExecutionStatus, Condition::AnyOf(vec![Literal::Int(RUNNING.into())]));
        legacy(vec![running, FilterNode::Not], SystemAttribute::CloseTime, closed, filter)
    }
}

fn legacy(
    mut nodes: Vec<FilterNode>,
    time: SystemAttribute,
    moments: Moments,
    filter: LegacyFilter,
) -> Result<Filter, FilterError> {
    let mut and = |attribute, condition| nodes.extend([test(attribute, condition), FilterNode::And]);
    if let Some(ns) = moments.earliest_ns {
        and(time, Condition::Compare(RangeOperator::GreaterOrEqual, Literal::Time(ns)));
    }
    if let Some(ns) = moments.latest_ns {
        and(time, Condition::Compare(RangeOperator::LessOrEqual, Literal::Time(ns)));
    }
    let is = |literal| Condition::AnyOf(vec![literal]);
    match filter {
        LegacyFilter::All => {}
        LegacyFilter::WorkflowId(id) => and(SystemAttribute::WorkflowId, is(Literal::String(id))),
        LegacyFilter::WorkflowType(name) => and(SystemAttribute::WorkflowType, is(Literal::String(name))),
        LegacyFilter::Status(status) => {
            and(SystemAttribute::ExecutionStatus, is(Literal::Int(status.into())))
        }
    }
    without_divisions(Filter::new(nodes)?)
}

fn test(attribute: SystemAttribute, condition: Condition) -> FilterNode {
    FilterNode::Test(Test { attribute: Attribute::system(attribute), condition })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::query::{Query, RunAttributes};

    fn query(text: &str) -> Filter {
        Query::for_list(text, &RunAttributes { custom: &BTreeMap::new() }).expect(text).filter
    }

    #[test]
    fn they_are_what_the_server_writes_as_queries() {
        let moments = Moments { earliest_ns: Some(5), latest_ns: Some(9) };
        let open = |moments, filter| Filter::open_runs(moments, filter).expect("short");
        let closed = |moments, filter| Filter::closed_runs(moments, filter).expect("short");
        let running = "ExecutionStatus = 'Running'";
        assert_eq!(open(Moments::default(), LegacyFilter::All), query(running));
        assert_eq!(
            open(moments, LegacyFilter::WorkflowId("it's".into())),
            query(&format!("{running} AND StartTime >= 5 AND StartTime <= 9 AND WorkflowId = \"it's\""))
        );
        let not_running = "ExecutionStatus != 'Running'";
        let latest = Moments { earliest_ns: None, ..moments };
        assert_eq!(
            closed(latest, LegacyFilter::WorkflowType("Order".into())),
            query(&format!("{not_running} AND CloseTime <= 9 AND WorkflowType = 'Order'"))
        );
        let earliest = Moments { latest_ns: None, ..moments };
        assert_eq!(
            closed(earliest, LegacyFilter::Status(3)),
            query(&format!("{not_running} AND CloseTime >= 5 AND ExecutionStatus = 'Failed'"))
        );
    }
}
