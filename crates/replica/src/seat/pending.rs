//! Orders on their way into the log, and who waits for them.
//!
//! Orders of one turn are folded into one entry: one log record, one sync, one round trip for hundreds of callers.

use std::collections::VecDeque;

use ikada_consensus::NodeId;
use ikada_state::{BatchBuilder, Order};

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asker {
    /// A leg of this node.
    Local(u64),
    /// A leg of another node.
    Remote(NodeId, u64),
    /// The leader itself.
    Nobody,
}

/// A run of orders in an entry that belong to one asker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    pub asker: Asker,
    pub orders: usize,
}

/// A proposed entry.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub term: u64,
    pub index: u64,
    pub waiters: Vec<Waiter>,
}

#[derive(Debug)]
struct Batch {
    builder: BatchBuilder,
    waiters: Vec<Waiter>,
}

/// Orders gathered and not yet proposed.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    batches: VecDeque<Batch>,
    bytes: usize,
    /// Sizes of the last entry: the next one is likely to be alike.
    room_bytes: usize,
    room_waiters: usize,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the orders of one asker; they are never split over two entries.
    pub fn push(&mut self, asker: Asker, orders: &[Order], bytes_max: usize, orders_max: usize) {
        let full = self.batches.back().is_none_or(|batch| {
            batch.builder.bytes() >= bytes_max || batch.builder.len() + orders.len() > orders_max
        });
        if full {
            let builder = BatchBuilder::with_room(self.room_bytes);
            let waiters = Vec::with_capacity(self.room_waiters);
            self.batches.push_back(Batch { builder, waiters });
        }
        let Some(batch) = self.batches.back_mut() else {
            return;
        };
        let before = batch.builder.bytes();
        for order in orders {
            batch.builder.push(order);
        }
        self.bytes += batch.builder.bytes() - before;
        batch.waiters.push(Waiter { asker, orders: orders.len() });
    }

    /// An entry without orders: it only moves log time on.
    pub fn push_timer(&mut self) {
        if self.batches.is_empty() {
            self.batches.push_back(Batch { builder: BatchBuilder::new(), waiters: Vec::new() });
        }
    }

    /// The next entry's builder and waiters.
    pub fn pop(&mut self) -> Option<(BatchBuilder, Vec<Waiter>)> {
        let batch = self.batches.pop_front()?;
        self.bytes = self.bytes.saturating_sub(batch.builder.bytes());
        if self.batches.is_empty() {
            self.bytes = 0;
        }
        self.room_bytes = batch.builder.bytes() + batch.builder.bytes() / 8;
        self.room_waiters = batch.waiters.len() + batch.waiters.len() / 8;
        Some((batch.builder, batch.waiters))
    }
}
