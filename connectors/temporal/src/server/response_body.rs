//! The body of a response: its bytes are counted until the client has received them, and dropped at a deadline.
//!
//! The HTTP/2 library keeps what it was given until the client's window has room, so it is given one frame at a time. A task's
//! receipt is accepted with the last frame.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use everlog_listen::{Lapse, SharedConnection};
use everlog_partition::Receipt;
use http_body::{Body as Frames, Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tonic::Status;
use tonic::codegen::http::HeaderMap;

use crate::server::body_limits::BudgetShares;

/// Bytes that are handed over at a time: the default size of an HTTP/2 frame.
const PIECE_BYTES: usize = 16 << 10;

/// What is left of a response.
pub(crate) struct ResponseContent {
    /// The message, with its prefix.
    pub data: Bytes,
    /// What follows the message.
    pub trailers: Option<HeaderMap>,
    /// The receipt of the task in the response: accepted with the last frame. Dropped, it returns the task to its queue.
    pub receipt: Option<Receipt>,
    /// The shares of the response.
    pub _shares: BudgetShares,
}

/// The content that is not sent yet; none once it is sent or has lapsed.
struct UnsentContent(Mutex<Option<ResponseContent>>);

impl UnsentContent {
    fn lock(&self) -> MutexGuard<'_, Option<ResponseContent>> {
        self.0.lock()
    }
}

impl Lapse for UnsentContent {
    fn lapse(&self) -> bool {
        self.lock().take().is_some()
    }
}

/// The body of a response.
pub(crate) struct ResponseBody {
    unsent: Arc<UnsentContent>,
    peer: SharedConnection,
    /// Its key among the lapses of the connection.
    lapse: (Instant, u64),
    is_over: bool,
}

impl ResponseBody {
    /// A body that lapses at `until`.
    pub(crate) fn new(content: ResponseContent, peer: SharedConnection, until: Instant) -> Self {
        let unsent = Arc::new(UnsentContent(Mutex::new(Some(content))));
        let lapses: Weak<UnsentContent> = Arc::downgrade(&unsent);
        let lapse = peer.lapse_at(until, lapses);
        Self { unsent, peer, lapse, is_over: false }
    }
}

impl Frames for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut unsent = self.unsent.lock();
        let Some(content) = unsent.as_mut() else {
            drop(unsent);
            self.is_over = true;
            let late = Status::deadline_exceeded("the answer was not taken in time");
            return Poll::Ready(Some(Err(late)));
        };
        let frame = match content.data.len() {
            0 => content.trailers.take().map(Frame::trailers),
            1..=PIECE_BYTES => Some(Frame::data(std::mem::take(&mut content.data))),
            // A copy: a slice would keep the whole response in memory while it waits.
            _more => Some(Frame::data(Bytes::copy_from_slice(&content.data.split_to(PIECE_BYTES)))),
        };
        if content.data.is_empty() && content.trailers.is_none() {
            if let Some(receipt) = content.receipt.take() {
                receipt.accept();
            }
            *unsent = None;
            drop(unsent);
            self.is_over = true;
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.peer.lapse_no_more(&self.lapse);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use everlog_listen::{Budget, Connection, ListenerBounds};
    use http_body_util::BodyExt;

    use super::*;

    /// An answer with trailers, as gRPC has them, what it holds, and how often its task was taken and given back.
    struct Given {
        answer: ResponseBody,
        peer: SharedConnection,
        all: Arc<Budget>,
        counts: Arc<[AtomicU32; 2]>,
    }

    fn given(bytes: usize) -> Given {
        let counts: Arc<[AtomicU32; 2]> = Arc::default();
        let count = |at: usize| {
            let counts = Arc::clone(&counts);
            move || {
                counts[at].fetch_add(1, Ordering::Relaxed);
            }
        };
        let receipt = Receipt::answered(count(0), count(1));
        let peer = Connection::new(Ipv4Addr::LOCALHOST.into(), &ListenerBounds::default());
        let all = Budget::new(1 << 20);
        let mut shares = BudgetShares::none(&peer.answers, &all);
        shares.grow(bytes, "answers").expect("there is room");
        let data = Bytes::from(vec![7; bytes]);
        let content = ResponseContent {
            data,
            trailers: Some(HeaderMap::new()),
            receipt: Some(receipt),
            _shares: shares,
        };
        let (now, hour) = (Instant::now(), Duration::from_secs(3_600));
        let until = now + hour;
        Given { answer: ResponseBody::new(content, Arc::clone(&peer), until), peer, all, counts }
    }

    fn seen(counts: &[AtomicU32; 2]) -> [u32; 2] {
        counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn an_answer_that_is_taken_to_its_end_has_reached_its_worker() {
        let Given { mut answer, all, counts, .. } = given(PIECE_BYTES + 1);
        for bytes in [PIECE_BYTES, 1] {
            let frame = answer.frame().await.expect("a piece").expect("no error");
            assert_eq!(frame.into_data().expect("data").len(), bytes);
        }
        assert_eq!((seen(&counts), all.held()), ([0, 0], PIECE_BYTES + 1), "its end is missing");
        assert!(answer.frame().await.expect("the end").expect("no error").is_trailers());
        assert_eq!((seen(&counts), all.held()), ([1, 0], 0), "nobody asks for more behind it");
        drop(answer);
        assert_eq!(seen(&counts), [1, 0]);
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_on_its_way_gives_the_task_back() {
        let Given { mut answer, all, counts, .. } = given(100);
        assert!(answer.frame().await.is_some());
        drop(answer);
        assert_eq!((seen(&counts), all.held()), ([0, 1], 0));
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_let_go() {
        let Given { mut answer, peer, all, counts } = given(100);
        let now = Instant::now();
        assert_eq!(peer.lapse_due(now), 0, "it has an hour");
        assert_eq!(peer.lapse_due(now + Duration::from_secs(3_601)), 1);
        assert_eq!((seen(&counts), all.held(), peer.answers.held()), ([0, 1], 0, 0));
        assert!(answer.frame().await.expect("its end").is_err());
        assert!(answer.frame().await.is_none());
    }
}
