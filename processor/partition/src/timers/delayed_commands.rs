//! Public commands that wait for their moment: a row of its own each, and an index of those of the near future.
//!
//! The row stands among the alarms: bucket (2), moment (8), namespace (16), length of the Workflow Id (2), Workflow Id,
//! and where a run's alarm has 16 bytes of a run id, 28 of the command's place: topic (16), partition (4), offset (8).

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use everlog_engine::request::RequestRecord;
use everlog_wire::public_command::SourcePosition;

use crate::model::keys::{WorkflowKey, incarnation};

/// Bytes of a command's place.
const PLACE_BYTES: usize = 28;

/// Rows in the order in which they become due.
#[derive(Debug, Default)]
pub(crate) struct DelayedCommands {
    rows: BTreeSet<(i64, Bytes)>,
}

impl DelayedCommands {
    /// The command of this row is due at its moment.
    pub(crate) fn arm(&mut self, row: Bytes) {
        if let Some(due_ms) = due_ms(&row) {
            self.rows.insert((due_ms, row));
        }
    }

    /// Takes the earliest row that is due.
    pub(crate) fn take(&mut self, now_ms: i64) -> Option<Bytes> {
        if self.next_ms()? > now_ms {
            return None;
        }
        self.rows.pop_first().map(|(_, row)| row)
    }

    /// The earliest moment in the index.
    pub(crate) fn next_ms(&self) -> Option<i64> {
        self.rows.first().map(|(due_ms, _)| *due_ms)
    }

    /// Rows in the index.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// The key of the row of a command that is to wait until `due_ms`.
pub(crate) fn row_key(input: &RequestRecord, source: &SourcePosition, due_ms: i64) -> Bytes {
    let workflow = WorkflowKey::new(&input.namespace_id, &input.workflow_id);
    let mut row = BytesMut::with_capacity(workflow.bytes().len() + 8 + PLACE_BYTES);
    row.put_slice(&workflow.bytes()[..2]);
    row.put_i64(due_ms);
    row.put_slice(&workflow.bytes()[2..]);
    row.put_slice(&incarnation(source));
    row.put_u32(source.partition);
    row.put_u64(source.offset);
    row.freeze()
}

/// The moment of a row; none where it is no command's.
pub(crate) fn due_ms(row: &[u8]) -> Option<i64> {
    let id_bytes = usize::from(u16::from_be_bytes(row.get(26..28)?.try_into().ok()?));
    let place = row.get(28 + id_bytes..)?;
    if place.len() != PLACE_BYTES {
        return None;
    }
    Some(i64::from_be_bytes(row.get(2..10)?.try_into().ok()?))
}

/// The rows of commands that wait, among the rows of alarms.
pub(crate) fn waiting_row(row: &[u8]) -> Option<Bytes> {
    due_ms(row).map(|_| Bytes::copy_from_slice(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::keys::{read_timer_key, timer_key};

    #[test]
    fn a_command_that_waits_is_no_alarm_of_a_run() {
        let namespace_id = "7d4cbe0a-32c5-5c0f-8d6c-0e8f6f3d2a11".to_owned();
        let input = RequestRecord { namespace_id, workflow_id: "order-1".into(), ..RequestRecord::default() };
        let source = SourcePosition {
            incarnation: Bytes::from_static(&[7; 16]),
            partition: 3,
            ..SourcePosition::default()
        };
        let row = row_key(&input, &source, 1_234);
        assert_eq!(due_ms(&row), Some(1_234));
        assert!(read_timer_key(&row).is_none());
        let run = WorkflowKey::new(&input.namespace_id, &input.workflow_id).run(&input.namespace_id);
        assert_eq!(due_ms(&timer_key(&run, 1_234)), None);
    }
}
