//! Which blobs must stay for now although nothing may refer to them yet.
//!
//! Bounded: when too many are pinned one by one, all are pinned at once for the same time. That keeps more than needed,
//! never less.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use super::{BlobId, Blobs};
use crate::disk::Disk;

/// Most single pins (about 64 MiB).
const PINS_MAX: usize = 1 << 20;

/// Ends of pins.
#[derive(Debug)]
pub(super) struct Pins {
    grace_ms: u64,
    /// Everything is pinned until then.
    all_until_ms: u64,
    until_ms: BTreeMap<BlobId, u64>,
}

impl Pins {
    pub(super) fn new(grace_ms: u64, now_ms: u64) -> Pins {
        Pins { grace_ms, all_until_ms: now_ms + grace_ms, until_ms: BTreeMap::new() }
    }

    pub(super) fn grace_ms(&self) -> u64 {
        self.grace_ms
    }

    pub(super) fn pin(&mut self, id: BlobId, now_ms: u64) {
        let until_ms = now_ms + self.grace_ms;
        if self.until_ms.len() >= PINS_MAX {
            self.until_ms.retain(|_, until| *until > now_ms);
        }
        if self.until_ms.len() >= PINS_MAX {
            self.all_until_ms = self.all_until_ms.max(until_ms);
            self.until_ms.clear();
            return;
        }
        let known = self.until_ms.entry(id).or_insert(until_ms);
        *known = until_ms.max(*known);
    }

    pub(super) fn is_pinned(&self, id: &BlobId, now_ms: u64) -> bool {
        now_ms < self.all_until_ms || self.until_ms.get(id).is_some_and(|until| now_ms < *until)
    }

    pub(super) fn forget(&mut self, id: &BlobId) {
        self.until_ms.remove(id);
    }
}

impl<D: Disk> Blobs<D> {
    pub(super) fn locked_pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a blob for the grace time from now, whether it is here or not.
    pub fn pin(&self, id: &BlobId, now_ms: u64) {
        self.locked_pins().pin(*id, now_ms);
    }

    /// Whether a blob must stay.
    #[must_use]
    pub fn is_pinned(&self, id: &BlobId, now_ms: u64) -> bool {
        self.locked_pins().is_pinned(id, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_ends_after_the_grace_time_and_is_never_shortened() {
        let mut pins = Pins::new(100, 0);
        assert!(pins.is_pinned(&[1; 32], 99), "all are pinned at first");
        assert!(!pins.is_pinned(&[1; 32], 100));
        pins.pin([1; 32], 200);
        pins.pin([1; 32], 150);
        assert!(pins.is_pinned(&[1; 32], 299));
        assert!(!pins.is_pinned(&[1; 32], 300));
        assert!(!pins.is_pinned(&[2; 32], 299));
    }

    #[test]
    fn too_many_pins_become_one_for_all() {
        let mut pins = Pins::new(100, 0);
        for number in 0..=PINS_MAX as u32 {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_le_bytes());
            pins.pin(id, 200);
        }
        assert!(pins.until_ms.len() <= PINS_MAX);
        assert!(pins.is_pinned(&[0; 32], 299));
        assert!(pins.is_pinned(&[9; 32], 299), "more than needed is kept");
    }
}
