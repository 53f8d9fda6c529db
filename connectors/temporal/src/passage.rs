//! Receipts on their way with an answer: a task has reached its worker when the worker's connection has taken all of it, and goes
//! back where that does not come to pass.
//!
//! The answer of a poll that another node has brought has one hop more before it: that node says whether it got there.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use everlog_partition::Receipt;
use http_body::{Body as Frames, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::Response;

/// Where a handler leaves the receipt of what it answers with, for whoever brings the answer on. Goes along with a request, among
/// its extensions; clones are the same place.
#[derive(Clone, Default)]
pub struct Slip(Arc<Mutex<Option<Receipt>>>);

impl Slip {
    /// Leaves the receipt.
    pub(crate) fn leave(&self, receipt: Receipt) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(receipt);
    }

    /// What was left. Whoever drops it gives the task back.
    pub fn take(&self) -> Option<Receipt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An answer whose receipt is accepted when all of it has been taken.
pub fn passing(response: Response<Body>, receipt: Receipt) -> Response<Body> {
    response.map(|body| Body::new(Passage { body, receipt: Some(receipt) }))
}

struct Passage {
    body: Body,
    receipt: Option<Receipt>,
}

impl Frames for Passage {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let is_last = match &frame {
            Some(Ok(frame)) => frame.is_trailers() || self.body.is_end_stream(),
            Some(Err(_broke_off)) => false,
            None => true,
        };
        if is_last && let Some(receipt) = self.receipt.take() {
            receipt.accept();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use http_body_util::{BodyExt, Full};
    use tonic::codegen::http::HeaderMap;

    use super::*;

    /// An answer with trailers, as gRPC has them, and how often its task was taken and given back.
    fn answer() -> (Response<Body>, Arc<[AtomicU32; 2]>) {
        let counts: Arc<[AtomicU32; 2]> = Arc::default();
        let count = |at: usize| {
            let counts = Arc::clone(&counts);
            move || {
                counts[at].fetch_add(1, Ordering::Relaxed);
            }
        };
        let receipt = Receipt::answered(count(0), count(1));
        let slip = Slip::default();
        slip.clone().leave(receipt);
        let trailers = async { Some(Ok(HeaderMap::new())) };
        let body = Body::new(Full::new(Bytes::from_static(b"task")).with_trailers(trailers));
        let receipt = slip.take().expect("it was left");
        assert!(slip.take().is_none(), "once");
        (passing(Response::new(body), receipt), counts)
    }

    fn seen(counts: &[AtomicU32; 2]) -> [u32; 2] {
        counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn an_answer_that_is_taken_to_its_end_has_reached_its_worker() {
        let (mut answer, counts) = answer();
        assert!(answer.body_mut().frame().await.expect("the message").expect("no error").is_data());
        assert_eq!(seen(&counts), [0, 0], "its end is missing");
        assert!(answer.body_mut().frame().await.expect("the end").expect("no error").is_trailers());
        assert_eq!(seen(&counts), [1, 0], "nobody asks for more behind it");
        drop(answer);
        assert_eq!(seen(&counts), [1, 0]);
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_on_its_way_gives_the_task_back() {
        let (mut half, half_counts) = answer();
        assert!(half.body_mut().frame().await.is_some());
        drop(half);
        assert_eq!(seen(&half_counts), [0, 1]);
        let (unread, counts) = answer();
        drop(unread);
        assert_eq!(seen(&counts), [0, 1]);
    }

    #[test]
    fn a_task_that_nobody_brings_on_goes_back() {
        let given_back = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&given_back);
        let slip = Slip::default();
        slip.leave(Receipt::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        drop(slip);
        assert_eq!(given_back.load(Ordering::Relaxed), 1);
    }
}
