//! Limits and defaults that decisions depend on; they reach a partition as a journal record.

/// Every limit of the engine, by name. The defaults are those of Temporal's server.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Settings {
    /// Start-to-close timeout of a workflow task where a start names none, in ms.
    #[prost(int64, tag = "1")]
    pub task_timeout_default_ms: i64,
    /// The longest start-to-close timeout of a workflow task, in ms.
    #[prost(int64, tag = "2")]
    pub task_timeout_max_ms: i64,
    /// How long a workflow task may be kept alive by heartbeats alone, in ms.
    #[prost(int64, tag = "3")]
    pub task_heartbeat_max_ms: i64,
    /// Back-off of a failing workflow task: from this attempt on ...
    #[prost(int32, tag = "4")]
    pub task_backoff_attempt: i32,
    /// ... this is added to its timeout, in ms, doubled with each attempt ...
    #[prost(int64, tag = "5")]
    pub task_backoff_initial_ms: i64,
    /// ... up to this, in ms.
    #[prost(int64, tag = "6")]
    pub task_backoff_max_ms: i64,
    /// Buffered events that fail the running workflow task.
    #[prost(int64, tag = "7")]
    pub buffered_events_max: i64,
    /// Bytes of buffered events that fail the running workflow task.
    #[prost(int64, tag = "8")]
    pub buffered_bytes_max: i64,
    /// Events from which a worker is advised to continue as new.
    #[prost(int64, tag = "9")]
    pub suggest_events: i64,
    /// Bytes of history from which a worker is advised to continue as new.
    #[prost(int64, tag = "10")]
    pub suggest_bytes: i64,
    /// Events at which a run is terminated.
    #[prost(int64, tag = "11")]
    pub history_events_max: i64,
    /// Bytes of history at which a run is terminated.
    #[prost(int64, tag = "12")]
    pub history_bytes_max: i64,
    /// Open activities of a run.
    #[prost(int64, tag = "13")]
    pub pending_activities_max: i64,
    /// Signals of a run.
    #[prost(int64, tag = "14")]
    pub signals_max: i64,
    /// Bytes of one payload field.
    #[prost(int64, tag = "15")]
    pub blob_bytes_max: i64,
    /// Bytes of a memo.
    #[prost(int64, tag = "16")]
    pub memo_bytes_max: i64,
    /// Bytes of ids and names.
    #[prost(int64, tag = "17")]
    pub id_bytes_max: i64,
    /// Bytes of a failure that is kept in the state between attempts.
    #[prost(int64, tag = "18")]
    pub kept_failure_bytes_max: i64,
    /// The least time from the beginning of a run to the first task of the run that continues it, in ms.
    #[prost(int64, tag = "19")]
    pub continue_interval_min_ms: i64,
    /// Deadlines of one run that one record settles.
    #[prost(int64, tag = "20")]
    pub wake_slice_max: i64,
    /// Keys of one set of search attributes.
    #[prost(int64, tag = "21")]
    pub search_attributes_max: i64,
    /// Bytes of one search attribute's value.
    #[prost(int64, tag = "22")]
    pub search_attribute_bytes_max: i64,
    /// Bytes of one set of search attributes.
    #[prost(int64, tag = "23")]
    pub search_attributes_bytes_max: i64,
    /// Bytes of the mutable state at which a run is terminated: open activities with what they reported, timers,
    /// buffered events, memo and search attributes.
    #[prost(int64, tag = "24")]
    pub state_bytes_max: i64,
    /// Keys of a memo.
    #[prost(int64, tag = "25")]
    pub memo_keys_max: i64,
    /// Bytes of the summary in the user metadata of a run or of a command; 0 = no limit.
    #[prost(int64, tag = "26")]
    pub summary_bytes_max: i64,
    /// Bytes of the details in the user metadata of a run or of a command; 0 = no limit.
    #[prost(int64, tag = "27")]
    pub details_bytes_max: i64,
    /// Updates of a run that are not completed; 0 = no limit.
    #[prost(int64, tag = "28")]
    pub updates_in_flight_max: i64,
    /// Bytes of a run's updates that nobody has accepted; 0 = no limit.
    #[prost(int64, tag = "29")]
    pub updates_bytes_max: i64,
    /// Updates of a run, completed or not; from nine tenths on a worker is advised to continue as new. 0 = no limit.
    #[prost(int64, tag = "30")]
    pub updates_max: i64,
    /// Events of a history beyond which a warning is written; 0 = never.
    #[prost(int64, tag = "31")]
    pub history_events_warn: i64,
    /// Bytes of a history beyond which a warning is written; 0 = never.
    #[prost(int64, tag = "32")]
    pub history_bytes_warn: i64,
    /// Children of a run that have not closed; 0 = the standard.
    #[prost(int64, tag = "40")]
    pub pending_children_max: i64,
    /// Signals of a run that are on their way to other workflows; 0 = the standard.
    #[prost(int64, tag = "41")]
    pub pending_signals_max: i64,
    /// Requests of a run to cancel other workflows that are on their way; 0 = the standard.
    #[prost(int64, tag = "42")]
    pub pending_cancels_max: i64,
    /// Bytes of a fairness key; 0 = no limit.
    #[prost(int64, tag = "43")]
    pub fairness_key_bytes_max: i64,
    /// Bytes of the mutable state beyond which a warning is written; 0 = never.
    #[prost(int64, tag = "44")]
    pub state_bytes_warn: i64,
    /// Bytes of a memo beyond which a warning is written; 0 = never.
    #[prost(int64, tag = "45")]
    pub memo_bytes_warn: i64,
    /// Bytes of one payload field beyond which a warning is written; 0 = never.
    #[prost(int64, tag = "46")]
    pub blob_bytes_warn: i64,
    /// Attempts of a workflow task in a row, each taken by a worker and not answered, behind which the next one rests; 0 = never.
    #[prost(int32, tag = "47")]
    pub task_rest_attempts: i32,
    /// The first such rest in ms; it doubles with each further attempt ...
    #[prost(int64, tag = "48")]
    pub task_rest_initial_ms: i64,
    /// ... up to this, in ms.
    #[prost(int64, tag = "49")]
    pub task_rest_max_ms: i64,
}

/// Children, signals or requests under way where settings of an earlier release say nothing.
const PENDING_MAX: i64 = 2_000;

impl Settings {
    /// The limits of Temporal's server, save the spacing of continue-as-new, which is off here.
    pub fn standard() -> Self {
        Self {
            task_timeout_default_ms: 10_000,
            task_timeout_max_ms: 120_000,
            task_heartbeat_max_ms: 30 * 60_000,
            task_backoff_attempt: 4,
            task_backoff_initial_ms: 5_000,
            task_backoff_max_ms: 10 * 60_000,
            buffered_events_max: 100,
            buffered_bytes_max: 2 << 20,
            suggest_events: 4_096,
            suggest_bytes: 4 << 20,
            history_events_max: 51_200,
            history_bytes_max: 50 << 20,
            pending_activities_max: 2_000,
            signals_max: 10_000,
            blob_bytes_max: 2 << 20,
            memo_bytes_max: 2 << 20,
            id_bytes_max: 1_000,
            kept_failure_bytes_max: 4_096,
            continue_interval_min_ms: 0,
            wake_slice_max: 100,
            search_attributes_max: 100,
            search_attribute_bytes_max: 2_048,
            search_attributes_bytes_max: 40_960,
            state_bytes_max: 8 << 20,
            memo_keys_max: 10_000,
            summary_bytes_max: 400,
            details_bytes_max: 20_000,
            updates_in_flight_max: 10,
            updates_bytes_max: 20 << 20,
            updates_max: 2_000,
            history_events_warn: 10_240,
            history_bytes_warn: 10 << 20,
            pending_children_max: PENDING_MAX,
            pending_signals_max: PENDING_MAX,
            pending_cancels_max: PENDING_MAX,
            fairness_key_bytes_max: 64,
            state_bytes_warn: 1 << 20,
            memo_bytes_warn: 2 << 10,
            blob_bytes_warn: 512 << 10,
            task_rest_attempts: 3,
            task_rest_initial_ms: 10_000,
            task_rest_max_ms: 10 * 60_000,
        }
    }

    pub(crate) fn pending_children_max(&self) -> i64 {
        standard_if_unset(self.pending_children_max)
    }

    pub(crate) fn pending_signals_max(&self) -> i64 {
        standard_if_unset(self.pending_signals_max)
    }

    pub(crate) fn pending_cancels_max(&self) -> i64 {
        standard_if_unset(self.pending_cancels_max)
    }
}

fn standard_if_unset(limit: i64) -> i64 {
    if limit == 0 { PENDING_MAX } else { limit }
}
