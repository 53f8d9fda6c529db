//! Requests to stop: SIGTERM or Ctrl-C. The second one ends the process at once.

use std::path::PathBuf;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Both signals.
struct Requests {
    terminate: Signal,
    interrupt: Signal,
}

impl Requests {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next one: its name, and the exit code that a shell expects.
    async fn next(&mut self) -> (&'static str, i32) {
        tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM", 128 + 15),
            _ = self.interrupt.recv() => ("Ctrl-C", 128 + 2),
        }
    }
}

/// Turns true when the node is asked to stop. The second request ends the process, and removes `remove`.
///
/// # Errors
/// Signals cannot be received.
pub fn asked(remove: Option<PathBuf>) -> Result<watch::Receiver<bool>> {
    let mut requests = Requests::new().context("signals cannot be received")?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let (name, _) = requests.next().await;
        tracing::info!(signal = name, "stopping; a second signal ends the process at once");
        sender.send_replace(true);
        let (name, code) = requests.next().await;
        tracing::warn!(signal = name, "ended at once; acknowledged requests are durable");
        if let Some(dir) = remove {
            // If even this cannot be written, nobody can be told.
            let _ = std::fs::remove_dir_all(dir);
        }
        std::process::exit(code);
    });
    Ok(receiver)
}
