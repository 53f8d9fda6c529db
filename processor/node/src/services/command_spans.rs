//! Spans of public commands, where traces are on.

use std::sync::Arc;

use everlog_partition::{CommandObserver, DecidedCommand};
use everlog_traces::{Command, Traces};

/// What makes a span of each public command.
pub fn observer(traces: Option<&Traces>) -> Option<Arc<dyn CommandObserver>> {
    traces.map(|traces| Arc::new(CommandSpans(traces.clone())) as Arc<dyn CommandObserver>)
}

struct CommandSpans(Traces);

impl CommandObserver for CommandSpans {
    fn decided(&self, command: &DecidedCommand<'_>) {
        let DecidedCommand {
            topic,
            partition,
            offset,
            namespace,
            workflow_id,
            traceparent,
            began_ms,
            refused,
        } = *command;
        self.0.command(&Command {
            topic,
            partition,
            offset,
            namespace,
            workflow_id,
            traceparent,
            began_ms,
            refused,
        });
    }
}
