//! What happens: a pure, deterministic state machine for durable workflows.
//!
//! [`decide`] takes the state and one journal record and yields events, new states and an answer; [`apply`] is the
//! only way a run changes. There is no clock, no randomness, no IO, no thread and no log line in here: time and ids
//! come from the record's [`Stamp`], limits from the [`Settings`] in the state.

pub mod api_types;
pub mod command;
mod copy_on_write;
pub mod cron;
mod decide;
mod draft;
mod ending;
pub mod event;
pub mod failure;
pub mod hidden;
pub mod level;
pub mod machine;
mod outcome;
pub mod payload;
mod rebuild;
pub mod request;
mod request_table;
mod retry;
mod run;
mod settings;
mod size_warning;
mod stamp;
pub mod time;

pub use crate::copy_on_write::CopyOnWrite;
pub use crate::decide::{View, decide};
pub use crate::draft::{Change, Extras, Step, apply};
pub use crate::ending::{ActivityEnding, Ending, WorkflowEnding};
pub use crate::failure::{Failure, Info as FailureInfo};
pub use crate::outcome::{
    ActivityGrant, Completed, HeartbeatAnswer, Outcome, Rejection, Reply, ScheduleStanding, Started,
    TaskGrant,
};
pub use crate::rebuild::rebuild;
pub use crate::request_table::{RequestClass, RequestRow};
pub use crate::retry::normalized as normalized_retry_policy;
pub use crate::run::{Current, ExecutionInfo, Grace, Properties, Run, Start};
pub use crate::settings::Settings;
pub use crate::size_warning::SizeWarning;
pub use crate::stamp::Stamp;
