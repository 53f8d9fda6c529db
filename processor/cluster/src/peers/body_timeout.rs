//! A response body that ends with an error when the other node sends nothing for too long.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// How long the next frame may take, once it is asked for.
pub const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

/// The body with its timeout.
pub struct BodyTimeout<B> {
    body: B,
    within: Duration,
    patience: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<B> BodyTimeout<B> {
    /// Each frame may take so long.
    pub fn new(body: B, within: Duration) -> Self {
        Self { body, within, patience: Box::pin(tokio::time::sleep(within)), is_waiting: false }
    }
}

impl<B> Body for BodyTimeout<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.is_waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if !self.is_waiting {
            // From now on, because before that the reader did not ask.
            self.is_waiting = true;
            let until = Instant::now() + self.within;
            self.patience.as_mut().reset(until);
        }
        match self.patience.as_mut().poll(context) {
            Poll::Ready(()) => {
                Poll::Ready(Some(Err("the other node has stopped in the middle of its response".into())))
            }
            Poll::Pending => Poll::Pending,
        }
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
    use http_body_util::BodyExt;
    use tokio::sync::mpsc;

    use super::*;

    /// Gives what the test gives.
    struct Given(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Given {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    #[tokio::test]
    async fn what_stalls_ends_and_what_is_slow_in_being_read_does_not() {
        // The timeout is over at once. The reader's own pause does not count.
        let within = Duration::ZERO;
        let (handovers, given) = mpsc::unbounded_channel();
        let mut body = BodyTimeout::new(Given(given), within);
        for piece in ["a", "b"] {
            handovers.send(piece.into()).expect("it is read");
            let frame = body.frame().await.expect("there is one").expect("it has not stalled");
            assert_eq!(frame.into_data().expect("data"), piece);
        }
        assert!(body.frame().await.expect("an error").is_err(), "nothing comes any more");
        let (ends, given) = mpsc::unbounded_channel::<Bytes>();
        drop(ends);
        assert!(BodyTimeout::new(Given(given), within).frame().await.is_none(), "it is at its end");
    }
}
