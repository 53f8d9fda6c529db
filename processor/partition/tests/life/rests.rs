//! A workflow task that workers take and never answer.

use everlog_engine::Reply;
use everlog_engine::machine::signal;
use everlog_engine::machine::workflow_task::Task;
use everlog_engine::request::Request;
use everlog_partition::TaskKind;

use crate::house::{House, workflow};

/// A worker takes the task and says nothing.
fn unanswered(house: &mut House) -> i32 {
    let task = workflow(house.poll(TaskKind::Workflow)).run.head.task.clone().expect("it was handed out");
    house.advance(task.timeout_ms);
    house.until(|house| pending(house).attempt != task.attempt);
    task.attempt
}

fn pending(house: &mut House) -> Task {
    house.read().run.head.task.clone().expect("a task is pending")
}

#[test]
fn a_task_that_nobody_answers_rests_although_the_house_falls_and_news_come() {
    let mut house = House::build();
    house.start();
    assert_eq!([1, 2, 3].map(|_attempt| unanswered(&mut house)), [1, 2, 3]);
    let rests = pending(&mut house);
    assert!(rests.is_resting());
    house.crash();
    let reply = house.order(Request::Signal(signal::Signal { name: "changed".into(), ..Default::default() }));
    assert_eq!(reply, Reply::Done);
    assert_eq!(pending(&mut house), rests);
    let router = house.router.clone();
    let mut poll = Box::pin(async move { router.poll(crate::house::polls(TaskKind::Workflow)).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(poll.as_mut().poll(&mut context).is_pending());
    house.crash();
    house.advance(10_000);
    let task = workflow(house.poll(TaskKind::Workflow));
    assert_eq!(task.run.head.task.as_ref().map(|task| task.unanswered), Some(3));
    house.complete(&task.run, Vec::new());
    assert!(house.read().run.head.task.is_none(), "it is answered");
}
