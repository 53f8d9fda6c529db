//! Partitions on their way here: a few threads recover them, so that those at work are not kept waiting.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use everlog_partition::{Error, Stats};

use crate::share::{Owned, Takeover};

/// Partitions that are recovered at once; a long restore keeps only those waiting that come beyond.
const AT_ONCE_MAX: usize = 8;

/// A partition as it comes from its recovery, and the number of its life.
pub type Recovered = Result<(Box<Owned>, u64), Error>;

struct Job {
    takeover: Arc<Takeover>,
    id: u32,
    stats: Arc<Stats>,
    applied: Option<u64>,
    has_rested: bool,
}

/// The threads; they end when this is dropped.
pub struct Arrivals {
    jobs: Sender<Job>,
}

impl Arrivals {
    /// Begins the threads, as many as there may be of use.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(partitions: u32) -> std::io::Result<Self> {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..AT_ONCE_MAX.min(partitions as usize) {
            let waiting = Arc::clone(&waiting);
            let thread = std::thread::Builder::new().name(format!("recovery-{number}"));
            thread.spawn(move || work(&waiting))?;
        }
        Ok(Self { jobs })
    }

    /// Recovers a partition; it is posted to its thread when it is there, or why it is not.
    pub fn recover(
        &self,
        takeover: &Arc<Takeover>,
        id: u32,
        stats: &Arc<Stats>,
        applied: Option<u64>,
        has_rested: bool,
    ) {
        let (takeover, stats) = (Arc::clone(takeover), Arc::clone(stats));
        // The threads live as long as this does.
        let _ = self.jobs.send(Job { takeover, id, stats, applied, has_rested });
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { takeover, id, stats, applied, has_rested }) = next else { return };
        let live = std::panic::AssertUnwindSafe(|| match has_rested {
            true => takeover.live_again(id, stats, applied),
            false => takeover.live(id, stats, applied),
        });
        let recovered = std::panic::catch_unwind(live).unwrap_or_else(|_panic| {
            Err(Error::Journal { partition: id, detail: "its recovery panicked".into() })
        });
        takeover.post.arrived(id, recovered);
    }
}
