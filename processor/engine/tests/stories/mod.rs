//! Stories: verbs in, a transcript out. `>` comes in, `<` is remembered (in parentheses what stands in the state and not
//! in the history), `=` is answered, `!` is refused, `@` is the time, `~` the house falls and stands up.

mod activities;
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
mod retries;
mod run_ids;
mod schedules;
mod starts;
mod tasks;
mod transitions;
mod unanswered_tasks;
mod updates;
