//! What happens: a pure, deterministic state machine for durable workflows.
//!
//! [`decide`] takes the state and one journal record and yields events, new states and an answer; [`apply`] is the
//! only way a run changes. There is no clock, no randomness, no IO, no thread and no log line in here: time and ids
//! come from the record's [`Stamp`], limits from the [`Settings`] in the state.

mod decide;
mod draft;
mod mark;
mod outcome;
mod part;
mod rebuild;
mod retry;
mod run;
mod settings;
mod stamp;

pub mod command;
pub mod cron;
pub mod event;
pub mod failure;
pub mod hidden;
pub mod input;
pub mod level;
pub mod machine;
pub mod payload;
pub mod time;
pub mod vocabulary;

pub use decide::{View, decide};
pub use draft::{Change, Extras, Step, apply};
pub use failure::{Failure, Info as FailureInfo};
pub use mark::Mark;
pub use outcome::{ActivityGrant, Completed, Outcome, Rejection, Reply, Started, TaskGrant};
pub use part::Part;
pub use rebuild::rebuild;
pub use retry::normalized as normalized_retry_policy;
pub use run::{Current, Grace, Head, Properties, Run, Start};
pub use settings::Settings;
pub use stamp::Stamp;
