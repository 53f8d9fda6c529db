//! Stories: verbs go in, a transcript comes out. `>` comes in, `<` is remembered (in parentheses what stands in the
//! state and not in the history), `=` is answered, `!` is refused, `@` is the time, `~` is a crash and its recovery.

mod activities;
mod activity_control;
mod activity_ends;
mod advice;
mod buffer;
mod builds;
mod chains;
mod children;
mod commands;
mod deployments;
mod externals;
mod limits;
mod options;
mod parents;
mod refused_completions;
mod resets;
pub mod retries;
mod run_control;
mod run_ids;
mod schedule_life;
mod schedule_overlap;
mod schedules;
mod starts;
mod tasks;
mod transitions;
mod unanswered_tasks;
mod updates;
