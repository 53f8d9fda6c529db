//! Lists and counts of schedules: those of runs, in the division of schedules.

use everlog_engine::machine::schedule::{NAMESPACE_DIVISION, schedule_id};
use everlog_partition::VisibleRun;
use everlog_schedules::spec::ScheduleSpec;
use everlog_schedules::state::SchedulePlan;
use everlog_temporal_api::common::WorkflowType;
use everlog_temporal_api::schedule::{ScheduleListEntry, ScheduleListInfo};
use everlog_visibility::attribute::{AttributeSource, SYSTEM, SystemAttribute};
use everlog_visibility::query::{FilterNode, Query, QueryError, RunAttributes};
use tonic::Status;

use crate::codec::proto_time::timestamp;
use crate::codec::status::invalid;
use crate::schedules::{shown, spec};

/// Actions and times to come of an entry.
const TIMES_MAX: usize = 5;
/// Calendars, intervals and excluded calendars of an entry, each.
const ENTRIES_MAX: usize = 10;

/// The query by which schedules are found, of the one that the caller gives.
///
/// # Errors
/// INVALID_ARGUMENT: it cannot be read, or names an attribute that schedules have not.
pub(crate) fn query(given: &str, names: &RunAttributes<'_>) -> Result<Query, Status> {
    let refused = |error: QueryError| invalid(error.to_string());
    let of_schedules =
        format!("TemporalNamespaceDivision = '{NAMESPACE_DIVISION}' AND ExecutionStatus = 'Running'");
    if given.trim().is_empty() {
        return Query::for_list(&of_schedules, names).map_err(refused);
    }
    let query = Query::for_list(given, names).map_err(refused)?;
    if query.order.is_some() {
        return Err(refused(QueryError::Unsupported("'order by' clause".into())));
    }
    for node in query.filter.nodes() {
        let FilterNode::Test(test) = node else { continue };
        // ScheduleId is a Workflow Id as it is stored.
        if let AttributeSource::System(attribute) = &test.attribute.source
            && *attribute != SystemAttribute::WorkflowId
        {
            let name = SYSTEM.iter().find(|(_, known)| known == attribute).map_or("", |(name, _)| name);
            return Err(invalid(format!("invalid query filter for schedules: cannot filter on '{name}'")));
        }
    }
    // A comment at the end of the caller's query ends with its line.
    Query::for_list(&format!("({given}\n) AND {of_schedules}"), names).map_err(refused)
}

/// A listed schedule; none of a run that is none, or was deleted meanwhile.
pub(crate) fn entry(namespace_id: &str, run: VisibleRun, now_ms: i64) -> Option<ScheduleListEntry> {
    let record = run.record?;
    let visible = run.schedule?;
    let id = schedule_id(&record.workflow_id)?.to_owned();
    let future = SchedulePlan::new(&visible.spec, &format!("{namespace_id}-{id}"), visible.policies, "")
        .map(|plan| visible.state.future_times_ms(&plan, now_ms, TIMES_MAX))
        .unwrap_or_default();
    Some(ScheduleListEntry {
        schedule_id: id,
        memo: shown::memo(&run.memo),
        search_attributes: shown::search_attributes(&record.search_attributes),
        info: Some(ScheduleListInfo {
            spec: Some(spec::shown(&cut(visible.spec))),
            workflow_type: Some(WorkflowType { name: visible.workflow_type }),
            notes: visible.state.settings.notes.clone(),
            paused: visible.state.settings.is_paused,
            recent_actions: shown::recent(&visible.state.recent, TIMES_MAX),
            future_action_times: future.into_iter().map(timestamp).collect(),
            ..ScheduleListInfo::default()
        }),
    })
}

fn cut(mut spec: ScheduleSpec) -> ScheduleSpec {
    spec.zone_data.clear();
    spec.calendars.truncate(ENTRIES_MAX);
    spec.excluded.truncate(ENTRIES_MAX);
    spec.intervals.truncate(ENTRIES_MAX);
    spec
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn schedules_are_found_by_their_ids_and_own_attributes_only() {
        let custom = BTreeMap::from([("Team".to_owned(), 2)]);
        let names = RunAttributes { custom: &custom };
        for well in ["", " ", "Team = 'a'", "ScheduleId = 'x' OR TemporalSchedulePaused = true -- why"] {
            assert!(query(well, &names).is_ok(), "{well}");
        }
        let message = |given| query(given, &names).expect_err("it is refused").message().to_owned();
        let named = "invalid query filter for schedules: cannot filter on 'WorkflowType'";
        assert_eq!(message("WorkflowType = 'Order'"), named);
        assert!(message("Team = 'a' ORDER BY StartTime").contains("'order by' clause"));
        assert!(message("Team = 'a') OR (Team = 'b'").starts_with("invalid query"));
    }
}
