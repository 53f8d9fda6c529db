//! The query of ListWorkers: comparisons of heartbeat fields in the language that finds runs.
//!
//! Fields are keywords, and a worker has each of them, if only as an empty text. They are compared by `=`, `!=`, `IN` and
//! `STARTS_WITH`, and these are joined by AND, OR and NOT.

use everlog_temporal_api::enums::WorkerStatus;
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use everlog_visibility::attribute::{Attribute, AttributeSource, AttributeType};
use everlog_visibility::query::{
    AttributeNames, Condition, Filter, FilterNode, NamedAttribute, parse, resolve,
};
use everlog_visibility::record::Values;
use everlog_visibility::value::Value;
use tonic::Status;

use crate::codec::status::invalid;

/// The longest query, in bytes.
const QUERY_BYTES_MAX: usize = 4_096;

/// A parsed query.
#[derive(Debug, PartialEq)]
pub(crate) struct WorkerFilter(Filter);

/// Fields by the names that queries use.
struct WorkerAttributes;

/// A heartbeat as filters see it.
struct HeartbeatValues<'a>(&'a WorkerHeartbeat);

impl WorkerFilter {
    /// Parses a query; an empty one matches every worker.
    pub(crate) fn read(query: &str) -> Result<Self, Status> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let tree = parse(query).map_err(|error| malformed(&error.to_string()))?;
        if !tree.group_by.is_empty() || !tree.order_by.is_empty() {
            return Err(malformed("workers are neither sorted nor grouped"));
        }
        let filter = resolve(&tree, &WorkerAttributes).map_err(|error| malformed(&error.to_string()))?;
        if !filter.nodes().iter().all(is_served) {
            return Err(malformed("a comparison is =, !=, IN or STARTS_WITH"));
        }
        Ok(Self(filter))
    }

    /// True if the worker matches.
    pub(crate) fn passes(&self, worker: &WorkerHeartbeat) -> bool {
        self.0.matches(&HeartbeatValues(worker))
    }
}

fn is_served(node: &FilterNode) -> bool {
    match node {
        FilterNode::Not | FilterNode::And | FilterNode::Or => true,
        FilterNode::Test(test) => match &test.condition {
            Condition::AnyOf(_) | Condition::StartsWith(_) => true,
            Condition::IsNull | Condition::Compare(..) | Condition::HasPhrase(_) => false,
        },
    }
}

impl AttributeNames for WorkerAttributes {
    fn find(&self, name: &str) -> Option<NamedAttribute> {
        field(&WorkerHeartbeat::default(), name)?;
        let source = AttributeSource::Named(name.to_owned());
        Some(Attribute { source, kind: AttributeType::Keyword }.into())
    }
}

impl Values for HeartbeatValues<'_> {
    fn value(&self, attribute: &Attribute) -> Option<Value<'_>> {
        match &attribute.source {
            AttributeSource::Named(name) => field(self.0, name).map(|text| Value::String(text.into())),
            AttributeSource::System(_) => None,
        }
    }
}

/// A field of a heartbeat; none of an unknown name.
fn field<'a>(worker: &'a WorkerHeartbeat, name: &str) -> Option<&'a str> {
    let version = worker.deployment_version.as_ref();
    Some(match name {
        "WorkerInstanceKey" => &worker.worker_instance_key,
        "WorkerIdentity" => &worker.worker_identity,
        "HostName" => worker.host_info.as_ref().map_or("", |host| &host.host_name),
        "TaskQueue" => &worker.task_queue,
        "DeploymentName" => version.map_or("", |version| &version.deployment_name),
        "BuildId" => version.map_or("", |version| &version.build_id),
        "SdkName" => &worker.sdk_name,
        "SdkVersion" => &worker.sdk_version,
        "Status" => match WorkerStatus::try_from(worker.status) {
            Ok(WorkerStatus::Running) => "Running",
            Ok(WorkerStatus::ShuttingDown) => "ShuttingDown",
            Ok(WorkerStatus::Shutdown) => "Shutdown",
            Ok(WorkerStatus::Unspecified) | Err(_) => "Unspecified",
        },
        _unknown => return None,
    })
}

fn malformed(why: &str) -> Status {
    invalid(format!("malformed query: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(query: &str) -> bool {
        let worker = WorkerHeartbeat {
            worker_instance_key: "k1".into(),
            task_queue: "orders".into(),
            sdk_name: "temporal-python".into(),
            status: WorkerStatus::Running.into(),
            ..WorkerHeartbeat::default()
        };
        WorkerFilter::read(query).expect(query).passes(&worker)
    }

    #[test]
    fn what_is_asked_for_passes() {
        for query in [
            "",
            "  ",
            "TaskQueue = 'orders'",
            "TaskQueue=\"orders\" AND SdkName starts_with 'temporal-'",
            "TaskQueue = 'x' OR WorkerInstanceKey = 'k1'",
            "(TaskQueue = 'x' or TaskQueue = 'orders') and Status = 'Running'",
            "HostName = ''",
            "BuildId != 'b1'",
            "TaskQueue = 'x' AND TaskQueue = 'y' OR SdkVersion = ''",
            "TaskQueue IN ('x', 'orders') AND NOT Status = 'Shutdown'",
            "SdkName NOT STARTS_WITH 'temporal-go'",
        ] {
            assert!(passes(query), "{query}");
        }
        for query in
            ["TaskQueue = 'order'", "TaskQueue != 'orders'", "Status = 'Shutdown' AND TaskQueue = 'orders'"]
        {
            assert!(!passes(query), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_whatever_it_is() {
        let deep = format!("{}TaskQueue = 'x'{}", "(".repeat(200), ")".repeat(200));
        let long = format!("TaskQueue = '{}'", "x".repeat(QUERY_BYTES_MAX));
        for query in [
            "x y z",
            "TaskQueue",
            "TaskQueue =",
            "TaskQueue = orders",
            "TaskQueue = 'x",
            "(TaskQueue = 'x'",
            "Foo = '1'",
            "TaskQueue > 'x'",
            "TaskQueue IS NULL",
            "TaskQueue BETWEEN 'a' AND 'z'",
            "TaskQueue = 'x' ORDER BY TaskQueue",
            "GROUP BY TaskQueue",
            "TaskQueue = 'x' TaskQueue = 'y'",
            "ä = 'x'",
            "\u{0}",
            "AND",
            "'x' = TaskQueue",
            &deep,
            &long,
        ] {
            let refusal = WorkerFilter::read(query).expect_err(query);
            assert!(refusal.message().starts_with("malformed query"), "{query}: {}", refusal.message());
        }
    }
}
