//! Builds of workers: where each came in, and what a run that follows hears of it.

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::event::Attributes;
use everlog_engine::machine::reset_points::Version;
use expect_test::{Expect, expect};
use prost::Message;

use crate::world::{Turn, World, hours};

/// An answer of a worker of this build.
fn of(build_id: &str) -> impl Fn(&mut Turn) -> &mut Turn + use<> {
    let version: Bytes = Version { build_id: build_id.into() }.encode_to_vec().into();
    move |turn| {
        turn.order.worker_version = Some(version.clone());
        turn
    }
}

/// A task for the run, and its end by a worker of this build.
fn task(world: &mut World, build_id: &str) {
    world.signal("again").task(of(build_id));
}

fn check(run: &Run, expected: Expect) {
    let first = &run.start.first_run_id;
    let point = |point: everlog_engine::machine::reset_points::Point| {
        let run_id = &point.run_id;
        let place = if run_id == first {
            "first run"
        } else if *run_id == run.start.run_id {
            "this run"
        } else {
            "between"
        };
        let name = format!("{}{}", point.build_id, point.binary_checksum);
        let event_id = point.first_workflow_task_completed_id;
        let resettable = if point.resettable { "" } else { ", not resettable" };
        let expires =
            point.expire_time.map_or(String::new(), |time| format!(", kept until {}", time.to_ms()));
        format!("[{name}] {place} event {event_id}{resettable}{expires}\n")
    };
    let points: String = run.reset_points().into_iter().map(point).collect();
    expected.assert_eq(&format!("{points}builds {:?}\n", run.properties.build_ids));
}

#[test]
fn a_build_makes_a_point_once() {
    let mut world = World::new();
    world.start("order-1").task(of("one"));
    task(&mut world, "one");
    task(&mut world, "");
    task(&mut world, "two");
    world.signal("again").task(|turn| {
        turn.order.binary_checksum = "sum".into();
        turn
    });
    task(&mut world, "one");
    check(
        world.crash().run(),
        expect![[r#"
        [one] first run event 4
        [] first run event 12
        [two] first run event 16
        [sum] first run event 20
        builds ["one", "two"]
    "#]],
    );
    assert_eq!(
        world.run().properties.worker_version,
        Some(Version { build_id: "one".into() }.encode_to_vec().into())
    );
}

#[test]
fn what_is_under_way_makes_a_point_that_no_reset_can_use() {
    let mut world = World::new();
    world.start("order-1").task(|turn| of("one")(turn).child("parcel-1").signal_other("order-2", false));
    task(&mut world, "two");
    check(
        world.run(),
        expect![[r#"
        [one] first run event 4
        [two] first run event 10, not resettable
        builds ["one", "two"]
    "#]],
    );
}

#[test]
fn points_go_on_in_the_runs_that_follow() {
    let mut world = World::new();
    world.start_with("order-1", "with a day of retention", |begin| begin.retention_ms = hours(24));
    world.task(of("one")).advance(hours(1)).signal("on").task(|turn| of("two")(turn).continue_as_new(|_| {}));
    world.task(of("two"));
    check(
        world.run(),
        expect![[r#"
        [one] first run event 4, kept until 1000090000000
        [two] first run event 8, kept until 1000090000000
        builds ["two"]
    "#]],
    );
    world.advance(hours(1));
    task(&mut world, "three");
    world.signal("on").task(|turn| of("three")(turn).continue_as_new(|_| {}));
    check(
        world.run(),
        expect![[r#"
        [one] first run event 4, kept until 1000090000000
        [two] first run event 8, kept until 1000090000000
        [three] between event 8, kept until 1000093600000
        builds []
    "#]],
    );
    let first = world.run().start.first_run_id.clone();
    let first =
        world.replica.all().find(|stored| stored.run.start.run_id == first).expect("it is kept").run.clone();
    check(
        &first,
        expect![[r#"
        [one] first run event 4, kept until 1000090000000
        [two] first run event 8, kept until 1000090000000
        builds ["one", "two"]
    "#]],
    );
}

#[test]
fn the_latest_twenty_points_are_kept_and_builds_as_far_as_an_attribute_holds_them() {
    let mut world = World::new();
    world.start("order-1");
    for number in 0..30 {
        let build_id = format!("{number:03}{}", "x".repeat(100));
        world.signal("again").task(of(&build_id));
    }
    let points = world.run().reset_points();
    assert_eq!(points.len(), 20);
    assert!(points[0].build_id.starts_with("010") && points[19].build_id.starts_with("029"));
    // "unversioned" and 17 times 118 bytes with brackets: 2,021 of 2,048.
    let builds = &world.run().properties.build_ids;
    assert_eq!((builds.len(), &builds[0][..3]), (17, "013"));
    task(&mut world, &format!("000{}", "x".repeat(100)));
    assert!(world.run().reset_points()[19].build_id.starts_with("000"), "it has come back");
}

#[test]
fn a_reset_keeps_the_points_of_what_it_keeps() {
    let mut world = World::new();
    world.start("order-1").task(of("one"));
    task(&mut world, "two");
    task(&mut world, "three");
    world.reset(8);
    check(
        world.run(),
        expect![[r#"
        [one] this run event 4
        builds ["one"]
    "#]],
    );
}

#[test]
fn a_task_that_fails_by_its_commands_names_its_workers_binary() {
    let mut world = World::new();
    let run_id = world.start("order-1").run().start.run_id.clone();
    world.task(|turn| {
        turn.order.binary_checksum = "sum".into();
        turn.cancel_timer("none")
    });
    let stored = world.replica.stored(&run_id).expect("the run is there");
    let failed = stored.events.iter().find_map(|event| match &event.attributes {
        Some(Attributes::TaskFailed(failed)) => Some(failed.binary_checksum.as_str()),
        _other => None,
    });
    assert_eq!(failed, Some("sum"));
}
