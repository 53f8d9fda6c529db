//! The data directory of a node, and the log in it. Refuses a directory that belongs to another kind of log.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use everlog_log::Error;
use everlog_rocks::log::{Embedded, Limits, Options, Recover, Sync};

use crate as config;
use crate::Config;

/// The folder with the rows of a log on Kafka.
const ROWS: &str = "rows";

/// Where a node's log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLocation {
    /// In the data directory.
    Embedded,
    /// On brokers; the data directory has rows that can be restored from there.
    Kafka,
}

/// A data directory.
pub struct DataDir {
    path: PathBuf,
    /// Removes the directory when it is dropped.
    ephemeral: Option<tempfile::TempDir>,
}

impl DataDir {
    /// A directory that stays.
    pub fn lasting(path: &Path) -> Self {
        Self { path: path.into(), ephemeral: None }
    }

    /// A new directory, removed when this value is dropped.
    ///
    /// # Errors
    /// No directory can be made for temporary files.
    pub fn ephemeral() -> Result<Self> {
        let folder = std::env::temp_dir();
        let new = tempfile::Builder::new().prefix("everlog-").tempdir_in(&folder);
        let dir = new.with_context(|| {
            let folder = folder.display();
            format!("no directory can be made in {folder}; TMPDIR names another place")
        })?;
        Ok(Self { path: dir.path().into(), ephemeral: Some(dir) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It is removed when the server ends.
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral.is_some()
    }

    /// Opens the log in it, which locks the directory.
    ///
    /// # Errors
    /// The reason and the way out, in one line.
    pub fn open(&self, config: &Config) -> Result<Embedded> {
        self.make()?;
        Embedded::open(self.options(config)).map_err(|error| self.explain(error))
    }

    /// Makes the directory if it is missing.
    ///
    /// # Errors
    /// It cannot be made, with the way out.
    pub fn make(&self) -> Result<()> {
        // Payloads and keys are in it, so that only its owner may read it, unless whoever made the directory allows
        // more.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|error| self.unusable(&error.to_string()))
    }

    /// Where the log of the node is that uses this directory; none where nothing is kept yet.
    pub fn log_location(&self) -> Option<LogLocation> {
        let has = |name: &str| self.path.join(name).exists();
        if has("db") {
            return Some(LogLocation::Embedded);
        }
        // The broker that `everlog dev --kafka` starts keeps its own data beside the rows.
        (has(ROWS) || has("kafka")).then_some(LogLocation::Kafka)
    }

    /// Refuses the directory of a node with another kind of log, because its workflows would seem lost.
    ///
    /// # Errors
    /// It is such a directory. The error says how its node is started.
    pub fn fits(&self, config: &Config) -> Result<()> {
        let dir = self.path.display();
        let other = "choose another data directory (--data-dir, server.data_dir)";
        match (self.log_location(), config.kafka.is_used()) {
            (Some(LogLocation::Kafka), false) => bail!(
                "{dir} belongs to a server whose log is on Kafka, and its workflows are there; start it with --kafka, as \
                 before (--kafka-bootstrap, kafka.bootstrap_servers), or {other}"
            ),
            (Some(LogLocation::Embedded), true) => bail!(
                "{dir} has an embedded log, whose workflows are not on Kafka; start it without --kafka (--kafka-bootstrap, \
                 kafka.bootstrap_servers), or {other}"
            ),
            (None | Some(_), _) => Ok(()),
        }
    }

    /// The folder with the rows of a log on Kafka.
    pub fn rows(&self) -> PathBuf {
        self.path.join(ROWS)
    }

    /// The message for a directory that another process uses.
    pub fn is_in_use(&self) -> String {
        let dir = self.path.display();
        format!(
            "{dir} is in use by another Everlog process; stop that one, or choose another data directory \
             (--data-dir, server.data_dir)"
        )
    }

    /// The options of the log in it.
    pub fn options(&self, config: &Config) -> Options {
        let config::Log {
            sync,
            partitions,
            recover,
            waiting_appends_max,
            waiting_bytes_max,
            free_bytes_min,
            public_retention_ms: _,
        } = config.log;
        let database_bytes = config.memory.database_bytes;
        Options {
            partitions,
            sync: match sync {
                config::Sync::Always => Sync::Always,
                config::Sync::Never => Sync::Never,
            },
            recover: match recover {
                config::Recover::Strict => Recover::Strict,
                config::Recover::AcceptLoss => Recover::AcceptLoss,
            },
            block_cache_bytes: database_bytes / 2,
            write_buffer_bytes: database_bytes / 2,
            limits: Limits {
                waiting_items_max: waiting_appends_max,
                waiting_bytes_max,
                free_bytes_min,
                ..Limits::default()
            },
            ..Options::new(&self.path)
        }
    }

    /// An error of its log, with the way out.
    pub fn explain(&self, error: Error) -> anyhow::Error {
        let dir = self.path.display();
        match error {
            Error::Locked { .. } => anyhow!(self.is_in_use()),
            Error::Mismatch { what: "partitions", stored, wanted } => anyhow!(
                "{dir} was made with {stored} partitions, log.partitions is {wanted}; set it to {stored}, or choose \
                 another data directory (--data-dir, server.data_dir)"
            ),
            Error::Mismatch { what, stored, wanted } => anyhow!(
                "{dir} was made by another version of Everlog ({what} {stored}, this one writes {wanted}); use that \
                 version, or choose another data directory (--data-dir, server.data_dir)"
            ),
            Error::Corrupt { .. } => anyhow!("{error} (log.recover, EVERLOG_LOG__RECOVER)"),
            Error::Full { detail } => {
                anyhow!("the disk of {dir} is full: {detail}; make room and start again")
            }
            Error::Io { detail } => self.unusable(&detail),
            Error::Refused { detail } => anyhow!("the log refuses its settings: {detail}"),
            Error::Fenced { .. }
            | Error::OutOfRange { .. }
            | Error::Unknown { .. }
            | Error::Busy { .. }
            | Error::Denied { .. }
            | Error::Closed => error.into(),
        }
    }

    fn unusable(&self, detail: &str) -> anyhow::Error {
        let dir = self.path.display();
        anyhow!(
            "{dir} cannot be used as data directory: {detail}; choose one that can be written (--data-dir, \
             server.data_dir)"
        )
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn refused(dir: &Path, config: &Config) -> String {
        let told = DataDir::lasting(dir).open(config).map(drop).expect_err("it is refused").to_string();
        told.replace(&dir.display().to_string(), "DIR")
    }

    fn unfit(dir: &Path, config: &Config) -> String {
        let told = DataDir::lasting(dir).fits(config).expect_err("it is refused").to_string();
        told.replace(&dir.display().to_string(), "DIR")
    }

    #[test]
    fn a_directory_in_use_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = Config::default();
        let held = DataDir::lasting(dir.path()).open(&config).expect("it is new");
        expect!["DIR is in use by another Everlog process; stop that one, or choose another data directory (--data-dir, server.data_dir)"].assert_eq(&refused(dir.path(), &config));
        drop(held);
        DataDir::lasting(dir.path()).open(&config).expect("it is free again");
    }

    #[test]
    fn another_count_of_partitions_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        drop(DataDir::lasting(dir.path()).open(&config).expect("it is new"));
        config.log.partitions = 16;
        expect!["DIR was made with 8 partitions, log.partitions is 16; set it to 8, or choose another data directory (--data-dir, server.data_dir)"].assert_eq(&refused(dir.path(), &config));
    }

    #[test]
    fn a_directory_of_a_log_on_kafka_is_refused_naming_kafka() {
        for beside in ["rows/0", "kafka/node-1"] {
            let dir = tempfile::tempdir().expect("a directory");
            std::fs::create_dir_all(dir.path().join(beside)).expect("ours");
            let refused = unfit(dir.path(), &Config::default());
            expect!["DIR belongs to a server whose log is on Kafka, and its workflows are there; start it with --kafka, as before (--kafka-bootstrap, kafka.bootstrap_servers), or choose another data directory (--data-dir, server.data_dir)"].assert_eq(&refused);
        }
    }

    #[test]
    fn a_directory_of_an_embedded_log_is_refused_for_one_on_kafka() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = DataDir::lasting(dir.path());
        let mut config = Config::default();
        config.kafka.bootstrap_servers = "localhost:9092".into();
        data.fits(&config).expect("it is new");
        drop(data.open(&Config::default()).expect("it is new"));
        // Somebody has tried it before.
        std::fs::create_dir_all(dir.path().join("kafka")).expect("ours");
        expect!["DIR has an embedded log, whose workflows are not on Kafka; start it without --kafka (--kafka-bootstrap, kafka.bootstrap_servers), or choose another data directory (--data-dir, server.data_dir)"].assert_eq(&unfit(dir.path(), &config));
        data.fits(&Config::default()).expect("it serves on as before");
    }

    #[test]
    fn a_path_that_cannot_be_a_directory_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("a file");
        expect!["DIR cannot be used as data directory: File exists (os error 17); choose one that can be written (--data-dir, server.data_dir)"].assert_eq(&refused(&file, &Config::default()));
        expect!["DIR cannot be used as data directory: Not a directory (os error 20); choose one that can be written (--data-dir, server.data_dir)"].assert_eq(&refused(&file.join("below"), &Config::default()));
    }

    #[test]
    fn a_new_directory_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("data");
        drop(DataDir::lasting(&path).open(&Config::default()).expect("it can be made"));
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn an_ephemeral_directory_goes_with_its_value() {
        let data = DataDir::ephemeral().expect("it can be made");
        drop(data.open(&Config::default()).expect("it is new"));
        let path = data.path().to_owned();
        assert!(path.join("db").exists());
        drop(data);
        assert!(!path.exists());
    }
}
