//! A value that is made from files, and made anew when one of them changes.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock};

use crate::tls::pem::{PemFile, TlsError};

/// How a value is made from its files.
type MakeValue<T> = Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>;

/// A value and its files.
pub struct Reloading<T> {
    files: Vec<PemFile>,
    load: MakeValue<T>,
    /// The files as they were when they were last read.
    versions: Mutex<Vec<Option<FileStamp>>>,
    value: RwLock<Arc<T>>,
}

/// When a file was changed last, and its length in bytes.
type FileStamp = (SystemTime, u64);

impl<T> Reloading<T> {
    /// Makes the value from the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn new(
        files: Vec<PemFile>,
        load: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        // First, so that a change during the read is noticed.
        let versions = Mutex::new(versions(&files));
        let value = RwLock::new(Arc::new(load()?));
        Ok(Self { files, load: Box::new(load), versions, value })
    }

    /// The value, as it was made last.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.value.read())
    }

    /// Makes the value anew if a file has changed since it was last read; true if so. Each change is read once.
    ///
    /// # Errors
    /// A changed file cannot be used; the former value stays.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let mut known = self.versions.lock();
        let now = versions(&self.files);
        if *known == now {
            return Ok(false);
        }
        *known = now;
        *self.value.write() = Arc::new((self.load)()?);
        Ok(true)
    }
}

fn versions(files: &[PemFile]) -> Vec<Option<FileStamp>> {
    let version = |file: &PemFile| {
        let metadata = std::fs::metadata(&file.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(version).collect()
}
