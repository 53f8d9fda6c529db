//! How workflows, tasks and activities end, by the names and labels that Temporal's dashboards use.

use everlog_engine::api_types::TimeoutType;
use everlog_engine::{ActivityEnding, Ending, WorkflowEnding};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

/// Name, kind, labels and help.
pub type MetricRow = (&'static str, &'static str, &'static str, &'static str);

pub(crate) const ROWS: [MetricRow; 15] = [
    ("workflow_success", "counter", "namespace", "Workflows that have completed."),
    ("workflow_failed", "counter", "namespace", "Workflows that have failed."),
    ("workflow_timeout", "counter", "namespace", "Workflows that have timed out."),
    ("workflow_cancel", "counter", "namespace", "Workflows that were canceled."),
    ("workflow_terminate", "counter", "namespace", "Workflows that were terminated."),
    ("workflow_continued_as_new", "counter", "namespace", "Runs that were continued as new ones."),
    ("activity_success", "counter", "namespace", "Activities that have completed."),
    ("activity_fail", "counter", "namespace", "Activities that have failed and are not tried again."),
    ("activity_timeout", "counter", "namespace", "Activities that have timed out and are not tried again."),
    ("activity_cancel", "counter", "namespace", "Activities that were canceled."),
    (
        "activity_task_fail",
        "counter",
        "namespace",
        "Attempts at activities that have failed, retried or not.",
    ),
    (
        "activity_task_timeout",
        "counter",
        "namespace",
        "Attempts at activities that have timed out, retried or not.",
    ),
    (
        "start_to_close_timeout",
        "counter",
        WITH_OPERATION,
        "Workflow tasks that their workers did not answer in time.",
    ),
    (
        "schedule_to_start_timeout",
        "counter",
        WITH_OPERATION,
        "Workflow tasks that the worker with the run in its cache did not take in time.",
    ),
    (
        FAILED_TASKS,
        "counter",
        "namespace, failure",
        "Workflow tasks that have failed, by cause, with each attempt.",
    ),
];
const WITH_OPERATION: &str = "namespace, operation";
const OPERATION: &str = "TimerActiveTaskWorkflowTaskTimeout";
const FAILED_TASKS: &str = "failed_workflow_tasks";

/// The counters of all namespaces.
#[derive(Clone)]
pub(crate) struct EndingMetrics([IntCounterVec; ROWS.len()]);

/// Those of one namespace.
pub(crate) struct NamespaceEndings {
    namespace: String,
    /// In the order of the rows, without the last one.
    counters: [IntCounter; ROWS.len() - 1],
    failed_tasks: IntCounterVec,
}

impl EndingMetrics {
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let mut counters = Vec::with_capacity(ROWS.len());
        for (name, _, labels, help) in ROWS {
            let labels: Vec<_> = labels.split(", ").collect();
            let counter = IntCounterVec::new(Opts::new(name, help), &labels)?;
            registry.register(Box::new(counter.clone()))?;
            counters.push(counter);
        }
        Ok(Self(std::array::from_fn(|row| counters[row].clone())))
    }

    /// The counters of a namespace. They are there from now on, at 0, so that the first of each is seen as an increase.
    pub(crate) fn of(&self, namespace: &str) -> NamespaceEndings {
        let counter = |row: usize| match ROWS[row].2 {
            WITH_OPERATION => self.0[row].with_label_values(&[namespace, OPERATION]),
            _namespace => self.0[row].with_label_values(&[namespace]),
        };
        NamespaceEndings {
            namespace: namespace.to_owned(),
            counters: std::array::from_fn(counter),
            failed_tasks: self.0[ROWS.len() - 1].clone(),
        }
    }
}

impl NamespaceEndings {
    pub(crate) fn count(&self, ending: Ending) {
        let row = match ending {
            Ending::Workflow(WorkflowEnding::Completed) => 0,
            Ending::Workflow(WorkflowEnding::Failed) => 1,
            Ending::Workflow(WorkflowEnding::TimedOut) => 2,
            Ending::Workflow(WorkflowEnding::Canceled) => 3,
            Ending::Workflow(WorkflowEnding::Terminated) => 4,
            Ending::Workflow(WorkflowEnding::ContinuedAsNew) => 5,
            Ending::Activity(ActivityEnding::Completed) => 6,
            Ending::Activity(ActivityEnding::Failed) => 7,
            Ending::Activity(ActivityEnding::TimedOut) => 8,
            Ending::Activity(ActivityEnding::Canceled) => 9,
            Ending::ActivityAttemptFailed => 10,
            Ending::ActivityAttemptTimedOut => 11,
            Ending::WorkflowTaskTimedOut(TimeoutType::ScheduleToStart) => 13,
            Ending::WorkflowTaskTimedOut(_) => 12,
            Ending::WorkflowTaskFailed(cause) => {
                let cause = format!("{cause:?}");
                return self.failed_tasks.with_label_values(&[&self.namespace, &cause]).inc();
            }
        };
        self.counters[row].inc();
    }
}

#[cfg(test)]
mod tests {
    use everlog_engine::api_types::TaskFailedCause;

    use super::*;

    #[test]
    fn each_ending_is_counted_in_a_row_of_its_own() {
        let registry = Registry::new();
        let endings = EndingMetrics::register(&registry).expect("nothing is registered yet").of("shop");
        let page = || prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        assert_eq!(page().matches("\"shop\"} 0\n").count(), 12, "they are there from the beginning");
        use WorkflowEnding::{Canceled, Completed, ContinuedAsNew, Failed, Terminated, TimedOut};
        let workflows = [Completed, Failed, TimedOut, Canceled, Terminated, ContinuedAsNew];
        let activities = [ActivityEnding::Completed, ActivityEnding::Failed, ActivityEnding::TimedOut];
        let all =
            workflows.map(Ending::Workflow).into_iter().chain(activities.map(Ending::Activity)).chain([
                Ending::Activity(ActivityEnding::Canceled),
                Ending::ActivityAttemptFailed,
                Ending::ActivityAttemptTimedOut,
                Ending::WorkflowTaskTimedOut(TimeoutType::StartToClose),
                Ending::WorkflowTaskTimedOut(TimeoutType::ScheduleToStart),
                Ending::WorkflowTaskFailed(TaskFailedCause::NonDeterministicError),
            ]);
        for (times, ending) in all.enumerate() {
            (0..=times).for_each(|_| endings.count(ending));
        }
        let page = page();
        let value = |name: &str| {
            let line = page.lines().find(|line| line.starts_with(&format!("{name}{{"))).expect("it is shown");
            line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let values = ROWS.map(|(name, ..)| value(name));
        assert_eq!(values, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(
            page.contains(r#"failed_workflow_tasks{failure="NonDeterministicError",namespace="shop"} 15"#)
        );
    }
}
