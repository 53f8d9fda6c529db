//! The moves of which programs are made, by weight: one row each, also for what comes later.

mod activities;
pub mod administration;
mod bad;
mod chains;
mod children;
mod clients;
mod closes;
mod crons;
mod deletions;
mod limits;
pub mod operators;
mod queries;
mod resets;
mod starts;
mod tasks;
mod timers;
pub mod under_way;
mod updates;

use crate::generator::{Generator, Task};

/// One row of the table.
pub struct Move {
    pub name: &'static str,
    pub weight: u64,
    /// Whether it makes sense now.
    pub fits: fn(&Generator) -> bool,
    pub write: fn(&mut Generator),
}

const fn row(
    name: &'static str,
    weight: u64,
    fits: fn(&Generator) -> bool,
    write: fn(&mut Generator),
) -> Move {
    Move { name, weight, fits, write }
}

fn always(_author: &Generator) -> bool {
    true
}

fn open(generator: &Generator) -> bool {
    generator.is_open
}

fn closed(generator: &Generator) -> bool {
    !generator.is_open
}

/// There is a run, open or closed.
fn started(generator: &Generator) -> bool {
    !generator.started_by.is_empty()
}

/// A run is over.
fn again(generator: &Generator) -> bool {
    closed(generator) && started(generator)
}

/// A run is over that one can go back in: its first task was not handed out with its start, for there may be no other, and
/// it had the time for more, and a task of it has ended.
fn again_from_a_point(generator: &Generator) -> bool {
    again(generator) && !generator.is_eager && !generator.is_short && !generator.ends.is_empty()
}

/// The run is open and no worker has its task.
fn free(generator: &Generator) -> bool {
    generator.is_open && generator.task != Task::Held
}

/// The same, and nothing follows a run that ends.
fn last(generator: &Generator) -> bool {
    free(generator) && !generator.is_repeated
}

/// No worker has its task, and time may pass: no task and no sticky queue waits for its timeout.
fn calm(generator: &Generator) -> bool {
    free(generator) && !generator.is_sticky && !generator.is_hasty && generator.attempt == 1
}

/// The same, and the run does not end by its own time.
fn unhurried(generator: &Generator) -> bool {
    calm(generator) && !generator.is_short
}

fn waiting(generator: &Generator) -> bool {
    generator.is_open && generator.task == Task::Scheduled
}

fn held(generator: &Generator) -> bool {
    generator.is_open && generator.task == Task::Held
}

fn quiet(generator: &Generator) -> bool {
    generator.is_open && generator.task == Task::None && generator.completed > 0
}

/// Its worker has seen the run, and no task that keeps failing is in the way of an update.
fn updatable(generator: &Generator) -> bool {
    free(generator) && generator.completed > 0 && generator.attempt == 1 && !generator.is_hasty
}

/// How a program begins.
pub const OPENINGS: &[Move] = &[
    row("start", 10, always, starts::plain),
    row("start with everything", 6, always, starts::with_everything),
    row("start, sticky", 4, always, starts::sticky),
    row("start, hasty", 3, always, starts::hasty),
    row("start, delayed", 2, always, starts::delayed),
    row("start, eager", 2, always, starts::eager),
    row("signal with start", 4, always, starts::signalled),
    row("start, short run", 2, always, starts::short_run),
    row("start, short execution", 2, always, starts::short_execution),
    row("nothing", 1, always, starts::nothing),
    row("start, retried", 2, always, chains::retried),
    row("start with an update", 3, always, updates::with_start),
    row("start, retried after a timeout", 2, always, chains::timed_out),
    row("start, out of time", 1, always, chains::out_of_time),
    row("cron", 4, always, crons::chain),
    row("cron, timed out", 1, always, crons::timed_out),
    row("cron, far away", 2, always, crons::far_away),
];

/// What a program does then.
pub const MOVES: &[Move] = &[
    row("signal", 8, always, clients::signal),
    row("signal twice", 3, open, clients::signal_twice),
    row("cancel", 5, always, clients::cancel),
    row("terminate", 3, always, clients::terminate),
    row("describe", 5, always, clients::describe),
    row("read a history", 4, always, clients::read_history),
    row("describe a queue", 2, always, clients::describe_queue),
    row(
        "reset stickiness",
        1,
        |generator| !generator.is_sticky || !waiting(generator),
        clients::reset_stickiness,
    ),
    row("start again", 7, always, starts::again),
    row("start again, closed", 25, closed, starts::again),
    row("signal with start again", 5, always, starts::signal_again),
    row("bad call", 6, always, bad::call),
    row("query", 8, quiet, queries::direct),
    row("query, closed", 6, |generator| closed(generator) && !generator.is_closed_failing, queries::closed),
    row("query with a task", 6, waiting, queries::with_task),
    row("take", 8, waiting, tasks::take),
    row("complete", 20, held, tasks::complete),
    row("turn", 16, free, tasks::turn),
    row("turn with news", 6, free, tasks::turn_with_news),
    row("heartbeat of a task", 3, free, tasks::heartbeat),
    row("fail a task", 5, free, tasks::fail),
    row("fail a task again", 10, |generator| waiting(generator) && generator.attempt > 1, tasks::fail),
    row("turn after failure", 15, |generator| waiting(generator) && generator.attempt > 1, tasks::turn),
    row("task times out", 12, |generator| free(generator) && generator.is_hasty, tasks::time_out),
    row(
        "sticky task times out",
        4,
        |generator| quiet(generator) && generator.is_sticky,
        tasks::sticky_time_out,
    ),
    row("stale completion", 3, free, tasks::stale),
    row("empty poll", 1, quiet, tasks::empty_poll),
    row("bad command", 17, free, bad::in_task),
    row("timer fires", 6, calm, timers::fires),
    row("timer cancelled late", 4, calm, timers::cancelled_late),
    row("activity", 16, calm, activities::any),
    row("child", 12, calm, children::any),
    row("to others", 6, calm, children::to_others),
    row("update", 10, updatable, updates::update),
    row("update in vain", 2, always, updates::in_vain),
    row("complete the run", 4, last, closes::complete),
    row("fail the run", 4, last, closes::fail),
    row("cancel the run", 4, |generator| free(generator) && generator.is_cancel_requested, closes::cancel),
    row("continue as new", 6, free, closes::continue_as_new),
    row("close with news", 4, last, closes::with_news),
    row("close with wishes", 3, |generator| calm(generator) && !generator.is_repeated, closes::with_wishes),
    row("close too early", 2, |generator| free(generator) && !generator.has_reset, closes::not_last),
    row("continue later", 4, free, chains::continued_later),
    row("use the open run", 4, open, starts::used),
    row("several updates", 4, updatable, updates::several),
    row("too many updates", 1, |generator| updatable(generator) && !generator.has_reset, updates::too_many),
    row("update badly answered", 3, updatable, updates::badly_answered),
    row(
        "update at the end",
        3,
        |generator| updatable(generator) && !generator.is_repeated,
        updates::at_the_end,
    ),
    row("update with start again", 4, updatable, updates::with_start_again),
    row("update with start again, closed", 3, again, updates::with_start_again),
    row("update with start, refused", 3, started, updates::with_start_refused),
    row("unfit operations", 2, always, updates::unfit),
    row("reset", 10, |generator| open(generator) && !generator.is_short, resets::any),
    row("reset, closed", 12, again_from_a_point, resets::any),
    row("reset over work", 4, unhurried, resets::over_work),
    row(
        "reset over an update",
        4,
        |generator| updatable(generator) && !generator.is_short,
        resets::over_update,
    ),
    row("reset twice", 3, unhurried, resets::twice),
    row("bad reset", 4, started, resets::badly),
    row("large call", 3, always, limits::large_call),
    row("large command", 2, free, limits::large_command),
    row("large report", 2, calm, limits::large_report),
    row("too many pending", 3, free, limits::pending),
    row("too many buffered", 2, free, limits::buffered),
    row("too many signals", 3, calm, limits::signals),
    row(
        "close over an update",
        2,
        |generator| updatable(generator) && !generator.is_repeated,
        updates::unseen,
    ),
    row("update, to be admitted", 2, always, updates::for_its_admission),
    row("too long a history", 1, free, limits::long_history),
    row("delete", 6, again, deletions::delete),
    row("delete in vain", 1, always, deletions::in_vain),
];
