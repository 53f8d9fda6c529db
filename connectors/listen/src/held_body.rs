//! The body of a response that owns a guard, such as its call or a budget's share, until it is sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A body with a guard that is dropped with it.
#[derive(Debug)]
pub struct HeldBody<B, T> {
    body: Pin<Box<B>>,
    _what: T,
}

impl<B, T> HeldBody<B, T> {
    /// The body with this guard.
    pub fn new(body: B, what: T) -> Self {
        Self { body: Box::pin(body), _what: what }
    }
}

impl<B: Body, T: Unpin> Body for HeldBody<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
