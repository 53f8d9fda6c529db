//! Who brings public commands into the journal: again and again, until it is known that they are there.

use bytes::Bytes;
use everlog_engine::input::Order;
use everlog_engine::machine::signal;
use everlog_log::Log;
use everlog_wire::ingress::{Forwarded, Source};
use everlog_wire::{Body, Record};
use tokio::sync::oneshot;

use crate::book::Sent;
use crate::dice::Dice;
use crate::log::SimLog;
use crate::node::PARTITION;
use crate::people::{Town, input};

/// How late the last delayed command may be, in ms: clocks are off.
const LATE_MS: i64 = 25_000;

/// Forwards signals for a workflow in their order.
pub async fn bring(town: Town, log: SimLog, workflow_id: String, count: u64, mut dice: Dice) {
    while !town.book.borrow().started.contains_key(&workflow_id) {
        town.rest(&mut dice).await;
    }
    let now_ms = town.clock.now_ms();
    let delays: Vec<i64> =
        (0..count).map(|_| if dice.permille(300) { now_ms + dice.span(0, 5_000) } else { 0 }).collect();
    let mut next = 0;
    while next < count {
        let most = 1 + dice.below(3);
        let batch: Vec<u64> = (next..count.min(next + most)).collect();
        let records = batch.iter().map(|offset| {
            let follows = if *offset == next { 0 } else { *offset };
            let name = format!("{workflow_id}/forwarded/{offset}");
            let sent = Sent { workflow_id: workflow_id.clone(), acknowledged: false };
            town.book.borrow_mut().signals.insert(name.clone(), sent);
            record(&workflow_id, name, *offset, follows, delays[*offset as usize])
        });
        let (done, told) = oneshot::channel();
        let done = Box::new(move |outcome| {
            // The world may have ended.
            drop(done.send(outcome));
        });
        log.append(PARTITION, records.collect(), done);
        if let Ok(Ok(_)) = told.await {
            next += batch.len() as u64;
        }
        town.rest(&mut dice).await;
    }
    let last_ms = delays.iter().max().copied().unwrap_or_default();
    town.clock.sleep((last_ms + LATE_MS - town.clock.now_ms()).max(1_000)).await;
    let mut book = town.book.borrow_mut();
    book.forwarded += count;
    book.people_left -= 1;
}

fn record(workflow_id: &str, name: String, offset: u64, follows: u64, deliver_at_ms: i64) -> Bytes {
    let order = Order::Signal(signal::Signal { name, ..signal::Signal::default() });
    let source = Source {
        incarnation: Bytes::from_static(b"0123456789abcdef"),
        partition: 7,
        offset,
        topic: "commands".into(),
        follows,
    };
    let forwarded = Forwarded {
        source: Some(source),
        input: Some(input(workflow_id, "", order)),
        deliver_at_ms,
        ..Forwarded::default()
    };
    Record::new(0, Body::Forwarded(forwarded)).encode()
}
