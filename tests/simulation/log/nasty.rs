//! The faults of the log and how often they occur, and the rule of the log that a test removes.

/// Chances per thousand calls, and delays in ms of virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nasty {
    /// Everything happens within the call: what the contract is checked with.
    pub immediate: bool,
    /// An append's outcome is not told.
    pub append_unknown: u32,
    /// Of these: it never happened, or only a part of it.
    pub append_lost: u32,
    /// Of these: it happens later, up to this.
    pub append_late_ms: i64,
    /// The append's place is not told.
    pub append_placeless: u32,
    /// The append is refused for want of room in the queue.
    pub append_busy: u32,
    /// A commit's outcome is not told.
    pub commit_unknown: u32,
    /// Of these: it never happens.
    pub commit_lost: u32,
    /// The log has no room for a commit.
    pub commit_full: u32,
    /// The longest way to the log and back.
    pub delay_ms: i64,
    /// The longest way of a record to those who follow.
    pub follow_ms: i64,
    /// A commit is followed by a cleaning of its compacted topics.
    pub clean: u32,
    /// What is under way may arrive while somebody restores.
    pub drift: u32,
}

impl Nasty {
    pub fn calm() -> Self {
        Self { delay_ms: 3, follow_ms: 5, ..Self::default() }
    }
}

/// A rule that the log breaks on purpose, to show that its absence is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A commit that was not told is told as done, and only its position is there.
    PositionWithoutRows,
    /// Former owners' records count: they are rewritten to stand under the term of the day.
    Terms,
    /// A commit that never happened is told as done.
    UnknownIsDone,
    /// Former owners may commit.
    Fences,
    /// Trims go up to the journal's end, whatever is committed.
    Trims,
    /// Rows kept beside the log stand where the log does, they say.
    OldRows,
    /// The door of a new owner refuses claims of what its partition has offered.
    Endpoint,
    /// A home takes offers in whatever era they are of.
    Eras,
    /// A home takes a claim that nobody has answered for refused.
    Unanswered,
    /// A home takes what comes last for what was offered last.
    OfferTerms,
    /// A node that was started anew is taken for what it was before.
    Instances,
    /// Who restores is told another time of the records than who appended them.
    Stamps,
    /// The ingress believes that whatever it sent was taken.
    IngressAcks,
    /// Where a public command stood is not known: none is recognised.
    IngressMarks,
}
