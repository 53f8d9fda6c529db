//! What waits for the partitions.

use std::sync::Arc;

use everlog_partition::Admission;
use prometheus::Registry;

use super::{Kind::Stands, Row, add};

pub(super) const ADMISSION: &[Row<Waiting>] = rows! {
    Stands "everlog_partition_waiting_orders" "Orders that wait for their answers." |w| w.orders as f64;
    Stands "everlog_partition_waiting_reads" "Reads and queries that wait for their answers." |w| w.reads as f64;
};

/// What waits for one partition.
pub(super) struct Waiting {
    orders: usize,
    reads: usize,
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
