//! A workflow task that workers take and never answer.

use everlog_engine::Reply;
use everlog_engine::machine::signal;
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::request::Request;
use everlog_partition::TaskKind;

use crate::harness::{Harness, workflow};

/// A worker takes the task and says nothing.
fn unanswered(harness: &mut Harness) -> i32 {
    let task = workflow(harness.poll(TaskKind::Workflow)).run.head.task.clone().expect("it was handed out");
    harness.advance(task.timeout_ms);
    harness.until(|harness| pending(harness).attempt != task.attempt);
    task.attempt
}

fn pending(harness: &mut Harness) -> Task {
    harness.read().run.head.task.clone().expect("a task is pending")
}

#[test]
fn a_task_that_nobody_answers_rests_although_the_house_falls_and_news_come() {
    let mut harness = Harness::build();
    harness.start();
    assert_eq!([1, 2, 3].map(|_attempt| unanswered(&mut harness)), [1, 2, 3]);
    let rests = pending(&mut harness);
    assert!(rests.is_resting());
    harness.crash();
    let reply =
        harness.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    assert_eq!(pending(&mut harness), rests);
    let router = harness.router.clone();
    let mut poll = Box::pin(async move { router.poll(crate::harness::polls(TaskKind::Workflow)).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(poll.as_mut().poll(&mut context).is_pending());
    harness.crash();
    harness.advance(10_000);
    let task = workflow(harness.poll(TaskKind::Workflow));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.unanswered), Some(3));
    harness.complete(&task.run, Vec::new());
    assert!(harness.read().run.head.task.is_none(), "it is answered");
}
