//! When workers last asked for each queue of a shard, as its leader remembers it.

use ikada_state::QueueHandle;

/// Times by queue; empty on nodes that do not lead. Bounded by the shard's queues.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Monotonic time plus one; 0 is never.
    times: Vec<u64>,
}

impl Asked {
    pub fn clear(&mut self) {
        self.times.clear();
    }

    /// A claim has named this queue.
    pub fn note(&mut self, queue: QueueHandle, now_ms: u64) {
        let place = queue.0 as usize;
        if self.times.len() <= place {
            self.times.resize(place + 1, 0);
        }
        self.times[place] = now_ms.saturating_add(1);
    }

    /// When a claim last named this queue.
    pub fn last_ms(&self, queue: QueueHandle) -> Option<u64> {
        self.times.get(queue.0 as usize)?.checked_sub(1)
    }
}
