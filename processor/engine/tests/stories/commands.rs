//! Commands: what fails a task, what ends a run, and what is refused without a trace.

use std::fmt::Write;

use bytes::Bytes;
use everlog_engine::Reply;
use everlog_engine::api_types::{RetryPolicy, TaskFailedCause};
use everlog_engine::command::{Command, CommandAttributes, Later};
use everlog_engine::event::Attributes;
use everlog_engine::machine::workflow_task_completed::{Fault, ValidationFailure};
use everlog_engine::machine::{activity, child, close, memo_and_search_attributes, timer, update};
use everlog_engine::payload::UserMetadata;
use everlog_engine::time::Duration;
use expect_test::expect;
use prost::Message;

use crate::world::{Turn, World, application, failure_of, minutes, payload};

/// The words with which a command is refused whose worker keeps the task.
fn refused_only(command: Command) -> String {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    let before = world.run().clone();
    world.answer(|t| t.raw("bad", command));
    assert_eq!(*world.run(), before, "a task that was to stay with its worker");
    world.story().lines().last().unwrap_or_default().replace(&"x".repeat(1_001), "<long>")
}

/// The cause and the message with which a task fails over a command.
fn refused(command: Command) -> String {
    let mut world = World::new();
    world.start("order-1").task(|t| t.raw("bad", command));
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let failed = stored.events.iter().find_map(|event| match &event.attributes {
        Some(everlog_engine::event::Attributes::TaskFailed(failed)) => Some(failed),
        _other => None,
    });
    match failed {
        Some(failed) => {
            let cause = TaskFailedCause::try_from(failed.cause).expect("a known cause");
            let message = failure_of(failed.failure.as_ref()).message;
            assert!(message.starts_with(&format!("{cause:?}: ")), "{message} does not begin with {cause:?}");
            message.replace(&"x".repeat(1_001), "<long>")
        }
        None => "taken".into(),
    }
}

fn of(order: CommandAttributes) -> Command {
    Command { command_type: order.command_type(), order: Some(order), ..Command::default() }
}

#[test]
fn a_command_without_its_attributes_fails_the_task() {
    let mut table = String::new();
    for command_type in (1..=18).filter(|known| *known != 15) {
        writeln!(table, "{}", refused(Command { command_type, ..Command::default() }))
            .expect("a string takes all");
    }
    let foreign = CommandAttributes::StartTimer(timer::Start::default());
    writeln!(table, "{}", refused(Command { command_type: 4, ..of(foreign) })).expect("a string takes all");
    expect![[r#"
        BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes is not set on ScheduleActivityTaskCommand.
        BadRequestCancelActivityAttributes: RequestCancelActivityTaskCommandAttributes is not set on RequestCancelActivityTaskCommand.
        BadStartTimerAttributes: StartTimerCommandAttributes is not set on StartTimerCommand.
        BadCompleteWorkflowExecutionAttributes: CompleteWorkflowExecutionCommandAttributes is not set on CompleteWorkflowExecutionCommand.
        BadFailWorkflowExecutionAttributes: FailWorkflowExecutionCommandAttributes is not set on FailWorkflowExecutionCommand.
        BadCancelTimerAttributes: CancelTimerCommandAttributes is not set on CancelTimerCommand.
        BadCancelWorkflowExecutionAttributes: CancelWorkflowExecutionCommandAttributes is not set on CancelWorkflowExecutionCommand.
        BadRequestCancelExternalWorkflowExecutionAttributes: RequestCancelExternalWorkflowExecutionCommandAttributes is not set on RequestCancelExternalWorkflowExecutionCommand.
        BadRecordMarkerAttributes: RecordMarkerCommandAttributes is not set on RecordMarkerCommand.
        BadContinueAsNewAttributes: ContinueAsNewWorkflowExecutionCommandAttributes is not set on ContinueAsNewWorkflowExecutionCommand.
        BadStartChildExecutionAttributes: StartChildWorkflowExecutionCommandAttributes is not set on StartChildWorkflowExecutionCommand.
        BadSignalWorkflowExecutionAttributes: SignalExternalWorkflowExecutionCommandAttributes is not set on SignalExternalWorkflowExecutionCommand.
        BadSearchAttributes: UpsertWorkflowSearchAttributesCommandAttributes is not set on UpsertWorkflowSearchAttributesCommand.
        BadUpdateWorkflowExecutionMessage: ProtocolMessageCommandAttributes is not set on ProtocolMessageCommand.
        BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes is not set on ModifyWorkflowPropertiesCommand.
        BadScheduleNexusOperationAttributes: ScheduleNexusOperationCommandAttributes is not set on ScheduleNexusOperationCommand.
        BadRequestCancelNexusOperationAttributes: RequestCancelNexusOperationCommandAttributes is not set on RequestCancelNexusOperationCommand.
        BadCompleteWorkflowExecutionAttributes: CompleteWorkflowExecutionCommandAttributes is not set on CompleteWorkflowExecutionCommand.
    "#]]
    .assert_eq(&table);
}

/// Each with one mistake.
fn commands_that_make_no_sense() -> Vec<Command> {
    let span = |ms| Some(Duration::from_ms(ms));
    let schedule = |change: &dyn Fn(&mut activity::Schedule)| {
        let mut world = World::new();
        world.start("order-1");
        let mut turn = Turn::new(world.run());
        turn.activity_with("a", "", change);
        turn.order.commands.remove(0)
    };
    let timer = |id: &str, ms| {
        of(CommandAttributes::StartTimer(timer::Start {
            timer_id: id.into(),
            start_to_fire_timeout: span(ms),
        }))
    };
    let memo = |upserted_memo| {
        of(CommandAttributes::ModifyProperties(memo_and_search_attributes::Modify { upserted_memo }))
    };
    let search = |search_attributes| {
        of(CommandAttributes::UpsertSearchAttributes(memo_and_search_attributes::UpsertSearchAttributes {
            search_attributes,
        }))
    };
    let again = |change: &dyn Fn(&mut close::ContinueAsNew)| {
        let mut order = close::ContinueAsNew::default();
        change(&mut order);
        of(CommandAttributes::ContinueAsNew(Box::new(order)))
    };
    let long = "x".repeat(1_001);
    vec![
        schedule(&|s| s.activity_id.clear()),
        schedule(&|s| s.activity_id.clone_from(&long)),
        schedule(&|s| s.activity_type = None),
        schedule(&|s| s.start_to_close_timeout = None),
        schedule(&|s| s.heartbeat_timeout = span(-1)),
        schedule(&|s| s.heartbeat_timeout = Some(Duration { seconds: 1, nanos: -1 })),
        schedule(&|s| s.priority = Some(Bytes::from_static(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))),
        schedule(&|s| s.priority = Some(Bytes::from_static(b"\x1d\x00\x00\x80\xbf"))),
        of(CommandAttributes::RequestCancelActivity(activity::RequestCancel { scheduled_event_id: 0 })),
        of(CommandAttributes::RequestCancelActivity(activity::RequestCancel { scheduled_event_id: 77 })),
        timer("", 1),
        timer(&long, 1),
        timer("t", -1),
        of(CommandAttributes::CancelTimer(timer::Cancel { timer_id: String::new() })),
        of(CommandAttributes::CancelTimer(timer::Cancel { timer_id: "unknown".into() })),
        of(CommandAttributes::RecordMarker(Box::default())),
        of(CommandAttributes::FailWorkflow(close::Fail { failure: None })),
        memo(None),
        memo(Some(Bytes::new())),
        memo(Some(Bytes::from_static(b"\xff"))),
        search(None),
        search(Some(Bytes::new())),
        search(Some(Bytes::from_static(b"\xff"))),
        again(&|c| c.workflow_run_timeout = span(-1)),
        again(&|c| c.workflow_type.get_or_insert_default().name.clone_from(&long)),
    ]
}

#[test]
fn a_command_that_makes_no_sense_fails_the_task() {
    let mut table = String::new();
    for command in commands_that_make_no_sense() {
        writeln!(table, "{}", refused(command)).expect("a string takes all");
    }
    expect![[r#"
        BadScheduleActivityAttributes: ActivityId is not set on ScheduleActivityTaskCommand. ActivityType=Charge
        BadScheduleActivityAttributes: ActivityId on ScheduleActivityTaskCommand exceeds length limit. ActivityId=<long> ActivityType=Charge Length=1001 Limit=1000
        BadScheduleActivityAttributes: ActivityType is not set on ScheduleActivityTaskCommand. ActivityID=a
        BadScheduleActivityAttributes: A valid StartToClose or ScheduleToCloseTimeout is not set on ScheduleActivityTaskCommand. ActivityId=a ActivityType=Charge
        BadScheduleActivityAttributes: Invalid HeartbeatTimeout for ScheduleActivityTaskCommand: negative duration. ActivityId=a ActivityType=Charge
        BadScheduleActivityAttributes: Invalid HeartbeatTimeout for ScheduleActivityTaskCommand: duration has seconds and nanos with different signs. ActivityId=a ActivityType=Charge
        BadScheduleActivityAttributes: PriorityKey can't be negative
        BadScheduleActivityAttributes: FairnessWeight can't be negative
        BadRequestCancelActivityAttributes: ScheduledEventId is not set on RequestCancelActivityTaskCommand.
        BadRequestCancelActivityAttributes: invalid history builder state for action: add-activitytask-cancel-requested-event, ScheduledEventID: 77
        BadStartTimerAttributes: TimerId is not set on StartTimerCommand.
        BadStartTimerAttributes: TimerId on StartTimerCommand exceeds length limit. TimerId=<long> Length=1001 Limit=1000
        BadStartTimerAttributes: An invalid StartToFireTimeout is set on StartTimerCommand: negative duration. TimerId=t
        BadCancelTimerAttributes: TimerId is not set on CancelTimerCommand.
        BadCancelTimerAttributes: invalid history builder state for action: add-timer-canceled-event, TimerID: unknown
        BadRecordMarkerAttributes: MarkerName is not set on RecordMarkerCommand.
        BadFailWorkflowExecutionAttributes: Failure is not set on FailWorkflowExecutionCommand.
        BadModifyWorkflowPropertiesAttributes: UpsertedMemo is not set on ModifyWorkflowPropertiesCommand.
        BadModifyWorkflowPropertiesAttributes: UpsertedMemo.Fields is not set on ModifyWorkflowPropertiesCommand.
        BadModifyWorkflowPropertiesAttributes: UpsertedMemo on ModifyWorkflowPropertiesCommand cannot be read.
        BadSearchAttributes: SearchAttributes is not set on UpsertWorkflowSearchAttributesCommand.
        BadSearchAttributes: IndexedFields is not set on UpsertWorkflowSearchAttributesCommand.
        BadSearchAttributes: search attributes cannot be read
        BadContinueAsNewAttributes: Invalid WorkflowRunTimeout on ContinueAsNewWorkflowExecutionCommand: negative duration. WorkflowType=Order TaskQueue=name:"orders" kind:TASK_QUEUE_KIND_NORMAL
        BadContinueAsNewAttributes: WorkflowType on ContinueAsNewWorkflowExecutionCommand exceeds length limit. WorkflowType=<long> Length=1001 Limit=1000
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_command_whose_retries_queue_or_schedule_make_no_sense_leaves_its_worker_the_task() {
    let span = |ms| Some(Duration::from_ms(ms));
    let of_turn = |change: &dyn Fn(&mut Turn)| {
        let mut world = World::new();
        world.start("order-1");
        let mut turn = Turn::new(world.run());
        change(&mut turn);
        turn.order.commands.remove(0)
    };
    let schedule = |change: &dyn Fn(&mut activity::Schedule)| {
        of_turn(&|turn| {
            turn.activity_with("a", "", change);
        })
    };
    let policy =
        |change: &dyn Fn(&mut RetryPolicy)| schedule(&|s| change(s.retry_policy.get_or_insert_default()));
    let child = |change: &dyn Fn(&mut child::Start)| {
        of_turn(&|turn| {
            turn.child_with("c", "", change);
        })
    };
    let again = |change: &dyn Fn(&mut close::ContinueAsNew)| {
        of_turn(&|turn| {
            turn.continue_as_new(|order| change(order));
        })
    };
    let long = "x".repeat(1_001);
    let bad = [
        policy(&|p| p.backoff_coefficient = 0.9),
        policy(&|p| p.initial_interval = span(-1)),
        policy(&|p| (p.initial_interval, p.maximum_interval) = (span(2), span(1))),
        policy(&|p| p.maximum_attempts = -1),
        policy(&|p| p.non_retryable_error_types = vec!["TemporalTimeout:Never".into()]),
        schedule(&|s| s.task_queue = None),
        schedule(&|s| s.task_queue.get_or_insert_default().name.clear()),
        schedule(&|s| s.task_queue.get_or_insert_default().name.clone_from(&long)),
        schedule(&|s| s.task_queue.get_or_insert_default().name = "/_sys/q".into()),
        child(&|c| c.retry_policy.get_or_insert_default().backoff_coefficient = 0.9),
        child(&|c| c.cron_schedule = "never".into()),
        child(&|c| c.task_queue.get_or_insert_default().name.clone_from(&long)),
        again(&|c| c.retry_policy.get_or_insert_default().backoff_coefficient = 0.9),
        again(&|c| c.task_queue.get_or_insert_default().name.clone_from(&long)),
    ];
    let mut table = String::new();
    for command in bad {
        writeln!(table, "{}", refused_only(command)).expect("a string takes all");
    }
    expect![[r#"
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: BackoffCoefficient cannot be less than 1 on retry policy.. ActivityId=a ActivityType=Charge
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: invalid InitialInterval set on retry policy: negative duration. ActivityId=a ActivityType=Charge
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: MaximumInterval cannot be less than InitialInterval on retry policy.. ActivityId=a ActivityType=Charge
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: MaximumAttempts cannot be negative on retry policy.. ActivityId=a ActivityType=Charge
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: Invalid timeout type value: Never.. ActivityId=a ActivityType=Charge
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: taskQueue is not set. ActivityId=a ActivityType=Charge
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: missing task queue name. ActivityId=a ActivityType=Charge
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: taskQueue length exceeds limit. ActivityId=a ActivityType=Charge
        ! invalid: invalid TaskQueue on ScheduleActivityTaskCommand: task queue name cannot start with reserved prefix /_sys/. ActivityId=a ActivityType=Charge
        ! invalid: invalid WorkflowRetryPolicy on StartChildWorkflowExecutionCommand: BackoffCoefficient cannot be less than 1 on retry policy.. WorkflowId=c WorkflowType=Parcel Namespace=shop
        ! invalid: invalid CronSchedule on StartChildWorkflowExecutionCommand: invalid CronSchedule.. WorkflowId=c WorkflowType=Parcel Namespace=shop
        ! invalid: invalid TaskQueue on StartChildWorkflowExecutionCommand: taskQueue length exceeds limit. WorkflowId=c WorkflowType=Parcel Namespace=shop
        ! invalid: invalid WorkflowRetryPolicy on ContinueAsNewWorkflowExecutionCommand: BackoffCoefficient cannot be less than 1 on retry policy.. WorkflowType=Order TaskQueue=name:"orders" kind:TASK_QUEUE_KIND_NORMAL
        ! invalid: error validating ContinueAsNewWorkflowExecutionCommand TaskQueue: taskQueue length exceeds limit. WorkflowType=Order TaskQueue=name:"<long>" kind:TASK_QUEUE_KIND_NORMAL
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_worker_that_keeps_its_task_may_answer_once_more() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| {
        t.start_timer("t", minutes(1)).activity_with("a", "of a bad policy", |s| {
            s.retry_policy.get_or_insert_default().maximum_attempts = -1;
        })
    });
    world.answer(|t| t.start_timer("t", minutes(1)));
    world.expect(expect![[r#"
        > task: start timer t 1m, activity a of a bad policy
        ! invalid: invalid ActivityRetryPolicy on SechduleActivityTaskCommand: MaximumAttempts cannot be negative on retry policy.. ActivityId=a ActivityType=Charge
        > task: start timer t 1m
        < task.completed, timer.started t due 00:01:00, workflow.signaled one, task.scheduled
    "#]]);
}

#[test]
fn what_comes_later_is_refused_and_never_dropped() {
    let later = [
        CommandAttributes::ProtocolMessage(update::Refer { message_id: "m".into() }),
        CommandAttributes::ScheduleNexusOperation(Later {}),
        CommandAttributes::RequestCancelNexusOperation(Later {}),
    ];
    let mut table = String::new();
    for order in later {
        writeln!(table, "{}", refused(of(order))).expect("a string takes all");
    }
    expect![[r#"
        BadUpdateWorkflowExecutionMessage: ProtocolMessageCommand referenced absent message ID m
        BadScheduleNexusOperationAttributes: Nexus operations are not supported yet.
        BadRequestCancelNexusOperationAttributes: Nexus operations are not supported yet.
    "#]]
    .assert_eq(&table);
}

#[test]
fn an_unknown_command_changes_nothing() {
    let mut world = World::new();
    world.start("order-1").claim().hush();
    world.answer(|t| t.raw("99", Command { command_type: 99, ..Command::default() }));
    world.answer(|t| t.raw("0", Command::default()));
    world.answer(|t| t.complete("done").start_timer("late", minutes(1)));
    world.answer(|t| t.complete("done").complete("twice"));
    world.answer(|t| t.complete("done"));
    world.expect(expect![[r#"
        > task: 99
        ! invalid: unknown command type: 99
        > task: 0
        ! invalid: unknown command type: Unspecified
        > task: complete the workflow, start timer late 1m
        ! invalid: invalid command sequence: [CompleteWorkflowExecution, StartTimer], command CompleteWorkflowExecution must be the last command.
        > task: complete the workflow, complete the workflow
        ! invalid: invalid command sequence: [CompleteWorkflowExecution, CompleteWorkflowExecution], command CompleteWorkflowExecution must be the last command.
        > task: complete the workflow
        < task.completed, workflow.completed
    "#]]);
}

#[test]
fn a_bad_command_takes_the_good_ones_with_it() {
    let mut world = World::new();
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.start_timer("a", minutes(1)).activity("b").start_timer("a", minutes(2)));
    world.task(|t| t.start_timer("a", minutes(1)).activity("b")).signal("two");
    world.task(|t| t.activity("b"));
    world.expect(expect![[r#"
        > task: start timer a 1m, activity b, start timer a 2m
        < task.failed StartTimerDuplicateId, workflow.signaled one, task.scheduled
        ! invalid: StartTimerDuplicateId: invalid history builder state for action: add-timer-started-event, TimerID: a
        > task: start timer a 1m, activity b
        < task.started, task.completed, timer.started a due 00:01:00, activity.scheduled b
        > signal two
        < workflow.signaled two, task.scheduled
        > task: activity b
        < task.started, task.failed ScheduleActivityDuplicateId, (task attempt 2)
        ! invalid: ScheduleActivityDuplicateId: invalid history builder state for action: add-activitytask-scheduled-event, ActivityID: b
    "#]]);
}

#[test]
fn a_bad_command_of_a_retry_leaves_no_trace() {
    let mut world = World::new();
    world.start("order-1").task(|t| t.cancel_timer("unknown")).hush();
    world.claim().answer(|t| t.cancel_timer("unknown")).answer(|t| t.start_timer("known", minutes(1)));
    world.expect(expect![[r#"
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
        > task: cancel timer unknown
        ! invalid: BadCancelTimerAttributes: invalid history builder state for action: add-timer-canceled-event, TimerID: unknown
        > task: start timer known 1m
        < task.scheduled attempt 2, task.started, task.completed, timer.started known due 00:01:00
    "#]]);
}

#[test]
fn an_input_that_is_too_large_ends_the_run() {
    let mut world = World::with(|settings| settings.blob_bytes_max = 100);
    world.start("order-1").claim().signal("one").hush();
    world.answer(|t| t.activity_with("a", "of 101 bytes", |s| s.input = Some(large(101))));
    world.expect(expect![[r#"
        > task: activity a of 101 bytes
        < task.failed BadScheduleActivityAttributes, workflow.signaled one, workflow.terminated "BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes.Input exceeds size limit."
        ! invalid: BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes.Input exceeds size limit.
    "#]]);
}

#[test]
fn an_input_that_is_too_large_in_a_retry_is_refused_only() {
    let mut world = World::with(|settings| settings.blob_bytes_max = 100);
    world.start("order-1").claim().fail_task(TaskFailedCause::NonDeterministicError).hush();
    world.claim().answer(|t| t.activity_with("a", "of 101 bytes", |s| s.input = Some(large(101))));
    world.expect(expect![[r#"
        > a worker takes the task
        < (task attempt 2 is taken)
        = task attempt 2, history 1-4 and 2 shown
        > task: activity a of 101 bytes
        ! invalid: BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes.Input exceeds size limit.
    "#]]);
}

#[test]
fn everything_that_can_be_too_large_ends_the_run() {
    let small = |command: &dyn Fn(&mut Turn) -> &mut Turn| {
        let mut world = World::with(|settings| {
            settings.blob_bytes_max = 100;
            settings.memo_bytes_max = 40;
            settings.search_attribute_bytes_max = 20;
            settings.search_attributes_bytes_max = 30;
        });
        world.start("order-1").claim();
        let mut turn = Turn::new(world.run());
        command(&mut turn);
        let token = world.token();
        world.hush().answer_to(token, |t| t.raw("too large", turn.order.commands.remove(0)));
        assert!(!world.run().is_open(), "it goes on");
        let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
        match &stored.events.last().expect("it has events").attributes {
            Some(everlog_engine::event::Attributes::WorkflowTerminated(end)) => end.reason.clone(),
            other => panic!("{other:?} is no end"),
        }
    };
    let long = "x".repeat(21);
    let table = [
        small(&|t| t.complete(&"x".repeat(100))),
        small(&|t| t.fail(application(&"x".repeat(100), |_failure| {}))),
        small(&|t| t.marker(&"x".repeat(100))),
        small(&|t| t.memo(&[("a", Some(&long))])),
        small(&|t| t.memo(&[("a", Some(&"x".repeat(100)))])),
        small(&|t| t.search_attributes(&[("a", Some(&long))])),
        small(&|t| t.search_attributes(&[("a", Some("1234567890123")), ("b", Some("1234567890123"))])),
        small(&|t| t.continue_as_new(|c| c.input = Some(large(101)))),
        small(&|t| t.continue_as_new(|c| c.memo = Some(large(61)))),
        small(&|t| {
            t.continue_as_new(|c| {
                c.search_attributes = Some(crate::world::fields(&[("a", Some(&"x".repeat(21)))]))
            })
        }),
    ];
    expect![[r#"
        BadScheduleActivityAttributes: CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.
        BadFailWorkflowExecutionAttributes: FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.
        BadRecordMarkerAttributes: RecordMarkerCommandAttributes.Details exceeds size limit.
        BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.
        BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes exceeds size limit.
        BadSearchAttributes: search attribute a value size 23 exceeds size limit 20
        BadSearchAttributes: total size of search attributes 96 exceeds size limit 30
        BadContinueAsNewAttributes: ContinueAsNewWorkflowExecutionCommandAttributes. Input exceeds size limit.
        BadContinueAsNewAttributes: ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit.
        BadContinueAsNewAttributes: search attribute a value size 23 exceeds size limit 20
    "#]]
    .assert_eq(&format!("{}\n", table.join("\n")));
}

#[test]
fn too_many_search_attributes_fail_the_task_only() {
    let mut world = World::with(|settings| settings.search_attributes_max = 2);
    world.start("order-1").claim().hush();
    world.answer(|t| t.search_attributes(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]));
    world.expect(expect![[r#"
        > task: search attributes
        < task.failed BadSearchAttributes, (task attempt 2)
        ! invalid: BadSearchAttributes: number of search attributes 3 exceeds limit 2
    "#]]);
}

#[test]
fn memo_and_search_attributes_are_merged_key_by_key() {
    let mut world = World::new();
    world.start_with("order-1", "with a memo", |begin| {
        begin.memo = Some(crate::world::fields(&[("b", Some("1")), ("a", Some("0")), ("nothing", None)]));
        begin.search_attributes = Some(crate::world::fields(&[("s", Some("1")), ("t", Some("2"))]));
    });
    assert_eq!(keys(&world.run().properties.memo), "a b nothing", "a start is taken as it is");
    world.task(|t| t.memo(&[("c", Some("3")), ("a", None), ("b", Some("4")), ("unknown", None)]).force());
    assert_eq!(keys(&world.run().properties.memo), "b c nothing");
    let before = &world.run().properties.memo;
    assert_eq!(before[0].value, payload("json/plain", "\"4\""), "values are kept byte for byte");
    world.task(|t| t.search_attributes(&[("t", None), ("u", Some("3"))]));
    assert_eq!(keys(&world.run().properties.search_attributes), "s u");
    world.expect(expect![[r#"
        > start order-1 with a memo
        < workflow.started, task.scheduled
        > task: memo, one more task
        < task.started, task.completed, memo.modified, task.scheduled
        > task: search attributes
        < task.started, task.completed, search_attributes.upserted
    "#]]);
}

fn keys(entries: &[everlog_engine::api_types::MapEntry]) -> String {
    entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_a_command_says_of_itself_stands_on_its_event() {
    let mut world = World::new();
    world.start("order-1").claim();
    let token = world.token();
    world.answer_to(token, |t| {
        t.start_timer("t", minutes(1));
        let command = t.order.commands.last_mut().expect("it was added");
        command.user_metadata = Some(Bytes::from_static(b"\x0a\x00"));
        command.event_group_markers = vec![Bytes::from_static(b"\x0a\x01g")];
        t.order.sdk_metadata = Some(Bytes::from_static(b"\x0a\x01\x05"));
        t.order.metering_metadata = Some(Bytes::from_static(b"\x68\x01"));
        t
    });
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let timer = &stored.events[4];
    assert_eq!(timer.user_metadata.as_deref(), Some(&b"\x0a\x00"[..]));
    assert_eq!(timer.event_group_markers, [Bytes::from_static(b"\x0a\x01g")]);
    let Some(everlog_engine::event::Attributes::TaskCompleted(completed)) = &stored.events[3].attributes
    else {
        panic!("{:?} is no completion", stored.events[3]);
    };
    assert_eq!(completed.sdk_metadata.as_deref(), Some(&b"\x0a\x01\x05"[..]));
    assert_eq!(completed.metering_metadata.as_deref(), Some(&b"\x68\x01"[..]));
}

#[test]
fn a_command_may_say_a_line_and_a_page_of_itself_and_no_more() {
    let said = |summary: usize, details: usize| {
        let part = |bytes: usize| Some(Bytes::from(vec![b'x'; bytes]));
        let metadata = UserMetadata { summary: part(summary), details: part(details) };
        let mut world = World::new();
        world.start("order-1").hush().task(|t| {
            t.start_timer("t", minutes(1));
            let command = t.order.commands.last_mut().expect("it was added");
            command.user_metadata = Some(metadata.encode_to_vec().into());
            t
        });
        world
    };
    said(400, 20_000).expect(expect![[r#"
        > task: start timer t 1m
        < task.started, task.completed, timer.started t due 00:01:00
    "#]]);
    said(401, 0).expect(expect![[r#"
        > task: start timer t 1m
        < task.started, task.failed BadStartTimerAttributes, (task attempt 2)
        ! invalid: BadStartTimerAttributes: UserMetadata.Summary size exceeds limit.
    "#]]);
    said(0, 20_001).expect(expect![[r#"
        > task: start timer t 1m
        < task.started, task.failed BadStartTimerAttributes, (task attempt 2)
        ! invalid: BadStartTimerAttributes: UserMetadata.Details size exceeds limit.
    "#]]);
}

#[test]
fn each_way_of_closing_closes() {
    let closed = |answer: &dyn Fn(&mut Turn) -> &mut Turn| {
        let mut world = World::new();
        world.start("order-1").task(|t| t.activity("a").start_timer("b", minutes(1))).signal("one");
        world.claim();
        let mut turn = Turn::new(world.run());
        answer(&mut turn);
        let token = world.token();
        let order = everlog_engine::request::Request::CompleteTask(Box::new(
            everlog_engine::machine::workflow_task_completed::Complete { token: Some(token), ..turn.order },
        ));
        let outcome = world.order(order);
        assert!(matches!(outcome.reply, Reply::Completed(_)));
        everlog_engine::api_types::Status::try_from(outcome.steps[0].run.head.status).expect("a known status")
    };
    let statuses = [
        closed(&|t| t.complete("done")),
        closed(&|t| t.fail(application("Broken", |_failure| {}))),
        closed(&|t| t.cancel()),
        closed(&|t| t.continue_as_new(|_again| {})),
    ];
    assert_eq!(format!("{statuses:?}"), "[Completed, Failed, Canceled, ContinuedAsNew]");
}

fn large(bytes: usize) -> Bytes {
    vec![0_u8; bytes].into()
}

#[test]
fn search_attributes_that_do_not_fit_fail_the_task_and_nothing_of_it_is_done() {
    let mut world = World::new();
    world.start("order-1").hush();
    let bad = |turn: &mut Turn, command: u32| {
        let reason = "Namespace shop has no mapping defined for search attribute b".to_owned();
        turn.order.findings.push(ValidationFailure { command, reason, fault: Fault::Attributes.into() });
    };
    world.task(|t| {
        t.start_timer("pay", 1_000).search_attributes(&[("b", Some("2"))]);
        bad(t, 1);
        t
    });
    world.task(|t| {
        t.search_attributes(&[("a", Some("1"))]);
        bad(t, 7);
        t
    });
    world.expect(expect![[r#"
        > task: start timer pay 1s, search attributes
        < task.started, task.failed BadSearchAttributes, (task attempt 2)
        ! invalid: BadSearchAttributes: Namespace shop has no mapping defined for search attribute b
        > task: search attributes
        < (task attempt 2 is taken), task.scheduled attempt 2, task.started, task.completed, search_attributes.upserted
    "#]]);
}

#[test]
fn a_timer_without_a_span_is_told_without_one_and_fires_at_once() {
    let mut world = World::new();
    let run_id = world.start("order-1").run().start.run_id.clone();
    let order = timer::Start { timer_id: "now".into(), start_to_fire_timeout: None };
    world.task(|t| t.command("start timer now", CommandAttributes::StartTimer(order))).advance(1);
    let stored = world.replica.stored(&run_id).expect("the run is there");
    let told = stored.events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::TimerStarted(started)) => Some(started.start_to_fire_timeout.is_some()),
        Some(Attributes::TimerFired(_)) => Some(true),
        _other => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [false, true]);
}
