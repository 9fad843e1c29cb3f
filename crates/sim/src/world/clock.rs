//! The two clocks of one machine, as functions of true time.
//!
//! The monotonic clock runs at a drawn rate (0.5x to 2x) and never goes back; the wall clock runs at the same rate and
//! can be made to jump. A change of rate begins a new segment, and old segments are kept so that a check can ask what
//! a node's clock showed in the past (Q6).
//!
//! Invariant: `mono_us_at` is non-decreasing in true time.

use ikada_replica::output::Now;

/// One machine's clocks.
#[derive(Debug, Clone)]
pub struct Clock {
    segments: Vec<Segment>,
    /// True wall time at the start of the simulation, in ms since 1970.
    wall_start_ms: u64,
    wall_offset_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    true_us: u64,
    mono_us: u64,
    rate_permille: u64,
}

impl Clock {
    /// A clock that shows `mono_start_ms` and `wall_start_ms` at true time zero and runs at `rate_permille` / 1000.
    pub fn new(mono_start_ms: u64, wall_start_ms: u64, rate_permille: u64) -> Self {
        Self {
            segments: vec![Segment { true_us: 0, mono_us: mono_start_ms * 1_000, rate_permille }],
            wall_start_ms,
            wall_offset_ms: 0,
        }
    }

    fn segment_at(&self, true_us: u64) -> Segment {
        let next = self.segments.partition_point(|s| s.true_us <= true_us);
        self.segments[next.saturating_sub(1)]
    }

    /// What the monotonic clock shows at a moment of true time.
    pub fn mono_us_at(&self, true_us: u64) -> u64 {
        let s = self.segment_at(true_us);
        s.mono_us + true_us.saturating_sub(s.true_us) * s.rate_permille / 1_000
    }

    /// Both clocks at a moment of true time.
    pub fn read(&self, true_us: u64) -> Now {
        let mono_us = self.mono_us_at(true_us);
        let ran_ms = (mono_us - self.segments[0].mono_us) / 1_000;
        Now {
            mono_ms: mono_us / 1_000,
            wall_ms: (self.wall_start_ms + ran_ms).saturating_add_signed(self.wall_offset_ms),
        }
    }

    /// The first moment of true time, not before `true_us`, at which the monotonic clock shows at least `mono_ms`.
    pub fn true_us_of(&self, mono_ms: u64, true_us: u64) -> u64 {
        let s = self.segment_at(true_us);
        let target_us = mono_ms.saturating_mul(1_000);
        let ahead_us = target_us.saturating_sub(s.mono_us);
        let reached_us = s.true_us + ahead_us.saturating_mul(1_000).div_ceil(s.rate_permille);
        reached_us.max(true_us)
    }

    /// From now on runs at another rate.
    pub fn set_rate(&mut self, true_us: u64, rate_permille: u64) {
        let mono_us = self.mono_us_at(true_us);
        self.segments.push(Segment { true_us, mono_us, rate_permille });
    }

    /// Moves the wall clock; the monotonic clock does not notice.
    pub fn jump_wall(&mut self, by_ms: i64) {
        self.wall_offset_ms += by_ms;
    }

    /// Sets the wall clock right again, as time synchronisation would.
    pub fn heal_wall(&mut self, true_us: u64) {
        let shown_ms = self.read(true_us).wall_ms as i64;
        let right_ms = (self.wall_start_ms + true_us / 1_000) as i64;
        self.wall_offset_ms += right_ms - shown_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL_START_MS: u64 = 1_800_000_000_000;

    #[test]
    fn drift_bends_the_clock_without_a_step() {
        let mut clock = Clock::new(5, 7, 1_000);
        clock.set_rate(10_000, 2_000);
        assert_eq!(clock.mono_us_at(10_000), 15_000);
        assert_eq!(clock.mono_us_at(12_000), 19_000);
        assert_eq!(clock.mono_us_at(4_000), 9_000);
        let at_us = clock.true_us_of(19, 10_000);
        assert!(clock.read(at_us).mono_ms >= 19);
        assert!(clock.read(at_us - 1).mono_ms < 19);
    }

    #[test]
    fn a_wall_jump_is_healed() {
        let mut clock = Clock::new(0, WALL_START_MS, 500);
        clock.jump_wall(-3_600_000);
        let before = clock.read(1_000_000);
        assert_eq!(before.wall_ms, WALL_START_MS + 500 - 3_600_000);
        clock.heal_wall(1_000_000);
        assert_eq!(clock.read(1_000_000).wall_ms, WALL_START_MS + 1_000);
        assert_eq!(clock.read(1_000_000).mono_ms, before.mono_ms);
    }
}
