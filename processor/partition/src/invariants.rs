//! The rules that keep a partition sound, each by its name where it is kept.
//!
//! A partition is compiled for whoever drives it, with its rules: a release with [`AllRules`], where nothing of what a rule
//! forbids is left in the code. The simulation takes one rule out at a time, and must then see something go wrong.

use everlog_engine::request::RequestRecord;
use everlog_wire::Position;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// What is appended under a term that is not the latest does nothing.
    Terms,
    /// After an append whose outcome nobody knows, a new term decides which appends count.
    TermAfterDoubt,
    /// One's own append is applied at once only where it follows what was applied.
    Contiguity,
    /// A read is answered when an append that was sent after it came is applied.
    ReadsBehindAppends,
    /// Whoever is fenced, or meets a later owner, steps down.
    StepDown,
    /// A commit whose outcome nobody knows ends the ownership.
    UnknownCommits,
    /// Rows are written only when their commit is known to be done.
    RowsAfterCommit,
    /// Rows that are kept beside the log are brought from where they stand to where the log stands.
    RowsFromTheirMark,
    /// Rows of a first restore that was not finished are of no use.
    FinishedRestore,
    /// Rows that are of another journal, or ahead of this one, are of no use.
    StaleRows,
    /// A position that is of another journal, or not within this one, ends the take-over.
    TakeOver,
    /// The journal is trimmed only below what is committed.
    Trim,
    /// The time of the last record goes with the position.
    InheritedTime,
    /// The latest term goes with the position.
    InheritedTerm,
    /// The moment of the latest take-over goes with the position.
    InheritedGrace,
    /// The limits in force go with the position.
    InheritedSettings,
    /// The level of decisions goes with the position.
    InheritedLevel,
    /// How far each source was applied goes with the position.
    InheritedMarks,
    /// A public record that was applied before does nothing.
    IngressMarks,
    /// A public record does nothing while the one before it is missing.
    IngressGaps,
    /// Topics of the same name that were made later are other sources.
    IngressIncarnation,
    /// Time is that of the journal's records, not that of whoever applies them.
    JournalTime,
    /// Time never runs backwards.
    MonotoneTime,
    /// An alarm that was applied too early is armed again.
    EarlyAlarms,
    /// A new owner gives workers time before it believes that they are gone.
    Grace,
    /// Ids follow from the record's place.
    Ids,
    /// Decisions know the limits from the journal.
    Settings,
    /// Decisions know their level from the journal.
    Level,
    /// A record of a later release ends the ownership.
    LaterReleases,
    /// A record that makes the engine panic is skipped.
    Poison,
    /// What waits for a worker is offered by whoever takes over.
    WaitingTasks,
    /// Bytes that wait for a commit are bounded.
    Bounds,
    /// Where too much waits for a commit, no task is handed out and no alarm becomes a record.
    NoWorkBeyond,
    /// What was appended and not committed is replayed in slices: the next waits for the one before to be committed.
    ReplayInSlices,
    /// A message counts only as the one behind the last that was taken.
    MessageNumbers,
    /// Messages that have not arrived when outputs are committed are rows of the commit.
    MessageRows,
    /// How many messages were sent and taken goes with the position.
    InheritedPosts,
}

/// Which rules a partition keeps.
pub trait Rules: 'static {
    /// Whether a rule is kept.
    fn keeps(rule: Rule) -> bool;

    /// Happens within each decision, before anything else.
    fn before(_input: &RequestRecord) {}
}

/// Every rule is kept, and nothing happens.
pub struct AllRules;

impl Rules for AllRules {
    #[inline(always)]
    fn keeps(_rule: Rule) -> bool {
        true
    }
}

/// What ids are made from, beside a record's place: the journal's incarnation, never that of whoever decides.
pub(crate) fn seed<R: Rules>(incarnation: [u8; 16], instance: &[u8]) -> [u8; 16] {
    let mut seed = incarnation;
    if !R::keeps(Rule::Ids) {
        seed.iter_mut().zip(instance).for_each(|(seed, own)| *seed ^= own);
    }
    seed
}

/// What whoever takes over goes on with.
pub(crate) fn inherited<R: Rules>(mut position: Position) -> Position {
    if !R::keeps(Rule::InheritedTime) {
        position.last_stamp_ms = 0;
    }
    if !R::keeps(Rule::InheritedTerm) {
        position.term = 0;
    }
    if !R::keeps(Rule::InheritedGrace) {
        position.owner_ms = 0;
    }
    if !R::keeps(Rule::InheritedSettings) {
        position.settings = None;
    }
    if !R::keeps(Rule::InheritedLevel) {
        position.level = 0;
    }
    if !R::keeps(Rule::InheritedMarks) {
        position.marks.clear();
    }
    if !R::keeps(Rule::InheritedPosts) {
        position.posts.clear();
    }
    position
}
