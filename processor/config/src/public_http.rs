//! The settings of public HTTP, of the schema registry, and of public commands.

use std::fmt;
use std::net::SocketAddr;

use everlog_avro::PublicTopic;
use everlog_ingress::Options;
use everlog_registry::Limits;

use crate::Config;
use crate::setting::{Given, Refusal, Setting, Words, section, text};

const SECOND_MS: u64 = 1_000;
const DAY_MS: u64 = 86_400 * SECOND_MS;
/// Bytes of an append that the embedded log takes.
const EMBEDDED_APPEND_BYTES_MAX: usize = 32 << 20;

section! {
    /// The HTTP server: the built-in schema registry, and on the embedded log public commands and topics.
    Http = "http" {
        /// Address of the HTTP server. Port 0 takes a free one. Every client that reaches it may command workflows.
        address: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7234)), ();
        /// Connections at once, of a quarter of the descriptors that connections may have at most. Beyond it the one
        /// without a request for the longest time is closed; if all have requests, further ones wait.
        connections_max: usize = 256, 1..=65_536;
        /// Connections at once from one address. Beyond it one of its own is closed, or the new one.
        address_connections_max: usize = 192, 1..=65_536;
        /// Bytes of requests and answers at once, of all connections; beyond it requests get 503.
        bytes_max: usize = 64 << 20, 40 << 20..=1 << 40;
        /// Commands and reads of topics at once; beyond it they get 503.
        requests_max: usize = 64, 1..=4_096;
        /// How long a request may take to arrive and to be answered.
        request_timeout_ms: u64 = 30 * SECOND_MS, SECOND_MS..=600 * SECOND_MS;
    }
}

section! {
    /// The schema registry that has the ids of the public topics' schemas.
    Registry = "registry" {
        /// A registry with Confluent's paths, such as "https://user:password@registry:8081"; empty = the built-in one,
        /// which keeps its schemas in the log and is served at `http.address`. `everlog config` hides the password.
        url: Url = Url::default(), ();
        /// Subjects of the built-in registry.
        subjects_max: usize = 10_000, 8..=1_000_000;
        /// Versions of one subject of the built-in registry.
        versions_max: usize = 1_000, 1..=100_000;
        /// Bytes of a schema's text in the built-in registry.
        schema_bytes_max: usize = 1 << 20, 128 << 10..=16 << 20;
        /// Bytes of all schemas of the built-in registry together, and of their canonical forms, which take about as
        /// much. Beyond it no new schema is registered. All of it is kept in memory.
        bytes_max: usize = 256 << 20, 1 << 20..=64 << 30;
        /// Bytes of the schemas in one answer of `GET /schemas`; a longer list gets 422 and is read by `limit` and
        /// `offset`. A single schema of any length is returned.
        list_bytes_max: usize = 16 << 20, 64 << 10..=1 << 30;
        /// Requests at once that the built-in registry answers; beyond it they get 503.
        requests_max: usize = 64, 1..=4_096;
        /// Steps of the built-in registry to read a schema and to compare it with earlier ones. A type, a field, a
        /// symbol, an alias or eight bytes of text take one, two types that are compared eight. Beyond it the request
        /// gets 422. This many take a few seconds.
        check_steps_max: usize = 4_000_000, 100_000..=10_000_000_000;
        /// Requests at once that take more than 50,000 steps; all others run beside them.
        checks_max: usize = 2, 1..=8;
        /// Requests that wait for one of these to end; beyond it they get 503.
        checks_waiting_max: usize = 8, 0..=16;
    }
}

section! {
    /// Public commands: on Kafka the records of the topic `commands`, on the embedded log requests over HTTP.
    Ingress = "ingress" {
        /// Whether public commands are read.
        enabled: bool = true, ();
        /// Namespaces to which commands may be sent; "*" means all.
        namespaces_open: Words = Words::of(&["default"]), "a list of names";
        /// The namespace of a command that names none.
        namespace_default: String = "default".into(), "a name";
        /// Topics to which outcomes may go, by their names behind `kafka.prefix`; empty = no outcomes.
        reply_topics: Words = Words::of(&["replies"]), "\"replies\" or nothing";
        /// Bytes of a command; larger ones are rejected.
        record_bytes_max: usize = 1 << 20, 1 << 10..=16 << 20;
        /// Bytes of a command in the journal, which has it decoded and as it came.
        journal_record_bytes_max: usize = 4 << 20, 128 << 10..=64 << 20;
        /// How long a command waits for a schema registry that does not answer; then it is rejected.
        schema_wait_ms: u64 = 30 * SECOND_MS, 100..=600 * SECOND_MS;
        /// Commands of one partition of the topic that may wait in memory.
        backlog_records_max: usize = 2_000, 1..=1_000_000;
        /// Bytes of the commands of one partition of the topic that may wait in memory.
        backlog_bytes_max: usize = 8 << 20, 64 << 10..=1 << 30;
        /// Commands of one partition of the topic that are appended to the journals together.
        batch_records_max: usize = 500, 1..=10_000;
        /// Bytes of these; a single command may be larger.
        batch_bytes_max: usize = 1 << 20, 1 << 10..=16 << 20;
        /// The longest pause before commands that a journal refused are appended again.
        retry_ms_max: u64 = 2 * SECOND_MS, 20..=60 * SECOND_MS;
        /// How long commands stay in the topic after the journals have them, to look into what happened.
        keep_ms: u64 = DAY_MS, 0..=3_660 * DAY_MS;
    }
}

impl Registry {
    /// As limits of the built-in registry.
    pub fn limits(&self) -> Limits {
        Limits {
            schema_bytes_max: self.schema_bytes_max,
            subjects_max: self.subjects_max,
            versions_max: self.versions_max,
            bytes_max: self.bytes_max,
            list_bytes_max: self.list_bytes_max,
            requests_max: self.requests_max,
            check_steps_max: self.check_steps_max,
            checks_max: self.checks_max,
            checks_waiting_max: self.checks_waiting_max,
            ..Limits::default()
        }
    }
}

impl Ingress {
    /// Checks that concern several keys.
    pub(super) fn check(&self, config: &Config, faults: &mut Vec<String>) {
        let mut fault = |key: &str, value: String, allowed: String| {
            faults.push(format!("ingress.{key} = {value} is not allowed; allowed is {allowed}"));
        };
        if self.reply_topics.0.iter().any(|topic| topic != PublicTopic::Outcome.topic()) {
            fault(
                "reply_topics",
                self.reply_topics.write(),
                "\"replies\" or nothing: an outcome is written in the transaction of the partition that decided, \
                 which writes no topics but its own"
                    .into(),
            );
        }
        if self.namespace_default.is_empty() {
            fault("namespace_default", self.namespace_default.write(), "a name".into());
        }
        let kafka = &config.kafka;
        let (least, log_takes) = (
            self.record_bytes_max * 2,
            if kafka.is_used() { kafka.record_bytes_max } else { EMBEDDED_APPEND_BYTES_MAX },
        );
        let bytes = self.journal_record_bytes_max;
        if bytes < least {
            fault(
                "journal_record_bytes_max",
                bytes.to_string(),
                format!("at least twice ingress.record_bytes_max = {}", self.record_bytes_max),
            );
        }
        if bytes > log_takes / 2 {
            let allowed = match kafka.is_used() {
                true => format!("at most half of kafka.record_bytes_max = {log_takes}"),
                false => format!("at most {}, half of what the embedded log takes", log_takes / 2),
            };
            fault("journal_record_bytes_max", bytes.to_string(), allowed);
        }
    }
}

impl Config {
    /// The full name of a public topic.
    pub fn topic(&self, noun: PublicTopic) -> String {
        format!("{}{}", self.kafka.prefix, noun.topic())
    }

    /// As options of the ingress. `command_schema_id`: the id of this release's schema of commands.
    pub fn ingress_options(&self, command_schema_id: u32) -> Options {
        let ingress = &self.ingress;
        Options {
            settings: self.limits.engine().into(),
            namespace_default: ingress.namespace_default.clone(),
            namespaces_open: ingress.namespaces_open.0.clone(),
            reply_topics: ingress.reply_topics.0.iter().map(|_| self.topic(PublicTopic::Outcome)).collect(),
            record_bytes_max: ingress.record_bytes_max,
            journal_record_bytes_max: ingress.journal_record_bytes_max,
            command_schema_id: Some(command_schema_id),
            schema_wait_ms: ingress.schema_wait_ms,
            backlog_records_max: ingress.backlog_records_max,
            backlog_bytes_max: ingress.backlog_bytes_max,
            batch_records_max: ingress.batch_records_max,
            batch_bytes_max: ingress.batch_bytes_max,
            retry_ms_max: ingress.retry_ms_max,
        }
    }
}

/// The URL of a registry. Never shows a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Url(pub String);

impl Url {
    /// Without the password.
    pub fn shown(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else { return self.0.clone() };
        let end = rest.find('/').unwrap_or(rest.len());
        match rest[..end].rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}:(hidden)@{host}{}", &rest[end..])
            }
            None => self.0.clone(),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl Setting for Url {
    type Allowed = ();

    fn read(given: Given, (): &()) -> Option<Self> {
        let given = text(given)?.trim();
        let rest = given.strip_prefix("http://").or_else(|| given.strip_prefix("https://"));
        let is_one = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['));
        (given.is_empty() || is_one).then(|| Self(given.to_owned()))
    }

    fn write(&self) -> String {
        toml::Value::String(self.shown()).to_string()
    }

    fn describe((): &()) -> String {
        "a URL that begins with http:// or https://, or \"\"".into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_ingress_and_the_registry() {
        let config = Config::default();
        let settings = Arc::new(everlog_engine::Settings::standard());
        let standard =
            Options { command_schema_id: Some(7), ..Options::standard(settings, "everlog.replies") };
        assert_eq!(format!("{:?}", config.ingress_options(7)), format!("{standard:?}"));
        assert_eq!(config.registry.limits(), Limits::default());
    }

    #[test]
    fn a_password_in_the_url_is_never_shown() {
        let read = |text: &str| Url::read(Given::Environment(text), &());
        let url = read("https://ann:secret@registry:8081/v1@2").expect("a URL");
        assert_eq!(url.write(), "\"https://ann:(hidden)@registry:8081/v1@2\"");
        assert!(!format!("{url:?}").contains("secret"));
        assert_eq!(read("").map(|url| url.0).as_deref(), Some(""));
        for bad in ["registry:8081", "ftp://registry", "http://", "https:///x"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_would_never_work_is_refused_with_what_is_allowed() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.validate().expect_err("it is refused").to_string()
        };
        let internal = refused(|config| config.ingress.reply_topics = Words::of(&["journal"]));
        assert!(internal.starts_with("ingress.reply_topics = [\"journal\"] is not allowed"), "{internal}");
        let small = refused(|config| config.ingress.record_bytes_max = 3 << 20);
        assert!(small.contains("at least twice ingress.record_bytes_max = 3145728"), "{small}");
        let large = refused(|config| config.ingress.journal_record_bytes_max = 17 << 20);
        assert!(large.contains("at most 16777216, half of what the embedded log takes"), "{large}");
        let large = refused(|config| {
            config.kafka.bootstrap_servers = "localhost:9092".into();
            config.ingress.journal_record_bytes_max = 9 << 20;
        });
        assert!(large.contains("half of kafka.record_bytes_max = 16777216"), "{large}");
    }
}
