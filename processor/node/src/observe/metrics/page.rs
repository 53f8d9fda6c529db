//! docs/metrics.md, written from the tables.

use std::path::PathBuf;

use expect_test::expect_file;

use super::connections::{CALLS, HTTP, LISTENERS};
use super::identities::{DENIED, IDENTITIES};
use super::registry::{REGISTRY, REGISTRY_WORK};
use super::spans::TRACE_SPANS;
use super::tls::{CERTIFICATES, HANDSHAKES};
use super::waits::{ADMISSION, QUEUES};
use super::*;

const HEAD: &str = "\
# Metrics

`GET /metrics` at `server.metrics_address`, for Prometheus. No label grows without bound with what users
do. Namespaces are labels up to `gateway.metric_namespaces_max`, task queues up to `gateway.metric_task_queues_max`; all
others share the label `_other_`. A namespace that does not exist is `_unknown_`. Every node shows every partition; what it
does not serve stands still there, so sums over the nodes are what a partition does.

Counters begin at 0 with the process. What is over counts at the partition's owner when it is applied. A new owner that replays
the journal does not count it again.

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
        part("Connections", "listener", LISTENERS),
        part("", "", CALLS),
        part("", "", HTTP),
        part("TLS", "use", CERTIFICATES),
        part("", "reason", HANDSHAKES),
        part("Spans, with traces on", "outcome", TRACE_SPANS),
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
    page.push_str(
        "\n## By the names of Temporal's server\n\n| metric | kind | label | meaning |\n|---|---|---|---|\n",
    );
    let backlogs = backlog::ROWS.map(|(name, help)| (name, "gauge", backlog::LABELS, help));
    for (name, kind, labels, help) in everlog_temporal::Metrics::rows().chain(backlogs) {
        page.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
    }
    for (heading, label, rows) in parts() {
        if !heading.is_empty() {
            page.push_str(&format!(
                "\n## {heading}\n\n| metric | kind | label | meaning |\n|---|---|---|---|\n"
            ));
        }
        if heading == "The node" {
            page.push_str(&format!("| `{}` | gauge | {} | {} |\n", build::NAME, build::LABELS, build::HELP));
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
