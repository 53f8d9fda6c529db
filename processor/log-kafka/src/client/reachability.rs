//! Whether any broker answers: a thread asks one every two seconds.
//!
//! It owns the time since which none has answered. It does not watch partitions: a journal knows by itself which of its
//! appends are not acknowledged.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use everlog_log::Error;
use parking_lot::{Mutex, MutexGuard};
use rdkafka::consumer::Consumer;

use crate::client::consumer::TopicEnds;
use crate::errors::io_text;
use crate::options::Options;

/// Pause between two questions.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Timeout of a question.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Pause after a question without an answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Since when no broker answers.
#[derive(Default)]
pub(crate) struct BrokerReachability(Mutex<Option<Instant>>);

impl BrokerReachability {
    /// Starts the thread, which runs as long as the clients exist. Nothing waits for it: a question takes its time where no
    /// broker answers.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn watch(options: &Options, ends: &Arc<TopicEnds>) -> Result<Arc<Self>, Error> {
        let watched = Arc::new(Self::default());
        let (reachability, ends) = (Arc::clone(&watched), Arc::downgrade(ends));
        let topic = options.topic("control");
        let thread = std::thread::Builder::new().name("brokers".into()).spawn(move || {
            while let Some(answers) = asks(&ends, &topic, &reachability) {
                std::thread::sleep(if answers { ASK_EVERY } else { ASK_AGAIN_AFTER });
            }
        });
        thread.map_err(|error| io_text(format!("a thread: {error}")))?;
        Ok(watched)
    }

    /// For how long no broker has answered; none where one answers.
    pub(crate) fn silent_for(&self, now: Instant) -> Option<Duration> {
        self.since().map(|since| now.saturating_duration_since(since))
    }

    /// A broker that was asked then has answered, or none has.
    fn note(&self, asked: Instant, answers: bool) {
        let mut since = self.since();
        *since = if answers { None } else { since.or(Some(asked)) };
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock()
    }
}

/// Whether a broker answers now; none where nobody wants to know any more.
fn asks(ends: &Weak<TopicEnds>, topic: &str, reachability: &BrokerReachability) -> Option<bool> {
    let ends = ends.upgrade()?;
    let asked = Instant::now();
    let answers = ends.asker().fetch_metadata(Some(topic), ANSWER_WITHIN).is_ok();
    reachability.note(asked, answers);
    Some(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_first_question_without_an_answer_until_the_next_answer() {
        let (reachability, begin) = (BrokerReachability::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!(reachability.silent_for(at(0)), None);
        reachability.note(at(1), true);
        assert_eq!(reachability.silent_for(at(2)), None);
        reachability.note(at(3), false);
        reachability.note(at(6), false);
        assert_eq!(reachability.silent_for(at(15)), Some(Duration::from_secs(12)));
        reachability.note(at(16), true);
        assert_eq!(reachability.silent_for(at(17)), None);
    }
}
