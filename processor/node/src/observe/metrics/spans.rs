//! The metric of spans: what became of them.

use everlog_traces::SpanCounts;

use super::*;

pub(super) const TRACE_SPANS: &[Row<u64>] = rows! {
    Counts "everlog_trace_spans_total" "Sampled spans of calls, by what became of them: exported, dropped because too many waited, failed to be taken by the collector." |n| *n as f64;
};

/// Adds the counts of a node whose traces are on.
pub(super) fn watch_spans(registry: &Registry, counts: Arc<SpanCounts>) {
    add(registry, TRACE_SPANS, Some("outcome"), move |visit| {
        for (outcome, count) in counts.outcomes() {
            visit(outcome, &count);
        }
    });
}
