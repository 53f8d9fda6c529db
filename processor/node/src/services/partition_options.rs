//! What the settings say to partitions and to the threads that run them.

use std::sync::Arc;

use everlog_config::Config;
use everlog_partition::UncommittedBudget;
use everlog_traces::Traces;

use crate::partitions::levels::OwnLevels;
use crate::partitions::threads;
use crate::services::command_spans;
use crate::services::names::NodeNames;

/// Of this many partitions. `is_dev`: the node raises the level of decisions by itself.
pub fn make(
    config: &Config,
    partitions: u32,
    names: &NodeNames,
    (is_dev, traces): (bool, Option<&Traces>),
) -> threads::Options {
    let Config { server, memory, threads, partition, queues, limits, .. } = config;
    let share = |total: usize| (total / partitions as usize).max(1);
    threads::Options {
        threads: or_cores(threads.processor),
        waiting_orders_max: partition.waiting_orders_max,
        waiting_reads_max: partition.waiting_reads_max,
        queues: queues.limits(),
        partition: everlog_partition::Config {
            node: server.name.clone(),
            instance: Default::default(),
            levels: Arc::new(OwnLevels::of(is_dev)),
            public: Arc::new(names.clone()),
            ending_counts: names.namespaces.clone(),
            command_observer: command_spans::observer(traces),
            settings: limits.engine(),
            commit_interval_ms: partition.commit_interval_ms,
            overlay_bytes_max: share(memory.uncommitted_bytes_max),
            room: UncommittedBudget::new(memory.uncommitted_bytes_max),
            cached_runs_max: share(memory.cached_runs_max),
            appends_max: partition.appends_max,
            append_records_max: partition.append_records_max,
            wakes_max: partition.wakes_max,
            buffered_queries_max: partition.buffered_queries_max,
            journal_keep_records: partition.journal_keep_records,
        },
    }
}

/// A count of threads; 0 means as many as there are cores.
pub fn or_cores(threads: usize) -> usize {
    if threads > 0 { threads } else { std::thread::available_parallelism().map_or(1, usize::from) }
}
