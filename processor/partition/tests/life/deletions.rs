//! Runs that are deleted.

use everlog_engine::Reply;
use everlog_engine::command::CommandAttributes;
use everlog_engine::request::{Delete, Request};
use everlog_partition::{Address, TaskKind, Want};

use crate::harness::{Harness, NAMESPACE, workflow};

/// Whether a run can be read by its id.
fn is_there(harness: &mut Harness, run_id: &str) -> bool {
    let router = harness.router.clone();
    let address =
        Address { namespace_id: NAMESPACE.into(), workflow_id: "order-1".into(), run_id: run_id.into() };
    harness.call(Box::pin(async move { router.read(address, Want::State).await })).expect("read").is_some()
}

#[test]
fn what_went_before_a_run_that_is_deleted_can_be_read_still() {
    let mut harness = Harness::build();
    let first = harness.start();
    let task = workflow(harness.poll(TaskKind::Workflow));
    harness.complete(&task.run, vec![CommandAttributes::ContinueAsNew(Box::default())]);
    let second = harness.read().run.start.run_id.clone();
    assert_eq!(harness.order(Request::Delete(Delete {})), Reply::Done);
    assert!(is_there(&mut harness, &first));
    assert!(!is_there(&mut harness, &second) && !is_there(&mut harness, ""));
    harness.crash();
    assert!(is_there(&mut harness, &first));
}
