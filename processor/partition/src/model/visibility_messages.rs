//! What is asked of the index of a partition, and what it answers: at this node, or on the way to another.

use bytes::Bytes;
use everlog_engine::api_types::MapEntry;
use everlog_schedules::spec::ScheduleSpec;
use everlog_schedules::state::{SchedulePolicies, ScheduleState};
use everlog_visibility::record::Record;

/// A page or a count of one partition's runs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VisibilityRead {
    /// The namespace's UUID.
    #[prost(string, tag = "1")]
    pub namespace_id: String,
    /// Which runs: an encoded filter.
    #[prost(bytes = "bytes", tag = "2")]
    pub filter: Bytes,
    /// What of them.
    #[prost(oneof = "VisibilityWant", tags = "3, 4")]
    pub want: Option<VisibilityWant>,
}

/// What a read asks for.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum VisibilityWant {
    /// A page.
    #[prost(message, tag = "3")]
    Page(WantedPage),
    /// A count.
    #[prost(message, tag = "4")]
    Count(WantedCount),
}

/// Which page.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WantedPage {
    /// The attribute of `ORDER BY`; empty is the list's own order.
    #[prost(string, tag = "1")]
    pub order_by: String,
    /// `ORDER BY ... DESC`.
    #[prost(bool, tag = "2")]
    pub is_descending: bool,
    /// Where the partition stood when the list began; none of a first page.
    #[prost(message, optional, tag = "3")]
    pub position: Option<LogPosition>,
    /// Runs behind this key; empty is from the beginning.
    #[prost(bytes = "bytes", tag = "4")]
    pub after: Bytes,
    /// Runs, at most.
    #[prost(uint32, tag = "5")]
    pub rows_max: u32,
}

/// Which count.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WantedCount {
    /// The attribute of `GROUP BY`; empty is one count of all.
    #[prost(string, tag = "1")]
    pub group_by: String,
    /// It is a system attribute.
    #[prost(bool, tag = "2")]
    pub is_system: bool,
}

/// Where a partition stands.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct LogPosition {
    /// The offset of the first journal record that was not applied.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
    /// The time of the last one that was, in ms since 1970-01-01 UTC.
    #[prost(int64, tag = "2")]
    pub ms: i64,
}

/// The answer to a [`VisibilityRead`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct VisibilityAnswer {
    /// Where the partition stood when the list began, or when a count was done.
    #[prost(message, optional, tag = "1")]
    pub position: Option<LogPosition>,
    /// In the order of the list.
    #[prost(message, repeated, tag = "2")]
    pub runs: Vec<VisibleRun>,
    /// Up to where the page has every run; empty where nothing follows.
    #[prost(bytes = "bytes", tag = "3")]
    pub reached: Bytes,
    /// Of a count: first all runs, then those of each group.
    #[prost(message, repeated, tag = "4")]
    pub counts: Vec<VisibleCount>,
}

/// A run in a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VisibleRun {
    /// Where it stands in the list.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// What the index has of it.
    #[prost(message, optional, tag = "2")]
    pub record: Option<Record>,
    /// Its memo, sorted by key.
    #[prost(message, repeated, tag = "3")]
    pub memo: Vec<MapEntry>,
    /// Events of its history.
    #[prost(int64, tag = "4")]
    pub history_length: i64,
    /// Encoded bytes of its history.
    #[prost(int64, tag = "5")]
    pub history_bytes: i64,
    /// Steps that changed it.
    #[prost(int64, tag = "6")]
    pub transitions: i64,
    /// What is shown of a schedule.
    #[prost(message, optional, tag = "7")]
    pub schedule: Option<VisibleSchedule>,
}

/// What a list shows of a schedule.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VisibleSchedule {
    /// When it starts something.
    #[prost(message, required, tag = "1")]
    pub spec: ScheduleSpec,
    /// Its policies.
    #[prost(message, required, tag = "2")]
    pub policies: SchedulePolicies,
    /// The workflow type of its runs.
    #[prost(string, tag = "3")]
    pub workflow_type: String,
    /// How far it is, without what waits and runs.
    #[prost(message, required, tag = "4")]
    pub state: ScheduleState,
}

/// The number of runs with one value of an attribute; without a keyword and a number, of those that have none.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VisibleCount {
    /// The value.
    #[prost(string, optional, tag = "1")]
    pub keyword: Option<String>,
    /// The value of a number or a status.
    #[prost(int64, optional, tag = "2")]
    pub number: Option<i64>,
    /// The runs.
    #[prost(int64, tag = "3")]
    pub count: i64,
}
