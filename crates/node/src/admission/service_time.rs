//! How long calls of a lane take: a moving average (CH-21).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::lane::Lane;

/// What a transfer is taken to need until the first was measured (CH-21).
const TRANSFER_US: u64 = 200_000;
/// A new time counts one part in this many (CH-21: 0.1).
const WEIGHT: u64 = 10;
/// While nothing is measured the average falls by one part in this many per sample of the load: a lane that is shed
/// whole would otherwise never learn that it is fast again.
const FALL: u64 = 8;

/// The average of one lane.
#[derive(Debug)]
pub(super) struct ServiceTime {
    average_us: AtomicU64,
    start_us: u64,
    measured: AtomicBool,
    /// Whether a call was measured since the last look.
    fresh: AtomicBool,
}

impl ServiceTime {
    pub(super) fn of(lane: Lane) -> ServiceTime {
        let start_us = match lane {
            Lane::Upload | Lane::Download => TRANSFER_US,
            // Nothing is known to be slow before it was.
            _ => 0,
        };
        let (measured, fresh) = (AtomicBool::new(false), AtomicBool::new(false));
        ServiceTime { average_us: AtomicU64::new(start_us), start_us, measured, fresh }
    }

    pub(super) fn expected_us(&self) -> u64 {
        self.average_us.load(Relaxed)
    }

    /// Two that come at once may count as one.
    pub(super) fn add(&self, time_us: u64) {
        let before = self.average_us.load(Relaxed);
        let after = match self.measured.load(Relaxed) {
            true => before - before / WEIGHT + time_us / WEIGHT,
            false => time_us,
        };
        self.average_us.store(after, Relaxed);
        self.measured.store(true, Relaxed);
        self.fresh.store(true, Relaxed);
    }

    /// Lets the average fall if nothing was measured since the last look.
    pub(super) fn settle(&self) {
        let idle = !self.fresh.swap(false, Relaxed);
        let before = self.average_us.load(Relaxed);
        if idle && before > self.start_us {
            self.average_us.store((before - before / FALL).max(self.start_us), Relaxed);
        }
    }
}
