//! A file that is read again when it changes. A broken new one is named in the log, and the old one stays in use.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};

use crate::error::OpenError;

/// How often the file is checked for changes, at most.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// A larger file is no list of keys or rules.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads the text of a file; the error says what is wrong with which line, and quotes no secret.
type Parse<T> = fn(&str) -> Result<T, String>;

/// What a file says, now.
pub(crate) struct WatchedFile<T> {
    setting: &'static str,
    path: PathBuf,
    parse: Parse<T>,
    content: RwLock<Arc<T>>,
    last: Mutex<LastCheck>,
}

/// The last check of the file.
struct LastCheck {
    at: Duration,
    version: Option<FileVersion>,
}

/// Changes when a file is written, or another one has its name.
type FileVersion = (SystemTime, u64, u64);

impl<T> WatchedFile<T> {
    /// Reads the file of a setting.
    pub(crate) fn open(
        setting: &'static str,
        path: &Path,
        parse: Parse<T>,
        now: Duration,
    ) -> Result<Self, OpenError> {
        // The version first: a change that comes between the two is read again.
        let version = version(path);
        let content =
            read(path, parse).map_err(|fault| OpenError::File { setting, path: path.into(), fault })?;
        let content = RwLock::new(Arc::new(content));
        let last = Mutex::new(LastCheck { at: now, version });
        Ok(Self { setting, path: path.into(), parse, content, last })
    }

    /// What it says. Checks the file if the last check is a second ago.
    pub(crate) fn content(&self, now: Duration) -> Arc<T> {
        // One caller checks, others take what is there.
        if let Some(mut last) = self.last.try_lock()
            && now.saturating_sub(last.at) >= CHECK_EVERY
        {
            last.at = now;
            let version = version(&self.path);
            if version != last.version {
                last.version = version;
                self.reload();
            }
        }
        self.content.read().clone()
    }

    fn reload(&self) {
        let (file, setting) = (self.path.display(), self.setting);
        match read(&self.path, self.parse) {
            Ok(content) => {
                *self.content.write() = Arc::new(content);
                tracing::info!(%file, setting, "file reloaded");
            }
            Err(fault) => {
                tracing::warn!(%file, setting, %fault, "changed file cannot be used: the former content stays in use");
            }
        }
    }
}

fn version(path: &Path) -> Option<FileVersion> {
    let metadata: Metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn read<T>(path: &Path, parse: Parse<T>) -> Result<T, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(format!("is not a file of at most {} MiB", FILE_BYTES_MAX >> 20));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("line {line}: it is not UTF-8")
    })?;
    parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_unparsed| "line 1: it is no number".into())
    }

    #[test]
    fn a_changed_file_is_read_again_at_the_next_check_and_a_broken_one_is_not_taken() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("number");
        std::fs::write(&path, "7").expect("it is written");
        let file = WatchedFile::open("number_file", &path, number, Duration::ZERO).expect("it is right");
        std::fs::write(&path, "10").expect("it is written");
        assert_eq!(*file.content(Duration::from_millis(999)), 7, "it is not checked within a second");
        assert_eq!(*file.content(Duration::from_millis(1_000)), 10);
        std::fs::write(&path, "many").expect("it is written");
        assert_eq!(*file.content(Duration::from_secs(2)), 10);
        std::fs::remove_file(&path).expect("it is removed");
        assert_eq!(*file.content(Duration::from_secs(3)), 10);
        // Another file of the same length takes its name, as a mounted secret does.
        std::fs::write(dir.path().join("new"), "1234").expect("it is written");
        std::fs::rename(dir.path().join("new"), &path).expect("it is renamed");
        assert_eq!(*file.content(Duration::from_secs(4)), 1_234);
    }

    #[test]
    fn at_the_start_a_broken_file_is_an_error_that_names_it_and_the_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("number");
        let refused = || {
            let opened = WatchedFile::open("number_file", &path, number, Duration::ZERO);
            opened.err().expect("it is refused").to_string()
        };
        assert!(refused().contains("number: cannot be read"), "{}", refused());
        std::fs::write(&path, b"1\n2\n\xff").expect("it is written");
        assert!(refused().ends_with("number: line 3: it is not UTF-8 (auth.number_file)"), "{}", refused());
        std::fs::write(&path, "many").expect("it is written");
        assert!(refused().ends_with("number: line 1: it is no number (auth.number_file)"), "{}", refused());
        std::fs::remove_file(&path).expect("it is removed");
        std::fs::create_dir(&path).expect("it is made");
        assert!(refused().contains("is not a file of at most 16 MiB"), "{}", refused());
    }
}
