//! Properties of librdkafka, whose secret values are never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A property with one of these words in its name is secret.
const SECRET: &[&str] = &["password", "secret", "key", "passphrase", "assertion.file"];

/// Client properties that safety or order depends on.
pub(crate) const RESERVED: &[&str] = &[
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "batch.num.messages",
    "batch.size",
    "bootstrap.servers",
    "check.crcs",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.partition.eof",
    "fetch.wait.max.ms",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "isolation.level",
    "linger.ms",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "message.max.bytes",
    "message.send.max.retries",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "partitioner",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "queue.buffering.max.ms",
    "request.required.acks",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "statistics.interval.ms",
    "transaction.timeout.ms",
    "transactional.id",
];

/// Properties by their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientProperties(pub BTreeMap<String, String>);

impl ClientProperties {
    /// Each as `key=value`, without secret values.
    pub fn shown(&self) -> Vec<String> {
        let shown = |(key, value): (&String, &String)| {
            format!("{key}={}", if Self::is_secret(key) { "(hidden)" } else { value })
        };
        self.0.iter().map(shown).collect()
    }

    /// The secret values.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(key, _)| Self::is_secret(key)).map(|(_, value)| value.as_str())
    }

    /// Whether the value of a property must not be shown.
    pub fn is_secret(key: &str) -> bool {
        SECRET.iter().any(|word| key.to_lowercase().contains(word))
    }
}

impl Deref for ClientProperties {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ClientProperties {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl fmt::Debug for ClientProperties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.shown()).finish()
    }
}

/// Why a property cannot be set.
pub(crate) fn fault(key: &str, value: &str) -> Option<String> {
    if RESERVED.contains(&key) {
        return Some(format!("the property {key} cannot be set: what is safe depends on it"));
    }
    let is_mechanism = ["sasl.mechanism", "sasl.mechanisms"].contains(&key);
    (is_mechanism && value.trim() == "OAUTHBEARER").then(|| {
        format!(
            "{key}=OAUTHBEARER cannot be used: librdkafka is built without libcurl here, and so fetches no tokens; use \
             SCRAM-SHA-512, or certificates (security.protocol=SSL)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_values_are_not_shown() {
        let pairs = [
            ("sasl.username", "everlog"),
            ("sasl.password", "of-the-test"),
            ("ssl.key.password", "of-the-test"),
            ("SSL.Keystore.Password", "of-the-test"),
            ("sasl.oauthbearer.client.secret", "of-the-test"),
            ("sasl.oauthbearer.assertion.private.key.passphrase", "of-the-test"),
        ];
        let properties =
            ClientProperties(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        let shown = format!("{properties:?}{:?}", properties.shown());
        assert!(shown.contains("sasl.username=everlog") && !shown.contains("of-the-test"), "{shown}");
    }
}
