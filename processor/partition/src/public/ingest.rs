//! Public commands in the journal: each is applied once, whoever has brought it and however often.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use everlog_avro::command::{Code, DELIVER_AHEAD_MS_MAX};
use everlog_avro::outcome::of_rejection;
use everlog_engine::Reply;
use everlog_engine::request::RequestRecord;
use everlog_log::Log;
use everlog_store::{CommittedRows, Space};
use everlog_wire::public_command::{DeliverDelayed, InvalidCommand, PublicCommand, SourcePosition};
use everlog_wire::{Body, Position, Record};
use prost::Message;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::invariants::{Rule, Rules};
use crate::model::admission::{CallFailure, CallResult};
use crate::model::keys::Address;
use crate::model::pending::ReplyTo;
use crate::model::reply::send_reply;
use crate::partition::Partition;
use crate::public::command_observer::DecidedCommand;
use crate::public::outputs::{CommandOrigin, named};
use crate::timers::delayed_commands::{due_ms, row_key};

/// Sources whose marks are kept.
const MARKS_MAX: usize = 4_096;
/// Batches of records that may wait for their place in the journal.
const BATCHES_MAX: usize = 16;

/// Records on their way into a journal that only its owner appends to, one after the other: an append that is refused
/// must never be overtaken by the next.
#[derive(Default)]
pub(crate) struct IngestQueue {
    batches: VecDeque<Batch>,
    /// The record that was enqueued and has not been applied.
    under_way: Option<SourcePosition>,
}

struct Batch {
    bodies: VecDeque<Body>,
    done: oneshot::Sender<CallResult<()>>,
}

enum SourceOrder {
    Next,
    Seen,
    Gap,
    NoRoom,
}

impl IngestQueue {
    /// Takes records in for the journal; `done` hears when the last of them is durable and applied.
    pub(crate) fn push(&mut self, bodies: Vec<Body>, done: oneshot::Sender<CallResult<()>>) {
        if self.batches.len() >= BATCHES_MAX {
            send_reply(done, Err(CallFailure::Busy));
        } else if bodies.iter().any(|body| source_of(body).is_none()) {
            send_reply(done, Err(CallFailure::Internal));
        } else {
            self.batches.push_back(Batch { bodies: bodies.into(), done });
        }
    }

    /// The next record, if the one before has arrived: it is under way from here on.
    fn next(&mut self) -> Option<Body> {
        while self.under_way.is_none() {
            if let Some(body) = self.batches.front_mut()?.bodies.pop_front() {
                self.under_way = source_of(&body).cloned();
                return Some(body);
            }
            if let Some(batch) = self.batches.pop_front() {
                send_reply(batch.done, Ok(()));
            }
        }
        None
    }

    /// The record of a source is applied; true where it is the one that was under way.
    fn arrived(&mut self, source: &SourcePosition) -> bool {
        self.under_way.take_if(|under_way| under_way == source).is_some()
    }
}

impl<L: Log + ?Sized, B: CommittedRows, R: Rules> Partition<L, B, R> {
    /// Sends the next record on its way, if the one before has arrived.
    pub(crate) fn send_next(&mut self) {
        if !self.is_overfull()
            && let Some(body) = self.ingest_queue.next()
        {
            self.journal.push(Record::new(0, body), ReplyTo::Nobody);
        }
    }

    /// Applies a public command.
    pub(crate) fn ingest(&mut self, offset: u64, forwarded: &PublicCommand) -> Result<(), Error> {
        let Some(source) = &forwarded.source else {
            self.skip(offset, "a public command without its place", ReplyTo::Nobody);
            return Ok(());
        };
        if !self.is_next(source, || CommandOrigin::of_forwarded(source, forwarded)) {
            return Ok(());
        }
        let told = CommandOrigin::of_forwarded(source, forwarded);
        let Some(input) = &forwarded.input else {
            self.publisher().refusal(&told, Code::CommandIncomplete.name(), "it orders nothing");
            return Ok(());
        };
        if !self.context.owns(&Address::of(input)) {
            let reason = "it was brought to a partition that does not own its Workflow Id";
            self.publisher().refusal(&told, Code::InvalidArgument.name(), reason);
            return Ok(());
        }
        let (due_ms, now_ms) = (forwarded.deliver_at_ms, self.position.last_stamp_ms);
        if due_ms <= now_ms {
            return self.order(offset, source, forwarded);
        }
        if due_ms - now_ms > DELIVER_AHEAD_MS_MAX {
            self.publisher().refusal(&told, Code::Header.name(), "deliver-at is more than a year ahead");
            return Ok(());
        }
        let row = row_key(input, source, due_ms);
        self.runs.store().put(Space::Timers, row.clone(), forwarded.encode_to_vec().into());
        if !self.ownership.is_replaying() {
            self.timers.arm_within_horizon(row, due_ms);
        }
        Ok(())
    }

    /// Tells of a public record that is no command.
    pub(crate) fn ingest_unreadable(&mut self, offset: u64, unreadable: &InvalidCommand) {
        let Some(source) = &unreadable.source else {
            self.skip(offset, "a public record without its place", ReplyTo::Nobody);
            return;
        };
        if self.is_next(source, || CommandOrigin::of_unreadable(source, unreadable)) {
            let told = CommandOrigin::of_unreadable(source, unreadable);
            self.publisher().refusal(&told, &unreadable.code, &unreadable.reason);
        }
    }

    /// The moment of a command has come, unless it has been delivered already.
    pub(crate) fn deliver(&mut self, offset: u64, deliver: &DeliverDelayed) -> Result<(), Error> {
        let row = &deliver.row;
        let Some(value) = self.runs.store().get(Space::Timers, row)? else { return Ok(()) };
        let Some(due_ms) = due_ms(row) else {
            self.skip(offset, "a delivery of what is no command", ReplyTo::Nobody);
            return Ok(());
        };
        if due_ms > self.position.last_stamp_ms {
            // Too early by the journal's clock: it stays where it is.
            if !self.ownership.is_replaying() && R::keeps(Rule::EarlyAlarms) {
                self.timers.command_was_early(row.clone(), self.position.last_stamp_ms);
            }
            return Ok(());
        }
        self.runs.store().delete(Space::Timers, row.clone());
        let forwarded = PublicCommand::decode(value);
        let forwarded =
            forwarded.map_err(|error| Error::damaged("a command that waited for its moment", &error))?;
        match &forwarded.source {
            Some(source) => self.order(offset, source, &forwarded),
            None => {
                self.skip(offset, "a public command without its place", ReplyTo::Nobody);
                Ok(())
            }
        }
    }

    /// Turns commands that are due into records, a slice at a time.
    pub(crate) fn wake_delayed(&mut self, now_ms: i64) {
        for _ in 0..self.context.config.wakes_max {
            let Some(row) = self.timers.delayed.take(now_ms) else { break };
            self.context.stats.wakes.fetch_add(1, Ordering::Relaxed);
            let record = Record::new(self.position.term, Body::DeliverDelayed(DeliverDelayed { row }));
            self.journal.push(record, ReplyTo::Nobody);
        }
    }

    /// Orders what a command says, and tells what it came to.
    fn order(
        &mut self,
        offset: u64,
        source: &SourcePosition,
        forwarded: &PublicCommand,
    ) -> Result<(), Error> {
        let told = CommandOrigin::of_forwarded(source, forwarded);
        let Some(input) = &forwarded.input else { return Ok(()) };
        let Some((key, reply)) = self.decided(offset, input, &mut ReplyTo::Nobody)? else {
            self.skip(offset, "the engine panicked", ReplyTo::Nobody);
            self.publisher().refusal(&told, Code::InvalidArgument.name(), "it could not be applied");
            return Ok(());
        };
        self.context.stats.forwarded.fetch_add(1, Ordering::Relaxed);
        self.tell_or_promise(&key, source, forwarded, &reply)?;
        let mut refused = None;
        if let Reply::Rejected(rejection) = &reply {
            let (code, reason) = of_rejection(rejection);
            self.publisher().rejection(&told, code.name(), reason);
            refused = Some(code.name());
        }
        self.observe_command(source, forwarded, input, refused);
        self.answer(&key, reply, ReplyTo::Nobody)
    }

    fn observe_command(
        &self,
        source: &SourcePosition,
        forwarded: &PublicCommand,
        input: &RequestRecord,
        refused: Option<&'static str>,
    ) {
        let observer = self.context.config.command_observer.as_ref();
        if let Some(observer) = observer.filter(|_| !self.ownership.is_replaying()) {
            observer.decided(&DecidedCommand {
                topic: &source.topic,
                partition: source.partition,
                offset: source.offset,
                namespace: &forwarded.namespace,
                workflow_id: named(input),
                traceparent: forwarded.traceparent.as_deref(),
                began_ms: self.position.last_stamp_ms,
                refused,
            });
        }
    }

    /// Notes how far a source was applied; false where the record is not to be applied.
    fn is_next<'a>(&mut self, source: &SourcePosition, told: impl FnOnce() -> CommandOrigin<'a>) -> bool {
        self.arrived(source);
        let nameless;
        let source = if R::keeps(Rule::IngressIncarnation) {
            source
        } else {
            nameless = SourcePosition { incarnation: Bytes::new(), ..source.clone() };
            &nameless
        };
        match pass(&mut self.position, source) {
            SourceOrder::Next => true,
            SourceOrder::Seen => {
                self.context.stats.duplicates.fetch_add(1, Ordering::Relaxed);
                !R::keeps(Rule::IngressMarks)
            }
            SourceOrder::Gap => {
                self.context.stats.voided.fetch_add(1, Ordering::Relaxed);
                !R::keeps(Rule::IngressGaps)
            }
            SourceOrder::NoRoom => {
                let reason = format!("commands come from more than {MARKS_MAX} partitions");
                self.publisher().refusal(&told(), Code::Busy.name(), &reason);
                false
            }
        }
    }

    fn arrived(&mut self, source: &SourcePosition) {
        if self.ingest_queue.arrived(source) {
            self.send_next();
        }
    }
}

/// Moves the mark of a source behind the record, unless it stands there already. A new source beyond those that are
/// kept takes the place of the oldest one of another topic.
fn pass(position: &mut Position, source: &SourcePosition) -> SourceOrder {
    let marks = &mut position.marks;
    let is_its = |mark: &&mut SourcePosition| {
        mark.partition == source.partition && mark.incarnation == source.incarnation
    };
    let next = source.offset.saturating_add(1);
    if let Some(mark) = marks.iter_mut().find(is_its) {
        if source.offset < mark.offset {
            return SourceOrder::Seen;
        }
        if mark.offset < source.follows {
            return SourceOrder::Gap;
        }
        mark.offset = next;
        return SourceOrder::Next;
    }
    let oldest = marks.iter().position(|mark| mark.incarnation != source.incarnation);
    let is_full = marks.len() >= MARKS_MAX;
    if is_full && oldest.is_none() {
        return SourceOrder::NoRoom;
    }
    if source.follows > 0 {
        return SourceOrder::Gap;
    }
    if let (true, Some(oldest)) = (is_full, oldest) {
        marks.remove(oldest);
    }
    marks.push(SourcePosition { offset: next, ..source.clone() });
    SourceOrder::Next
}

/// The offset behind the last record of a source that was applied.
pub(crate) fn mark_of(position: &Position, source: &SourcePosition) -> u64 {
    let of_it =
        |mark: &&SourcePosition| mark.partition == source.partition && mark.incarnation == source.incarnation;
    position.marks.iter().find(of_it).map_or(0, |mark| mark.offset)
}

fn source_of(body: &Body) -> Option<&SourcePosition> {
    match body {
        Body::PublicCommand(forwarded) => forwarded.source.as_ref(),
        Body::InvalidCommand(unreadable) => unreadable.source.as_ref(),
        Body::Owner(_)
        | Body::Settings(_)
        | Body::Input(_)
        | Body::Barrier(_)
        | Body::DeliverDelayed(_)
        | Body::OutboxMessage(_)
        | Body::NamespaceDeleted(_)
        | Body::Level(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(topic: u8, partition: u32, offset: u64) -> SourcePosition {
        SourcePosition { incarnation: vec![topic; 16].into(), partition, offset, ..SourcePosition::default() }
    }

    #[test]
    fn an_offset_counts_once_and_each_source_for_itself() {
        let mut position = Position::default();
        let mut is_next = |source: &SourcePosition| matches!(pass(&mut position, source), SourceOrder::Next);
        assert!(is_next(&source(1, 0, 5)));
        assert!(!is_next(&source(1, 0, 5)) && !is_next(&source(1, 0, 3)));
        assert!(is_next(&source(1, 0, 9)), "transactions leave gaps");
        assert!(is_next(&source(1, 1, 5)) && is_next(&source(2, 0, 5)), "another source");
        assert_eq!(position.marks.len(), 3);
    }

    #[test]
    fn marks_are_bounded_and_those_of_old_topics_go_first() {
        let mut position = Position::default();
        for partition in 0..MARKS_MAX as u32 {
            assert!(matches!(pass(&mut position, &source(1, partition, 0)), SourceOrder::Next));
        }
        assert!(matches!(pass(&mut position, &source(1, u32::MAX, 0)), SourceOrder::NoRoom));
        assert!(matches!(pass(&mut position, &source(2, 0, 0)), SourceOrder::Next));
        assert_eq!(position.marks.len(), MARKS_MAX);
        assert!(matches!(pass(&mut position, &source(2, 0, 0)), SourceOrder::Seen));
    }
}
