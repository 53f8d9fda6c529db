//! What waits in task queues, by namespace and queue. Both are names that clients choose, so only so many have labels of their own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use everlog_partition::{Dispatcher, QueueBacklog, QueueKey, TaskKind};
use everlog_temporal::OTHER_LABEL;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// Name, and help.
pub(super) const ROWS: [(&str, &str); 2] = [
    (
        "approximate_backlog_count",
        "Tasks and queries that wait for a poll. Added up over the nodes each counts once; a sticky queue counts for its normal queue.",
    ),
    (
        "approximate_backlog_age_seconds",
        "How long the oldest of them waits, since it was offered: a restart and a change of the nodes begin anew.",
    ),
];
pub(super) const LABELS: &str = "namespace, task_type, taskqueue";
/// How long a queue keeps its labels after the last look at which something waited there: what has gone to 0 is shown as 0.
const KEEP_MS: i64 = 60 * 60_000;

/// What a namespace goes by in metrics, by its UUID.
pub type MetricNames = Box<dyn Fn(&str) -> Arc<str> + Send + Sync>;

/// The task queues of this node.
struct Backlogs {
    dispatcher: Arc<Dispatcher>,
    names: MetricNames,
    queues_max: usize,
    /// Queues with labels of their own, and when something has last waited there.
    labelled: Mutex<HashMap<QueueKey, i64>>,
    descs: [Desc; ROWS.len()],
}

/// Namespace, task type and queue.
type Labels = (Arc<str>, &'static str, String);

/// Adds the backlogs of task queues; `queues_max` of them have labels of their own.
pub fn watch_backlogs(
    registry: &Registry,
    dispatcher: Arc<Dispatcher>,
    names: MetricNames,
    queues_max: usize,
) {
    let labels = || LABELS.split(", ").map(str::to_owned).collect();
    let descs = ROWS.map(|(name, help)| {
        Desc::new(name.into(), help.into(), labels(), HashMap::new()).expect("the names are well-formed")
    });
    let backlogs = Backlogs { dispatcher, names, queues_max, labelled: Mutex::default(), descs };
    registry.register(Box::new(backlogs)).expect("no name stands twice in the tables");
}

impl Backlogs {
    fn read(&self) -> BTreeMap<Labels, QueueBacklog> {
        let now_ms = self.dispatcher.now_ms();
        let mut backlogs: Vec<_> = self.dispatcher.backlogs().into_iter().collect();
        backlogs.sort_by_key(|(_, backlog)| Reverse(backlog.count));
        let mut labelled = self.labelled.lock().unwrap_or_else(PoisonError::into_inner);
        labelled.retain(|_, last_ms| now_ms - *last_ms < KEEP_MS);
        for (queue, _) in &backlogs {
            if labelled.len() < self.queues_max || labelled.contains_key(queue) {
                labelled.insert(queue.clone(), now_ms);
            }
        }
        let mut sums = BTreeMap::<Labels, QueueBacklog>::new();
        for queue in labelled.keys() {
            sums.entry(self.labels(queue, true)).or_default();
        }
        for (queue, backlog) in backlogs {
            let sum = sums.entry(self.labels(&queue, labelled.contains_key(&queue))).or_default();
            sum.count += backlog.count;
            sum.age_ms = sum.age_ms.max(backlog.age_ms);
        }
        sums
    }

    /// Queues of namespaces without a label of their own have none either.
    fn labels(&self, queue: &QueueKey, is_labelled: bool) -> Labels {
        let namespace = (self.names)(&queue.namespace_id);
        let kind = match queue.kind {
            TaskKind::Workflow => "Workflow",
            TaskKind::Activity => "Activity",
        };
        let name = if is_labelled && &*namespace != OTHER_LABEL { &queue.name } else { OTHER_LABEL };
        (namespace, kind, name.to_owned())
    }
}

impl Collector for Backlogs {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sums = self.read();
        let family = |(name, help): (&str, &str), read: fn(&QueueBacklog) -> f64| {
            let mut family = MetricFamily::default();
            family.set_name(name.into());
            family.set_help(help.into());
            family.set_field_type(MetricType::GAUGE);
            let metrics = sums.iter().map(|(labels, backlog)| metric(labels, read(backlog)));
            family.set_metric(metrics.collect());
            family
        };
        let families = [
            family(ROWS[0], |backlog| backlog.count as f64),
            family(ROWS[1], |backlog| backlog.age_ms as f64 / 1e3),
        ];
        families.into_iter().filter(|family| !family.get_metric().is_empty()).collect()
    }
}

fn metric((namespace, kind, queue): &Labels, value: f64) -> Metric {
    let label = |(name, value): (&str, &str)| {
        let mut label = LabelPair::default();
        label.set_name(name.into());
        label.set_value(value.into());
        label
    };
    let labels = LABELS.split(", ").zip([&**namespace, *kind, queue.as_str()]);
    let mut metric = Metric::from_label(labels.map(label).collect());
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    metric.set_gauge(gauge);
    metric
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use everlog_partition::{PartitionSender, Ready, TaskPriority, TaskRef, WorkflowKey};
    use prometheus::TextEncoder;

    use super::*;

    /// A task in a queue of a namespace.
    fn offer(dispatcher: &Dispatcher, namespace_id: &str, queue: &str, id: i64) {
        let send: PartitionSender = Arc::new(|_, _| true);
        let task = TaskRef {
            partition: 0,
            run: WorkflowKey::new(namespace_id, "w").run("0b6f2f06-36cb-5b5e-a2a5-5c4c30f9b8d1"),
            scheduled_event_id: id,
            attempt: 1,
            stamp: 0,
            normal_queue: None,
            precedence: TaskPriority::default(),
            offered_by: None,
            term: None,
        };
        let key =
            QueueKey { namespace_id: namespace_id.into(), name: queue.into(), kind: TaskKind::Activity };
        assert!(dispatcher.offer(&key, Ready::Task(task), &send).is_none(), "nobody polls");
    }

    #[test]
    fn so_many_queues_have_labels_of_their_own_and_keep_them_for_an_hour() {
        let now_ms = Arc::new(AtomicI64::new(1_000_000));
        let clock = Arc::clone(&now_ms);
        let dispatcher = Dispatcher::new(move || clock.load(Ordering::Relaxed));
        let registry = Registry::new();
        let names: MetricNames = Box::new(|id| if id == "crowd" { OTHER_LABEL.into() } else { id.into() });
        watch_backlogs(&registry, Arc::clone(&dispatcher), names, 2);
        let page = || TextEncoder::new().encode_to_string(&registry.gather()).expect("it can be written");
        let shown = |name: &str| {
            let page = page();
            let lines = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
            lines.map(|line| line.replace("task_type=\"Activity\",", "")).collect::<Vec<_>>()
        };
        assert_eq!(page(), "");
        (0..3).for_each(|id| offer(&dispatcher, "shop", "orders", id));
        offer(&dispatcher, "crowd", "payments", 0);
        offer(&dispatcher, "crowd", "payments", 1);
        now_ms.fetch_add(1_500, Ordering::Relaxed);
        offer(&dispatcher, "shop", "a", 0);
        offer(&dispatcher, "shop", "b", 0);
        let expected = [
            r#"namespace="_other_",taskqueue="_other_"} 2"#,
            r#"namespace="shop",taskqueue="_other_"} 2"#,
            r#"namespace="shop",taskqueue="orders"} 3"#,
        ];
        assert_eq!(shown("approximate_backlog_count"), expected);
        let ages = [
            r#"namespace="_other_",taskqueue="_other_"} 1.5"#,
            r#"namespace="shop",taskqueue="_other_"} 0"#,
            r#"namespace="shop",taskqueue="orders"} 1.5"#,
        ];
        assert_eq!(shown("approximate_backlog_age_seconds"), ages);
        dispatcher.forget_namespace("shop");
        assert_eq!(shown("approximate_backlog_count")[1], r#"namespace="shop",taskqueue="orders"} 0"#);
        now_ms.fetch_add(KEEP_MS, Ordering::Relaxed);
        assert_eq!(shown("approximate_backlog_count"), [expected[0]]);
    }
}
