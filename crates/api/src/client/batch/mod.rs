//! Automatic batching: many callers with one item each, few list calls on the wire.
//!
//! [`Enqueuer`] gathers submissions, [`Completer`] completions. They stand beside [`Client`] and not inside it: a plain
//! call stays one request with its own key, and whoever wants batches chooses their bounds where the batches are made.
//!
//! Promises:
//! - nothing waits for company: the first item goes at once, others gather only while enough batches are in flight;
//! - each caller gets the outcome of its own item. An item that is refused, or that keeps the server busy, does not
//!   spoil or hold up the others of its batch;
//! - a batch is sent again under the same key with the same items. Item `i` is the same task however often that
//!   happens: an absent task id is derived from key and place, here as on the server;
//! - items, bytes, batches in flight, batches being resent and callers in line are bounded ([`BatchOptions`]);
//! - a caller that goes away takes its item along if it was not sent yet, and changes nothing for the others.
//!
//! Cost of an item: one short lock and one oneshot channel; no task is spawned for it.
//!
//! Leaves out: claims and renewals (a worker asks for many at once anyway), and order between items of one batcher.

mod complete;
mod deliver;
mod enqueue;
mod gather;
mod outcome;

pub use complete::Completer;
pub use enqueue::Enqueuer;
pub use outcome::{ItemError, Place};

use super::{Client, Error};
use crate::problem::Problem;
use crate::v1::ItemOutcome;

/// Bounds of a batcher; [`BatchOptions::default`] suits most.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Most items of one batch. More than the callers that wait never gather, so this bounds what one lost answer
    /// leaves open.
    pub items_max: usize,
    /// Most bytes of one batch, estimated; a larger item goes alone. Well below the server's bound on a body.
    pub bytes_max: usize,
    /// Most batches in flight: two keep the connection busy while answers are read, more spread over slow shards.
    pub flights_max: usize,
    /// Most batches that are sent again because items were not settled; beyond that such items are answered as open.
    pub resends_max: usize,
    /// Most items in line; further ones are told `Unavailable` at once.
    pub waiting_max: usize,
    /// Most bytes in line, estimated.
    pub waiting_bytes_max: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            items_max: 1_000,
            bytes_max: 4 << 20,
            flights_max: 4,
            resends_max: 64,
            waiting_max: 100_000,
            waiting_bytes_max: 256 << 20,
        }
    }
}

/// What the batches carry, and how a list of it is sent.
pub(crate) trait Load: Send + Sync + 'static {
    /// One caller's item.
    type Item: Send + 'static;

    /// The client that sends.
    fn client(&self) -> &Client;

    /// About how many bytes an item takes on the wire.
    fn bytes(item: &Self::Item) -> usize;

    /// Sends a list once (through refused connections and lost answers) and puts the items back where they were.
    fn send(
        &self,
        key: &str,
        items: &mut Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<ItemOutcome>, Error>> + Send;

    /// What is wrong with an item, by the server's own rules.
    fn check(&self, item: &Self::Item) -> Option<Problem>;

    /// Writes down what the items' identity was derived from, so that they keep it under another key.
    fn pin(&self, key: &str, items: &mut [Self::Item]);

    /// The task that item `place` of the batch `key` stands for, and where to ask what became of it.
    fn name(&self, key: &str, place: usize, item: &Self::Item) -> (String, Option<Place>);
}
