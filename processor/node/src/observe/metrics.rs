//! The metrics of the node: a table of names, helps and readers for each source. Values are read when somebody asks.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use everlog_engine::level;
use everlog_log_kafka as kafka;
use everlog_partition::{RowsFault, Stats};
use everlog_rocks::log as embedded;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::observe::health::{Health, Signs};
use crate::observe::kafka_metrics::KafkaTraffic;
use crate::observe::process_metrics::Process;
use crate::services::commands;
use crate::storage::log_backend::HealthSource;
use crate::storage::row_directories::SetAside;
use MetricKind::{Counts, Stands};
pub use backlog::{MetricNames, watch_backlogs};
pub use cluster::watch_cluster;
pub use connections::{http_bytes, watch_calls, watch_listeners};
pub use identities::watch_identities;
pub use registry::watch_registry;
pub use tls::watch_certificates;
pub use waits::{watch_admission, watch_queues};

/// Whether a value only grows.
#[derive(Clone, Copy)]
enum MetricKind {
    Counts,
    Stands,
}

/// Name, kind, help, and how it is read.
type Row<T> = (&'static str, MetricKind, &'static str, fn(&T) -> f64);

/// A row for each metric.
macro_rules! rows {
    ($($kind:ident $name:literal $help:literal $read:expr;)+) => {
        &[$(($name, $kind, $help, $read)),+]
    };
}

mod backlog;
mod build;
mod cluster;
mod connections;
mod identities;
#[cfg(test)]
mod page;
mod registry;
mod spans;
mod tls;
mod waits;

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
    Counts "everlog_log_bytes_total" "Bytes of the batches that the embedded log has written." |s| s.bytes as f64;
    Counts "everlog_log_batches_total" "Batches that the embedded log has written." |s| s.batches as f64;
    Counts "everlog_log_syncs_total" "Batches that the embedded log has synced to the disk." |s| s.syncs as f64;
    Counts "everlog_log_write_seconds_total" "Time that the embedded log has spent writing and syncing batches." |s| {
        s.write_us as f64 / 1e6
    };
    Stands "everlog_log_write_seconds_max" "The longest time that a batch of the embedded log took since the start." |s| {
        s.write_max_us as f64 / 1e6
    };
    Stands "everlog_log_waiting_appends" "Appends that wait for the disk." |s| s.waiting_appends as f64;
    Stands "everlog_log_waiting_bytes" "Bytes of the appends that wait for the disk." |s| s.waiting_bytes as f64;
};

const KAFKA: &[Row<kafka::Stats>] = rows! {
    Counts "everlog_kafka_appends_total" "Acknowledged appends." |s| s.appends as f64;
    Counts "everlog_kafka_records_total" "Journal records in acknowledged appends." |s| s.records as f64;
    Counts "everlog_kafka_bytes_total" "Bytes of the journal records in acknowledged appends." |s| s.bytes as f64;
    Counts "everlog_kafka_rounds_total" "Produce requests that carried appends to journals." |s| s.rounds as f64;
    Counts "everlog_kafka_noncontiguous_appends_total" "Appends whose records are not contiguous in the journal." |s| {
        s.scattered as f64
    };
    Counts "everlog_kafka_busy_total" "Appends refused because too many were waiting for the brokers." |s| {
        s.busy as f64
    };
    Counts "everlog_kafka_unknown_total" "Appends and commits whose outcome is unknown: the brokers did not acknowledge them in time." |s| {
        s.unknown as f64
    };
    Counts "everlog_kafka_commits_total" "Commits of outputs." |s| s.commits as f64;
    Counts "everlog_kafka_transactions_total" "Kafka transactions that carried commits of outputs." |s| {
        s.transactions as f64
    };
    Counts "everlog_kafka_outputs_total" "Records written in Kafka transactions." |s| s.outputs as f64;
    Counts "everlog_kafka_transactions_ended_dirty_total" "Kafka transactions that were ended while a record of them was not acknowledged." |s| {
        s.undrained as f64
    };
    Counts "everlog_kafka_fenced_total" "Commits refused because the partition has a newer owner." |s| s.fenced as f64;
    Stands "everlog_kafka_transaction_seconds_max" "The longest Kafka transaction since the start." |s| {
        s.cycle_max_us as f64 / 1e6
    };
    Stands "everlog_kafka_transaction_end_seconds_max" "The longest end of a Kafka transaction since the start." |s| {
        s.end_max_us as f64 / 1e6
    };
};

const PARTITION: &[Row<Stats>] = rows! {
    Stands "everlog_partition_serving" "1 while the partition serves calls on this node." |s| load(&s.serving);
    Stands "everlog_partition_wanted" "1 while the partition is assigned to this node." |s| load(&s.is_wanted);
    Stands "everlog_partition_fence" "The fence of the partition's owner. Every owner has a higher one than the owner before." |s| {
        load(&s.fence)
    };
    Stands "everlog_partition_term" "The journal offset of the owner's record. Every owner has a higher one than the owner before." |s| {
        load(&s.term)
    };
    Stands "everlog_partition_level" "The level of decisions that the partition's owner keeps to." |s| load(&s.level);
    Counts "everlog_partition_appended_total" "Journal records that the partition's owner has appended." |s| {
        load(&s.appended)
    };
    Counts "everlog_partition_appended_bytes_total" "Bytes of the journal records that the owner has appended." |s| {
        load(&s.appended_bytes)
    };
    Counts "everlog_partition_applied_total" "Journal records that the partition has applied." |s| load(&s.applied);
    Counts "everlog_partition_refused_total" "Requests that the partition has refused because too many were waiting." |s| {
        load(&s.refused)
    };
    Counts "everlog_partition_commands_total" "Public commands that the partition has applied." |s| load(&s.forwarded);
    Counts "everlog_partition_duplicates_total" "Public commands that were delivered more than once." |s| {
        load(&s.duplicates)
    };
    Counts "everlog_partition_unpublished_total" "Records of public topics that could not be written." |s| {
        load(&s.unpublished)
    };
    Counts "everlog_partition_large_histories_total" "Histories that have exceeded the warning size in events or bytes." |s| {
        load(&s.large_histories)
    };
    Counts "everlog_partition_large_states_total" "Runs whose state has exceeded the warning size." |s| {
        load(&s.large_states)
    };
    Counts "everlog_partition_large_memos_total" "Runs whose memo has exceeded the warning size." |s| {
        load(&s.large_memos)
    };
    Counts "everlog_partition_large_payloads_total" "Runs with a payload that has exceeded the warning size." |s| {
        load(&s.large_payloads)
    };
    Counts "everlog_partition_voided_total" "Journal records of a former owner, which have no effect." |s| {
        load(&s.voided)
    };
    Counts "everlog_partition_skipped_total" "Journal records that could not be applied." |s| load(&s.skipped);
    Counts "everlog_partition_loop_iterations_total" "Iterations of the partition's loop." |s| load(&s.turns);
    Stands "everlog_partition_last_loop_iteration_seconds" "When the last iteration of the partition's loop began, in seconds since 1970-01-01 UTC." |s| {
        s.turned_ms.load(Relaxed) as f64 / 1e3
    };
    Counts "everlog_partition_commits_total" "Commits of the partition's outputs." |s| load(&s.commits);
    Counts "everlog_partition_timers_fired_total" "Timers that have fired." |s| load(&s.wakes);
    Counts "everlog_partition_forgotten_total" "Runs that were deleted, by request or by their retention." |s| {
        load(&s.forgotten)
    };
    Stands "everlog_partition_history_deletions_pending" "Deleted runs whose histories are not deleted completely yet." |s| {
        load(&s.leftovers)
    };
    Counts "everlog_partition_released_total" "Tasks that were requeued because they reached no worker." |s| {
        load(&s.released)
    };
    Stands "everlog_partition_next_offset" "The journal offset of the next record to apply." |s| load(&s.next_offset);
    Stands "everlog_partition_lag_records" "Journal records that are applied and not committed yet." |s| {
        (load(&s.next_offset) - load(&s.committed_offset)).max(0.0)
    };
    Stands "everlog_partition_journal_lag_records" "Journal records that are not applied yet; the journal's end is read every 10 s." |s| {
        load(&s.is_wanted) * (load(&s.journal_end) - load(&s.next_offset)).max(0.0)
    };
    Counts "everlog_restore_rows_total" "Rows restored from the log." |s| load(&s.restored_rows);
    Counts "everlog_restore_bytes_total" "Bytes of the rows restored from the log." |s| load(&s.restored_bytes);
    Stands "everlog_restore_state_left_records" "Records left to restore before the partition serves." |s| {
        load(&s.restore_left)
    };
    Stands "everlog_restore_history_left_records" "Records of histories left to restore, while the partition serves." |s| {
        load(&s.history_left)
    };
    Stands "everlog_restore_behind" "1 while histories of the partition are not restored completely." |s| {
        load(&s.behind)
    };
    Stands "everlog_partition_index_missing_ratio" "Part of the index of runs that is still to be made: lists and counts are refused." |s| {
        load(&s.index_missing_percent) / 100.0
    };
    Stands "everlog_partition_resident_runs" "Runs of the partition in memory." |s| load(&s.resident_runs);
    Stands "everlog_partition_overlay_bytes" "Bytes of the partition's rows that wait for a commit." |s| {
        load(&s.overlay_bytes)
    };
    Stands "everlog_partition_timers" "Timers in the partition's index of due times." |s| load(&s.alarms);
    Stands "everlog_partition_outbox_messages" "Messages to other workflows that were not delivered yet." |s| {
        load(&s.messages)
    };
    Stands "everlog_timer_lateness_seconds_max" "How late a timer has fired at most, since this metric was last read." |s| {
        s.lateness_ms.swap(0, Relaxed) as f64 / 1e3
    };
};

const INGRESS: &[Row<everlog_ingress::Stats>] = rows! {
    Counts "everlog_ingress_records_total" "Records read from the topic `commands`." |s| load(&s.records);
    Counts "everlog_ingress_forwarded_total" "Public commands appended to a journal." |s| load(&s.forwarded);
    Counts "everlog_ingress_unreadable_total" "Records of the topic `commands` that are no commands, appended to a journal as rejections." |s| {
        load(&s.unreadable)
    };
    Counts "everlog_ingress_retries_total" "Appends of public commands that failed and were repeated." |s| {
        load(&s.retries)
    };
    Counts "everlog_ingress_schema_waits_total" "Public commands that waited for the schema registry." |s| {
        load(&s.schema_waits)
    };
    Counts "everlog_ingress_poll_failures_total" "Reads of the topic `commands` that failed." |s| {
        load(&s.poll_failures)
    };
    Stands "everlog_ingress_backlog_records" "Public commands that wait in memory." |s| load(&s.backlog_records);
    Stands "everlog_ingress_backlog_bytes" "Bytes of the public commands that wait in memory." |s| {
        load(&s.backlog_bytes)
    };
    Stands "everlog_ingress_stopped_partitions" "Partitions of the topic `commands` that are no longer read." |s| {
        s.stopped().len() as f64
    };
};

const COMMANDS_LAG: &[Row<u64>] = rows! {
    Stands "everlog_ingress_lag_records" "Offsets of the topic `commands` that are not in a journal yet, for the partitions that this node reads." |n| {
        *n as f64
    };
};

const REJECTIONS: &[Row<u64>] = rows! {
    Counts "everlog_rejections_total" "Public commands refused, by code." |n| *n as f64;
};

const SCHEDULES: &[Row<u64>] = rows! {
    Counts "everlog_schedule_actions_total" "Actions of schedules, by what became of them: started, missed by the catch-up window, or why they were dropped." |n| *n as f64;
};

const ROWS: &[Row<AtomicU64>] = rows! {
    Counts "everlog_rows_set_aside_total" "Directories of rows that could not be used, by reason." |n| load(n);
};

const NODE: &[Row<Signs>] = rows! {
    Stands "everlog_ready" "1 while the node is ready." |s| f64::from(u8::from(s.unready().is_empty()));
    Stands "everlog_level_latest" "The highest level of decisions that this node knows." |_| f64::from(level::LATEST);
    Stands "everlog_disk_full" "1 while the node refuses writes because the disk is full." |s| {
        f64::from(u8::from(s.disk_full))
    };
};

fn load(value: &AtomicU64) -> f64 {
    value.load(Relaxed) as f64
}

/// Adds the process and the node's health.
pub fn watch_node(registry: &Registry, health: &Arc<Health>) {
    add(registry, PROCESS, None, |visit| visit("", &Process::now()));
    build::show(registry);
    let health = Arc::clone(health);
    add(registry, NODE, None, move |visit| visit("", &health.signs()));
}

/// Adds the log, for as long as it is open.
pub fn watch_log(registry: &Registry, log: HealthSource) {
    match log {
        HealthSource::Embedded(log) => add(registry, LOG, None, move |visit| {
            if let Some(log) = log.upgrade() {
                visit("", &log.stats());
            }
        }),
        HealthSource::Kafka(log) => {
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

/// Durations of transactions in buckets: name, help, buckets and sum in microseconds.
type HistogramRow = (&'static str, &'static str, fn(&kafka::Stats) -> ([u64; BUCKETS], u64));

const BUCKETS: usize = kafka::CYCLE_BOUNDS_US.len() + 1;
const SPANS: [HistogramRow; 2] = [
    ("everlog_kafka_transaction_seconds", "Duration of Kafka transactions, from begin to end.", |s| {
        (s.cycles, s.cycle_us)
    }),
    (
        "everlog_kafka_transaction_end_seconds",
        "Duration of the end of Kafka transactions, after their last record was acknowledged.",
        |s| (s.ends, s.end_us),
    ),
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
        let bounds = || kafka::CYCLE_BOUNDS_US.iter().map(|bound_us| *bound_us as f64 / 1e6);
        let family = |(name, help, read): HistogramRow| {
            let (counts, sum_us) = read(&stats);
            histograms((name, help), histogram(bounds(), &counts, sum_us as f64 / 1e6))
        };
        SPANS.map(family).into()
    }
}

fn histograms((name, help): (&str, &str), metric: Metric) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.into());
    family.set_help(help.into());
    family.set_field_type(MetricType::HISTOGRAM);
    family.mut_metric().push(metric);
    family
}

/// A histogram of buckets with these bounds in seconds, and one for longer times.
fn histogram(bounds: impl Iterator<Item = f64>, counts: &[u64], sum_seconds: f64) -> Metric {
    let mut histogram = Histogram::default();
    let mut total = 0;
    let mut buckets = Vec::with_capacity(counts.len());
    for (count, bound) in counts.iter().zip(bounds) {
        total += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(total);
        buckets.push(bucket);
    }
    histogram.set_bucket(buckets);
    histogram.set_sample_count(counts.iter().sum());
    histogram.set_sample_sum(sum_seconds);
    let mut metric = Metric::default();
    metric.set_histogram(histogram);
    metric
}

/// Adds why rows beside the log were set aside.
pub fn watch_rows(registry: &Registry, set_aside: Arc<SetAside>) {
    add(registry, ROWS, Some("reason"), move |visit| {
        for (fault, count) in RowsFault::ALL.into_iter().zip(set_aside.iter()) {
            visit(fault.name(), count);
        }
    });
}

/// Adds the partitions, labelled by number.
pub fn watch_partitions(registry: &Registry, stats: Vec<Arc<Stats>>) {
    let (refused, acted) = (stats.clone(), stats.clone());
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
    add(registry, SCHEDULES, Some("result"), move |visit| {
        let mut counts = BTreeMap::new();
        for (fate, count) in acted.iter().flat_map(|stats| stats.schedule_actions.counted()) {
            *counts.entry(fate).or_default() += count;
        }
        counts.iter().for_each(|(fate, count)| visit(fate, count));
    });
}

/// Adds the reader of the topic `commands`, once it is open.
pub fn watch_commands(registry: &Registry, commands: Arc<commands::CommandsHealth>) {
    let lagging = Arc::clone(&commands);
    add(registry, COMMANDS_LAG, Some("partition"), move |visit| {
        lagging.lag().iter().for_each(|(partition, offsets)| visit(&partition.to_string(), offsets));
    });
    add(registry, INGRESS, None, move |visit| {
        commands.stats().into_iter().for_each(|stats| visit("", stats))
    });
}

/// Adds the commands that are sent by HTTP.
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

/// Calls back with the value of the label and each item of a table.
type Each<T> = Box<dyn Fn(&mut dyn FnMut(&str, &T)) + Send + Sync>;

/// A table that is read when somebody asks.
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
    fn metric(&self, kind: MetricKind, labelled: &str, value: f64) -> Metric {
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
    use everlog_partition::Admission;
    use everlog_rocks::log::Embedded;
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
        let build = page.lines().find(|line| line.starts_with("everlog_build_info{")).expect("it is shown");
        assert!(build.contains(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")), "{build}");
        assert!(["commit", "format", "level"].iter().all(|label| build.contains(&format!("{label}=\""))));
        assert!(page.contains("# TYPE process_cpu_seconds_total counter"), "{page}");
    }

    #[test]
    fn each_partition_has_a_line_of_its_own() {
        let registry = Registry::new();
        let stats = [3, 5].map(|applied| {
            let stats = Stats::default();
            stats.applied.store(applied, Relaxed);
            stats.journal_end.store(7, Relaxed);
            stats.is_wanted.store(u64::from(applied == 3), Relaxed);
            Arc::new(stats)
        });
        watch_partitions(&registry, stats.into());
        watch_admission(&registry, 2, Arc::new(Admission::new(2, 10, 10)));
        let page = page(&registry);
        assert!(page.contains("everlog_partition_applied_total{partition=\"0\"} 3\n"), "{page}");
        assert!(page.contains("everlog_partition_journal_lag_records{partition=\"0\"} 7\n"), "{page}");
        assert!(
            page.contains("everlog_partition_journal_lag_records{partition=\"1\"} 0\n"),
            "it left: {page}"
        );
        assert!(page.contains("everlog_partition_applied_total{partition=\"1\"} 5\n"), "{page}");
        assert!(page.contains("everlog_partition_waiting_orders{partition=\"1\"} 0\n"), "{page}");
    }

    #[test]
    fn the_buckets_of_a_histogram_add_up() {
        let mut counts = [0; BUCKETS];
        (counts[0], counts[1], counts[BUCKETS - 1]) = (2, 1, 4);
        let bounds = kafka::CYCLE_BOUNDS_US.iter().map(|bound_us| *bound_us as f64 / 1e6);
        let metric = histogram(bounds, &counts, 1.5);
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
        watch_log(&registry, HealthSource::Embedded(Arc::downgrade(&log)));
        assert!(page(&registry).contains("everlog_log_appends_total 0\n"));
        drop(log);
        assert_eq!(page(&registry), "");
    }
}
