//! The settings of a log on Kafka.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use everlog_log::Error;
use everlog_log_kafka::{ClientProperties, Options, PARTITIONS_MAX, PropertiesFile};
use toml::Value;

use crate::Config;
use crate::secrets;
use crate::setting::{Given, Refusal, Setting, section};

const SECOND_MS: u64 = 1_000;

section! {
    /// The log on Kafka, instead of the embedded one. `[memory]` and `[partition]` hold for both, `[log]` only for the
    /// embedded one. `everlog topics plan|create|check` makes the topics and says what is wrong with them.
    Kafka = "kafka" {
        /// Brokers to begin with; empty = the embedded log.
        bootstrap_servers: String = String::new(), "host:port, with commas between several, or \"\"";
        /// What the names of topics, groups and transactional ids begin with. Each log has its own.
        prefix: String = "everlog.".into(), "1 to 200 letters, digits, '.', '_' and '-'";
        /// Slices that the Workflow Ids are spread over, where topics are made; topics that are there keep their count.
        partitions: u32 = 16, 1..=PARTITIONS_MAX;
        /// Replicas that topics are made with. `everlog dev` takes 1 unless a variable says otherwise.
        replication: u32 = 3, 1..=100;
        /// Partitions whose outputs are committed together, by one transactional producer. Fixed when topics are made.
        group_partitions: u32 = 4, 1..=PARTITIONS_MAX;
        /// Further properties of librdkafka, for all clients, such as "security.protocol=SASL_SSL". `everlog config`
        /// hides the values of those whose names contain password, secret or key. In a variable, they are separated
        /// by semicolons.
        properties: KafkaProperties = KafkaProperties::default(), ();
        /// A file of further properties, one `key=value` a line, `#` before a comment: for secrets. A changed sasl.username
        /// or sasl.password in it is taken within seconds, without a restart.
        properties_file: KafkaPropertiesFile = KafkaPropertiesFile::default(), ();
        /// Appends that may wait for the brokers, for each partition; beyond it calls get RESOURCE_EXHAUSTED.
        waiting_appends_max: usize = 65_536, 64..=1_000_000;
        /// Bytes of appends that may wait for the brokers, for each partition, and of outputs for each group; beyond it
        /// calls get RESOURCE_EXHAUSTED.
        waiting_bytes_max: usize = 64 << 20, 32 << 20..=4 << 30;
        /// Bytes of a record that the topics must take (`max.message.bytes`).
        record_bytes_max: usize = 16 << 20, 64 << 10..=512 << 20;
        /// Directories of rows that could not be used and are kept, for each partition, the latest ones; 0 = none.
        rows_aside_max: usize = 1, 0..=100;
        /// After so long an append that is not acknowledged counts as unknown: its caller gets UNAVAILABLE.
        append_timeout_ms: u64 = 30 * SECOND_MS, SECOND_MS..=900 * SECOND_MS;
        /// After so long a question to the brokers fails, and is asked again where that makes sense.
        call_timeout_ms: u64 = 30 * SECOND_MS, SECOND_MS..=900 * SECOND_MS;
        /// After so long the brokers abort the transaction of a node that is gone; readers of `events` wait as long.
        transaction_timeout_ms: u64 = 15 * SECOND_MS, SECOND_MS..=900 * SECOND_MS;
        /// How often librdkafka counts its requests and bytes for the metrics everlog_kafka_requests_total and the like;
        /// 0 = never.
        statistics_interval_ms: u64 = 0, 0..=3_600_000;
    }
}

impl Kafka {
    /// Whether the log is on Kafka.
    pub fn is_used(&self) -> bool {
        !self.bootstrap_servers.is_empty()
    }

    /// Reads the file of properties, if there is one.
    pub(super) fn open_properties_file(&mut self, faults: &mut Vec<String>) {
        let KafkaPropertiesFile { path: Some(path), opened } = &mut self.properties_file else { return };
        match PropertiesFile::open(path, &self.properties.0) {
            Ok(file) => *opened = Some(file),
            Err(found) => faults.extend(found),
        }
    }

    /// The values of properties that must not be shown.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let of_file = self.properties_file.path.iter();
        let of_file = of_file.flat_map(|path| secrets::of_properties(path, ClientProperties::is_secret));
        self.properties.0.secrets().map(str::to_owned).chain(of_file).collect()
    }

    /// As options of the log.
    pub fn options(&self, node: &str) -> Options {
        Options {
            prefix: self.prefix.clone(),
            properties: self.properties.0.clone(),
            properties_file: self.properties_file.opened.clone(),
            partitions: self.partitions,
            replication: u16::try_from(self.replication).unwrap_or(u16::MAX),
            group_partitions: self.group_partitions,
            node: node.into(),
            waiting_items_max: self.waiting_appends_max,
            waiting_bytes_max: self.waiting_bytes_max,
            record_bytes_max: self.record_bytes_max,
            append_timeout_ms: self.append_timeout_ms,
            call_timeout_ms: self.call_timeout_ms,
            transaction_timeout_ms: self.transaction_timeout_ms,
            statistics_interval_ms: self.statistics_interval_ms,
            ..Options::new(&self.bootstrap_servers)
        }
    }

    /// Why the log cannot be opened or examined, with the way out.
    pub fn explain(&self, error: Error) -> anyhow::Error {
        let brokers = &self.bootstrap_servers;
        match error {
            Error::Refused { detail } => anyhow!("the log on Kafka at {brokers}: {detail}"),
            Error::Io { detail } => anyhow!(
                "Kafka at {brokers} does not answer: {detail}; start it, or name other brokers (--kafka-bootstrap, \
                 kafka.bootstrap_servers)"
            ),
            Error::Denied { detail, fix } => {
                let fix = fix.replace('\n', "\n  ");
                anyhow!("the log on Kafka at {brokers}: {detail}; to permit it:\n  {fix}")
            }
            Error::Fenced { .. }
            | Error::OutOfRange { .. }
            | Error::Full { .. }
            | Error::Unknown { .. }
            | Error::Busy { .. }
            | Error::Corrupt { .. }
            | Error::Locked { .. }
            | Error::Mismatch { .. }
            | Error::Closed => error.into(),
        }
    }

    /// Checks that concern several keys.
    pub(super) fn check(&self, config: &Config, faults: &mut Vec<String>) {
        if !self.is_used() {
            return;
        }
        if let Err(Error::Refused { detail }) = self.options(&config.server.name).validate() {
            faults.push(format!("[kafka] is not allowed; {detail}"));
        }
        let room = self.record_bytes_max / 2;
        if config.gateway.message_bytes_max > room {
            faults.push(format!(
                "kafka.record_bytes_max = {} is not allowed; allowed is at least twice gateway.message_bytes_max = {}",
                self.record_bytes_max, config.gateway.message_bytes_max
            ));
        }
        if usize::try_from(config.limits.state_bytes_max).is_ok_and(|bytes| bytes == 0 || bytes > room) {
            faults.push(format!(
                "kafka.record_bytes_max = {} is not allowed; allowed is at least twice limits.state_bytes_max = {}, \
                 which may not be 0",
                self.record_bytes_max, config.limits.state_bytes_max
            ));
        }
    }
}

/// Properties of librdkafka. Secret ones are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KafkaProperties(pub ClientProperties);

impl KafkaProperties {
    fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            (!key.trim().is_empty()).then(|| (key.trim().to_owned(), value.to_owned()))
        };
        lines.map(pair).collect::<Option<_>>().map(|pairs| Self(ClientProperties(pairs)))
    }
}

impl fmt::Debug for KafkaProperties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The path of a file of properties, and the file once it was read.
#[derive(Clone, Debug, Default)]
pub struct KafkaPropertiesFile {
    path: Option<PathBuf>,
    opened: Option<Arc<PropertiesFile>>,
}

impl PartialEq for KafkaPropertiesFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Setting for KafkaPropertiesFile {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        Option::<PathBuf>::read(given, &()).map(|path| Self { path, opened: None })
    }

    fn write(&self) -> String {
        self.path.write()
    }

    fn describe((): &()) -> String {
        Option::<PathBuf>::describe(&())
    }
}

impl Setting for KafkaProperties {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        match given {
            Given::File(value) => {
                let lines: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
                Self::parse(lines?.into_iter())
            }
            Given::Environment(text) => Self::parse(text.split(';').filter(|line| !line.trim().is_empty())),
        }
    }

    fn write(&self) -> String {
        Value::Array(self.0.shown().into_iter().map(Value::String).collect()).to_string()
    }

    fn describe((): &()) -> String {
        "a list of \"key=value\"".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_log() {
        let (ours, theirs) = (Kafka::default().options("everlog"), Options::new(""));
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }

    #[test]
    fn properties_read_alike_from_the_file_and_the_environment_and_hide_what_is_secret() {
        let file = Value::Array(
            ["security.protocol=SASL_SSL", "sasl.password=a=b,c"]
                .map(|line| Value::String(line.into()))
                .into(),
        );
        let read = KafkaProperties::read(Given::File(&file), &()).expect("both are pairs");
        let variable = "security.protocol=SASL_SSL; sasl.password=a=b,c;";
        assert_eq!(KafkaProperties::read(Given::Environment(variable), &()), Some(read.clone()));
        assert_eq!(read.0.get("sasl.password").map(String::as_str), Some("a=b,c"));
        let shown = [read.write(), format!("{read:?}")];
        for shown in shown {
            assert!(!shown.contains("a=b,c") && shown.contains("sasl.password=(hidden)"), "{shown}");
            assert!(shown.contains("security.protocol=SASL_SSL"), "{shown}");
        }
        for bad in ["security.protocol", "=x"] {
            assert_eq!(KafkaProperties::read(Given::Environment(bad), &()), None, "{bad}");
        }
    }

    #[test]
    fn secrets_stand_in_a_file_of_their_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("kafka.properties");
        let shown = path.display();
        let variables = [
            ("EVERLOG_KAFKA__BOOTSTRAP_SERVERS", "localhost:9092".to_owned()),
            ("EVERLOG_KAFKA__PROPERTIES", "sasl.username=everlog".to_owned()),
            ("EVERLOG_KAFKA__PROPERTIES_FILE", shown.to_string()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        let load = |text: &str| {
            std::fs::write(&path, text).expect("the file can be written");
            Config::load(None, &variables)
        };
        let config = load("sasl.password=of-the-test").expect("it has no faults");
        assert!(config.to_file().contains(&format!("properties_file = \"{shown}\"")));
        let all = [config.to_file(), format!("{config:?}"), format!("{:?}", config.kafka.options("node"))];
        assert!(all.iter().all(|text| !text.contains("of-the-test")), "{all:?}");
        let faults = load("\nsasl.username=other\nretries=of-the-test").expect_err("two faults").to_string();
        let expected = format!(
            "2 settings cannot be used:\n  {shown}:2: sasl.username stands in kafka.properties as well: keep it in one \
             of the two\n  {shown}:3: the property retries cannot be set: what is safe depends on it"
        );
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_record_that_the_topics_would_not_take_is_refused_before_there_is_one() {
        let mut config = Config::default();
        config.kafka.record_bytes_max = 1 << 20;
        config.validate().expect("Kafka is not used");
        config.kafka.bootstrap_servers = "localhost:9092".into();
        let faults = config.validate().expect_err("a message is larger").to_string();
        assert!(faults.contains("twice gateway.message_bytes_max = 4194304"), "{faults}");
        assert!(faults.contains("twice limits.state_bytes_max = 8388608"), "{faults}");
        config.kafka = Kafka { bootstrap_servers: "localhost:9092".into(), ..Kafka::default() };
        config.validate().expect("the defaults fit");
        config.kafka.prefix = "a b".into();
        assert!(config.validate().expect_err("no topic is named so").to_string().contains("prefix"));
    }
}
