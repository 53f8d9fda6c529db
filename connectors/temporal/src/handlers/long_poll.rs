//! The long poll of a worker: it ends with a task or empty, and an abandoned poll takes no task.

use std::time::Duration;

use everlog_partition::{Delivery, Poll, Router};
use tonic::Status;

use crate::codec::status;
use crate::server::call::Call;

/// Waits for a task; none if the poll ends empty.
pub(crate) async fn wait(
    call: &Call<'_>,
    poll: Poll,
    worker_instance: &str,
) -> Result<Option<Delivery>, Status> {
    let patience = patience(call)?;
    let mut watch = poll.sticky.then(|| Watch::over(&call.gateway.router, &poll));
    let mut poller = match worker_instance {
        "" => None,
        instance => Some(call.gateway.pollers.register(&poll.namespace_id, instance)),
    };
    let stopped = async {
        match &mut poller {
            Some(poller) => poller.stopped().await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        delivery = call.gateway.router.poll(poll) => delivery.map(Some).map_err(status::of_failure),
        () = tokio::time::sleep(patience) => Ok(None),
        () = stopped => Ok(None),
        () = call.gateway.stopped() => Ok(None),
    };
    if let Some(watch) = &mut watch {
        watch.is_over = true;
    }
    outcome
}

/// Abandons a sticky queue when its worker disconnects during a poll: the call is dropped then, and this with it.
struct Watch {
    router: Router,
    namespace_id: String,
    queue: String,
    is_over: bool,
}

impl Watch {
    fn over(router: &Router, poll: &Poll) -> Self {
        let (namespace_id, queue) = (poll.namespace_id.clone(), poll.queue.clone());
        Self { router: router.clone(), namespace_id, queue, is_over: false }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            self.router.abandon_sticky_queue(&self.namespace_id, &self.queue);
        }
    }
}

/// How long the poll waits: the response has to arrive before the worker's deadline.
fn patience(call: &Call<'_>) -> Result<Duration, Status> {
    let limits = &call.gateway.limits;
    let least = Duration::from_millis(limits.poll_deadline_min_ms);
    if call.remaining().is_some_and(|remaining| remaining < least) {
        return Err(Status::failed_precondition("Context timeout is too short."));
    }
    Ok(call.patience(limits.poll_wait_ms))
}
