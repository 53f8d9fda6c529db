//! Answering somebody who may have gone away.

use tokio::sync::oneshot;

/// Sends an answer; where nobody waits any more, nobody needs to be told.
pub(crate) fn send_reply<T>(reply: oneshot::Sender<T>, answer: T) {
    let _gone = reply.send(answer);
}
