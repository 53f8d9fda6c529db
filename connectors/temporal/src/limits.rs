//! The limits of the gateway, each with a name, a unit and a default.

/// The limits of the gateway. Limits that decisions depend on are the engine's, in its `Settings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request, both compressed and decompressed.
    pub message_bytes_max: usize,
    /// Bytes of a request's headers.
    pub header_bytes_max: u32,
    /// Calls in progress on one connection.
    pub streams_max: u32,
    /// Calls in progress, without long polls.
    pub calls_max: usize,
    /// Long polls in progress.
    pub polls_max: usize,
    /// Long polls in progress of one RPC in one namespace; 0 = no limit.
    pub namespace_polls_max: usize,
    /// Calls per second in one namespace; 0 = no limit.
    pub namespace_calls_per_second: u32,
    /// Long polls in progress of one RPC of one identity; 0 = no limit.
    pub identity_polls_max: usize,
    /// Calls per second of one identity; 0 = no limit.
    pub identity_calls_per_second: u32,
    /// Workflows may start children in other namespaces, and signal and cancel workflows there.
    pub cross_namespace_commands: bool,
    /// Namespaces in the registry.
    pub namespaces_max: usize,
    /// Namespaces with labels of their own in metrics; the others share one.
    pub metric_namespaces_max: usize,
    /// Bytes to which a failure is truncated if it exceeds the limit of a payload.
    pub cut_failure_bytes: usize,
    /// Links of one request.
    pub links_max: usize,
    /// Bytes of one link.
    pub link_bytes_max: usize,
    /// How long a worker's poll waits, in ms.
    pub poll_wait_ms: u64,
    /// How long a call waits for new events or an update, in ms.
    pub history_wait_ms: u64,
    /// How long a query waits if its caller has no deadline, in ms.
    pub query_wait_ms: u64,
    /// How long before the caller's deadline a long poll returns empty, in ms.
    pub deadline_margin_ms: u64,
    /// The shortest deadline that a worker's poll may have, in ms.
    pub poll_deadline_min_ms: u64,
    /// The schedule-to-start timeout of a sticky task queue if the worker sets none, in ms.
    pub sticky_wait_ms: i64,
    /// Batches of events on a page of history.
    pub history_page_batches_max: usize,
    /// Pages of history that are read at once; further ones wait.
    pub readers_max: usize,
    /// Bytes per second of these pages, over all connections; 0 = no limit.
    pub history_bytes_per_second: u64,
    /// Namespaces on a page.
    pub namespace_page_max: usize,
    /// The shortest retention of a namespace, in ms.
    pub retention_min_ms: i64,
    /// The retention of the default namespace, in ms.
    pub default_retention_ms: i64,
    /// The smallest response that is compressed, in bytes, if the caller accepts gzip.
    pub gzip_bytes_min: usize,
    /// How long a request may take to arrive, in ms.
    pub request_within_ms: u64,
    /// Bytes of requests in progress, of all connections.
    pub request_bytes_max: usize,
    /// How long a client may take to receive a response, in ms. The deadline of the call ends it earlier.
    pub answer_within_ms: u64,
    /// Bytes of responses that clients have not received yet, of all connections.
    pub answer_bytes_max: usize,
    /// Batch jobs of one namespace that may be open at once.
    pub namespace_batch_jobs_max: u32,
    /// Operations per second of a batch job: the most that it may ask for, and what it gets if it asks for nothing.
    pub batch_operations_per_second: u32,
    /// Workers that were shut down and are remembered, so that their late polls end at once.
    pub stopped_workers_max: usize,
    /// How long a worker that was shut down is remembered, in ms.
    pub stopped_worker_ms: u64,
    /// How long calls may take to finish when the gateway stops, in ms.
    pub drain_ms: u64,
}

/// A limit that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}; {allowed}")]
pub struct LimitError {
    /// The limit.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The permitted values.
    pub allowed: &'static str,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            streams_max: 4_096,
            calls_max: 20_000,
            polls_max: 50_000,
            namespace_polls_max: 0,
            namespace_calls_per_second: 0,
            identity_polls_max: 0,
            identity_calls_per_second: 0,
            cross_namespace_commands: false,
            namespaces_max: 10_000,
            metric_namespaces_max: 100,
            cut_failure_bytes: 512 << 10,
            links_max: 10,
            link_bytes_max: 4_000,
            poll_wait_ms: 60_000,
            history_wait_ms: 20_000,
            query_wait_ms: 60_000,
            deadline_margin_ms: 1_000,
            poll_deadline_min_ms: 2_000,
            sticky_wait_ms: 10_000,
            history_page_batches_max: 256,
            readers_max: 4,
            history_bytes_per_second: 256 << 20,
            namespace_page_max: 1_000,
            retention_min_ms: 3_600_000,
            default_retention_ms: 3 * 86_400_000,
            gzip_bytes_min: 64 << 10,
            request_within_ms: 30_000,
            request_bytes_max: 128 << 20,
            answer_within_ms: 60_000,
            answer_bytes_max: 128 << 20,
            namespace_batch_jobs_max: 1,
            batch_operations_per_second: 500,
            stopped_workers_max: 10_000,
            stopped_worker_ms: 120_000,
            drain_ms: 500,
        }
    }
}

impl Limits {
    /// Checks each limit, and limits against each other.
    ///
    /// # Errors
    /// The first limit that is out of range, with the permitted values.
    pub fn validate(&self) -> Result<(), LimitError> {
        let sizes = [
            ("message_bytes_max", self.message_bytes_max, 64 << 10),
            ("calls_max", self.calls_max, 1),
            ("polls_max", self.polls_max, 1),
            ("namespaces_max", self.namespaces_max, 1),
            ("history_page_batches_max", self.history_page_batches_max, 1),
            ("readers_max", self.readers_max, 1),
            ("namespace_page_max", self.namespace_page_max, 1),
            ("header_bytes_max", self.header_bytes_max as usize, 4 << 10),
            ("streams_max", self.streams_max as usize, 1),
            ("namespace_batch_jobs_max", self.namespace_batch_jobs_max as usize, 1),
            ("batch_operations_per_second", self.batch_operations_per_second as usize, 1),
        ];
        for (name, value, least) in sizes {
            if value < least {
                let allowed = match least {
                    1 => "it has to be at least 1",
                    4_096 => "it has to be at least 4096",
                    _ => "it has to be at least 65536",
                };
                return Err(LimitError { name, value: value.to_string(), allowed });
            }
        }
        self.validate_times()
    }

    fn validate_times(&self) -> Result<(), LimitError> {
        let wrong = |name, value: String, allowed| Err(LimitError { name, value, allowed });
        if !(1_000..=60_000).contains(&self.poll_wait_ms) {
            let allowed = "workers give up after 70 s: 1000 to 60000 are allowed";
            return wrong("poll_wait_ms", self.poll_wait_ms.to_string(), allowed);
        }
        if !(1_000..=60_000).contains(&self.history_wait_ms) {
            return wrong("history_wait_ms", self.history_wait_ms.to_string(), "1000 to 60000 are allowed");
        }
        if self.poll_deadline_min_ms <= self.deadline_margin_ms {
            let allowed = "it has to be greater than deadline_margin_ms";
            return wrong("poll_deadline_min_ms", self.poll_deadline_min_ms.to_string(), allowed);
        }
        if self.sticky_wait_ms < 1 {
            return wrong("sticky_wait_ms", self.sticky_wait_ms.to_string(), "it has to be at least 1");
        }
        if self.retention_min_ms < 1 || self.default_retention_ms < self.retention_min_ms {
            let allowed = "it has to be at least retention_min_ms, and that at least 1";
            return wrong("default_retention_ms", self.default_retention_ms.to_string(), allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Limits::default().validate(), Ok(()));
    }

    #[test]
    fn a_wrong_limit_is_named_with_its_value_and_what_is_allowed() {
        let limits = Limits { poll_wait_ms: 90_000, ..Limits::default() };
        let error = limits.validate().expect_err("too long");
        assert_eq!(
            error.to_string(),
            "poll_wait_ms is 90000; workers give up after 70 s: 1000 to 60000 are allowed"
        );
        let limits = Limits { message_bytes_max: 10, ..Limits::default() };
        assert_eq!(limits.validate().expect_err("too small").name, "message_bytes_max");
    }
}
