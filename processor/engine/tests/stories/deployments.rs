//! Versions of workers: what starts, commands and workers say of them, and what those that follow a run inherit.

use everlog_engine::Run;
use everlog_engine::api_types::{TaskQueue, VersioningBehavior as Behavior};
use everlog_engine::event::Attributes;
use everlog_engine::machine::worker_versioning::{Override, Pinned, Version};
use expect_test::expect;

use super::retries::{policy, started};
use crate::world::{Turn, World, application, seconds};

fn version(build_id: &str) -> Version {
    Version { build_id: build_id.into(), deployment_name: "shop".into() }
}

fn pin(build_id: &str) -> Override {
    Override { pinned: Some(Pinned { behavior: 1, version: Some(version(build_id)) }), auto_upgrade: false }
}

/// An answer of a worker of this version.
fn of(behavior: Behavior, build_id: &str) -> impl Fn(&mut Turn) -> &mut Turn + use<> {
    let version = version(build_id);
    move |turn| {
        turn.order.versioning_behavior = behavior.into();
        turn.order.deployment_name.clone_from(&version.deployment_name);
        turn.order.deployment_version = Some(version.clone());
        turn
    }
}

/// What a run goes by: in force, the version that it stays with, what its worker has said last, the worker's deployment.
fn told(run: &Run) -> String {
    let build =
        |version: Option<&Version>| version.map_or("-".to_owned(), |version| version.build_id.clone());
    let properties = &run.properties;
    let name = &properties.deployment_name;
    properties.versioning.as_ref().map_or(format!("nothing, of [{name}]"), |versioning| {
        let in_force = Behavior::try_from(versioning.in_force()).expect("it is known");
        let (stays, said) = (build(versioning.pinned()), build(versioning.version.as_ref()));
        format!("{in_force:?}, stays with {stays}, said {:?} {said}, of [{name}]", versioning.behavior())
    })
}

/// The build ids with which the current run has begun: of what overrides, and what it has inherited.
fn begun(world: &World) -> (Option<String>, Option<String>) {
    let started = started(world);
    let overriding =
        started.versioning_override.and_then(|given| given.pinned).and_then(|given| given.version);
    let build = |version: Option<Version>| version.map(|version| version.build_id);
    (build(overriding), build(started.inherited_pinned_version))
}

fn some(build_id: &str) -> Option<String> {
    Some(build_id.to_owned())
}

#[test]
fn what_a_worker_says_is_kept_until_the_next_one_says_otherwise() {
    let mut world = World::new();
    world.start("order-1").task(of(Behavior::Pinned, "one"));
    assert_eq!(told(world.crash().run()), "Pinned, stays with one, said Pinned one, of [shop]");
    world.signal("again").task(of(Behavior::AutoUpgrade, "two"));
    assert_eq!(told(world.run()), "AutoUpgrade, stays with -, said AutoUpgrade two, of [shop]");
    world.signal("again").task(of(Behavior::Unspecified, "three"));
    assert_eq!(told(world.run()), "Unspecified, stays with -, said Unspecified -, of [shop]");
    world.signal("again").task(|turn| turn);
    assert_eq!(told(world.crash().run()), "Unspecified, stays with -, said Unspecified -, of []");
    let points = world.run().reset_points();
    let builds: Vec<_> = points.iter().map(|point| point.build_id.as_str()).collect();
    assert_eq!(builds, ["one", "two", "three", ""]);
    let stored = world.replica.stored(&world.run().start.run_id).expect("the run is there");
    let completed = stored.events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::TaskCompleted(completed)) => Some(completed),
        _other => None,
    });
    let said: Vec<_> = completed
        .map(|said| {
            (said.versioning_behavior, &*said.worker_deployment_name, said.deployment_version.clone())
        })
        .collect();
    let version = |build_id| Some(version(build_id));
    let expected = [(1, "shop", version("one")), (2, "shop", version("two")), (0, "shop", version("three"))];
    assert_eq!(said[..3], expected);
    assert_eq!(said[3..], [(0, "", None)]);
}

#[test]
fn a_run_whose_workers_have_no_version_keeps_nothing_of_it() {
    let mut world = World::new();
    world.start("order-1").task(|turn| turn);
    assert_eq!(told(world.run()), "nothing, of []");
}

#[test]
fn what_a_start_says_counts_more_than_what_workers_say() {
    let mut world = World::new();
    world.start_with("order-1", "pinned", |begin| begin.versioning_override = Some(pin("two")));
    assert_eq!(begun(&world), (some("two"), None));
    assert_eq!(told(world.run()), "Pinned, stays with two, said Unspecified -, of [shop]");
    world.task(of(Behavior::AutoUpgrade, "one"));
    assert_eq!(told(world.crash().run()), "Pinned, stays with two, said AutoUpgrade one, of [shop]");
    world.signal("again").task(|turn| turn);
    assert_eq!(told(world.run()), "Pinned, stays with two, said Unspecified -, of []");
    world.reset(4);
    assert_eq!(begun(&world), (some("two"), None), "it is part of the beginning");
    assert_eq!(told(world.run()), "Pinned, stays with two, said Unspecified -, of [shop]");
    let upgrade = Override { pinned: None, auto_upgrade: true };
    world.start_with("order-2", "upgraded", |begin| begin.versioning_override = Some(upgrade));
    world.task(of(Behavior::Pinned, "one"));
    assert_eq!(told(world.run()), "AutoUpgrade, stays with -, said Pinned one, of [shop]");
}

#[test]
fn who_follows_a_pinned_run_on_its_queue_inherits_its_version() {
    let elsewhere = || Some(TaskQueue::normal("parcels"));
    let pinned = of(Behavior::Pinned, "one");
    let mut world = World::new();
    world.start("order-1").task(|turn| {
        pinned(turn).child("near").child_with("far", "elsewhere", |start| start.task_queue = elsewhere())
    });
    world.post();
    assert_eq!(begun(world.on("near")), (None, some("one")));
    assert_eq!(told(world.run()), "Pinned, stays with one, said Pinned one, of [shop]");
    assert_eq!(begun(world.on("far")), (None, None));
    world.on("order-1").task(|turn| pinned(turn).continue_as_new(|_next| {}));
    assert_eq!(begun(&world), (None, some("one")));
    world.task(|turn| pinned(turn).continue_as_new(|next| next.task_queue = elsewhere()));
    assert_eq!(begun(&world), (None, None));

    world.start_with("order-2", "pinned", |begin| begin.versioning_override = Some(pin("two")));
    world.task(|turn| turn.child("of-2")).post();
    assert_eq!(begun(world.on("of-2")), (some("two"), some("two")));
    world.on("order-2").task(|turn| turn.continue_as_new(|_next| {}));
    assert_eq!(begun(&world), (None, some("two")), "a run that is continued is not told to a second time");

    world.start("order-3").task(|turn| of(Behavior::AutoUpgrade, "one")(turn).child("of-3")).post();
    assert_eq!(begun(world.on("of-3")), (None, None));
    world.on("order-3").task(|turn| of(Behavior::AutoUpgrade, "one")(turn).continue_as_new(|_next| {}));
    assert_eq!(begun(&world), (None, None));
}

#[test]
fn a_retry_inherits_what_the_run_had_inherited_and_nothing_else() {
    let mut world = World::new();
    world.start_with("order-1", "with 2 attempts", |begin| begin.retry_policy = policy(2));
    let pinned = of(Behavior::Pinned, "one");
    world.task(|turn| pinned(turn).fail(application("Flaky", |_failure| {})));
    assert_eq!(begun(&world), (None, None));
    world.start("order-2").task(|turn| pinned(turn).continue_as_new(|next| next.retry_policy = policy(3)));
    world.task(|turn| of(Behavior::Pinned, "two")(turn).fail(application("Flaky", |_failure| {})));
    assert_eq!(begun(&world), (None, some("two")));
    world.advance(seconds(1));
    world.task(|turn| of(Behavior::AutoUpgrade, "two")(turn).fail(application("Flaky", |_failure| {})));
    assert_eq!(begun(&world), (None, None), "it was not pinned any more");
}

#[test]
fn builds_are_asked_for_on_the_queue_of_the_run_alone() {
    let mut world = World::new();
    world.start("order-1").task(|turn| {
        turn.activity_with("a", "", |schedule| schedule.use_workflow_build_id = true).activity("b");
        turn.child_with("c", "", |start| start.inherit_build_id = true).child("d");
        turn.continue_as_new(|next| next.inherit_build_id = true)
    });
    let first = world.run().start.first_run_id.clone();
    let stored = world.replica.stored(&first).expect("the run is there");
    let asked = stored.events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::ActivityScheduled(event)) => Some(("activity", event.use_workflow_build_id)),
        Some(Attributes::StartChildInitiated(event)) => Some(("child", event.inherit_build_id)),
        Some(Attributes::WorkflowContinuedAsNew(event)) => Some(("next", event.inherit_build_id)),
        _other => None,
    });
    let asked: Vec<_> = asked.collect();
    let (activity, child) = ("activity", "child");
    assert_eq!(asked, [(activity, true), (activity, false), (child, true), (child, false), ("next", true)]);
    let elsewhere = || Some(TaskQueue::normal("parcels"));
    world.hush().start("order-2").task(|turn| {
        turn.activity_with("a", "", |schedule| {
            (schedule.use_workflow_build_id, schedule.task_queue) = (true, elsewhere());
        })
    });
    world.start("order-3").task(|turn| {
        turn.child_with("e", "", |start| (start.inherit_build_id, start.task_queue) = (true, elsewhere()))
    });
    world.start("order-4").task(|turn| {
        turn.continue_as_new(|next| (next.inherit_build_id, next.task_queue) = (true, elsewhere()))
    });
    world.expect(expect![[r#"
        > start order-2
        < run 3: workflow.started, task.scheduled
        > task: activity a
        < task.started, task.failed BadScheduleActivityAttributes, (task attempt 2)
        ! invalid: BadScheduleActivityAttributes: Activity with UseCompatibleVersion cannot run on different task queue.
        > start order-3
        < run 4: workflow.started, task.scheduled
        > task: child e
        < task.started, task.failed BadStartChildExecutionAttributes, (task attempt 2)
        ! invalid: BadStartChildExecutionAttributes: StartChildWorkflowExecution with UseCompatibleVersion cannot run on different task queue.
        > start order-4
        < run 5: workflow.started, task.scheduled
        > task: continue as new
        < task.started, task.failed BadContinueAsNewAttributes, (task attempt 2)
        ! invalid: BadContinueAsNewAttributes: ContinueAsNew with UseCompatibleVersion cannot run on different task queue.
    "#]]);
}
