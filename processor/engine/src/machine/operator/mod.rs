//! What operators do to open runs and activities: pauses, resets, other options.

pub mod activity_control;
pub mod activity_options;
pub mod run_options;
pub mod run_pause;

use crate::draft::Draft;
use crate::outcome::{Rejection, Reply};
use crate::request::Request;

/// What such a request does to an open run; nothing of others.
pub(crate) fn decide(draft: &mut Draft<'_>, request: &Request) -> Result<Reply, Rejection> {
    match request {
        Request::PauseActivity(order) => activity_control::pause(draft, order),
        Request::UnpauseActivity(order) => activity_control::unpause(draft, order),
        Request::ResetActivity(order) => activity_control::reset(draft, order),
        Request::UpdateActivityOptions(order) => activity_control::update_options(draft, order),
        Request::PauseRun(order) => run_pause::pause(draft, order),
        Request::UnpauseRun(order) => run_pause::unpause(draft, order),
        Request::UpdateRunOptions(order) => run_options::update(draft, order),
        _others_are_decided_elsewhere => Ok(Reply::Done),
    }
}
