//! Bytes and requests that the clients have sent and received, and where produce requests waited, as librdkafka counts.
//!
//! It counts only where `Options::statistics_interval_ms` asks for it, and only clients that are polled all the time:
//! reports of the others would pile up. Those ask only at the start and when partitions are taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rdkafka::statistics::{Statistics, Window};

/// Totals since the log was opened, and the state of the last interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests by their kind, such as `Produce`.
    pub requests: BTreeMap<String, u64>,
    /// Bytes sent to brokers.
    pub sent_bytes: u64,
    /// Bytes received from them.
    pub received_bytes: u64,
    /// What the records of the journals have waited for in the last interval, in this order: their turn in the client,
    /// the socket, the broker's answer.
    pub journal: [Wait; 3],
}

/// A distribution of waits, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The median.
    pub p50_us: u64,
    /// 99 of 100 are not above it.
    pub p99_us: u64,
}

/// Counts for one client, whose own totals begin at 0.
pub(crate) struct Meter {
    all: Arc<Mutex<Traffic>>,
    counted: Mutex<Traffic>,
    of_journal: bool,
}

impl Meter {
    pub(crate) fn new(all: &Arc<Mutex<Traffic>>) -> Self {
        Meter { all: Arc::clone(all), counted: Mutex::default(), of_journal: false }
    }

    pub(crate) fn of_journal(all: &Arc<Mutex<Traffic>>) -> Self {
        Meter { of_journal: true, ..Meter::new(all) }
    }

    pub(crate) fn count(&self, statistics: &Statistics) {
        let now = totals(statistics);
        let mut counted = self.counted.lock();
        let mut all = self.all.lock();
        for (kind, count) in &now.requests {
            let before = counted.requests.get(kind).copied().unwrap_or(0);
            *all.requests.entry(kind.clone()).or_default() += count.saturating_sub(before);
        }
        all.sent_bytes += now.sent_bytes.saturating_sub(counted.sent_bytes);
        all.received_bytes += now.received_bytes.saturating_sub(counted.received_bytes);
        if self.of_journal {
            all.journal = now.journal;
        }
        *counted = now;
    }
}

fn totals(statistics: &Statistics) -> Traffic {
    let mut totals = Traffic::default();
    let mut busiest = 0;
    for broker in statistics.brokers.values() {
        totals.sent_bytes += broker.txbytes;
        totals.received_bytes += broker.rxbytes;
        for (kind, count) in broker.req.iter().filter(|(_, count)| **count > 0) {
            *totals.requests.entry(kind.clone()).or_default() += count.unsigned_abs();
        }
        let windows = [&broker.int_latency, &broker.outbuf_latency, &broker.rtt];
        let count = broker.int_latency.as_ref().map_or(0, |window| window.cnt);
        if count > busiest {
            busiest = count;
            totals.journal = windows.map(|window| window.as_ref().map_or(Wait::default(), Wait::of));
        }
    }
    totals
}

impl Wait {
    fn of(window: &Window) -> Self {
        Wait { p50_us: window.p50.unsigned_abs(), p99_us: window.p99.unsigned_abs() }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::Broker;

    use super::*;

    fn statistics(produced: i64, sent_bytes: u64) -> Statistics {
        let req = [("Produce".to_owned(), produced), ("Fetch".to_owned(), 0)].into();
        let rtt = Some(Window { p50: 200, p99: 900, cnt: 1, ..Window::default() });
        let int_latency = Some(Window { p50: 5, p99: 10, cnt: 1, ..Window::default() });
        let broker = Broker { txbytes: sent_bytes, req, rtt, int_latency, ..Broker::default() };
        Statistics { brokers: [("one".to_owned(), broker)].into(), ..Statistics::default() }
    }

    #[test]
    fn clients_that_come_and_go_add_up() {
        let all = Arc::default();
        let first = Meter::of_journal(&all);
        first.count(&statistics(10, 100));
        first.count(&statistics(15, 150));
        Meter::new(&all).count(&statistics(2, 20));
        let traffic = all.lock().clone();
        assert_eq!(traffic.requests, [("Produce".to_owned(), 17)].into());
        assert_eq!((traffic.sent_bytes, traffic.received_bytes), (170, 0));
        assert_eq!(traffic.journal[0], Wait { p50_us: 5, p99_us: 10 });
        assert_eq!(traffic.journal[2], Wait { p50_us: 200, p99_us: 900 });
    }
}
