//! Traces: what a speculative task leaves that brought nothing but refusals, and had shown events to its worker.

use expect_test::expect;

use crate::world::World;

/// A run at rest behind a task that brought so many events, not told.
fn behind(events: usize) -> World {
    let mut world = World::new();
    world.start("order-1").task(|t| {
        for number in 0..events {
            t.marker(&format!("m{number}"));
        }
        t.sticky("cache")
    });
    world.hush();
    world
}

#[test]
fn a_worker_that_takes_events_again_is_shown_ten_a_second_time() {
    let mut world = behind(10);
    let next_event_id = world.run().head.next_event_id;
    world.update("u1").claim_sticky().answer(|t| t.sticky("cache").reject("u1").again());
    assert_eq!(world.run().head.next_event_id, next_event_id, "the task was as if it had never been");
    world.update("u2").claim_sticky();
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-14 and 2 shown
        > task: sticky on cache, reject u1
        < (update u1 is rejected: Refused)
        = back behind event 3
        > update u2
        < (update u2 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-14 and 2 shown
    "#]]);
}

#[test]
fn eleven_events_are_shown_once_and_their_task_is_written() {
    let mut world = behind(11);
    world.update("u1").claim_sticky().answer(|t| t.sticky("cache").reject("u1").again());
    world.update("u2").claim_sticky();
    world.expect(expect![[r#"
        > update u1
        < (update u1 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 4-15 and 2 shown
        > task: sticky on cache, reject u1
        < task.scheduled on cache, task.started, task.completed, (update u1 is rejected: Refused)
        > update u2
        < (update u2 waits), (speculative task)
        > the sticky worker takes the task
        < (speculative task is taken)
        = sticky task attempt 1, history 18-18 and 2 shown
    "#]]);
}

#[test]
fn a_worker_that_says_nothing_of_an_update_is_shown_as_many() {
    for (events, is_written) in [(10, false), (11, true)] {
        let mut world = behind(events);
        let next_event_id = world.run().head.next_event_id;
        world.update("u1").claim_sticky().answer(|t| t.sticky("cache").again());
        assert_eq!(world.run().head.next_event_id > next_event_id, is_written, "{events} events");
    }
}
