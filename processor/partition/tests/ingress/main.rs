//! Public commands in the journal, and what the public topics say: everything once, whatever falls in between.

mod harness;
mod namespace_deletion;
mod operators;
mod promises;
mod schedules;

use std::sync::atomic::Ordering;

use everlog_engine::api_types::ConflictPolicy;
use everlog_engine::command;
use everlog_engine::machine::start::Begin;
use everlog_engine::machine::{activity_attempt, close};
use everlog_engine::request::Request;
use everlog_partition::{Delivery, TaskKind};
use everlog_wire::Body;
use everlog_wire::public_command::{InvalidCommand, Original, PublicCommand, SourcePosition};

use harness::{BEGIN_MS, Harness, a_signal, begin, forwarded, input, original, owner, reply_to, source};

#[test]
fn a_command_is_applied_once_however_often_it_is_brought() {
    let mut harness = Harness::build();
    harness.bring(vec![
        Body::PublicCommand(forwarded(0, begin())),
        Body::PublicCommand(forwarded(1, a_signal())),
    ]);
    // Once before and once after its effect is committed, by its owner and by others.
    harness.crash();
    harness.bring(vec![Body::PublicCommand(forwarded(1, a_signal()))]);
    harness.settle();
    harness.crash();
    harness.bring(vec![
        Body::PublicCommand(forwarded(0, begin())),
        Body::PublicCommand(forwarded(1, a_signal())),
    ]);
    harness.bring_behind_its_back(vec![
        Body::PublicCommand(forwarded(1, a_signal())),
        Body::PublicCommand(forwarded(2, a_signal())),
    ]);
    harness.settle();
    assert_eq!(
        (harness.count("WorkflowExecutionStarted"), harness.count("WorkflowExecutionSignaled")),
        (1, 2)
    );
    let outcomes = harness.outcomes();
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.offset, outcome.partition, outcome.status.as_str())).collect();
    assert_eq!(told, [(0, 3, "started"), (1, 3, "done"), (2, 3, "done")]);
    assert_eq!(outcomes[0].workflow_id.as_deref(), Some("order-1"));
    assert!(outcomes[0].run_id.is_some());
    assert!(harness.rejections().is_empty());
    assert!(harness.stats.duplicates.load(Ordering::Relaxed) >= 4);
}

#[test]
fn runs_that_commands_begin_have_ids_in_the_order_of_the_commands() {
    let mut harness = Harness::build();
    let anew = |offset: u64| {
        let Request::Start(begin) = begin() else { panic!("it is a start") };
        let (request_id, conflict_policy) =
            (format!("request-{offset}"), ConflictPolicy::TerminateExisting.into());
        let order = Request::Start(Box::new(Begin { request_id, conflict_policy, ..*begin }));
        Body::PublicCommand(PublicCommand {
            command_id: Some(format!("c-{offset}")),
            ..forwarded(offset, order)
        })
    };
    // Many in one append, which has one time; more after a while, and after a crash.
    for (first, past) in [(0, 20), (20, 21), (21, 40)] {
        harness.bring((first..past).map(anew).collect());
        harness.advance(1_000);
        harness.crash();
    }
    harness.settle();
    let run_ids: Vec<_> = harness.outcomes().into_iter().filter_map(|outcome| outcome.run_id).collect();
    assert_eq!(run_ids.len(), 40);
    assert!(run_ids.iter().all(|run_id| &run_id[14..15] == "7"), "{run_ids:?}");
    assert!(run_ids.is_sorted_by(|earlier, later| earlier < later), "{run_ids:?}");
}

#[test]
fn a_refused_command_leaves_one_rejection_and_one_outcome() {
    let mut harness = Harness::build();
    let unreadable = InvalidCommand {
        source: Some(source(1)),
        code: "not_json".into(),
        reason: "it is not JSON".into(),
        reply_to: reply_to(),
        original: Some(Original { value_bytes: 5_000, ..original() }),
        ..InvalidCommand::default()
    };
    for _ in 0..3 {
        harness.bring(vec![
            Body::PublicCommand(forwarded(0, a_signal())),
            Body::InvalidCommand(unreadable.clone()),
            Body::PublicCommand(PublicCommand {
                deliver_at_ms: BEGIN_MS + 400 * 86_400_000,
                ..forwarded(2, begin())
            }),
        ]);
        harness.crash();
    }
    harness.settle();
    let rejections = harness.rejections();
    let codes: Vec<_> =
        rejections.iter().map(|rejection| (rejection.offset, rejection.code.as_ref())).collect();
    assert_eq!(codes, [(0, "not_found"), (1, "not_json"), (2, "header")]);
    assert_eq!(rejections[0].value.as_ref().map(|value| &value.0[..]), Some(&b"{}"[..]));
    assert_eq!((rejections[0].topic.as_ref(), rejections[0].partition), ("everlog.commands", 3));
    assert_eq!(rejections[0].headers.len(), 1);
    assert_eq!((rejections[1].value_bytes, rejections[1].reason.as_ref()), (5_000, "it is not JSON"));
    let outcomes = harness.outcomes();
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.status.as_str(), outcome.code.as_deref())).collect();
    assert_eq!(
        told,
        [("refused", Some("not_found")), ("refused", Some("not_json")), ("refused", Some("header"))]
    );
    assert!(harness.events().is_empty());
}

#[test]
fn a_command_waits_for_its_moment_through_crashes() {
    let mut harness = Harness::build();
    let hour_ms = 3_600_000;
    // More than are delivered in one turn, and one that is due before the index looks again.
    let later = |offset| PublicCommand { deliver_at_ms: BEGIN_MS + hour_ms, ..forwarded(offset, a_signal()) };
    let soon = PublicCommand { deliver_at_ms: BEGIN_MS + 5_000, ..forwarded(6, begin()) };
    let mut bodies: Vec<_> = (1..=5).map(|offset| Body::PublicCommand(later(offset))).collect();
    bodies.push(Body::PublicCommand(soon));
    harness.bring(bodies.clone());
    harness.settle();
    assert!(harness.events().is_empty());
    harness.crash();
    harness.bring(bodies);
    harness.advance(4_000);
    harness.until(|harness| {
        harness.settle();
        harness.count("WorkflowExecutionStarted") == 1
    });
    harness.advance(hour_ms - 60_000);
    harness.crash();
    harness.settle();
    assert_eq!(harness.count("WorkflowExecutionSignaled"), 0);
    harness.advance(50_000);
    harness.until(|harness| {
        harness.settle();
        harness.count("WorkflowExecutionSignaled") == 5
    });
    let times: Vec<_> = harness.events().into_iter().map(|event| (event.r#type, event.time)).collect();
    for (r#type, time) in &times {
        let due_ms =
            if r#type == "WorkflowExecutionSignaled" { BEGIN_MS + hour_ms } else { BEGIN_MS + 5_000 };
        assert!(*time >= due_ms && *time < due_ms + 60_000, "{type} came at {time}, {due_ms} was asked for");
    }
    harness.crash();
    harness.advance(hour_ms);
    harness.settle();
    assert_eq!(harness.count("WorkflowExecutionSignaled"), 5);
    assert_eq!(harness.outcomes().len(), 6);
}

#[test]
fn what_no_ingress_would_bring_stops_nobody() {
    let mut harness = Harness::build();
    let nothing = PublicCommand { input: None, ..forwarded(0, begin()) };
    let others = (2..).map(|n| format!("order-{n}")).find(|id| owner(id) != owner("order-1"));
    let astray = PublicCommand { input: others.map(|id| input(&id, begin())), ..forwarded(1, begin()) };
    let nowhere = PublicCommand { source: None, ..forwarded(1, begin()) };
    harness.bring_behind_its_back(vec![
        Body::PublicCommand(nothing),
        Body::PublicCommand(astray),
        Body::PublicCommand(nowhere),
        Body::InvalidCommand(InvalidCommand::default()),
        Body::PublicCommand(forwarded(2, begin())),
    ]);
    harness.settle();
    assert_eq!(harness.count("WorkflowExecutionStarted"), 1);
    let codes: Vec<_> = harness.rejections().into_iter().map(|rejection| rejection.code).collect();
    assert_eq!(codes, ["command_incomplete", "invalid_argument"]);
    assert!(harness.stats.skipped.load(Ordering::Relaxed) >= 2);
}

type Fall = Box<dyn FnMut(&mut Harness)>;

#[test]
fn what_followed_a_lost_part_of_an_append_waits_until_it_comes_again() {
    let mut harness = Harness::build();
    harness.bring(vec![Body::PublicCommand(forwarded(0, begin()))]);
    let second = PublicCommand {
        source: Some(SourcePosition { follows: 5, ..source(5) }),
        ..forwarded(5, a_signal())
    };
    // The first record of the append, with the offset 4, is missing.
    harness.bring_behind_its_back(vec![Body::PublicCommand(second.clone())]);
    harness.settle();
    assert_eq!(harness.count("WorkflowExecutionSignaled"), 0);
    let both = [Body::PublicCommand(forwarded(4, a_signal())), Body::PublicCommand(second)];
    harness.bring_behind_its_back(both.to_vec());
    harness.bring_behind_its_back(both.to_vec());
    harness.settle();
    assert_eq!(harness.count("WorkflowExecutionSignaled"), 2);
}

/// Starts a workflow by a record, runs an activity, and closes; something falls between all steps.
fn live(harness: &mut Harness, mut falls: impl FnMut(&mut Harness)) {
    harness.bring(vec![Body::PublicCommand(forwarded(0, begin()))]);
    falls(harness);
    let task = harness.workflow_task();
    falls(harness);
    let queue = everlog_engine::api_types::TaskQueue::normal("orders");
    let activity = everlog_engine::machine::activity::Schedule {
        activity_id: "charge".into(),
        activity_type: Some(everlog_engine::api_types::ActivityType { name: "Charge".into() }),
        task_queue: Some(queue),
        start_to_close_timeout: Some(everlog_engine::time::Duration::from_ms(1_000_000)),
        ..Default::default()
    };
    harness.complete(&task, vec![command::CommandAttributes::ScheduleActivity(Box::new(activity))]);
    falls(harness);
    let Delivery::Activity(mut task) = harness.poll(TaskKind::Activity) else {
        panic!("an activity task comes")
    };
    task.receipt.take().expect("it can be given back").accept();
    falls(harness);
    let target =
        activity_attempt::Target { activity_id: "charge".into(), ..activity_attempt::Target::default() };
    let complete =
        activity_attempt::Complete { target: Some(target), ..activity_attempt::Complete::default() };
    harness.bring(vec![Body::PublicCommand(forwarded(7, Request::CompleteActivity(complete)))]);
    falls(harness);
    harness.bring(vec![Body::PublicCommand(forwarded(8, a_signal()))]);
    falls(harness);
    let task = harness.workflow_task();
    falls(harness);
    harness.complete(
        &task,
        vec![command::CommandAttributes::CompleteWorkflow(close::Complete { result: None })],
    );
    falls(harness);
    harness.settle();
}

#[test]
fn every_event_is_published_once_and_in_order_whatever_falls() {
    let mut at_rest = 0;
    let falls: [(&str, Fall); 4] = [
        ("nothing", Box::new(|_| {})),
        ("before a commit", Box::new(Harness::crash)),
        (
            "after a commit",
            Box::new(|harness| {
                harness.settle();
                harness.crash();
            }),
        ),
        (
            "in the middle of a commit",
            Box::new(move |harness| {
                harness.advance(100);
                for _ in 0..at_rest % 4 {
                    harness.turn();
                }
                at_rest += 1;
                harness.crash();
            }),
        ),
    ];
    for (what, mut falls) in falls {
        let mut harness = Harness::build();
        live(&mut harness, &mut falls);
        let events = harness.events();
        let ids: Vec<_> = events.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=ids.len() as i64).collect::<Vec<_>>(), "{what}");
        let types: Vec<_> = events.iter().map(|event| event.r#type.as_ref()).collect();
        let expected = [
            "WorkflowExecutionStarted",
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "ActivityTaskScheduled",
            "ActivityTaskStarted",
            "ActivityTaskCompleted",
            "WorkflowTaskScheduled",
            "WorkflowExecutionSignaled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionCompleted",
        ];
        assert_eq!(types, expected, "{what}");
        assert_eq!(harness.outcomes().len(), 3, "{what}");
        assert_eq!(harness.stats.unpublished.load(Ordering::Relaxed), 0);
    }
}
