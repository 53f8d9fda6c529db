//! What is over is counted once, also where a new owner replays what the one before has counted.

use std::sync::{Arc, Mutex};

use everlog_engine::command::CommandAttributes;
use everlog_engine::machine::close;
use everlog_engine::{Ending, WorkflowEnding};
use everlog_partition::{Config, EndingCounts, TaskKind};

use crate::harness::{Harness, NAMESPACE, config, workflow};

/// What was counted.
#[derive(Default)]
struct Counted(Mutex<Vec<(String, Ending)>>);

impl EndingCounts for Counted {
    fn count(&self, namespace_id: &str, ending: Ending) {
        self.0.lock().expect("nobody panics").push((namespace_id.to_owned(), ending));
    }
}

#[test]
fn what_a_new_owner_replays_is_not_counted_again() {
    let counted = Arc::new(Counted::default());
    // Nothing is committed before the crash, so all is replayed.
    let config = Config { commit_interval_ms: 3_600_000, ending_counts: counted.clone(), ..config() };
    let mut harness = Harness::build_with(config);
    let all = || counted.0.lock().expect("nobody panics").clone();
    harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(all(), []);
    let complete = CommandAttributes::CompleteWorkflow(close::Complete::default());
    harness.complete(&task.run, vec![complete]);
    let once = [(NAMESPACE.to_owned(), Ending::Workflow(WorkflowEnding::Completed))];
    assert_eq!(all(), once);
    harness.crash();
    assert!(!harness.read().run.is_open());
    assert_eq!(all(), once, "the journal is replayed");
    harness.start_with(|begin| begin.request_id = "another".into());
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![CommandAttributes::CompleteWorkflow(close::Complete::default())]);
    assert_eq!(all().len(), 2, "what is new counts");
}
