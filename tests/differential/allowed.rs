//! What may differ from a Temporal server, field by field, each with its reason. As short as can be.

use serde_json::Value;

/// One field that may differ.
pub struct Allowed {
    /// The end of its path.
    pub field: &'static str,
    /// What is accepted: the reference's value and ours.
    pub accepts: fn(Option<&Value>, Option<&Value>) -> bool,
    pub reason: &'static str,
}

/// Both have it, whatever it is.
fn both(reference: Option<&Value>, everlog: Option<&Value>) -> bool {
    reference.is_some() && everlog.is_some()
}

/// All of them.
pub const ALLOWED: &[Allowed] = &[
    Allowed {
        field: ".history_size_bytes",
        accepts: both,
        reason: "the size is that of what a server stores, and ours stores events otherwise",
    },
    Allowed {
        field: "[].task_id",
        accepts: both,
        reason: "a number of the server's own: only its order says something",
    },
];
