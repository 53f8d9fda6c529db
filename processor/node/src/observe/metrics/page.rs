//! docs/metrics.md, written from the tables.

use std::path::PathBuf;

use expect_test::expect_file;

use super::connections::{CALLS, HTTP, LISTENERS};
use super::identities::{DENIED, IDENTITIES};
use super::registry::{REGISTRY, REGISTRY_WORK};
use super::tls::{CERTIFICATES, HANDSHAKES};
use super::waits::{ADMISSION, QUEUES};
use super::*;

const HEAD: &str = "\
# Metrics

`GET /metrics` at `server.metrics_address`, for Prometheus. Numbers of partitions, codes, outcomes, reasons, the release and what the
last section names are the only labels below: none grows with what users do. Every node shows every partition; what it does not serve
stands still there, so sums over the nodes are what a partition does.

The gateway's own go by the names that Temporal's dashboards know: `service_requests`, `service_latency`,
`service_pending_requests`, `service_errors`, `service_error_with_type`, `service_errors_resource_exhausted` and
`service_panics`, by `operation`, `namespace` (a bounded number of them, then `_other_`) and `service_name`.

This page is written from the code: `UPDATE_EXPECT=1 cargo test --workspace --bin everlog` does it.
";

/// A heading, if any, and the rows.
type MetricsPart = (&'static str, &'static str, Vec<(&'static str, MetricKind, &'static str)>);

fn part<T>(heading: &'static str, label: &'static str, table: &[Row<T>]) -> MetricsPart {
    (heading, label, table.iter().map(|(name, kind, help, _)| (*name, *kind, *help)).collect())
}

fn parts() -> Vec<MetricsPart> {
    vec![
        part("The process", "", PROCESS),
        part("The node", "", NODE),
        part("", "version", BUILD),
        part("Connections", "listener", LISTENERS),
        part("", "", CALLS),
        part("", "", HTTP),
        part("TLS", "use", CERTIFICATES),
        part("", "reason", HANDSHAKES),
        part("Identities, with `auth.enabled`", "", IDENTITIES),
        part("", "reason", DENIED),
        part("Partitions", "partition", PARTITION),
        part("What waits for partitions", "partition", ADMISSION),
        part("Task queues", "", QUEUES),
        part("Public commands that were refused", "code", REJECTIONS),
        part("Schedules", "result", SCHEDULES),
        part("Several nodes", "", cluster::GAUGES),
        part("", "", cluster::COUNTERS),
        part("", "outcome", cluster::OUTCOMES),
        part("The log on Kafka", "", KAFKA),
        part("Rows beside the log, on Kafka", "reason", ROWS),
        part("The embedded log", "", LOG),
        part("Public commands that come in", "", INGRESS),
        part("", "partition", COMMANDS_LAG),
        part("The schema registry", "", REGISTRY),
        part("", "", REGISTRY_WORK),
    ]
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (heading, label, rows) in parts() {
        if !heading.is_empty() {
            page.push_str(&format!(
                "\n## {heading}\n\n| metric | kind | label | meaning |\n|---|---|---|---|\n"
            ));
        }
        for (name, kind, help) in rows {
            let kind = match kind {
                Counts => "counter",
                Stands => "gauge",
            };
            page.push_str(&format!("| `{name}` | {kind} | {label} | {help} |\n"));
        }
    }
    page.push_str("\n## Times\n\n| metric | kind | label | meaning |\n|---|---|---|---|\n");
    let spans = SPANS.map(|(name, help, _)| (name, help));
    for (name, help) in spans.into_iter().chain([cluster::AWAY]) {
        page.push_str(&format!("| `{name}` | histogram |  | {help} |\n"));
    }
    page.push_str(
        "\n## What the clients of Kafka count\n\nOnly where `kafka.statistics_interval_ms` is not 0. \
         Labels: `request` of the requests, `for` and `quantile` of the waits.\n\n",
    );
    page.push_str("| metric | meaning |\n|---|---|\n");
    for (name, help) in crate::observe::kafka_metrics::NAMES {
        page.push_str(&format!("| `{name}` | {help} |\n"));
    }
    page
}

#[test]
fn the_documentation_shows_the_metrics_as_they_are() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    expect_file![docs.join("metrics.md")].assert_eq(&page());
}

#[test]
fn the_alert_rules_use_metrics_that_exist() {
    let rules = include_str!("../../../../../docs/alerts.yaml");
    let words = rules.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let named: Vec<_> = words.filter(|word| word.starts_with("everlog_")).collect();
    assert_eq!(named.len(), rules.matches("expr: ").count(), "one metric a rule: {named:?}");
    let page = page();
    let unknown: Vec<_> = named.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
