//! A count over all partitions that may have a match.

use std::collections::BTreeMap;

use everlog_partition::{COUNT_GROUPS_MAX, CallFailure, VisibilityRead, VisibilityWant, WantedCount};
use everlog_visibility::attribute::{Attribute, AttributeSource, SYSTEM, SystemAttribute};
use everlog_visibility::query::Query;
use tonic::Status;

use crate::Gateway;
use crate::codec::status;
use crate::routing::partition_reads::{PartitionQuestion, ask};
use crate::visibility::list::partitions_of;

/// What the runs of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grouped {
    /// They have no value.
    Missing,
    /// A status: a number of `WorkflowExecutionStatus`.
    Status(i32),
    /// A keyword.
    Keyword(String),
}

/// How many runs match.
#[derive(Default)]
pub(crate) struct CountedRuns {
    /// All of them.
    pub count: i64,
    /// Those of each group, where groups were asked for; never 0.
    pub groups: BTreeMap<Grouped, i64>,
}

/// Counts the runs that match.
///
/// # Errors
/// UNAVAILABLE while a partition is served by nobody; INVALID_ARGUMENT where there are too many groups.
pub(crate) async fn counts(
    gateway: &Gateway,
    namespace_id: &str,
    query: Query,
) -> Result<CountedRuns, Status> {
    let read = VisibilityRead {
        namespace_id: namespace_id.to_owned(),
        filter: query.filter.encode(),
        want: Some(VisibilityWant::Count(wanted(query.group_by.as_ref()))),
    };
    let partitions = partitions_of(&query.filter, namespace_id, gateway.about.partitions);
    let question = |partition| PartitionQuestion { partition, read: Some(read.clone()) };
    let answers = ask(gateway, partitions.into_iter().map(question).collect()).await?;
    let mut counted = CountedRuns::default();
    for answer in answers {
        let mut counts = answer.counts.into_iter();
        counted.count += counts.next().map_or(0, |all| all.count);
        for group in counts {
            let value = match (group.keyword, group.number) {
                (Some(keyword), _) => Grouped::Keyword(keyword),
                (None, Some(number)) => Grouped::Status(i32::try_from(number).unwrap_or_default()),
                (None, None) => Grouped::Missing,
            };
            *counted.groups.entry(value).or_default() += group.count;
        }
    }
    if counted.groups.len() > COUNT_GROUPS_MAX {
        return Err(status::of_failure(CallFailure::TooManyGroups { groups: COUNT_GROUPS_MAX }));
    }
    Ok(counted)
}

fn wanted(group_by: Option<&Attribute>) -> WantedCount {
    let Some(Attribute { source, .. }) = group_by else { return WantedCount::default() };
    match source {
        AttributeSource::Named(name) => WantedCount { group_by: name.clone(), is_system: false },
        AttributeSource::System(attribute) => {
            let named = |(_, known): &&(&str, SystemAttribute)| known == attribute;
            let name = SYSTEM.iter().find(named).map_or("", |(name, _)| name);
            WantedCount { group_by: name.to_owned(), is_system: true }
        }
    }
}
