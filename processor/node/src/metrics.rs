//! The names of the node's own metrics, and how they are read when somebody asks.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use everlog_log::embedded;
use everlog_log_kafka as kafka;
use everlog_partition::{Admission, RowsFault, Stats};
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::health::{Health, Signs};
use crate::home::Sight;
use crate::process::Process;
use crate::row_dirs::SetAside;
use crate::schemas::Schemas;
use crate::traffic::KafkaTraffic;
use crate::{commands, schemas};

use Kind::{Counts, Stands};

/// Whether a value only grows.
#[derive(Clone, Copy)]
enum Kind {
    Counts,
    Stands,
}

/// Name, kind, help, and how it is read.
type Row<T> = (&'static str, Kind, &'static str, fn(&T) -> f64);

/// A line for each metric.
macro_rules! rows {
    ($($kind:ident $name:literal $help:literal $read:expr;)+) => {
        &[$(($name, $kind, $help, $read)),+]
    };
}

const PROCESS: &[Row<Process>] = rows! {
    Counts "process_cpu_seconds_total" "Processor time, user and system." |p| p.cpu_seconds;
    Stands "process_resident_memory_bytes" "Resident memory." |p| p.resident_bytes;
    Stands "process_virtual_memory_bytes" "Address space." |p| p.virtual_bytes;
    Stands "process_start_time_seconds" "Start of the process, in seconds since 1970." |p| p.start_time_seconds;
    Stands "process_threads" "Threads." |p| p.threads;
    Stands "process_open_fds" "Open files and sockets." |p| p.open_fds;
    Stands "process_max_fds" "Files and sockets that may be open." |p| p.max_fds;
};

const LOG: &[Row<embedded::Stats>] = rows! {
    Counts "everlog_log_appends_total" "Acknowledged appends." |s| s.appends as f64;
    Counts "everlog_log_records_total" "Journal records in acknowledged appends." |s| s.records as f64;
    Counts "everlog_log_commits_total" "Acknowledged commits of outputs." |s| s.commits as f64;
    Counts "everlog_log_bytes_total" "Bytes of the batches written." |s| s.bytes as f64;
    Counts "everlog_log_batches_total" "Batches written." |s| s.batches as f64;
    Counts "everlog_log_syncs_total" "Batches synced to the disk." |s| s.syncs as f64;
    Counts "everlog_log_write_seconds_total" "Time spent in writing and syncing." |s| s.write_us as f64 / 1e6;
    Stands "everlog_log_write_seconds_max" "The slowest batch since the start." |s| s.write_max_us as f64 / 1e6;
    Stands "everlog_log_waiting_appends" "Appends that wait for the disk." |s| s.waiting_appends as f64;
    Stands "everlog_log_waiting_bytes" "Bytes of these appends." |s| s.waiting_bytes as f64;
};

const KAFKA: &[Row<kafka::Stats>] = rows! {
    Counts "everlog_kafka_appends_total" "Acknowledged appends." |s| s.appends as f64;
    Counts "everlog_kafka_records_total" "Journal records in acknowledged appends." |s| s.records as f64;
    Counts "everlog_kafka_bytes_total" "Bytes of these records." |s| s.bytes as f64;
    Counts "everlog_kafka_rounds_total" "Produce requests in which appends went out together." |s| s.rounds as f64;
    Counts "everlog_kafka_scattered_total" "Appends whose records do not stand side by side." |s| s.scattered as f64;
    Counts "everlog_kafka_busy_total" "Appends refused because too much waited." |s| s.busy as f64;
    Counts "everlog_kafka_unknown_total" "Appends and commits of unknown outcome." |s| s.unknown as f64;
    Counts "everlog_kafka_commits_total" "Commits of outputs." |s| s.commits as f64;
    Counts "everlog_kafka_transactions_total" "Transactions that they went in." |s| s.transactions as f64;
    Counts "everlog_kafka_outputs_total" "Records of these transactions." |s| s.outputs as f64;
    Counts "everlog_kafka_undrained_total" "Transactions ended with something under way." |s| s.undrained as f64;
    Counts "everlog_kafka_fenced_total" "Commits refused because a newer owner is there." |s| s.fenced as f64;
    Stands "everlog_kafka_transaction_seconds_max" "The longest transaction since the start." |s| {
        s.cycle_max_us as f64 / 1e6
    };
    Stands "everlog_kafka_transaction_end_seconds_max" "The longest end of one since the start." |s| {
        s.end_max_us as f64 / 1e6
    };
};

const PARTITION: &[Row<Stats>] = rows! {
    Stands "everlog_partition_serving" "1 while the partition serves." |s| load(&s.serving);
    Counts "everlog_partition_applied_total" "Journal records applied." |s| load(&s.applied);
    Counts "everlog_partition_refused_total" "Orders refused." |s| load(&s.refused);
    Counts "everlog_partition_commands_total" "Public commands ordered." |s| load(&s.forwarded);
    Counts "everlog_partition_duplicates_total" "Public records that came again." |s| load(&s.duplicates);
    Counts "everlog_partition_unpublished_total" "Entries of public topics that could not be written." |s| {
        load(&s.unpublished)
    };
    Counts "everlog_partition_voided_total" "Records of a former owner, without effect." |s| load(&s.voided);
    Counts "everlog_partition_skipped_total" "Records that could not be applied." |s| load(&s.skipped);
    Counts "everlog_partition_turns_total" "Turns of the partition's loop." |s| load(&s.turns);
    Stands "everlog_partition_last_turn_seconds" "When the last turn began, in seconds since 1970." |s| {
        s.turned_ms.load(Relaxed) as f64 / 1e3
    };
    Counts "everlog_partition_commits_total" "Batches of outputs committed." |s| load(&s.commits);
    Counts "everlog_partition_wakes_total" "Alarms that became records." |s| load(&s.wakes);
    Counts "everlog_partition_released_total" "Tasks that reached nobody." |s| load(&s.released);
    Stands "everlog_partition_next_offset" "The next record to apply." |s| load(&s.next_offset);
    Stands "everlog_partition_lag_records" "Records applied, not committed yet." |s| {
        (load(&s.next_offset) - load(&s.committed_offset)).max(0.0)
    };
    Counts "everlog_restore_rows_total" "Rows that were restored from the log." |s| load(&s.restored_rows);
    Counts "everlog_restore_bytes_total" "Bytes of these rows." |s| load(&s.restored_bytes);
    Stands "everlog_restore_state_left_records" "Records left to restore before the partition serves." |s| {
        load(&s.restore_left)
    };
    Stands "everlog_restore_history_left_records" "Records left of histories, which come while it serves." |s| {
        load(&s.history_left)
    };
    Stands "everlog_restore_behind" "1 while histories are missing." |s| load(&s.behind);
    Stands "everlog_partition_resident_runs" "Runs in memory." |s| load(&s.resident_runs);
    Stands "everlog_partition_overlay_bytes" "Bytes that wait for a commit." |s| load(&s.overlay_bytes);
    Stands "everlog_partition_alarms" "Alarms in the index." |s| load(&s.alarms);
    Stands "everlog_timer_lateness_seconds_max" "The latest alarm since the last look." |s| {
        s.lateness_ms.swap(0, Relaxed) as f64 / 1e3
    };
};

const INGRESS: &[Row<everlog_ingress::Stats>] = rows! {
    Counts "everlog_ingress_records_total" "Records of the topic of commands that were read." |s| load(&s.records);
    Counts "everlog_ingress_forwarded_total" "Commands that were taken to a journal." |s| load(&s.forwarded);
    Counts "everlog_ingress_unreadable_total" "Records that are no commands, taken to a journal as such." |s| {
        load(&s.unreadable)
    };
    Counts "everlog_ingress_retries_total" "Appends that failed and were made again." |s| load(&s.retries);
    Counts "everlog_ingress_schema_waits_total" "Commands that waited for the schema registry." |s| {
        load(&s.schema_waits)
    };
    Counts "everlog_ingress_poll_failures_total" "Reads of the topic that failed." |s| load(&s.poll_failures);
    Stands "everlog_ingress_backlog_records" "Commands that wait in memory." |s| load(&s.backlog_records);
    Stands "everlog_ingress_backlog_bytes" "Bytes of these." |s| load(&s.backlog_bytes);
    Stands "everlog_ingress_stopped_partitions" "Partitions of the topic that are not read any more." |s| {
        s.stopped().len() as f64
    };
};

const REGISTRY: &[Row<schemas::Stats>] = rows! {
    Counts "everlog_registry_questions_total" "Questions to the schema registry." |s| load(&s.questions);
    Counts "everlog_registry_failures_total" "Those of them that it did not answer." |s| load(&s.failures);
};

const REJECTIONS: &[Row<u64>] = rows! {
    Counts "everlog_rejections_total" "Public commands that were refused, by the code of the refusal." |n| *n as f64;
};

const ADMISSION: &[Row<Waiting>] = rows! {
    Stands "everlog_partition_waiting_orders" "Orders that wait for their answers." |w| w.orders as f64;
    Stands "everlog_partition_waiting_reads" "Reads and queries that wait for their answers." |w| w.reads as f64;
};

/// What waits for one partition.
struct Waiting {
    orders: usize,
    reads: usize,
}

const ROWS: &[Row<AtomicU64>] = rows! {
    Counts "everlog_rows_set_aside_total" "Directories of rows that could not be used, by what was wrong." |n| load(n);
};

const NODE: &[Row<Signs>] = rows! {
    Stands "everlog_ready" "1 while the node is ready." |s| f64::from(u8::from(s.unready().is_empty()));
    Stands "everlog_disk_full" "1 while nothing is taken for want of space." |s| f64::from(u8::from(s.disk_full));
};

fn load(value: &AtomicU64) -> f64 {
    value.load(Relaxed) as f64
}

/// Adds the process and the health of the node.
pub fn watch_node(registry: &Registry, health: &Arc<Health>) {
    add(registry, PROCESS, None, |visit| visit("", &Process::now()));
    let health = Arc::clone(health);
    add(registry, NODE, None, move |visit| visit("", &health.signs()));
}

/// Adds the log, for as long as it is open.
pub fn watch_log(registry: &Registry, log: Sight) {
    match log {
        Sight::Embedded(log) => add(registry, LOG, None, move |visit| {
            if let Some(log) = log.upgrade() {
                visit("", &log.stats());
            }
        }),
        Sight::Kafka(log) => {
            let spans =
                Spans { log: Weak::clone(&log), descs: SPANS.map(|(name, help, _)| desc(name, help, None)) };
            registry.register(Box::new(spans)).expect("no name stands twice in the tables above");
            let traffic = KafkaTraffic::new(Weak::clone(&log));
            registry.register(Box::new(traffic)).expect("its names are its own");
            add(registry, KAFKA, None, move |visit| {
                if let Some(log) = log.upgrade() {
                    visit("", &log.stats());
                }
            });
        }
    }
}

/// How long transactions take, counted by the log in buckets: name, help, buckets and sum in microseconds.
type Span = (&'static str, &'static str, fn(&kafka::Stats) -> ([u64; BUCKETS], u64));

const BUCKETS: usize = kafka::CYCLE_BOUNDS_US.len() + 1;
const SPANS: [Span; 2] = [
    ("everlog_kafka_transaction_seconds", "A transaction from begin to end.", |s| (s.cycles, s.cycle_us)),
    ("everlog_kafka_transaction_end_seconds", "Its end, after the last delivery.", |s| (s.ends, s.end_us)),
];

/// The histograms of a log on Kafka.
struct Spans {
    log: Weak<kafka::Kafka>,
    descs: [Desc; SPANS.len()],
}

impl Collector for Spans {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(stats) = self.log.upgrade().map(|log| log.stats()) else { return Vec::new() };
        let family = |(name, help, read): Span| {
            let (counts, sum_us) = read(&stats);
            let mut family = MetricFamily::default();
            family.set_name(name.into());
            family.set_help(help.into());
            family.set_field_type(MetricType::HISTOGRAM);
            family.mut_metric().push(histogram(&counts, sum_us));
            family
        };
        SPANS.map(family).into()
    }
}

fn histogram(counts: &[u64; BUCKETS], sum_us: u64) -> Metric {
    let mut histogram = Histogram::default();
    let mut total = 0;
    let mut buckets = Vec::with_capacity(BUCKETS);
    for (count, bound_us) in counts.iter().zip(kafka::CYCLE_BOUNDS_US) {
        total += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound_us as f64 / 1e6);
        bucket.set_cumulative_count(total);
        buckets.push(bucket);
    }
    histogram.set_bucket(buckets);
    histogram.set_sample_count(counts.iter().sum());
    histogram.set_sample_sum(sum_us as f64 / 1e6);
    let mut metric = Metric::default();
    metric.set_histogram(histogram);
    metric
}

/// Adds what was wrong with rows that are kept beside the log.
pub fn watch_rows(registry: &Registry, set_aside: Arc<SetAside>) {
    add(registry, ROWS, Some("reason"), move |visit| {
        for (fault, count) in RowsFault::ALL.into_iter().zip(set_aside.iter()) {
            visit(fault.name(), count);
        }
    });
}

/// Adds what waits for the partitions, labelled by their numbers.
pub fn watch_admission(registry: &Registry, partitions: usize, admission: Arc<Admission>) {
    let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
    add(registry, ADMISSION, Some("partition"), move |visit| {
        for number in 0..partitions {
            let (orders, reads) = (admission.waiting_orders(number), admission.waiting_reads(number));
            visit(&number.to_string(), &Waiting { orders, reads });
        }
    });
}

/// Adds the partitions, labelled by their numbers.
pub fn watch_partitions(registry: &Registry, stats: Vec<Arc<Stats>>) {
    let refused = stats.clone();
    add(registry, PARTITION, Some("partition"), move |visit| {
        for (partition, stats) in stats.iter().enumerate() {
            visit(&partition.to_string(), stats);
        }
    });
    add(registry, REJECTIONS, Some("code"), move |visit| {
        let mut counts = BTreeMap::new();
        for (code, count) in refused.iter().flat_map(|stats| stats.rejections.counted()) {
            *counts.entry(code).or_default() += count;
        }
        counts.iter().for_each(|(code, count)| visit(code, count));
    });
}

/// Adds the schema registry, as it is asked.
pub fn watch_registry(registry: &Registry, schemas: &Arc<Schemas>) {
    let schemas = Arc::clone(schemas);
    add(registry, REGISTRY, None, move |visit| visit("", schemas.stats()));
}

/// Adds the reading of the topic of commands, once it is open.
pub fn watch_commands(registry: &Registry, commands: Arc<commands::Sight>) {
    add(registry, INGRESS, None, move |visit| {
        commands.stats().into_iter().for_each(|stats| visit("", stats))
    });
}

/// Adds the commands that come by HTTP.
pub fn watch_inbox(registry: &Registry, stats: Arc<everlog_ingress::Stats>) {
    add(registry, INGRESS, None, move |visit| visit("", &stats));
}

fn add<T: 'static>(
    registry: &Registry,
    table: &'static [Row<T>],
    label: Option<&'static str>,
    each: impl Fn(&mut dyn FnMut(&str, &T)) + Send + Sync + 'static,
) {
    let descs = table.iter().map(|(name, _, help, _)| desc(name, help, label));
    let readings = Readings { descs: descs.collect(), table, label, each: Box::new(each) };
    registry.register(Box::new(readings)).expect("no name stands twice in the tables above");
}

fn desc(name: &str, help: &str, label: Option<&str>) -> Desc {
    let labels = label.map(str::to_owned).into_iter().collect();
    Desc::new(name.into(), help.into(), labels, Default::default()).expect("the names above are well-formed")
}

/// Calls back with the value of the label and each thing that has the values of a table.
type Each<T> = Box<dyn Fn(&mut dyn FnMut(&str, &T)) + Send + Sync>;

/// Values that are read when somebody asks.
struct Readings<T: 'static> {
    descs: Vec<Desc>,
    table: &'static [Row<T>],
    label: Option<&'static str>,
    each: Each<T>,
}

impl<T> Collector for Readings<T> {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families: Vec<MetricFamily> = self.table.iter().map(family).collect();
        (self.each)(&mut |value, thing| {
            for (family, (_, kind, _, read)) in families.iter_mut().zip(self.table) {
                family.mut_metric().push(self.metric(*kind, value, read(thing)));
            }
        });
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

impl<T> Readings<T> {
    fn metric(&self, kind: Kind, labelled: &str, value: f64) -> Metric {
        let label = self.label.map(|name| {
            let mut label = LabelPair::default();
            label.set_name(name.into());
            label.set_value(labelled.to_owned());
            label
        });
        let mut metric = Metric::from_label(label.into_iter().collect());
        match kind {
            Counts => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Stands => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        metric
    }
}

fn family<T>((name, kind, help, _): &Row<T>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name((*name).into());
    family.set_help((*help).into());
    family.set_field_type(match kind {
        Counts => MetricType::COUNTER,
        Stands => MetricType::GAUGE,
    });
    family
}

#[cfg(test)]
mod tests {
    use everlog_log::embedded::Embedded;
    use prometheus::TextEncoder;

    use super::*;

    fn page(registry: &Registry) -> String {
        TextEncoder::new().encode_to_string(&registry.gather()).expect("it can be written")
    }

    #[test]
    fn a_node_shows_itself_before_it_serves() {
        let registry = Registry::new();
        watch_node(&registry, &Health::new(8, 60_000));
        let page = page(&registry);
        assert!(page.contains("\neverlog_ready 0\n"), "{page}");
        assert!(page.contains("# TYPE process_cpu_seconds_total counter"), "{page}");
    }

    #[test]
    fn each_partition_has_a_line_of_its_own() {
        let registry = Registry::new();
        let stats = [3, 5].map(|applied| {
            let stats = Stats::default();
            stats.applied.store(applied, Relaxed);
            Arc::new(stats)
        });
        watch_partitions(&registry, stats.into());
        watch_admission(&registry, 2, Arc::new(Admission::new(2, 10, 10)));
        let page = page(&registry);
        assert!(page.contains("everlog_partition_applied_total{partition=\"0\"} 3\n"), "{page}");
        assert!(page.contains("everlog_partition_applied_total{partition=\"1\"} 5\n"), "{page}");
        assert!(page.contains("everlog_partition_waiting_orders{partition=\"1\"} 0\n"), "{page}");
    }

    #[test]
    fn the_buckets_of_a_histogram_add_up() {
        let mut counts = [0; BUCKETS];
        (counts[0], counts[1], counts[BUCKETS - 1]) = (2, 1, 4);
        let metric = histogram(&counts, 1_500_000);
        let histogram = metric.get_histogram();
        let cumulative: Vec<u64> = histogram.get_bucket().iter().map(Bucket::cumulative_count).collect();
        assert_eq!((cumulative.len(), cumulative[0], cumulative[1]), (BUCKETS - 1, 2, 3));
        assert_eq!(cumulative.last(), Some(&3));
        assert_eq!((histogram.get_sample_count(), histogram.get_sample_sum()), (7, 1.5));
    }

    #[test]
    fn a_closed_log_shows_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = Arc::new(Embedded::open(embedded::Options::new(dir.path())).expect("it is new"));
        let registry = Registry::new();
        watch_log(&registry, Sight::Embedded(Arc::downgrade(&log)));
        assert!(page(&registry).contains("everlog_log_appends_total 0\n"));
        drop(log);
        assert_eq!(page(&registry), "");
    }
}
