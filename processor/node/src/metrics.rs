//! The names of the node's own metrics, and how they are read when somebody asks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use everlog_log::embedded::{self, Embedded};
use everlog_partition::{Admission, Stats};
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::health::{Health, Signs};
use crate::process::Process;

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

const PARTITION: &[Row<Stats>] = rows! {
    Stands "everlog_partition_serving" "1 while the partition serves." |s| load(&s.serving);
    Counts "everlog_partition_applied_total" "Journal records applied." |s| load(&s.applied);
    Counts "everlog_partition_refused_total" "Orders refused." |s| load(&s.refused);
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
    Stands "everlog_partition_resident_runs" "Runs in memory." |s| load(&s.resident_runs);
    Stands "everlog_partition_overlay_bytes" "Bytes that wait for a commit." |s| load(&s.overlay_bytes);
    Stands "everlog_partition_alarms" "Alarms in the index." |s| load(&s.alarms);
    Stands "everlog_timer_lateness_seconds_max" "The latest alarm since the last look." |s| {
        s.lateness_ms.swap(0, Relaxed) as f64 / 1e3
    };
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

const NODE: &[Row<Signs>] = rows! {
    Stands "everlog_ready" "1 while the node is ready." |s| f64::from(u8::from(s.unready().is_empty()));
    Stands "everlog_disk_full" "1 while nothing is taken for want of space." |s| f64::from(u8::from(s.disk_full));
};

fn load(value: &AtomicU64) -> f64 {
    value.load(Relaxed) as f64
}

/// Adds the process and the health of the node.
pub fn watch_node(registry: &Registry, health: &Arc<Health>) {
    add(registry, PROCESS, None, |visit| visit(0, &Process::now()));
    let health = Arc::clone(health);
    add(registry, NODE, None, move |visit| visit(0, &health.signs()));
}

/// Adds the log, for as long as it is open.
pub fn watch_log(registry: &Registry, log: &Arc<Embedded>) {
    let log: Weak<Embedded> = Arc::downgrade(log);
    add(registry, LOG, None, move |visit| {
        if let Some(log) = log.upgrade() {
            visit(0, &log.stats());
        }
    });
}

/// Adds the partitions, labelled by their numbers.
pub fn watch_partitions(registry: &Registry, stats: Vec<Arc<Stats>>, admission: Arc<Admission>) {
    let partitions = stats.len();
    add(registry, ADMISSION, Some("partition"), move |visit| {
        for (partition, number) in (0..partitions).zip(0..) {
            let (orders, reads) = (admission.waiting_orders(number), admission.waiting_reads(number));
            visit(partition, &Waiting { orders, reads });
        }
    });
    add(registry, PARTITION, Some("partition"), move |visit| {
        for (partition, stats) in stats.iter().enumerate() {
            visit(partition, stats);
        }
    });
}

fn add<T: 'static>(
    registry: &Registry,
    table: &'static [Row<T>],
    label: Option<&'static str>,
    each: impl Fn(&mut dyn FnMut(usize, &T)) + Send + Sync + 'static,
) {
    let labels = || label.map(str::to_owned).into_iter().collect();
    let descs = table.iter().map(|(name, _, help, _)| {
        Desc::new((*name).into(), (*help).into(), labels(), Default::default())
            .expect("the names above are well-formed")
    });
    let readings = Readings { descs: descs.collect(), table, label, each: Box::new(each) };
    registry.register(Box::new(readings)).expect("no name stands twice in the tables above");
}

/// Calls back with each thing that has the values of a table, and its number.
type Each<T> = Box<dyn Fn(&mut dyn FnMut(usize, &T)) + Send + Sync>;

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
        (self.each)(&mut |number, thing| {
            for (family, (_, kind, _, read)) in families.iter_mut().zip(self.table) {
                family.mut_metric().push(self.metric(*kind, number, read(thing)));
            }
        });
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

impl<T> Readings<T> {
    fn metric(&self, kind: Kind, number: usize, value: f64) -> Metric {
        let label = self.label.map(|name| {
            let mut label = LabelPair::default();
            label.set_name(name.into());
            label.set_value(number.to_string());
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
        watch_partitions(&registry, stats.into(), Arc::new(Admission::new(2, 10, 10)));
        let page = page(&registry);
        assert!(page.contains("everlog_partition_applied_total{partition=\"0\"} 3\n"), "{page}");
        assert!(page.contains("everlog_partition_applied_total{partition=\"1\"} 5\n"), "{page}");
        assert!(page.contains("everlog_partition_waiting_orders{partition=\"1\"} 0\n"), "{page}");
    }

    #[test]
    fn a_closed_log_shows_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = Arc::new(Embedded::open(embedded::Options::new(dir.path())).expect("it is new"));
        let registry = Registry::new();
        watch_log(&registry, &log);
        assert!(page(&registry).contains("everlog_log_appends_total 0\n"));
        drop(log);
        assert_eq!(page(&registry), "");
    }
}
