//! Builds an entry order by order; the time is known only when the entry is proposed.

use super::brief::write_brief;
use super::{HEADER_BYTES, VERSION};
use crate::Order;
use crate::hash::encode_into;
use crate::limits::BATCH_ORDERS_MAX;

/// A batch being gathered.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// An empty batch. It is worth proposing too: it moves log time on and makes due tasks ready.
    pub fn new() -> Self {
        Self { bytes: vec![0; HEADER_BYTES], count: 0 }
    }

    /// An empty batch with room for an entry of about this size: growing step by step would copy it several times.
    pub fn with_room(bytes: usize) -> Self {
        let mut room = Vec::with_capacity(bytes.max(HEADER_BYTES));
        room.resize(HEADER_BYTES, 0);
        Self { bytes: room, count: 0 }
    }

    /// Adds an order. The caller proposes before the batch holds `limits::BATCH_ORDERS_MAX`.
    pub fn push(&mut self, order: &Order) {
        assert!((self.count as usize) < BATCH_ORDERS_MAX, "batch holds too many orders");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        if !write_brief(order, &mut self.bytes) {
            encode_into(order, &mut self.bytes);
        }
        let length = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }

    /// Number of orders.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no order.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of the entry so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The entry, stamped with the leader's log time.
    pub fn finish(mut self, time_ms: u64) -> Vec<u8> {
        self.bytes[0] = VERSION;
        self.bytes[1..9].copy_from_slice(&time_ms.to_le_bytes());
        self.bytes[9..HEADER_BYTES].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}
