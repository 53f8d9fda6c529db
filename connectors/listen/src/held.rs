//! The body of an answer: its call is under way until it is sent or given up.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

use crate::connection::Call;

pub(crate) struct Held<B> {
    body: Pin<Box<B>>,
    _call: Option<Call>,
}

impl<B> Held<B> {
    pub(crate) fn new(body: B, call: Option<Call>) -> Self {
        Self { body: Box::pin(body), _call: call }
    }
}

impl<B: Body> Body for Held<B> {
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
