//! Sends one batch and hands each caller its outcome.
//!
//! A list may be refused as a whole for one item's sake: the server checks every field before it begins. Then the items
//! are judged here by the same rules; the bad ones are refused, the rest go again. If no rule of ours finds the culprit the
//! list is halved until it is alone. Either way items keep the identity they had under the first key.
//!
//! Items that were not settled (a shard without a leader, a queue that is full) are sent again beside the flights, so
//! that nobody else waits for them: the whole list, under the same key, until the client's time is over.

use std::sync::Arc;

use tokio::time::Instant;

use super::gather::{Batch, Lane, Reply};
use super::outcome::{of_call, of_item};
use super::{ItemError, Load};
use crate::client::Error;
use crate::client::backoff::Backoff;
use crate::client::url::{unique_bits, unique_key};
use crate::problem::Problem;
use crate::v1::{ItemOutcome, OutcomeKind};

/// A list under its key. Callers that were answered are gone from `replies`; items stay, for a resend is the same list.
struct Piece<I> {
    key: String,
    items: Vec<I>,
    replies: Vec<Option<Reply>>,
    /// Whether an answer ever left an item open: from then on "unavailable" does not rule out that it happened.
    doubt: bool,
}

impl<I> Piece<I> {
    fn new(items: Vec<I>, replies: Vec<Option<Reply>>) -> Piece<I> {
        Piece { key: unique_key(), items, replies, doubt: false }
    }
}

/// Sends a batch; returns when its callers are answered or the rest is left to a resend.
pub(super) async fn deliver<L: Load>(lane: &Arc<Lane<L>>, batch: Batch<L::Item>) {
    let deadline = Instant::now() + lane.load.client().inner.options.timeout;
    let replies = batch.replies.into_iter().map(Some).collect();
    let mut pieces = vec![Piece::new(batch.items, replies)];
    while let Some(mut piece) = pieces.pop() {
        match lane.load.send(&piece.key, &mut piece.items).await {
            Ok(outcomes) => {
                if !piece.answer(&lane.load, outcomes, false) {
                    resend_beside(lane, piece, deadline);
                }
            }
            Err(Error::Refused(problem)) if piece.items.len() > 1 && is_about_items(&problem) => {
                pieces.extend(piece.split(&lane.load));
            }
            Err(error) => piece.answer_all(&lane.load, &error),
        }
    }
}

/// Whether a refusal may be the fault of some items only.
fn is_about_items(problem: &Problem) -> bool {
    matches!(problem.status, 400 | 413)
}

/// Sends a list again outside of the flights; when too many of these are under way, its open items are answered as open.
fn resend_beside<L: Load>(lane: &Arc<Lane<L>>, mut piece: Piece<L::Item>, deadline: Instant) {
    let lane = lane.clone();
    if lane.resends.try_acquire().map(|permit| permit.forget()).is_err() {
        let detail = "not settled, and too many batches are being sent again".to_owned();
        return piece.answer_all(&lane.load, &open(&piece.key, detail));
    }
    tokio::spawn(async move {
        resend(&lane.load, piece, deadline).await;
        lane.resends.add_permits(1);
    });
}

async fn resend<L: Load>(load: &L, mut piece: Piece<L::Item>, deadline: Instant) {
    let mut backoff = Backoff::new(unique_bits());
    loop {
        tokio::time::sleep(backoff.next(None)).await;
        let last = Instant::now() >= deadline;
        match load.send(&piece.key, &mut piece.items).await {
            Ok(outcomes) => {
                if piece.answer(load, outcomes, last) {
                    return;
                }
            }
            // Some were settled by this very list, so a refusal of the whole cannot be the last word on the others.
            Err(Error::Refused(problem)) => {
                return piece.answer_all(load, &open(&piece.key, problem.to_string()));
            }
            // The client has tried until its own time was over.
            Err(Error::Unavailable { detail, .. }) if piece.doubt => {
                return piece.answer_all(load, &open(&piece.key, detail));
            }
            Err(error) => return piece.answer_all(load, &error),
        }
    }
}

fn open(key: &str, detail: String) -> Error {
    Error::Unknown { request: key.to_owned(), detail }
}

impl<I: Send + 'static> Piece<I> {
    /// Hands out what is settled; with `last`, the rest as well. True when nobody waits any more.
    fn answer<L: Load<Item = I>>(
        &mut self,
        load: &L,
        outcomes: Vec<ItemOutcome>,
        last: bool,
    ) -> bool {
        if outcomes.len() != self.items.len() {
            let detail = format!("{} outcomes came for {} items", outcomes.len(), self.items.len());
            self.answer_all(load, &Error::Protocol { detail });
            return true;
        }
        let mut done = true;
        for (place, mut outcome) in outcomes.into_iter().enumerate() {
            let Some(reply) = self.replies[place].take() else {
                continue;
            };
            self.doubt |= outcome.outcome == OutcomeKind::Unknown;
            if self.doubt && outcome.outcome == OutcomeKind::Unavailable {
                outcome.outcome = OutcomeKind::Unknown;
            }
            if outcome.outcome.is_settled() || last {
                let item = &self.items[place];
                // A caller that has gone away needs no answer.
                let _ = reply.send(of_item(load, &self.key, place, item, outcome));
            } else if !reply.is_closed() {
                self.replies[place] = Some(reply);
                done = false;
            }
        }
        done
    }

    /// Hands everyone who still waits the fate of the whole call.
    fn answer_all<L: Load<Item = I>>(&mut self, load: &L, error: &Error) {
        for (place, reply) in self.replies.iter_mut().enumerate() {
            if let Some(reply) = reply.take() {
                let error = of_call(load, &self.key, place, &self.items[place], error);
                let _ = reply.send(Err(error));
            }
        }
    }

    /// After a refusal of the whole: refuses what is bad by the rules and gives the rest, or two halves.
    fn split<L: Load<Item = I>>(mut self, load: &L) -> Vec<Piece<I>> {
        load.pin(&self.key, &mut self.items);
        let count = self.items.len();
        let mut rest = Piece::new(Vec::new(), Vec::new());
        for (item, reply) in self.items.into_iter().zip(self.replies) {
            match (load.check(&item), reply) {
                (Some(problem), Some(reply)) => {
                    let _ = reply.send(Err(ItemError::Refused(Box::new(problem))));
                }
                (Some(_), None) => {}
                (None, reply) => {
                    rest.items.push(item);
                    rest.replies.push(reply);
                }
            }
        }
        if rest.items.len() < count {
            return if rest.items.is_empty() { Vec::new() } else { vec![rest] };
        }
        let items = rest.items.split_off(count / 2);
        let replies = rest.replies.split_off(count / 2);
        vec![rest, Piece::new(items, replies)]
    }
}
