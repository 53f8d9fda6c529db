//! The metrics of what waits: requests and reads for partitions, polls for tasks.

use std::sync::Arc;

use everlog_partition::{Admission, Dispatcher, QueueCounts};
use prometheus::Registry;

use super::MetricKind::{Counts, Stands};
use super::{Row, add};

pub(super) const ADMISSION: &[Row<WaitingCounts>] = rows! {
    Stands "everlog_partition_waiting_orders" "Requests that wait for their replies." |w| w.orders as f64;
    Stands "everlog_partition_waiting_reads" "Reads and queries that wait for their replies." |w| w.reads as f64;
};

pub(super) const QUEUES: &[Row<QueueCounts>] = rows! {
    Stands "everlog_task_queues_polled" "Task queues with waiting polls." |q| q.polled as f64;
    Stands "everlog_task_queues_remembered" "Task queues without polls and tasks, kept for `DescribeTaskQueue`." |q| {
        q.remembered as f64
    };
    Counts "everlog_task_queue_polls_refused_total" "Polls refused because too many task queues are polled." |q| {
        q.refused as f64
    };
};

/// What waits for one partition.
pub(super) struct WaitingCounts {
    orders: usize,
    reads: usize,
}

/// Adds what waits for partitions, labelled by number.
pub fn watch_admission(registry: &Registry, partitions: usize, admission: Arc<Admission>) {
    let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
    add(registry, ADMISSION, Some("partition"), move |visit| {
        for number in 0..partitions {
            let (orders, reads) = (admission.waiting_orders(number), admission.waiting_reads(number));
            visit(&number.to_string(), &WaitingCounts { orders, reads });
        }
    });
}

/// Adds the task queues that have their home here.
pub fn watch_queues(registry: &Registry, dispatcher: Arc<Dispatcher>) {
    add(registry, QUEUES, None, move |visit| visit("", &dispatcher.queue_counts()));
}
