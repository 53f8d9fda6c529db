//! Log lines of librdkafka's clients, limited: each kind of line once in ten minutes and client.

use std::collections::BTreeMap;
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

/// The log lines of one client.
#[derive(Debug)]
pub(crate) struct ClientLog {
    client: &'static str,
    said: Mutex<BTreeMap<String, Said>>,
}

#[derive(Debug)]
struct Said {
    at: Instant,
    /// Lines suppressed since then.
    times: u64,
}

impl ClientLog {
    pub(crate) fn new(client: &'static str) -> Self {
        ClientLog { client, said: Mutex::default() }
    }

    /// Some: a line of this kind is logged now, after so many were suppressed since the last one.
    fn is_news(&self, kind: &str, now: Instant) -> Option<u64> {
        let mut said = self.said.lock();
        if let Some(last) = said.get_mut(kind) {
            if now.duration_since(last.at) < AGAIN_AFTER {
                last.times += 1;
                return None;
            }
            let times = last.times;
            *last = Said { at: now, times: 0 };
            return Some(times);
        }
        if said.len() >= KINDS_MAX {
            said.retain(|_, last| now.duration_since(last.at) < AGAIN_AFTER);
        }
        if said.len() < KINDS_MAX {
            said.insert(kind.to_owned(), Said { at: now, times: 0 });
        }
        Some(0)
    }
}

impl ClientContext for ClientLog {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        let client = self.client;
        match level {
            RDKafkaLogLevel::Debug => {
                tracing::debug!(target: "everlog::kafka", client, facility, "{text}");
                return;
            }
            RDKafkaLogLevel::Info => {
                // A connection that ends is one of these.
                if let Some(unsaid) = self.is_news(&format!("{facility} by the way"), Instant::now()) {
                    tracing::info!(target: "everlog::kafka", client, facility, unsaid, "{text}");
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
        // The call that it disturbs reports the consequence.
        if let Some(unsaid) = self.is_news(facility, Instant::now()) {
            tracing::warn!(target: "everlog::kafka", client, facility, unsaid, "{text}");
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        // The end of a partition is no error, broken connections were logged already, and the node logs that no broker is left.
        if matches!(
            code,
            Some(
                RDKafkaErrorCode::PartitionEOF
                    | RDKafkaErrorCode::AllBrokersDown
                    | RDKafkaErrorCode::BrokerTransportFailure
                    | RDKafkaErrorCode::Resolve
                    | RDKafkaErrorCode::NoError
            )
        ) {
            return;
        }
        let kind = code.map_or_else(|| error.to_string(), |code| format!("{code:?}"));
        if let Some(unsaid) = self.is_news(&kind, Instant::now()) {
            tracing::warn!(target: "everlog::kafka", client = self.client, unsaid, "{error}: {reason}");
        }
    }
}

impl ConsumerContext for ClientLog {}

/// Lets the voice of a context speak for it; further methods of `ClientContext` may follow.
macro_rules! speaks {
    ($context:ident $(, $further:item)*) => {
        impl rdkafka::client::ClientContext for $context {
            fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, text: &str) {
                self.voice.log(level, facility, text);
            }

            fn error(&self, error: rdkafka::error::KafkaError, reason: &str) {
                self.voice.error(error, reason);
            }

            $($further)*
        }
    };
}

pub(crate) use speaks;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_said_once_in_a_while() {
        let (voice, begin) = (ClientLog::new("test"), Instant::now());
        assert_eq!(voice.is_news("FAIL", begin), Some(0));
        assert_eq!(voice.is_news("FAIL", begin + Duration::from_secs(1)), None);
        assert_eq!(voice.is_news("FAIL", begin + Duration::from_secs(2)), None);
        assert_eq!(voice.is_news("OTHER", begin + Duration::from_secs(2)), Some(0));
        assert_eq!(voice.is_news("FAIL", begin + AGAIN_AFTER), Some(2));
        assert_eq!(voice.is_news("FAIL", begin + AGAIN_AFTER * 2), Some(0));
    }

    #[test]
    fn a_client_with_much_to_say_takes_no_more_room_for_it() {
        let (voice, begin) = (ClientLog::new("test"), Instant::now());
        for kind in 0..10 * KINDS_MAX {
            assert_eq!(voice.is_news(&kind.to_string(), begin), Some(0));
        }
        assert!(voice.said.lock().len() <= KINDS_MAX);
    }
}
