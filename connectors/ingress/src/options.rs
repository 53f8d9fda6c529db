//! Options of the ingress, and what it needs to know of names.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use everlog_avro::command::Token;
use everlog_engine::Settings;

/// Namespaces, search attributes and task tokens by name, and the time. Asked for each record, so it never waits.
pub trait Names: Send + Sync + 'static {
    /// A namespace by its name: its UUID, and how long its runs stay readable after their close, in ms.
    fn namespace(&self, name: &str) -> Option<(String, i64)>;

    /// Search attributes, an encoded map, that fit those of a namespace by its name, with their types.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    fn typed(&self, namespace: &str, search_attributes: &Bytes) -> Result<Bytes, String>;

    /// The activity that a task token stands for; none where the token is not of this cluster.
    fn token(&self, token: &Bytes) -> Option<Token>;

    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Limits and permissions.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine's limits.
    pub settings: Arc<Settings>,
    /// The namespace of a command that names none.
    pub namespace_default: String,
    /// Namespaces to which commands may be sent; `*` stands for all.
    pub namespaces_open: Vec<String>,
    /// Topics to which outcomes may go.
    pub reply_topics: Vec<String>,
    /// Bytes of a record's value.
    pub record_bytes_max: usize,
    /// Bytes of a journal record. It holds the order and the public record, and the rows and refusals that come of it
    /// are no larger: at least twice `record_bytes_max` and 128 KiB, at most half of what the log takes.
    pub journal_record_bytes_max: usize,
    /// The id of this release's own schema of commands, if a registry has given it one.
    pub command_schema_id: Option<u32>,
    /// How long a record waits for a registry that does not answer, in ms.
    pub schema_wait_ms: u64,
    /// Records of a source partition that wait before it is paused.
    pub backlog_records_max: usize,
    /// Bytes of a source partition that wait before it is paused.
    pub backlog_bytes_max: usize,
    /// Records of a batch.
    pub batch_records_max: usize,
    /// Bytes of a batch; it holds one record at least.
    pub batch_bytes_max: usize,
    /// The longest pause before a failed append is repeated, in ms.
    pub retry_ms_max: u64,
}

impl Options {
    /// Limits that suit most; outcomes go to the topic named here, commands to the namespace `default`.
    pub fn standard(settings: Arc<Settings>, reply_topic: &str) -> Self {
        Self {
            settings,
            namespace_default: "default".into(),
            namespaces_open: vec!["default".into()],
            reply_topics: vec![reply_topic.into()],
            record_bytes_max: 1 << 20,
            journal_record_bytes_max: 4 << 20,
            command_schema_id: None,
            schema_wait_ms: 30_000,
            backlog_records_max: 2_000,
            backlog_bytes_max: 8 << 20,
            batch_records_max: 500,
            batch_bytes_max: 1 << 20,
            retry_ms_max: 2_000,
        }
    }

    pub(crate) fn is_open(&self, namespace: &str) -> bool {
        self.namespaces_open.iter().any(|open| open == "*" || open == namespace)
    }
}
