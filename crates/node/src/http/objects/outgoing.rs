//! Bytes of an object on their way to a reader, who has a place among the downloads until the connection took the last of
//! them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::channel::Channel;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::http::standing::Standing;

/// Handed to the connection at one time. It asks for more when it has sent what it has, so that a slow reader holds its
/// place until all but this has left.
const PART_BYTES: usize = 128 << 10;

/// A body that holds a place.
pub(super) struct Outgoing {
    /// What is at hand.
    pub(super) part: Bytes,
    /// What comes after it.
    pub(super) rest: Option<Channel<Bytes, Infallible>>,
    pub(super) _place: OwnedSemaphorePermit,
    /// Of whoever reads. Its length was announced, so an early end is seen.
    pub(super) standing: Standing,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.standing.holds() {
            return Poll::Ready(None);
        }
        while self.part.is_empty() {
            let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
            match ready!(Pin::new(rest).poll_frame(context)) {
                Some(Ok(frame)) => self.part = frame.into_data().unwrap_or_default(),
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.part.len().min(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.part.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            None => SizeHint::with_exact(self.part.len() as u64),
            Some(_) => SizeHint::default(),
        }
    }
}
