//! Log lines of librdkafka's clients, limited: each kind of line once in ten minutes and client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A kind of line is repeated after this. A dozen clients a node reconnect every second, and the node itself logs the
/// consequence once a minute.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Kinds of lines that are remembered; beyond, each line is logged.
const KINDS_MAX: usize = 64;

/// How librdkafka ends its warning about a request that it sends again by itself. A producer that meets a coordinator which
/// still loads, as after the start of a broker, is one of these.
const SENT_AGAIN: &str = ": retrying";

/// Clients that join their groups.
const MEMBERS: &[&str] = &["nodes", "commands"];

/// The log lines of one client.
#[derive(Debug)]
pub(crate) struct ClientLog {
    client: &'static str,
    logged: Mutex<BTreeMap<String, Logged>>,
    is_group_denied: AtomicBool,
}

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Lines suppressed since then.
    times: u64,
}

impl ClientLog {
    pub(crate) fn new(client: &'static str) -> Self {
        ClientLog { client, logged: Mutex::default(), is_group_denied: AtomicBool::new(false) }
    }

    /// Whether the brokers have denied this client its group. A request about the group is then not answered: it times out.
    pub(crate) fn is_group_denied(&self) -> bool {
        self.is_group_denied.load(Ordering::Relaxed)
    }

    /// Some: a line of this kind is logged now, after so many were suppressed since the last one.
    fn is_due(&self, kind: &str, now: Instant) -> Option<u64> {
        let mut logged = self.logged.lock();
        if let Some(last) = logged.get_mut(kind) {
            if now.duration_since(last.at) < AGAIN_AFTER {
                last.times += 1;
                return None;
            }
            let times = last.times;
            *last = Logged { at: now, times: 0 };
            return Some(times);
        }
        if logged.len() >= KINDS_MAX {
            logged.retain(|_, last| now.duration_since(last.at) < AGAIN_AFTER);
        }
        if logged.len() < KINDS_MAX {
            logged.insert(kind.to_owned(), Logged { at: now, times: 0 });
        }
        Some(0)
    }
}

impl ClientContext for ClientLog {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        let client = self.client;
        match level_of(level, text) {
            RDKafkaLogLevel::Debug => {
                tracing::debug!(target: "everlog::kafka", client, facility, "{text}");
                return;
            }
            RDKafkaLogLevel::Info => {
                // A connection that ends is one of these.
                if let Some(suppressed) = self.is_due(&format!("{facility} by the way"), Instant::now()) {
                    tracing::info!(target: "everlog::kafka", client, facility, suppressed, "{text}");
                }
                return;
            }
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning
            | RDKafkaLogLevel::Notice => {}
        }
        // Each producer that is made anew would say it three times; the call that it disturbs says who is denied what.
        if text.contains("Transactional Id authorization failed") {
            return;
        }
        // The call that it disturbs reports the consequence.
        if let Some(suppressed) = self.is_due(facility, Instant::now()) {
            tracing::warn!(target: "everlog::kafka", client, facility, suppressed, "{text}");
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        // The end of a partition is no error, and broken connections were logged already. The node logs that no broker is left,
        // and why it may not take a transactional id.
        if matches!(
            code,
            Some(
                RDKafkaErrorCode::PartitionEOF
                    | RDKafkaErrorCode::AllBrokersDown
                    | RDKafkaErrorCode::BrokerTransportFailure
                    | RDKafkaErrorCode::Resolve
                    | RDKafkaErrorCode::NoError
                    | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
            )
        ) {
            return;
        }
        if code == Some(RDKafkaErrorCode::GroupAuthorizationFailed) {
            self.is_group_denied.store(true, Ordering::Relaxed);
        }
        // Readers name a group to librdkafka, and never join it: what is denied of it takes nothing from them.
        if code == Some(RDKafkaErrorCode::GroupAuthorizationFailed) && !MEMBERS.contains(&self.client) {
            return;
        }
        let kind = code.map_or_else(|| error.to_string(), |code| format!("{code:?}"));
        if let Some(suppressed) = self.is_due(&kind, Instant::now()) {
            tracing::warn!(target: "everlog::kafka", client = self.client, suppressed, "{error}: {reason}");
        }
    }
}

impl ConsumerContext for ClientLog {}

/// The level of a line: nobody has to act where a request is sent again.
fn level_of(level: RDKafkaLogLevel, text: &str) -> RDKafkaLogLevel {
    match level {
        RDKafkaLogLevel::Warning if text.ends_with(SENT_AGAIN) => RDKafkaLogLevel::Info,
        level => level,
    }
}

/// Implements `ClientContext` by the field `client_log`; further methods of it may follow.
macro_rules! logs_as_client {
    ($context:ident $(, $further:item)*) => {
        impl rdkafka::client::ClientContext for $context {
            fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, text: &str) {
                self.client_log.log(level, facility, text);
            }

            fn error(&self, error: rdkafka::error::KafkaError, reason: &str) {
                self.client_log.error(error, reason);
            }

            $($further)*
        }
    };
}

pub(crate) use logs_as_client;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_said_once_in_a_while() {
        let (client_log, begin) = (ClientLog::new("test"), Instant::now());
        assert_eq!(client_log.is_due("FAIL", begin), Some(0));
        assert_eq!(client_log.is_due("FAIL", begin + Duration::from_secs(1)), None);
        assert_eq!(client_log.is_due("FAIL", begin + Duration::from_secs(2)), None);
        assert_eq!(client_log.is_due("OTHER", begin + Duration::from_secs(2)), Some(0));
        assert_eq!(client_log.is_due("FAIL", begin + AGAIN_AFTER), Some(2));
        assert_eq!(client_log.is_due("FAIL", begin + AGAIN_AFTER * 2), Some(0));
    }

    #[test]
    fn a_request_that_is_sent_again_is_no_warning() {
        let level = |text| level_of(RDKafkaLogLevel::Warning, text);
        let passing = "Failed to acquire idempotence PID from broker 127.0.0.1:9092/1: Broker: Coordinator load in progress: retrying";
        assert!(matches!(level(passing), RDKafkaLogLevel::Info));
        assert!(matches!(level("Connection refused"), RDKafkaLogLevel::Warning));
        assert!(matches!(level_of(RDKafkaLogLevel::Error, passing), RDKafkaLogLevel::Error));
    }

    #[test]
    fn a_client_with_much_to_say_takes_no_more_room_for_it() {
        let (client_log, begin) = (ClientLog::new("test"), Instant::now());
        for kind in 0..10 * KINDS_MAX {
            assert_eq!(client_log.is_due(&kind.to_string(), begin), Some(0));
        }
        assert!(client_log.logged.lock().len() <= KINDS_MAX);
    }
}
