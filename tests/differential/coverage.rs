//! What the programs have met: commands, event types, policies, error codes.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::program::{Program, Step};
use crate::runner::Noted;
use crate::schema::Schema;

/// The enums whose values are counted, with what must be met of them.
const ENUMS: &[&str] = &[
    ".temporal.api.enums.v1.CommandType",
    ".temporal.api.enums.v1.EventType",
    ".temporal.api.enums.v1.WorkflowIdReusePolicy",
    ".temporal.api.enums.v1.WorkflowIdConflictPolicy",
    ".temporal.api.enums.v1.WorkflowTaskFailedCause",
    ".temporal.api.enums.v1.TimeoutType",
    ".temporal.api.enums.v1.RetryState",
    ".temporal.api.enums.v1.QueryResultType",
    ".temporal.api.enums.v1.QueryRejectCondition",
    ".temporal.api.enums.v1.WorkflowExecutionStatus",
    ".temporal.api.enums.v1.ContinueAsNewInitiator",
    ".temporal.api.enums.v1.ParentClosePolicy",
    ".temporal.api.enums.v1.ResetReapplyType",
    ".temporal.api.enums.v1.ResetReapplyExcludeType",
    ".temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage",
    ".temporal.api.enums.v1.StartChildWorkflowExecutionFailedCause",
    ".temporal.api.enums.v1.SignalExternalWorkflowExecutionFailedCause",
    ".temporal.api.enums.v1.CancelExternalWorkflowExecutionFailedCause",
];

/// Refusals that must be met: the code, with what it says in detail.
const CODES: &[&str] = &[
    "InvalidArgument (no detail)",
    "InvalidArgument (QueryFailedFailure)",
    "NotFound (NotFoundFailure)",
    "NotFound (NamespaceNotFoundFailure)",
    "AlreadyExists (WorkflowExecutionAlreadyStartedFailure)",
    "AlreadyExists (MultiOperationExecutionFailure)",
    "FailedPrecondition (WorkflowNotReadyFailure)",
    "ResourceExhausted (ResourceExhaustedFailure)",
    "PermissionDenied (PermissionDeniedFailure)",
    "DeadlineExceeded (no detail)",
];

/// Calls of operators that must be made.
const METHODS: &[&str] = &[
    "PauseActivity",
    "UnpauseActivity",
    "ResetActivity",
    "UpdateActivityOptions",
    "UpdateWorkflowExecutionOptions",
    "UpdateTaskQueueConfig",
    "ListTaskQueuePartitions",
    "UpdateWorkerBuildIdCompatibility",
    "GetWorkerBuildIdCompatibility",
    "GetWorkerTaskReachability",
    "ListClusters",
    "DeprecateNamespace",
];

/// From so many programs on each thing must have been met so often.
const PROGRAMS_MIN: usize = 2_000;
const TIMES_MIN: usize = 20;

/// What no program can meet, each with its reason; with `*` at its end, all that begins so.
const NEVER: &[(&str, &str)] = &[
    ("COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION", "there is no Nexus here"),
    ("COMMAND_TYPE_REQUEST_CANCEL_NEXUS_OPERATION", "there is no Nexus here"),
    ("EVENT_TYPE_NEXUS_OPERATION_*", "there is no Nexus here"),
    ("WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_NEXUS_OPERATION_ATTRIBUTES", "there is no Nexus here"),
    ("WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_NEXUS_OPERATION_ATTRIBUTES", "there is no Nexus here"),
    ("WORKFLOW_TASK_FAILED_CAUSE_PENDING_NEXUS_OPERATIONS_LIMIT_EXCEEDED", "there is no Nexus here"),
    (
        "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_REJECTED",
        "no server writes it: a refused update leaves nothing behind",
    ),
    ("EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED_EXTERNALLY", "no server writes it"),
    ("EVENT_TYPE_ACTIVITY_PROPERTIES_MODIFIED_EXTERNALLY", "no server writes it"),
    ("EVENT_TYPE_WORKFLOW_EXECUTION_PAUSED", "younger than the reference"),
    ("EVENT_TYPE_WORKFLOW_EXECUTION_UNPAUSED", "younger than the reference"),
    ("EVENT_TYPE_WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED", "younger than the reference"),
    ("WORKFLOW_EXECUTION_STATUS_PAUSED", "younger than the reference"),
    ("WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_PAUSE_REQUESTED_BEFORE_TASK_STARTED", "younger than the reference"),
    ("WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND", "needs a second cluster"),
    ("WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE", "no server writes it any more"),
    ("WORKFLOW_TASK_FAILED_CAUSE_BAD_BINARY", "no server writes it any more: builds are not reported bad"),
    ("WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_INPUT_SIZE", "no server writes it any more"),
    ("WORKFLOW_TASK_FAILED_CAUSE_FEATURE_DISABLED", "said of Nexus and of versions alone"),
    ("WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE", "no server writes it: a run closes over an update"),
    ("WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE", "said by a worker alone"),
    ("WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE", "said by a worker alone"),
    ("WORKFLOW_TASK_FAILED_CAUSE_EXTERNAL_STORAGE_FAILURE", "said by a worker alone"),
    ("WORKFLOW_TASK_FAILED_CAUSE_REQUEST_TOO_LARGE", "younger than the reference"),
    ("START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_INVALID_VERSIONING_OVERRIDE", "there are no versions here"),
    ("RETRY_STATE_INTERNAL_SERVER_ERROR", "no server writes it any more"),
    ("*_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND", "there is one namespace"),
    ("START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND", "there is one namespace"),
];

fn is_never(name: &str) -> bool {
    NEVER.iter().any(|(never, _)| match (never.strip_suffix('*'), never.strip_prefix('*')) {
        (Some(begin), _) => name.starts_with(begin),
        (None, Some(end)) => name.ends_with(end),
        (None, None) => name == *never,
    })
}

/// How often each thing was met, by its group and name.
#[derive(Debug, Default)]
pub struct Coverage {
    programs: usize,
    met: BTreeMap<String, usize>,
    codes: BTreeMap<String, usize>,
    methods: BTreeMap<String, usize>,
    moves: BTreeMap<String, usize>,
}

impl Coverage {
    /// Counts what a program asks and what the reference answers.
    pub fn count(&mut self, program: &Program, noted: &[Noted]) {
        self.programs += 1;
        program.moves.iter().for_each(|(one, _)| *self.moves.entry((*one).to_owned()).or_default() += 1);
        for step in &program.steps {
            if let Step::Call { method, request, .. } | Step::Begin { method, request, .. } = step {
                *self.methods.entry((*method).to_owned()).or_default() += 1;
                self.walk(request);
            }
        }
        for noted in noted {
            // An event counts once: in the history that is read at the end.
            if !noted.step.starts_with("history of") {
                self.refusals(&noted.answer);
            } else {
                self.walk(&noted.answer);
            }
        }
    }

    fn refusals(&mut self, answer: &Value) {
        if let Some(code) = answer.pointer("/error/code").and_then(Value::as_str) {
            let detail =
                answer.pointer("/error/details/0/type").and_then(Value::as_str).unwrap_or("no detail");
            *self.codes.entry(format!("{code} ({detail})")).or_default() += 1;
        }
        if let Some(status) = answer.pointer("/workflow_execution_info/status").and_then(Value::as_str) {
            *self.met.entry(status.to_owned()).or_default() += 1;
        }
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.contains('_') => *self.met.entry(text.clone()).or_default() += 1,
            Value::Array(values) => values.iter().for_each(|value| self.walk(value)),
            Value::Object(tree) => tree.values().for_each(|value| self.walk(value)),
            _other => {}
        }
    }

    /// What many programs should have met more often.
    pub fn lacking(&self, schema: &Schema) -> Vec<String> {
        if self.programs < PROGRAMS_MIN {
            return Vec::new();
        }
        let values = ENUMS.iter().flat_map(|name| schema.values_of(name));
        let wanted = values.filter(|value| !value.ends_with("_UNSPECIFIED") && !is_never(value));
        let times = |name: &str| {
            let met = self.codes.get(name).or_else(|| self.met.get(name)).or_else(|| self.methods.get(name));
            met.copied().unwrap_or_default()
        };
        let all = wanted.chain([CODES, METHODS].concat().into_iter().map(str::to_owned));
        all.filter(|name| times(name) < TIMES_MIN).map(|name| format!("{name}: {}", times(&name))).collect()
    }

    /// The table, with what was never met.
    pub fn table(&self, schema: &Schema) -> String {
        let mut table = String::new();
        for name in ENUMS {
            let group = name.rsplit('.').next().unwrap_or_default();
            table.push_str(&format!("{group}\n"));
            for value in schema.values_of(name).iter().filter(|value| !value.ends_with("_UNSPECIFIED")) {
                let times = self.met.get(value).copied().unwrap_or_default();
                let never = if is_never(value) { " (never)" } else { "" };
                table.push_str(&format!("  {times:>6} {value}{never}\n"));
            }
        }
        table
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, group) in [("Moves", &self.moves), ("Methods", &self.methods), ("Refusals", &self.codes)]
        {
            writeln!(f, "{title}")?;
            group.iter().try_for_each(|(name, times)| writeln!(f, "  {times:>6} {name}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CODES, Coverage, PROGRAMS_MIN, TIMES_MIN};
    use crate::schema::Schema;

    #[test]
    fn what_is_met_too_seldom_is_named() -> anyhow::Result<()> {
        let schema = Schema::new()?;
        let mut coverage = Coverage::default();
        assert!(coverage.lacking(&schema).is_empty(), "few programs owe nothing");
        coverage.programs = PROGRAMS_MIN;
        let all = coverage.lacking(&schema);
        assert!(all.contains(&"COMMAND_TYPE_START_TIMER: 0".to_owned()), "{all:?}");
        assert!(!all.iter().any(|name| name.contains("NEXUS_OPERATION")), "{all:?}");
        coverage.met.insert("COMMAND_TYPE_START_TIMER".to_owned(), TIMES_MIN);
        coverage.codes.insert(CODES[0].to_owned(), TIMES_MIN - 1);
        let fewer = coverage.lacking(&schema);
        assert!(fewer.contains(&format!("{}: {}", CODES[0], TIMES_MIN - 1)), "{fewer:?}");
        assert_eq!(fewer.len() + 1, all.len());
        Ok(())
    }
}
