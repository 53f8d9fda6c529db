//! The settings with limits of runs. They reach partitions as a record, so that every replay sees the same.

use everlog_engine::Settings;

use crate::setting::{Given, Refusal, Setting, section};

const SECOND_MS: i64 = 1_000;
const HOUR_MS: i64 = 3_600 * SECOND_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const MIB: i64 = 1 << 20;

section! {
    /// Limits of one run. The defaults are those of Temporal's server.
    Limits = "limits" {
        /// Start-to-close timeout of a workflow task where a start names none.
        task_timeout_default_ms: i64 = 10 * SECOND_MS, 1..=HOUR_MS;
        /// The longest start-to-close timeout of a workflow task; longer ones are cut to it.
        task_timeout_max_ms: i64 = 120 * SECOND_MS, 1..=HOUR_MS;
        /// How long a workflow task may be kept alive by heartbeats alone.
        task_heartbeat_max_ms: i64 = HOUR_MS / 2, SECOND_MS..=DAY_MS;
        /// From this attempt on, a failing workflow task is delayed.
        task_backoff_attempt: i32 = 4, 2..=1_000;
        /// The first such delay; it doubles with each attempt.
        task_backoff_initial_ms: i64 = 5 * SECOND_MS, 1..=HOUR_MS;
        /// The longest such delay.
        task_backoff_max_ms: i64 = 600 * SECOND_MS, 1..=DAY_MS;
        /// After so many attempts in a row at a workflow task that a worker has taken and not answered, the next one
        /// is offered only after a delay. An answer of a worker resets the count. 0 = never.
        task_rest_attempts: i32 = 3, 0..=1_000;
        /// The first such delay; it doubles with each further attempt.
        task_rest_initial_ms: i64 = 10 * SECOND_MS, 1..=HOUR_MS;
        /// The longest such delay.
        task_rest_max_ms: i64 = 600 * SECOND_MS, 1..=DAY_MS;
        /// Events that may arrive during a workflow task; more of them fail the task.
        buffered_events_max: i64 = 100, 1..=100_000;
        /// Bytes of the events that may arrive during a workflow task; more of them fail the task.
        buffered_bytes_max: i64 = 2 * MIB, 1_024..=256 * MIB;
        /// Events from which a worker is advised to continue as new.
        suggest_events: i64 = 4_096, 1..=10_000_000;
        /// Bytes of history from which a worker is advised to continue as new.
        suggest_bytes: i64 = 4 * MIB, 1_024..=1_024 * MIB;
        /// Events of a history beyond which a run is terminated.
        history_events_max: i64 = 51_200, 10..=10_000_000;
        /// Bytes of a history beyond which a run is terminated.
        history_bytes_max: i64 = 50 * MIB, 1_024..=1_024 * MIB;
        /// Events of a history beyond which a warning is logged and counted; 0 = never.
        history_events_warn: i64 = 10_240, 0..=10_000_000;
        /// Bytes of a history beyond which a warning is logged and counted; 0 = never.
        history_bytes_warn: i64 = 10 * MIB, 0..=1_024 * MIB;
        /// Open activities of a run.
        pending_activities_max: i64 = 2_000, 1..=100_000;
        /// Children of a run that have not closed.
        pending_children_max: i64 = 2_000, 1..=100_000;
        /// Signals of a run that are on their way to other workflows.
        pending_signals_max: i64 = 2_000, 1..=100_000;
        /// Requests of a run to cancel other workflows that are on their way.
        pending_cancels_max: i64 = 2_000, 1..=100_000;
        /// Signals of a run.
        signals_max: i64 = 10_000, 1..=10_000_000;
        /// Bytes of one payload field.
        blob_bytes_max: i64 = 2 * MIB, 1_024..=16 * MIB;
        /// Bytes of one payload field beyond which a warning is logged and counted, once for a run while it stays in memory; 0 = never.
        blob_bytes_warn: i64 = MIB / 2, 0..=16 * MIB;
        /// Bytes of a memo.
        memo_bytes_max: i64 = 2 * MIB, 1_024..=16 * MIB;
        /// Bytes of a memo beyond which a warning is logged and counted, once for a run while it stays in memory; 0 = never.
        memo_bytes_warn: i64 = 2_048, 0..=16 * MIB;
        /// Bytes of ids and names.
        id_bytes_max: i64 = 1_000, 1..=10_000;
        /// Bytes of a fairness key; 0 = no limit.
        fairness_key_bytes_max: i64 = 64, 0..=1_024;
        /// Bytes of a failure that is kept between the attempts of an activity or task.
        kept_failure_bytes_max: i64 = 4_096, 256..=MIB;
        /// The least time from the beginning of a run to the first task of the run that continues it; 0 = none.
        continue_interval_min_ms: i64 = 0, 0..=HOUR_MS;
        /// Deadlines of one run that one record settles.
        wake_slice_max: i64 = 100, 1..=10_000;
        /// Keys of one set of search attributes.
        search_attributes_max: i64 = 100, 1..=10_000;
        /// Bytes of one search attribute's value.
        search_attribute_bytes_max: i64 = 2_048, 1..=MIB;
        /// Bytes of one set of search attributes.
        search_attributes_bytes_max: i64 = 40_960, 1..=16 * MIB;
        /// Bytes of a run's state beyond which it is terminated: open activities with what they reported, timers, buffered
        /// events, memo and search attributes; 0 = no limit.
        state_bytes_max: i64 = 8 * MIB, 0..=1_024 * MIB;
        /// Bytes of a run's state beyond which a warning is logged and counted; 0 = never.
        state_bytes_warn: i64 = MIB, 0..=1_024 * MIB;
        /// Keys of a memo.
        memo_keys_max: i64 = 10_000, 1..=1_000_000;
        /// Bytes of the summary in the user metadata of a start or of a command; 0 = no limit.
        summary_bytes_max: i64 = 400, 0..=MIB;
        /// Bytes of the details in the user metadata of a start or of a command; 0 = no limit.
        details_bytes_max: i64 = 20_000, 0..=MIB;
        /// Updates of a run that are not completed; 0 = no limit.
        updates_in_flight_max: i64 = 10, 0..=1_000_000;
        /// Bytes of a run's updates that no worker has accepted; 0 = no limit.
        updates_bytes_max: i64 = 20 * MIB, 0..=1_024 * MIB;
        /// Updates of a run, completed or not; from nine tenths on a worker is advised to continue as new. 0 = no limit.
        updates_max: i64 = 2_000, 0..=10_000_000;
    }
}

impl Limits {
    /// As settings of the engine.
    pub fn engine(&self) -> Settings {
        Settings {
            task_timeout_default_ms: self.task_timeout_default_ms,
            task_timeout_max_ms: self.task_timeout_max_ms,
            task_heartbeat_max_ms: self.task_heartbeat_max_ms,
            task_backoff_attempt: self.task_backoff_attempt,
            task_backoff_initial_ms: self.task_backoff_initial_ms,
            task_backoff_max_ms: self.task_backoff_max_ms,
            task_rest_attempts: self.task_rest_attempts,
            task_rest_initial_ms: self.task_rest_initial_ms,
            task_rest_max_ms: self.task_rest_max_ms,
            buffered_events_max: self.buffered_events_max,
            buffered_bytes_max: self.buffered_bytes_max,
            suggest_events: self.suggest_events,
            suggest_bytes: self.suggest_bytes,
            history_events_max: self.history_events_max,
            history_bytes_max: self.history_bytes_max,
            history_events_warn: self.history_events_warn,
            history_bytes_warn: self.history_bytes_warn,
            pending_activities_max: self.pending_activities_max,
            pending_children_max: self.pending_children_max,
            pending_signals_max: self.pending_signals_max,
            pending_cancels_max: self.pending_cancels_max,
            signals_max: self.signals_max,
            blob_bytes_max: self.blob_bytes_max,
            blob_bytes_warn: self.blob_bytes_warn,
            memo_bytes_max: self.memo_bytes_max,
            memo_bytes_warn: self.memo_bytes_warn,
            id_bytes_max: self.id_bytes_max,
            fairness_key_bytes_max: self.fairness_key_bytes_max,
            kept_failure_bytes_max: self.kept_failure_bytes_max,
            continue_interval_min_ms: self.continue_interval_min_ms,
            wake_slice_max: self.wake_slice_max,
            search_attributes_max: self.search_attributes_max,
            search_attribute_bytes_max: self.search_attribute_bytes_max,
            search_attributes_bytes_max: self.search_attributes_bytes_max,
            state_bytes_max: self.state_bytes_max,
            state_bytes_warn: self.state_bytes_warn,
            memo_keys_max: self.memo_keys_max,
            summary_bytes_max: self.summary_bytes_max,
            details_bytes_max: self.details_bytes_max,
            updates_in_flight_max: self.updates_in_flight_max,
            updates_bytes_max: self.updates_bytes_max,
            updates_max: self.updates_max,
        }
    }

    /// Checks that concern several keys.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        for (low, low_value, high, high_value) in [
            (
                "task_timeout_default_ms",
                self.task_timeout_default_ms,
                "task_timeout_max_ms",
                self.task_timeout_max_ms,
            ),
            (
                "task_backoff_initial_ms",
                self.task_backoff_initial_ms,
                "task_backoff_max_ms",
                self.task_backoff_max_ms,
            ),
            ("task_rest_initial_ms", self.task_rest_initial_ms, "task_rest_max_ms", self.task_rest_max_ms),
            ("suggest_events", self.suggest_events, "history_events_max", self.history_events_max),
            ("suggest_bytes", self.suggest_bytes, "history_bytes_max", self.history_bytes_max),
            ("blob_bytes_max", self.blob_bytes_max, "history_bytes_max", self.history_bytes_max),
        ] {
            if low_value > high_value {
                faults.push(format!(
                    "limits.{low} = {low_value} is not allowed; allowed is at most limits.{high} = {high_value}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_engine() {
        assert_eq!(Limits::default().engine(), Settings::standard());
    }
}
