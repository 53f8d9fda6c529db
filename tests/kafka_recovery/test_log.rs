//! A test's own log, and the node processes on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use everlog_log_kafka::Options;
use everlog_tests::caller::Caller;
use everlog_tests::process::Process;

pub struct TestLog {
    pub options: Options,
    /// Of its nodes, besides those that all have.
    pub settings: Vec<(&'static str, String)>,
    pub dir: tempfile::TempDir,
}

impl TestLog {
    pub fn new(bootstrap: &str) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = Options::new(bootstrap);
        options.prefix = format!("recovery-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
        (options.partitions, options.replication) = (4, 1);
        Ok(Self { options, settings: Vec::new(), dir: tempfile::tempdir()? })
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn rows(&self) -> PathBuf {
        self.data().join("rows")
    }

    /// Starts a node with a name and waits until it serves.
    pub async fn start(&self, name: &str) -> anyhow::Result<(Process, Caller)> {
        let mut process = self.spawn(name, &self.data())?;
        let client = process.ready().await?;
        Ok((process, client))
    }

    pub fn spawn(&self, name: &str, data_dir: &Path) -> anyhow::Result<Process> {
        let mut variables = vec![
            ("EVERLOG_KAFKA__PREFIX", self.options.prefix.clone()),
            ("EVERLOG_KAFKA__PARTITIONS", self.options.partitions.to_string()),
            ("EVERLOG_GATEWAY__POLL_WAIT_MS", "1000".into()),
        ];
        variables.extend(self.settings.iter().cloned());
        Process::start(&self.options.bootstrap_servers, name, data_dir, &variables)
    }
}

pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
