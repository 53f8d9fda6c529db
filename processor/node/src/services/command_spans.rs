//! Spans of public commands, where traces are on.

use std::sync::Arc;

use everlog_partition::{CommandObserver, DecidedCommand};
use everlog_traces::{KeyValue, Traces};

/// What makes a span of each public command.
pub fn observer(traces: Option<&Traces>) -> Option<Arc<dyn CommandObserver>> {
    traces.map(|traces| Arc::new(CommandSpans(traces.clone())) as Arc<dyn CommandObserver>)
}

struct CommandSpans(Traces);

impl CommandObserver for CommandSpans {
    fn decided(&self, command: &DecidedCommand<'_>) {
        let attributes = vec![
            KeyValue::new("messaging.destination.partition.id", command.partition.to_string()),
            KeyValue::new("messaging.kafka.offset", i64::try_from(command.offset).unwrap_or(i64::MAX)),
            KeyValue::new("temporalNamespace", command.namespace.to_owned()),
            KeyValue::new("temporalWorkflowID", command.workflow_id.to_owned()),
        ];
        self.0.processed(command.topic, command.traceparent, command.began_ms, attributes, command.refused);
    }
}
