//! The settings of the gateway.

use std::time::Duration;

use everlog_listen::{Descriptors, ListenerBounds};
use everlog_temporal as temporal;

use crate::setting::{Given, Refusal, Setting, section};

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const DAY_MS: i64 = 86_400_000;

section! {
    /// What one call, one connection, one namespace may ask for. Beyond the counts calls get RESOURCE_EXHAUSTED.
    Gateway = "gateway" {
        /// Connections at once, of half of the descriptors that connections may have at most. Beyond it the one
        /// without a call for the longest time is closed; if all have calls, further ones wait.
        connections_max: usize = 10_000, 1..=1_000_000;
        /// Connections at once from one address. Beyond it one of its own is closed, or the new one.
        address_connections_max: usize = 2_000, 1..=1_000_000;
        /// How long a client may take to begin with HTTP/2 once it is connected.
        hello_within_ms: u64 = 10 * SECOND_MS, 100..=10 * MINUTE_MS;
        /// How long a connection may be without a call; then it is closed, and its client connects anew with the next one.
        idle_within_ms: u64 = 10 * MINUTE_MS, SECOND_MS..=DAY_MS as u64;
        /// How long a request may take to arrive.
        request_within_ms: u64 = 30 * SECOND_MS, 100..=10 * MINUTE_MS;
        /// Bytes of incoming requests of all connections, as received and decoded. The last eighth is kept for those
        /// up to 64 KiB.
        request_bytes_max: usize = 128 << 20, 48 << 20..=1 << 40;
        /// The same of one connection.
        connection_request_bytes_max: usize = 64 << 20, 48 << 20..=1 << 40;
        /// How long a client may take to receive an answer; at most until the deadline of its call.
        answer_within_ms: u64 = MINUTE_MS, 100..=10 * MINUTE_MS;
        /// Bytes of answers that clients have not received yet, of all connections. The last eighth is kept for those
        /// up to 64 KiB.
        answer_bytes_max: usize = 128 << 20, 32 << 20..=1 << 40;
        /// Bytes of answers that one connection has not received yet.
        connection_answer_bytes_max: usize = 32 << 20, 8 << 20..=1 << 40;
        /// Bytes of one request, as it is sent and as it is unpacked.
        message_bytes_max: usize = 4 << 20, 64 << 10..=16 << 20;
        /// Bytes of a request's headers.
        header_bytes_max: u32 = 64 << 10, 4 << 10..=1 << 20;
        /// Calls at once on one connection.
        streams_max: u32 = 4_096, 1..=1_000_000;
        /// Calls at once, long polls not counted.
        calls_max: usize = 20_000, 1..=1_000_000;
        /// Long polls at once.
        polls_max: usize = 50_000, 1..=1_000_000;
        /// Long polls at once of one method in one namespace; 0 = no limit.
        namespace_polls_max: usize = 0, 0..=1_000_000;
        /// Calls per second in one namespace; 0 = no limit.
        namespace_calls_per_second: u32 = 0, 0..=10_000_000;
        /// Long polls at once of one method by one identity; 0 = no limit. Only with `auth.enabled`.
        identity_polls_max: usize = 0, 0..=1_000_000;
        /// Calls per second of one identity; 0 = no limit. Only with `auth.enabled`.
        identity_calls_per_second: u32 = 0, 0..=10_000_000;
        /// Whether workflows may start children in other namespaces, and signal and cancel workflows there. With `auth.enabled` the
        /// worker needs the role of a writer in each of them.
        cross_namespace_commands: bool = false, ();
        /// Namespaces.
        namespaces_max: usize = 10_000, 1..=100_000;
        /// Namespaces that have metrics of their own; the others share one label.
        metric_namespaces_max: usize = 100, 0..=10_000;
        /// Task queues whose backlogs have metrics of their own; the others of a namespace share one label.
        metric_task_queues_max: usize = 100, 0..=10_000;
        /// Bytes to which a failure is cut that is larger than a payload may be.
        cut_failure_bytes: usize = 512 << 10, 1 << 10..=16 << 20;
        /// Links of one request.
        links_max: usize = 10, 0..=10_000;
        /// Bytes of one link.
        link_bytes_max: usize = 4_000, 0..=1 << 20;
        /// How long a worker's poll waits. Workers give up after 70 s.
        poll_wait_ms: u64 = MINUTE_MS, SECOND_MS..=MINUTE_MS;
        /// How long a call waits that asks for new events.
        history_wait_ms: u64 = 20 * SECOND_MS, SECOND_MS..=MINUTE_MS;
        /// How long a query waits whose caller names no deadline.
        query_wait_ms: u64 = MINUTE_MS, SECOND_MS..=60 * MINUTE_MS;
        /// How long before the caller's deadline a long poll is answered.
        deadline_margin_ms: u64 = SECOND_MS, 0..=30 * SECOND_MS;
        /// The shortest deadline that a worker's poll may have.
        poll_deadline_min_ms: u64 = 2 * SECOND_MS, 1..=MINUTE_MS;
        /// How long a workflow task waits in a sticky queue where the worker does not say.
        sticky_wait_ms: i64 = 10_000, 1..=3_600_000;
        /// Batches of events on a page of history.
        history_page_batches_max: usize = 256, 1..=10_000;
        /// Pages of history that are made at once, two of them for one connection; further ones wait.
        readers_max: usize = 4, 1..=10_000;
        /// Bytes of these pages in a second, of all connections; the rest waits. 0 = no limit.
        history_bytes_per_second: u64 = 256 << 20, 0..=1 << 40;
        /// Namespaces on a page.
        namespace_page_max: usize = 1_000, 1..=10_000;
        /// The shortest retention of a namespace.
        retention_min_ms: i64 = 3_600_000, 1..=36_500 * DAY_MS;
        /// The retention of the namespace that is there from the first start.
        default_retention_ms: i64 = 3 * DAY_MS, 1..=36_500 * DAY_MS;
        /// Bytes of an answer from which on it is compressed. The caller has to accept that, half of the cores must
        /// have time, and it must get smaller by an eighth.
        gzip_bytes_min: usize = 64 << 10, 0..=1 << 30;
        /// Batch jobs of one namespace that may be open at once.
        namespace_batch_jobs_max: u32 = 1, 1..=1_000;
        /// Operations per second of a batch job: the most that it may ask for with `max_operations_per_second`, and what
        /// it gets if it asks for nothing.
        batch_operations_per_second: u32 = 500, 1..=1_000_000;
        /// Workers that were shut down and whose late polls are refused.
        stopped_workers_max: usize = 10_000, 0..=1_000_000;
        /// How long a worker that was shut down is remembered.
        stopped_worker_ms: u64 = 2 * MINUTE_MS, 0..=60 * MINUTE_MS;
        /// How long calls may take to end when the node stops. The whole stop should take less than 2 s.
        drain_ms: u64 = 500, 0..=MINUTE_MS;
    }
}

impl Gateway {
    /// As limits of the gateway.
    pub fn limits(&self) -> temporal::Limits {
        temporal::Limits {
            message_bytes_max: self.message_bytes_max,
            header_bytes_max: self.header_bytes_max,
            streams_max: self.streams_max,
            calls_max: self.calls_max,
            polls_max: self.polls_max,
            namespace_polls_max: self.namespace_polls_max,
            namespace_calls_per_second: self.namespace_calls_per_second,
            cross_namespace_commands: self.cross_namespace_commands,
            identity_polls_max: self.identity_polls_max,
            identity_calls_per_second: self.identity_calls_per_second,
            namespaces_max: self.namespaces_max,
            metric_namespaces_max: self.metric_namespaces_max,
            cut_failure_bytes: self.cut_failure_bytes,
            links_max: self.links_max,
            link_bytes_max: self.link_bytes_max,
            poll_wait_ms: self.poll_wait_ms,
            history_wait_ms: self.history_wait_ms,
            query_wait_ms: self.query_wait_ms,
            deadline_margin_ms: self.deadline_margin_ms,
            poll_deadline_min_ms: self.poll_deadline_min_ms,
            sticky_wait_ms: self.sticky_wait_ms,
            history_page_batches_max: self.history_page_batches_max,
            readers_max: self.readers_max,
            history_bytes_per_second: self.history_bytes_per_second,
            namespace_page_max: self.namespace_page_max,
            retention_min_ms: self.retention_min_ms,
            default_retention_ms: self.default_retention_ms,
            gzip_bytes_min: self.gzip_bytes_min,
            request_within_ms: self.request_within_ms,
            request_bytes_max: self.request_bytes_max,
            answer_within_ms: self.answer_within_ms,
            answer_bytes_max: self.answer_bytes_max,
            namespace_batch_jobs_max: self.namespace_batch_jobs_max,
            batch_operations_per_second: self.batch_operations_per_second,
            stopped_workers_max: self.stopped_workers_max,
            stopped_worker_ms: self.stopped_worker_ms,
            drain_ms: self.drain_ms,
        }
    }

    /// As bounds of its listener.
    pub fn bounds(&self, descriptors: Descriptors) -> ListenerBounds {
        ListenerBounds {
            connections_max: descriptors.share(4, self.connections_max),
            address_connections_max: self.address_connections_max,
            hello_within: Duration::from_millis(self.hello_within_ms),
            idle_within: Duration::from_millis(self.idle_within_ms),
            request_bytes_max: self.connection_request_bytes_max,
            answer_bytes_max: self.connection_answer_bytes_max,
        }
    }

    /// Checks that concern several keys.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        if let Err(error) = self.limits().validate() {
            let temporal::LimitError { name, value, allowed } = error;
            faults.push(format!("gateway.{name} = {value} is not allowed; {allowed}"));
        }
        // One request must fit, as received and decoded.
        let least = (self.message_bytes_max + temporal::STRUCTURE_BYTES_MAX) / 7 * 8;
        let bounds = [
            ("connection_request_bytes_max", self.connection_request_bytes_max),
            ("request_bytes_max", self.request_bytes_max),
        ];
        for (name, bytes) in bounds.into_iter().filter(|(_, bytes)| *bytes < least) {
            faults.push(format!(
                "gateway.{name} = {bytes} is not allowed; a request of gateway.message_bytes_max needs {least}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_gateway_but_leave_time_for_the_last_commit() {
        let expected = temporal::Limits { drain_ms: 500, ..temporal::Limits::default() };
        assert_eq!(Gateway::default().limits(), expected);
    }
}
