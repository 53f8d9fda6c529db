//! The row of `control` that a log has while an import into it is not finished: no node may serve it.

use crate::{Error, Log};

/// Its key.
pub const IMPORT_MARK: &[u8] = b"import";

/// Whether an import into a log was begun and not finished.
///
/// # Errors
/// As [`Log::control_scan`].
pub fn has_unfinished_import<L: Log + ?Sized>(log: &L) -> Result<bool, Error> {
    let mut found = false;
    log.control_scan(&mut |key, _| found |= key == IMPORT_MARK)?;
    Ok(found)
}
