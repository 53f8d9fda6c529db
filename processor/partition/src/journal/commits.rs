//! What waits for a commit, and the commit that is under way.
//!
//! It owns the outputs and knows up to where outputs and rows stand. Rows wait in the store, which tells their bytes.
//! One commit is under way at a time; one that the log has no room for is made again with what came since.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use everlog_log::{Commit, Fence, Log, Offset, Output};
use everlog_store::Space;
use everlog_wire::{Position, RestoreCheckpoint};

use crate::config::{Config, HOLD_MS};
use crate::context::PartitionContext;
use crate::error::Error;
use crate::journal::refusal_log::RefusalLog;
use crate::journal::uncommitted_budget::UncommittedShare;
use crate::public::outputs::Outputs;

/// What a few of the greatest requests leave for a commit, in bytes.
const GREAT_BYTES: usize = 32 << 20;

/// The commits of a partition.
pub(crate) struct Commits {
    fence: Fence,
    pub(crate) outputs: Outputs,
    /// What the others of the node know of what waits here for a commit.
    share: UncommittedShare,
    refused: RefusalLog,
    /// What is being committed: the offset of the next record, and the position.
    under_way: Option<(Offset, Bytes)>,
    /// Something waits for a commit.
    changed: bool,
    next_ms: i64,
    /// Below this offset the journal was trimmed.
    trimmed: Offset,
    /// Up to where the rows stand that are kept beside the log.
    checkpoint: RestoreCheckpoint,
}

impl Commits {
    /// Nothing waits for a commit under this fence.
    pub(crate) fn new(fence: Fence, config: &Config) -> Self {
        Self {
            fence,
            outputs: Outputs::default(),
            share: UncommittedShare::of(Arc::clone(&config.room)),
            refused: RefusalLog::of("commits"),
            under_way: None,
            changed: false,
            next_ms: 0,
            trimmed: 0,
            checkpoint: RestoreCheckpoint::default(),
        }
    }

    /// The number of the fence under which outputs are committed.
    pub(crate) fn fence(&self) -> u64 {
        self.fence.0
    }

    /// Something is to be committed.
    pub(crate) fn note_change(&mut self) {
        self.changed = true;
    }

    /// Whether nothing waits, and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_none() && !self.changed
    }

    /// When the next commit begins; none while one is under way or nothing waits.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        (self.changed && self.under_way.is_none()).then_some(self.next_ms)
    }

    /// The next commit does not wait for the interval.
    pub(crate) fn begin_soon(&mut self) {
        self.next_ms = 0;
    }

    /// A clock that was set back must not put off a commit.
    pub(crate) fn mind_clock(&mut self, config: &Config, now_ms: i64) {
        self.next_ms = self.next_ms.min(now_ms + config.commit_interval_ms.max(HOLD_MS));
    }

    /// Tells the others of the node what waits here, in bytes.
    pub(crate) fn share(&mut self, uncommitted_bytes: usize) {
        self.share.set(uncommitted_bytes);
    }

    /// Beyond so many uncommitted bytes nothing more is taken in: twice the share, which may be less than what a single
    /// great request leaves; or what a few of these leave, where the others leave room.
    pub(crate) fn overfull_bytes(&self, config: &Config, uncommitted_bytes: usize) -> usize {
        let shared = config.overlay_bytes_max.saturating_mul(2);
        match self.share.left() {
            0 => shared,
            left => shared.max(uncommitted_bytes.saturating_add(left).min(GREAT_BYTES)),
        }
    }

    /// Whether a commit is to begin.
    pub(crate) fn is_due(&self, config: &Config, uncommitted_bytes: usize, now_ms: i64) -> bool {
        let early = uncommitted_bytes > config.overlay_bytes_max;
        self.next_ms().is_some_and(|next_ms| now_ms >= next_ms || early)
    }

    /// Begins a commit of the outputs and of these rows: what to hand to the log.
    pub(crate) fn begin(
        &mut self,
        context: &PartitionContext,
        position: &Position,
        rows: Vec<(Space, Bytes, Option<Bytes>)>,
        next_ms: i64,
    ) -> Commit {
        let mut outputs = self.outputs.begin_commit();
        let mut index = Vec::new();
        for (space, key, value) in rows {
            match space.topic() {
                Some(topic) => outputs.push(Output::new(topic, key, value)),
                None => index.push((key, value)),
            }
        }
        let (applied, position) = (position.applied, position.encode());
        self.under_way = Some((applied, position.clone()));
        self.changed = false;
        self.next_ms = next_ms;
        Commit { partition: context.id, fence: self.fence, applied, position, outputs, index }
    }

    /// The commit is done: what was committed.
    pub(crate) fn done(&mut self, context: &PartitionContext) -> (Offset, Bytes) {
        self.refused.ends(context.id);
        self.outputs.committed();
        self.under_way.take().unwrap_or_default()
    }

    /// The log had no room for the commit.
    pub(crate) fn refused(&mut self, context: &PartitionContext, error: &everlog_log::Error) {
        self.refused.begins(context.id, error);
    }

    /// The outputs join those that come, and are committed later. The journal has it all.
    pub(crate) fn put_back(&mut self, now_ms: i64) {
        self.under_way = None;
        self.outputs.commit_failed();
        self.changed = true;
        self.next_ms = now_ms + HOLD_MS;
    }

    /// Below this offset the journal was trimmed.
    pub(crate) fn trimmed(&self) -> Offset {
        self.trimmed
    }

    /// The journal begins here.
    pub(crate) fn set_trimmed(&mut self, bounds: &Range<Offset>) {
        self.trimmed = bounds.start;
    }

    /// Deletes applied records, if there are enough of them; a failure is no reason to stop, the next commit tries again.
    pub(crate) fn trim<L: Log + ?Sized>(&mut self, log: &L, context: &PartitionContext, below: Offset) {
        if below <= self.trimmed + context.config.journal_keep_records / 2 {
            return;
        }
        match log.trim(context.id, below) {
            Ok(()) => self.trimmed = below,
            Err(error) => {
                tracing::debug!(partition = context.id, below, %error, "the journal was not trimmed")
            }
        }
    }

    /// The rows were restored up to here.
    pub(crate) fn set_checkpoint(&mut self, checkpoint: RestoreCheckpoint) {
        self.checkpoint = checkpoint;
    }

    /// The rows of histories were restored up to an offset of their topic: what to write beside them.
    pub(crate) fn histories_restored(&mut self, next: Offset) -> Bytes {
        self.checkpoint.history = next;
        self.checkpoint.encode()
    }

    /// The rows stand at a commit that is done, their histories perhaps not yet: what to write beside them.
    pub(crate) fn rows_stand_at<L: Log + ?Sized>(
        &mut self,
        log: &L,
        context: &PartitionContext,
        position: Bytes,
        histories: Option<Offset>,
        now_ms: i64,
    ) -> Result<Bytes, Error> {
        let next = log.marks(context.id)?;
        let history = histories.unwrap_or(next.history);
        let (changelog, timers) = (next.changelog, next.timers);
        let partition = u64::from(context.id) + 1;
        self.checkpoint =
            RestoreCheckpoint { position, changelog, history, timers, written_ms: now_ms, partition };
        Ok(self.checkpoint.encode())
    }
}
