//! What a call leaves unread of its body (F-32).
//!
//! A call that is turned away never reads its body. If the connection were closed with bytes still coming, the caller's
//! kernel could throw the answer away, and everybody who was turned away would have to connect again, which costs a
//! busy node more than the bytes. So a short rest is read and dropped beside the answer, which waits for none of it, and
//! the connection goes on; with a long one the caller is told that the connection ends.
//!
//! Leaves out: callers that ask first (`Expect: 100-continue`); they have sent nothing.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, EXPECT, HeaderValue};

use crate::http::answer::Reply;

/// A rest of at most so many bytes is read: what one list of tasks or one piece of an object has.
const REST_BYTES_MAX: u64 = 1 << 20;
/// How long the rest may take to come.
const REST_PATIENCE: Duration = Duration::from_secs(1);

/// A body in the hands of a call. It goes back when the call lets go of it.
pub(in crate::http) struct Lent<B> {
    body: Option<B>,
    lender: Arc<Mutex<Option<B>>>,
}

/// Where a lent body comes back to.
pub(in crate::http) struct Rest<B> {
    lender: Arc<Mutex<Option<B>>>,
    is_asked_for: bool,
}

/// Lends the body of a request.
pub(in crate::http) fn lend<B>(request: Request<B>) -> (Request<Lent<B>>, Rest<B>) {
    let lender = Arc::new(Mutex::new(None));
    let is_asked_for = request.headers().contains_key(EXPECT);
    let rest = Rest { lender: lender.clone(), is_asked_for };
    (request.map(|body| Lent { body: Some(body), lender }), rest)
}

impl<B> Drop for Lent<B> {
    fn drop(&mut self) {
        *self.lender.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
    }
}

impl<B: Body + Unpin> Body for Lent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl<B> Rest<B>
where
    B: Body<Data: Send, Error: Send> + Send + Unpin + 'static,
{
    /// Has a short rest read while the answer goes out; says with the answer that the connection ends if there is more.
    pub(in crate::http) fn read(self, reply: &mut Reply) {
        let body = self.lender.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A call that still holds its body streams it on, and reads it to its end or breaks off.
        let Some(body) = body.filter(|body| !body.is_end_stream()) else { return };
        let is_short = body.size_hint().upper().is_some_and(|bytes| bytes <= REST_BYTES_MAX);
        if !self.is_asked_for && is_short {
            // What does not come in time ends the connection: nobody reads it any more.
            tokio::spawn(tokio::time::timeout(REST_PATIENCE, drop_all(body)));
            return;
        }
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Reads a body to its end, or as far as it comes.
async fn drop_all<B: Body + Unpin>(mut body: B) {
    while let Some(Ok(_)) = body.frame().await {}
}
