//! Follows `control`: a thread reads all rows, then every change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use everlog_log::{Error, Offset, Outage};
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;

use crate::client::consumer::{FOLLOW_WAIT, NextMessage, assign, next};
use crate::client::librdkafka::Live;
use crate::client::log_lines::ClientLog;
use crate::errors::{io, io_text};
use crate::options::{Isolation, Options};
use crate::record_format::CONTROL_RESERVED;

/// How long the thread waits for a row before it checks whether it was stopped.
const POLL: Duration = Duration::from_millis(50);
/// Pause after a failed read.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A change of `control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChange<'a> {
    /// The new value of a row; None = it was removed. Existing rows come first, not all with their last value.
    Row(&'a [u8], Option<&'a [u8]>),
    /// All existing rows were delivered.
    UpToDate,
}

/// Dropping it ends the thread.
pub struct Follow {
    is_over: Arc<AtomicBool>,
    is_doubted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follow {
    pub(crate) fn start(
        options: &Options,
        mut tell: impl FnMut(ControlChange<'_>) + Send + 'static,
    ) -> Result<Self, Error> {
        let topic = options.topic("control");
        let config = options.consumer("control-news", Isolation::Uncommitted, FOLLOW_WAIT);
        let reader = move |from: Offset| -> Result<Live<BaseConsumer<ClientLog>>, Error> {
            let consumer = config
                .create_with_context(ClientLog::new("control-news"))
                .map_err(|error| io("a consumer", &error))?;
            assign(&consumer, &topic, 0, from)?;
            Ok(consumer)
        };
        let mut consumer = reader(0)?;
        let topic_name = options.topic("control");
        let (is_over, is_doubted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (ends, doubts) = (Arc::clone(&is_over), Arc::clone(&is_doubted));
        let thread = std::thread::Builder::new().name("control-news".into()).spawn(move || {
            let (mut reached, mut outage): (Offset, _) = (0, Outage::default());
            while !ends.load(Ordering::Relaxed) {
                if doubts.swap(false, Ordering::Relaxed) {
                    match reader(reached) {
                        Ok(other) => consumer = other,
                        Err(error) => tracing::debug!(%error, "the reading of control was not restarted"),
                    }
                }
                let came = next(&consumer, &topic_name, "control", POLL);
                if matches!(came, Ok(NextMessage::Message(_) | NextMessage::End))
                    && let Some(lasted) = outage.works(Instant::now())
                {
                    tracing::info!(after_s = lasted.as_secs(), "control read again");
                }
                match came {
                    Ok(NextMessage::Message(message)) => {
                        reached = message.offset() as Offset + 1;
                        let key = message.key().unwrap_or_default();
                        if key.first() != Some(&CONTROL_RESERVED) {
                            tell(ControlChange::Row(key, message.payload()));
                        }
                    }
                    Ok(NextMessage::End) => tell(ControlChange::UpToDate),
                    Ok(NextMessage::Nothing) => {}
                    Err(error) => {
                        if let Some(lasts) = outage.fails(Instant::now()) {
                            tracing::warn!(%error, for_s = lasts.as_secs(), "control unreadable");
                        }
                        std::thread::sleep(AGAIN_AFTER);
                        doubts.store(true, Ordering::Relaxed);
                    }
                }
            }
        });
        let thread = thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(Follow { is_over, is_doubted, thread: Some(thread) })
    }

    /// A change is missing: the consumer may wait for an answer that was lost, so it is replaced.
    pub fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Relaxed);
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread delivers nothing more.
            let _ = thread.join();
        }
    }
}
