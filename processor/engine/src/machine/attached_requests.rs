//! Options of an open run: what a start that finds it there may leave with it.
//!
//! open  --attach-->  open, with the id of the request, with its links, or with neither
//!
//! A request id that was left is the run's own from then on, for as long as the run is the latest or was lately: whoever sends the
//! request again is told of this run. Nobody is told of the run's end yet: there are no completion callbacks.

use bytes::Bytes;

use crate::draft::{Draft, Extras, bytes};
use crate::event::HistoryEvent;
use crate::machine::operator::run_pause::bound_buffer;
use crate::machine::start::Begin;
use crate::machine::worker_versioning::Override;
use crate::run::Run;

/// What a start leaves with the open run that it finds.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OnConflict {
    /// Its request id.
    #[prost(bool, tag = "1")]
    pub request_id: bool,
    /// Its links.
    #[prost(bool, tag = "3")]
    pub links: bool,
}

/// A request that has found the run, and left its id.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Attached {
    /// Not that of the start.
    #[prost(string, tag = "1")]
    pub request_id: String,
    /// The event that says so; 0 while it is buffered.
    #[prost(int64, tag = "2")]
    pub event_id: i64,
}

/// Event: options of the run were changed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Updated {
    /// Another override of the version that workers say.
    #[prost(message, optional, tag = "1")]
    pub versioning_override: Option<Override>,
    /// There is none any more.
    #[prost(bool, tag = "2")]
    pub unset_versioning_override: bool,
    /// The id of a request that found the run; empty = it left none.
    #[prost(string, tag = "3")]
    pub attached_request_id: String,
    /// Who has changed them.
    #[prost(string, tag = "5")]
    pub identity: String,
    /// Another priority, opaque; empty = none any more.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub priority: Option<Bytes>,
}

/// Leaves with the run what the start has for it. No worker needs to know at once.
pub(crate) fn attach(draft: &mut Draft<'_>, order: &Begin, what: OnConflict) {
    let attached_request_id = if what.request_id { order.request_id.clone() } else { String::new() };
    let links = if what.links { order.links.clone() } else { Vec::new() };
    let extras = Extras { links, ..Extras::default() };
    draft.record_with(Updated { attached_request_id, ..Updated::default() }.into(), extras);
    bound_buffer(draft);
}

pub(crate) fn apply_updated(run: &mut Run, event: &HistoryEvent, updated: &Updated) {
    if updated.attached_request_id.is_empty() {
        return;
    }
    let request_id = updated.attached_request_id.clone();
    let attached = Attached { request_id, event_id: event.event_id };
    run.head.state_bytes += bytes(&attached);
    let before = run.attached.make_mut().insert(attached.request_id.clone(), attached);
    run.head.state_bytes -= before.map_or(0, |before| bytes(&before));
}
