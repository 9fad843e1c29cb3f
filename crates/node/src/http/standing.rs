//! Whether the caller of a call that goes on for a while is still let in (X17).
//!
//! Promise: a token that ends takes along what its caller began: bytes that still come are not taken in, waits and reads
//! end, and nothing more is sent. A write that was proposed goes its way, since cutting it off would only hide its outcome;
//! the next one of the same call is not proposed (`dispatch.rs`).
//!
//! Leaves out: pipes and live streams, which listen for the end of a token themselves (`pipe/serve.rs`, `stream.rs`).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use ikada_api::Problem;

use super::problems;
use crate::auth::{Gatekeeper, Principal};
use crate::watch::wall_ms;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How a caller stands. Without a gatekeeper nobody is ever sent away.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) gatekeeper: Option<Arc<Gatekeeper>>,
    pub(super) principal: Arc<Principal>,
}

impl Standing {
    /// Whether its token holds now.
    pub(super) fn holds(&self) -> bool {
        self.gatekeeper.as_ref().is_none_or(|keeper| keeper.still_holds(&self.principal, wall_ms()))
    }

    /// Done when its token no longer holds.
    pub(super) async fn ended(&self) {
        match &self.gatekeeper {
            Some(keeper) => keeper.revoked(&self.principal, wall_ms).await,
            None => std::future::pending().await,
        }
    }

    /// A body that breaks off when the token of whoever sends it ends.
    pub(super) fn vouch_for<B>(&self, body: B) -> Vouched<B> {
        Vouched { body: Box::pin(body), standing: self.clone(), ended: None, is_begun: false }
    }
}

/// A body whose sender is still let in.
pub(super) struct Vouched<B> {
    body: Pin<Box<B>>,
    standing: Standing,
    /// Made when it is needed: a body that comes in one piece with its head has no use for it.
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    is_begun: bool,
}

impl<B> Body for Vouched<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<AnyError>,
{
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let this = self.get_mut();
        let polled = this.body.as_mut().poll_frame(context);
        let is_later = std::mem::replace(&mut this.is_begun, true);
        if polled.is_pending() || (is_later && matches!(polled, Poll::Ready(Some(_)))) {
            let standing = this.standing.clone();
            let begin = || -> Pin<Box<dyn Future<Output = ()> + Send>> {
                Box::pin(async move { standing.ended().await })
            };
            if this.ended.get_or_insert_with(begin).as_mut().poll(context).is_ready() {
                this.ended = None;
                return Poll::Ready(Some(Err(Box::new(Ended))));
            }
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }
}

/// The token of whoever sends a body has ended.
#[derive(Debug)]
pub(super) struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the caller's token has ended")
    }
}

impl std::error::Error for Ended {}

/// Whether a body broke off because its sender's token ended.
pub(super) fn has_ended(error: impl Into<AnyError>) -> bool {
    error.into().is::<Ended>()
}

/// What to answer whoever sent a body that broke off.
pub(super) fn broken_body(error: impl Into<AnyError>) -> Problem {
    match has_ended(error) {
        true => problems::unauthenticated(),
        false => problems::body_incomplete(),
    }
}
