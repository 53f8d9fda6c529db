//! What is told of public commands when they are decided, for traces.

/// Told of each public command that the partition's owner has decided, and never while that replays: what was told before a
/// take-over is not told again. It never waits.
pub trait CommandObserver: Send + Sync + 'static {
    /// A command is decided.
    fn decided(&self, command: &DecidedCommand<'_>);
}

/// A public command, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedCommand<'a> {
    /// The topic that it was read from.
    pub topic: &'a str,
    /// The partition of that topic.
    pub partition: u32,
    /// Its place there.
    pub offset: u64,
    /// The namespace, by name.
    pub namespace: &'a str,
    /// The Workflow Id, or that of a schedule.
    pub workflow_id: &'a str,
    /// The trace that its producer named (W3C).
    pub traceparent: Option<&'a str>,
    /// When its journal took it in, in ms since 1970; of one that waited for its moment: when that had come.
    pub began_ms: i64,
    /// The name of the code by which it was refused.
    pub refused: Option<&'static str>,
}
