//! What a row of the changelog is to another log, and what it becomes there.

use bytes::{BufMut, Bytes, BytesMut};
use everlog_wire::rows;

use crate::error::Error;
use crate::model::keys::RunKey;
use crate::outbox::read_message_row;
use crate::state::namespace_deletion::is_removal_row;

/// Bytes of the bucket that each key begins with.
const BUCKET_BYTES: usize = 2;

/// What a row of the changelog is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRow {
    /// It belongs to a Workflow Id, and goes where that goes.
    Workflow,
    /// A message of the partition to another one that it may not have taken.
    Message {
        /// The receiver.
        to: u32,
        /// Its number.
        number: u64,
    },
    /// A namespace that was deleted, which every partition has.
    DeletedNamespace,
}

/// What a row is by its key.
pub fn state_row(key: &[u8]) -> StateRow {
    if is_removal_row(key) {
        return StateRow::DeletedNamespace;
    }
    match read_message_row(key) {
        Some((to, number)) => StateRow::Message { to, number },
        None => StateRow::Workflow,
    }
}

/// The row of a workflow in a log that has other journals; none where it is the same.
///
/// # Errors
/// It cannot be read, or a later release has written it.
pub fn moved_row(key: &[u8], value: &[u8]) -> Result<Option<Bytes>, Error> {
    Ok(match suffix(key) {
        Some(suffix) => rows::without_offsets(suffix, value)?,
        None => None,
    })
}

/// The row of a deleted namespace in the partition that begins with a bucket. Its owner looks once whether anything is left.
pub fn deleted_namespace_row(key: &[u8], bucket: u16) -> (Bytes, Bytes) {
    let mut row = BytesMut::with_capacity(key.len());
    row.put_u16(bucket);
    row.put_slice(key.get(BUCKET_BYTES..).unwrap_or_default());
    (row.freeze(), Bytes::from_static(crate::state::namespace_deletion::LEFT))
}

/// The suffix of a row of a run; none where it is a workflow's.
pub(super) fn suffix(key: &[u8]) -> Option<&[u8]> {
    let run = RunKey::of_row(key)?;
    key.get(run.bytes().len()..)
}
