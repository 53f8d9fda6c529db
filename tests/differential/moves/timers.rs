//! Timers that fire, and one that is cancelled when it has.

use serde_json::json;

use crate::generator::{Generator, command};
use crate::program::Step;

pub fn fires(generator: &mut Generator) {
    let (timer, other) = (generator.fresh("timer"), generator.fresh("timer"));
    let mut commands =
        vec![command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "1s"}))];
    if generator.percent(30) {
        // A second one, which stays.
        commands.push(command("START_TIMER", json!({"timer_id": other, "start_to_fire_timeout": "3600s"})));
        generator.timers.push(other);
    }
    generator.is_timely = true;
    generator.wake();
    generator.turn(commands);
    generator.wait_for("EVENT_TYPE_TIMER_FIRED");
    generator.happened();
    if generator.percent(60) {
        generator.turn(Vec::new());
    }
}

/// It fires while the task is held that cancels it: the workflow never hears of it.
pub fn cancelled_late(generator: &mut Generator) {
    let timer = generator.fresh("timer");
    generator.is_timely = true;
    generator.wake();
    generator.turn(vec![command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "2s"}))]);
    generator.signal("news");
    generator.take();
    generator.step(Step::Pause { ms: 3_500 });
    let commands = vec![command("CANCEL_TIMER", json!({ "timer_id": timer }))];
    match generator.percent(50) {
        true => generator.complete(commands),
        false => {
            generator.complete(Vec::new());
            generator.task = crate::generator::Task::Scheduled;
        }
    }
}
