//! Timers that fire, and one that is cancelled when it has.

use serde_json::json;

use crate::author::{Author, command};
use crate::program::Step;

pub fn fires(author: &mut Author) {
    let (timer, other) = (author.fresh("timer"), author.fresh("timer"));
    let mut commands =
        vec![command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "1s"}))];
    if author.percent(30) {
        // A second one, which stays.
        commands.push(command("START_TIMER", json!({"timer_id": other, "start_to_fire_timeout": "3600s"})));
        author.timers.push(other);
    }
    author.is_timely = true;
    author.wake();
    author.turn(commands);
    author.wait_for("EVENT_TYPE_TIMER_FIRED");
    author.happened();
    if author.percent(60) {
        author.turn(Vec::new());
    }
}

/// It fires while the task is held that cancels it: the workflow never hears of it.
pub fn cancelled_late(author: &mut Author) {
    let timer = author.fresh("timer");
    author.is_timely = true;
    author.wake();
    author.turn(vec![command("START_TIMER", json!({"timer_id": timer, "start_to_fire_timeout": "2s"}))]);
    author.signal("news");
    author.take();
    author.step(Step::Pause { ms: 3_500 });
    let commands = vec![command("CANCEL_TIMER", json!({ "timer_id": timer }))];
    match author.percent(50) {
        true => author.complete(commands),
        false => {
            author.complete(Vec::new());
            author.task = crate::author::Task::Scheduled;
        }
    }
}
