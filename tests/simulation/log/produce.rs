//! Appends under way: when each arrives, and which reply its sender gets.

use std::collections::VecDeque;

use bytes::Bytes;
use everlog_log::{AppendDone, Appended, Error, PartitionId};

use super::broker::{Broker, Happening, Tell};

/// What one handle has under way to one partition. Its records keep their order, and so do the reports.
#[derive(Default)]
pub struct Session {
    waiting: VecDeque<Pending>,
    last_arrival_ms: i64,
    last_report_ms: i64,
}

struct Pending {
    append: u64,
    due_ms: i64,
    done: AppendDone,
    outcome: Result<Option<Appended>, Error>,
    placeless: bool,
    arrived: bool,
}

impl Broker {
    /// Sends an append on its way.
    pub fn send(
        &mut self,
        by: u64,
        partition: PartitionId,
        records: Vec<Bytes>,
        done: AppendDone,
    ) -> Vec<Tell> {
        if self.nasty.immediate {
            let (mut told, appended) = self.arrive(partition, records);
            told.push(Box::new(move || done(Ok(Some(appended)))));
            return told;
        }
        let (nasty, count) = (self.nasty, records.len());
        let append = self.serial();
        let (now_ms, delay_ms) = (self.now_ms, self.dice.span(0, nasty.delay_ms));
        let back_ms = self.dice.span(0, nasty.delay_ms);
        let unsent = self.dice.permille(500);
        let session = self.sessions.entry((by, partition)).or_default();
        let mut arrival_ms = session.last_arrival_ms.max(now_ms + delay_ms);
        let mut due_ms = session.last_report_ms.max(arrival_ms + back_ms);
        let mut outcome = Ok(None);
        let mut arrives = Some(records);
        if self.loses_first_of == count && count > 0 {
            self.loses_first_of = 0;
            outcome = Err(Error::Unknown { detail: "no report came".into() });
            arrives = arrives.map(|records| records[1..].to_vec());
        } else if self.dice.permille(nasty.append_busy) {
            outcome = Err(Error::Busy { waiting_items: 1, waiting_bytes: 1 });
            arrives = None;
        } else if self.dice.permille(nasty.append_unknown) {
            outcome = Err(Error::Unknown { detail: "no report came".into() });
            if self.dice.permille(nasty.append_lost) {
                arrives = arrives.and_then(|records| self.some_of(records));
            }
            // It may be told before it happens, or after.
            if self.dice.permille(500) {
                arrival_ms += self.dice.span(0, nasty.append_late_ms);
            }
        } else {
            due_ms = due_ms.max(arrival_ms);
        }
        let placeless = self.dice.permille(nasty.append_placeless);
        let session = self.sessions.entry((by, partition)).or_default();
        session.last_report_ms = due_ms;
        session.waiting.push_back(Pending { append, due_ms, done, outcome, placeless, arrived: false });
        if let Some(records) = arrives {
            session.last_arrival_ms = arrival_ms;
            let by = if unsent { by } else { 0 };
            self.plan(arrival_ms, Happening::Arrive { by, partition, records, append });
        }
        self.plan(due_ms, Happening::Report { by, partition });
        self.say(|| format!("append {append} of {by}: {count} records, arrives at {arrival_ms}"));
        Vec::new()
    }

    /// Records of which some get lost, in their order.
    fn some_of(&mut self, records: Vec<Bytes>) -> Option<Vec<Bytes>> {
        if self.dice.permille(500) {
            return None;
        }
        let stored: Vec<_> = records.into_iter().filter(|_| self.dice.permille(500)).collect();
        if stored.is_empty() { None } else { Some(stored) }
    }

    /// The records of an append stand in the journal.
    pub fn arrived(&mut self, partition: PartitionId, records: Vec<Bytes>, append: u64) -> Vec<Tell> {
        let (told, appended) = self.arrive(partition, records);
        let waiting = self.sessions.values_mut().flat_map(|session| &mut session.waiting);
        for pending in waiting.filter(|pending| pending.append == append) {
            pending.arrived = true;
            if pending.outcome.is_ok() && !pending.placeless {
                pending.outcome = Ok(Some(appended));
            }
        }
        told
    }

    /// Tells what is due, in order.
    pub fn report(&mut self, by: u64, partition: PartitionId) -> Vec<Tell> {
        let now_ms = self.now_ms;
        let Some(session) = self.sessions.get_mut(&(by, partition)) else { return Vec::new() };
        let mut told: Vec<Tell> = Vec::new();
        while let Some(first) = session.waiting.front() {
            if first.due_ms > now_ms || first.outcome.is_ok() && !first.arrived {
                let again_ms = first.due_ms.max(now_ms + 20);
                self.plan(again_ms, Happening::Report { by, partition });
                return told;
            }
            let Some(first) = session.waiting.pop_front() else { break };
            if matches!(first.outcome, Err(Error::Unknown { .. })) {
                // What is sent from here on does not wait for what nobody knows.
                session.last_arrival_ms = now_ms;
                session.last_report_ms = now_ms;
            }
            if self.loud {
                println!("        append {} of {by}: {:?}", first.append, first.outcome);
            }
            told.push(Box::new(move || (first.done)(first.outcome)));
        }
        told
    }

    /// Whether no record is on its way to a journal.
    pub fn sessions_are_quiet(&self) -> bool {
        !self.agenda.values().any(|happening| matches!(happening, Happening::Arrive { .. }))
    }

    /// The sender has died: what it had not put on the wire may be gone.
    pub fn died(&mut self, by: u64) {
        let dice = &mut self.dice;
        self.agenda.retain(|_, happening| match happening {
            Happening::Arrive { by: sender, .. } => *sender != by || dice.permille(500),
            Happening::Report { .. }
            | Happening::Commit { .. }
            | Happening::Committed { .. }
            | Happening::Follow(_)
            | Happening::Read(_) => true,
        });
        self.sessions.retain(|(sender, _), _| *sender != by);
        self.asleep.remove(&by);
    }
}
