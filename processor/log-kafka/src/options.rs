//! Options of the log on Kafka, and the client configurations made from them.

use std::sync::Arc;
use std::time::Duration;

use everlog_log::Error;
use rdkafka::ClientConfig;

use crate::client::properties::{ClientProperties, fault};
use crate::client::properties_file::PropertiesFile;
use crate::client::settings::ClientSettings;
use crate::errors::refused;
use crate::permissions::KafkaUser;

/// Most partitions of a topic that is created.
pub const PARTITIONS_MAX: u32 = 4_096;
/// Bytes of a record besides key, value and headers.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 1_024;
/// Records that one reader fetches ahead, in KiB.
const FETCH_QUEUE_KBYTES: usize = 16_384;
const FETCH_BYTES: usize = 8 << 20;
/// Timeout of a reader's request before it is sent again on a new connection, because a network partition loses answers.
const ANSWER_WITHIN_MS: &str = "10000";
/// Timeout of a connection's setup, so that the next attempt comes soon after a network partition.
const CONNECT_WITHIN_MS: &str = "5000";
/// A member without a heartbeat for so long leaves the group.
const SESSION_TIMEOUT_MS: &str = "10000";
/// librdkafka resends a transactional producer's request after this, less a fifth.
const RETRY_BACKOFF_MS: u64 = 2_000;
/// A transaction's end that was answered within this was sent once; below RETRY_BACKOFF_MS less its fifth.
pub(crate) const SENT_ONCE_WITHIN: Duration = Duration::from_millis(RETRY_BACKOFF_MS * 7 / 10);

/// How to open a log on Kafka, and how its topics are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// `host:port`, comma separated.
    pub bootstrap_servers: String,
    /// What the names of topics, groups and transactional ids begin with.
    pub prefix: String,
    /// Further librdkafka properties of every client (`security.protocol`, `sasl.mechanism`, ...).
    pub properties: ClientProperties,
    /// More of them, in a file.
    pub properties_file: Option<Arc<PropertiesFile>>,
    /// Count of partitions that `create` makes; an existing log keeps its own.
    pub partitions: u32,
    /// Replicas that `create` makes of each partition.
    pub replication: u16,
    /// Partitions that share a transactional producer, fixed when the topics are made.
    pub group_partitions: u32,
    /// This node, for the `control` topic and the client ids.
    pub node: String,
    /// Producers of the journals.
    pub journal_producers: usize,
    /// Produce requests of one journal under way at once, 1 to 4; appends that come meanwhile go out together.
    pub journal_requests_max: usize,
    /// Appends to one partition that may wait.
    pub waiting_items_max: usize,
    /// Bytes that may wait for one partition, and in commits for one group.
    pub waiting_bytes_max: usize,
    /// Largest record, in bytes; what the topics must take (`max.message.bytes`).
    pub record_bytes_max: usize,
    /// After so long an append that is not acknowledged has an unknown outcome.
    pub append_timeout_ms: u64,
    /// After so long a call that waits for the broker fails.
    pub call_timeout_ms: u64,
    /// After so long the broker aborts a transaction whose owner is gone; also the bound of a commit.
    pub transaction_timeout_ms: u64,
    /// Pause between two transactions of a group, because brokers refuse one that begins too early.
    pub commit_pause_ms: u64,
    /// How often the clients tell what they have sent and received; 0 = never.
    pub statistics_interval_ms: u64,
}

impl Options {
    /// Settings of a small cluster: 16 partitions in groups of 4, prefix `everlog.`.
    pub fn new(bootstrap_servers: impl Into<String>) -> Self {
        Options {
            bootstrap_servers: bootstrap_servers.into(),
            prefix: "everlog.".into(),
            properties: ClientProperties::default(),
            properties_file: None,
            partitions: 16,
            replication: 3,
            group_partitions: 4,
            node: "everlog".into(),
            journal_producers: 1,
            journal_requests_max: 2,
            waiting_items_max: 65_536,
            waiting_bytes_max: 64 << 20,
            record_bytes_max: 16 << 20,
            append_timeout_ms: 30_000,
            call_timeout_ms: 30_000,
            transaction_timeout_ms: 15_000,
            commit_pause_ms: 10,
            statistics_interval_ms: 0,
        }
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// `Refused`, naming the setting.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |detail: &str| Err(refused(detail));
        if self.bootstrap_servers.trim().is_empty() {
            return wrong("bootstrap.servers is empty: give host:port of at least one broker");
        }
        if self.prefix.is_empty()
            || !self.prefix.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        {
            return wrong("prefix: topic names take letters, digits, '.', '_' and '-' only");
        }
        if self.prefix.len() > 200 {
            return wrong("prefix: 200 characters at most");
        }
        if self.partitions == 0 || self.partitions > PARTITIONS_MAX || self.replication == 0 {
            return wrong("partitions must be 1 to 4096, replication at least 1");
        }
        if self.group_partitions == 0 || self.journal_producers == 0 {
            return wrong("group_partitions and journal_producers must be at least 1");
        }
        if !(1..=4).contains(&self.journal_requests_max) {
            return wrong("journal_requests_max must be 1 to 4");
        }
        if !(64 << 10..=512 << 20).contains(&self.record_bytes_max) {
            return wrong("record_bytes_max must be 64 KiB to 512 MiB");
        }
        let timeouts = [self.append_timeout_ms, self.call_timeout_ms, self.transaction_timeout_ms];
        if timeouts.iter().any(|timeout| !(1_000..=900_000).contains(timeout)) {
            return wrong(
                "append_timeout_ms, call_timeout_ms and transaction_timeout_ms must be 1 s to 15 min",
            );
        }
        if self.statistics_interval_ms > 86_400_000 {
            return wrong("statistics_interval_ms must be a day at most");
        }
        match self.properties.iter().find_map(|(key, value)| fault(key, value)) {
            Some(detail) => Err(refused(detail)),
            None => Ok(()),
        }
    }

    /// The name of a topic.
    pub(crate) fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The name of a group.
    pub(crate) fn group(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.call_timeout_ms)
    }

    pub(crate) fn transaction_timeout(&self) -> Duration {
        Duration::from_millis(self.transaction_timeout_ms)
    }

    /// A property of the settings or of the file.
    pub(crate) fn property(&self, key: &str) -> Option<String> {
        let of_file = || self.properties_file.as_ref()?.for_new_client().get(key).cloned();
        self.properties.get(key).cloned().or_else(of_file)
    }

    /// As whom the brokers know the clients.
    pub(crate) fn principal(&self) -> KafkaUser {
        KafkaUser::of(&self.bootstrap_servers, &self.prefix, |key| self.property(key))
    }

    /// What every client has.
    pub(crate) fn client(&self, role: &str) -> ClientSettings {
        let mut config = ClientConfig::new();
        // A test or a small cluster that is gone must not be asked for ever more seldom.
        config.set("reconnect.backoff.max.ms", "1000");
        config.set("socket.connection.setup.timeout.ms", CONNECT_WITHIN_MS);
        config.set("client.id", format!("everlog-{}-{role}", self.node));
        let of_file = self.properties_file.as_ref().map(|file| file.for_new_client()).unwrap_or_default();
        for (key, value) in self.properties.iter().chain(of_file.iter()) {
            config.set(key, value);
        }
        config.set("bootstrap.servers", &self.bootstrap_servers);
        config.set("message.max.bytes", (self.record_bytes_max + RECORD_OVERHEAD_BYTES).to_string());
        ClientSettings::new(config, self.properties_file.clone(), self.principal())
    }

    /// Acknowledged means on every in-sync replica, each record once, in order.
    fn producer(&self, role: &str, timeout_ms: u64) -> ClientSettings {
        let mut config = self.client(role);
        config.set("acks", "all");
        config.set("enable.idempotence", "true");
        // The client's own clock ticks in milliseconds: the least linger costs 1 ms.
        config.set("linger.ms", "0");
        config.set("message.timeout.ms", timeout_ms.to_string());
        config.set("request.timeout.ms", timeout_ms.clamp(1_000, 30_000).to_string());
        config.set("batch.num.messages", "1000000");
        // The bounds are ours: librdkafka must take what we hand it.
        config.set("queue.buffering.max.messages", "0");
        config.set("queue.buffering.max.kbytes", "2147483647");
        config
    }

    pub(crate) fn journal_producer(&self) -> ClientSettings {
        self.telling(self.producer("journal", self.append_timeout_ms))
    }

    /// For a client that is polled all the time, see `client/statistics.rs`.
    pub(crate) fn telling(&self, mut config: ClientSettings) -> ClientSettings {
        config.set("statistics.interval.ms", self.statistics_interval_ms.to_string());
        config
    }

    pub(crate) fn control_producer(&self) -> ClientSettings {
        self.producer("control", self.call_timeout_ms)
    }

    pub(crate) fn transactional_id(&self, group: u32) -> String {
        format!("{}group-{group}", self.prefix)
    }

    pub(crate) fn transactional_producer(&self, group: u32) -> ClientSettings {
        let mut config = self.telling(self.producer("outputs", self.transaction_timeout_ms));
        config.set("transactional.id", self.transactional_id(group));
        config.set("transaction.timeout.ms", self.transaction_timeout_ms.to_string());
        config.set("retry.backoff.ms", RETRY_BACKOFF_MS.to_string());
        config.set("retry.backoff.max.ms", RETRY_BACKOFF_MS.to_string());
        config
    }

    /// A producer of records to public topics.
    pub(crate) fn public_producer(&self) -> ClientSettings {
        self.producer("public", self.call_timeout_ms)
    }

    /// A member of a group, by the group's name without the prefix: partitions change hands one by one.
    pub(crate) fn member(&self, group: &str, fetch_wait: Duration) -> ClientSettings {
        let mut config = self.commands_reader("commands", fetch_wait);
        config.set("group.id", self.group(group));
        config.set("partition.assignment.strategy", "cooperative-sticky");
        config.set("enable.partition.eof", "false");
        if self.property("session.timeout.ms").is_none() {
            config.set("session.timeout.ms", SESSION_TIMEOUT_MS);
        }
        config
    }

    /// A reader of records that others have written, compressed as they like.
    pub(crate) fn commands_reader(&self, role: &str, fetch_wait: Duration) -> ClientSettings {
        let mut config = self.consumer(role, Isolation::Committed, fetch_wait);
        config.set("receive.message.max.bytes", self.unpacked_bytes_max().to_string());
        config
    }

    /// What a batch may unpack to. The client's buffer trebles until the batch fits in, and may not pass this: whatever
    /// fits in a third is unpacked.
    pub(crate) fn unpacked_bytes_max(&self) -> usize {
        self.fetch_bytes_max() * 4
    }

    fn fetch_bytes_max(&self) -> usize {
        FETCH_BYTES.max(self.record_bytes_max + RECORD_OVERHEAD_BYTES)
    }

    /// A reader with assigned offsets that never joins its group.
    ///
    /// `fetch_wait`: how long the broker keeps a fetch that finds nothing. A consumer that is sent elsewhere waits for
    /// its last fetch first, and the end of a topic is known only when a fetch has found nothing.
    pub(crate) fn consumer(&self, role: &str, isolation: Isolation, fetch_wait: Duration) -> ClientSettings {
        let mut config = self.client(role);
        config.set("fetch.wait.max.ms", fetch_wait.as_millis().to_string());
        // Those of producers have times of their own.
        if self.property("socket.timeout.ms").is_none() {
            config.set("socket.timeout.ms", ANSWER_WITHIN_MS);
        }
        config.set("group.id", format!("{}log", self.prefix));
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        config.set("auto.offset.reset", "error");
        config.set("check.crcs", "true");
        config.set("enable.partition.eof", "true");
        config.set("allow.auto.create.topics", "false");
        config.set("fetch.queue.backoff.ms", "5");
        config.set("queued.max.messages.kbytes", FETCH_QUEUE_KBYTES.to_string());
        config.set("queued.min.messages", "1000000");
        config.set("fetch.message.max.bytes", FETCH_BYTES.to_string());
        let fetch_max = self.fetch_bytes_max();
        config.set("fetch.max.bytes", fetch_max.to_string());
        config.set("receive.message.max.bytes", (fetch_max + (1 << 20)).to_string());
        config.set(
            "isolation.level",
            match isolation {
                Isolation::Uncommitted => "read_uncommitted",
                Isolation::Committed => "read_committed",
            },
        );
        config
    }
}

/// Which records a reader is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// All that is replicated.
    Uncommitted,
    /// Those of finished transactions.
    Committed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::properties::RESERVED;

    #[test]
    fn what_safety_depends_on_cannot_be_set() {
        for key in RESERVED {
            let mut options = Options::new("localhost:9092");
            options.properties.insert((*key).to_owned(), "1".into());
            let refusal = options.validate().expect_err("ours");
            assert!(refusal.to_string().contains(key), "{refusal}");
        }
        let mut options = Options::new("localhost:9092");
        options.properties.insert("sasl.mechanisms".into(), "OAUTHBEARER".into());
        let refusal = options.validate().expect_err("no tokens").to_string();
        assert!(refusal.contains("sasl.mechanisms=OAUTHBEARER cannot be used: "), "{refusal}");
        options.properties.remove("sasl.mechanisms");
        options.properties.insert("security.protocol".into(), "SASL_SSL".into());
        options.validate().expect("theirs");
        assert_eq!(options.client("x").get("security.protocol"), Some("SASL_SSL"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refused = |change: fn(&mut Options)| {
            let mut options = Options::new("localhost:9092");
            change(&mut options);
            options.validate().expect_err("refused").to_string()
        };
        assert!(refused(|o| o.bootstrap_servers = " ".into()).contains("bootstrap.servers"));
        assert!(refused(|o| o.prefix = "a b".into()).contains("prefix"));
        assert!(refused(|o| o.journal_requests_max = 5).contains("journal_requests_max"));
        assert!(refused(|o| o.append_timeout_ms = 0).contains("append_timeout_ms"));
    }
}
