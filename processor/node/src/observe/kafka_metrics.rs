//! Metrics of the requests between the node and its brokers. Empty while the clients do not count
//! (`kafka.statistics_interval_ms`).

use std::sync::Weak;

use everlog_log_kafka::{Kafka, Traffic};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

const REQUESTS: (&str, &str) = ("everlog_kafka_requests_total", "Requests to the brokers, by kind.");
const SENT: (&str, &str) = ("everlog_kafka_sent_bytes_total", "Bytes sent to the brokers.");
const RECEIVED: (&str, &str) = ("everlog_kafka_received_bytes_total", "Bytes received from the brokers.");
const WAITS: (&str, &str) = (
    "everlog_kafka_journal_wait_seconds",
    "What journal records waited for in the last interval: queue, socket, broker.",
);
/// Every metric with its help.
#[cfg(test)]
pub const NAMES: [(&str, &str); 4] = [REQUESTS, SENT, RECEIVED, WAITS];
/// In the order of `Traffic::journal`.
const PLACES: [&str; 3] = ["turn", "socket", "broker"];

/// Reads the counters of a log on demand. Does not keep the log open.
pub struct KafkaTraffic {
    log: Weak<Kafka>,
    descs: Vec<Desc>,
}

impl KafkaTraffic {
    /// The traffic of a log, for as long as it is open.
    pub fn new(log: Weak<Kafka>) -> Self {
        let desc = |(name, help): (&str, &str), labels: &[&str]| {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(name.into(), help.into(), labels, Default::default())
                .expect("the names above are well-formed")
        };
        let descs = vec![
            desc(REQUESTS, &["request"]),
            desc(SENT, &[]),
            desc(RECEIVED, &[]),
            desc(WAITS, &["for", "quantile"]),
        ];
        Self { log, descs }
    }
}

impl Collector for KafkaTraffic {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let traffic = self.log.upgrade().map(|log| log.traffic());
        traffic
            .filter(|traffic| !traffic.requests.is_empty())
            .map(|traffic| families(&traffic))
            .unwrap_or_default()
    }
}

fn families(traffic: &Traffic) -> Vec<MetricFamily> {
    let requests = traffic.requests.iter();
    let requests = requests.map(|(kind, count)| counter(&[("request", kind)], *count)).collect();
    let mut waits = Vec::new();
    for (place, wait) in PLACES.into_iter().zip(traffic.journal) {
        waits.push(gauge(&[("for", place), ("quantile", "0.5")], wait.p50_us));
        waits.push(gauge(&[("for", place), ("quantile", "0.99")], wait.p99_us));
    }
    vec![
        family(REQUESTS, MetricType::COUNTER, requests),
        family(SENT, MetricType::COUNTER, vec![counter(&[], traffic.sent_bytes)]),
        family(RECEIVED, MetricType::COUNTER, vec![counter(&[], traffic.received_bytes)]),
        family(WAITS, MetricType::GAUGE, waits),
    ]
}

fn family((name, help): (&str, &str), kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.into());
    family.set_help(help.into());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn counter(labels: &[(&str, &str)], value: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value as f64);
    let mut metric = labelled(labels);
    metric.set_counter(counter);
    metric
}

fn gauge(labels: &[(&str, &str)], value_us: u64) -> Metric {
    let mut gauge = Gauge::default();
    gauge.set_value(value_us as f64 / 1e6);
    let mut metric = labelled(labels);
    metric.set_gauge(gauge);
    metric
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut label = LabelPair::default();
        label.set_name((*name).into());
        label.set_value((*value).into());
        label
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

#[cfg(test)]
mod tests {
    use everlog_log_kafka::Wait;
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn requests_are_shown_by_their_kind() {
        let traffic = Traffic {
            requests: [("Fetch".to_owned(), 3), ("Produce".to_owned(), 7)].into(),
            sent_bytes: 100,
            journal: [Wait::default(), Wait::default(), Wait { p50_us: 250, p99_us: 2_000 }],
            ..Traffic::default()
        };
        let page = TextEncoder::new().encode_to_string(&families(&traffic)).expect("it can be written");
        for line in [
            "everlog_kafka_requests_total{request=\"Produce\"} 7",
            "everlog_kafka_sent_bytes_total 100",
            "everlog_kafka_journal_wait_seconds{for=\"broker\",quantile=\"0.5\"} 0.00025",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }
}
