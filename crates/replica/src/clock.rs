//! Log time: how a leader dates its entries.
//!
//! Promise: the time of a shard never goes back, follows the voters' median wall clock, and one bad clock can neither
//! freeze it nor make it leap (F-18, TQ-14). A leader advances it by its own monotonic clock and slews it by at most
//! a tenth towards the median; only a new leader, or one after a rest, starts at the median itself.
//!
//! Leaves out: reading any clock. Both readings arrive as `Now`.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;

use crate::output::Now;

/// After this long without an entry the next one starts at the median again.
const REST_MS: u64 = 10_000;
/// A sample older than this no longer counts towards the median.
const SAMPLE_AGE_MAX_MS: u64 = 10_000;
/// Slewing waits until this much has passed, so that whole milliseconds do not round to nothing.
const SLEW_STEP_MS: u64 = 100;
/// A lone voter's forward jump beyond this must be seen twice.
const LONE_JUMP_MAX_MS: u64 = 3_600_000;
/// How far apart the two sightings must be.
const LONE_CONFIRM_MS: u64 = 10_000;
/// How well they must agree.
const LONE_AGREE_MS: u64 = 1_000;
/// Beyond this distance from the median a node's clock is worth an alarm.
pub const CLOCK_ALARM_MS: i64 = 5_000;

/// What the voters' wall clocks say, each remembered relative to our monotonic clock, so that a jump of our own wall
/// clock does not move theirs.
#[derive(Debug, Default)]
pub struct WallClocks {
    /// Peer -> (its wall clock minus our monotonic clock, when heard).
    samples: BTreeMap<NodeId, (i64, u64)>,
}

impl WallClocks {
    /// Remembers the wall clock that a peer's frame carried.
    pub fn hear(&mut self, peer: NodeId, wall_ms: u64, now: Now) {
        self.samples.insert(peer, (wall_ms as i64 - now.mono_ms as i64, now.mono_ms));
    }

    /// A peer's wall clock minus ours, if heard lately.
    pub fn offset(&self, peer: NodeId, now: Now) -> Option<i64> {
        let (base, heard) = self.samples.get(&peer)?;
        (now.mono_ms.saturating_sub(*heard) <= SAMPLE_AGE_MAX_MS)
            .then(|| base + now.mono_ms as i64 - now.wall_ms as i64)
    }

    /// The lower median of our own wall clock and those of the other voters heard lately.
    pub fn median(&self, node: NodeId, voters: &[NodeId], now: Now) -> u64 {
        let mut offsets: Vec<i64> = voters
            .iter()
            .filter_map(|voter| if *voter == node { Some(0) } else { self.offset(*voter, now) })
            .collect();
        if offsets.is_empty() {
            return now.wall_ms;
        }
        offsets.sort_unstable();
        let middle = offsets[(offsets.len() - 1) / 2];
        (now.wall_ms as i64 + middle).max(0) as u64
    }
}

/// The log clock of one shard, used only while leading.
#[derive(Debug, Default, Clone, Copy)]
pub struct LogClock {
    /// (log time, monotonic time) of the last anchoring; none for a new leader.
    anchor: Option<(u64, u64)>,
    /// A lone voter's first sighting of a far jump: (wall target, monotonic time).
    sighting: Option<(u64, u64)>,
}

impl LogClock {
    /// Forgets the anchor: the next stamp starts as a new leader's does.
    pub fn reset(&mut self) {
        *self = LogClock::default();
    }

    /// The time for the next entry: at least `last_ms`, steered towards `median_ms`. `lone` says that no other
    /// voter vouches for the median.
    pub fn stamp(&mut self, last_ms: u64, median_ms: u64, lone: bool, now: Now) -> u64 {
        let Some((log_ms, at)) = self.anchor else {
            return self.start(last_ms, median_ms, lone, now);
        };
        let elapsed = now.mono_ms.saturating_sub(at);
        let plain = log_ms + elapsed;
        // A shard that is ahead of the clocks goes on by its leader's own: nothing in it may wait for them to catch up.
        if elapsed > REST_MS && median_ms > plain {
            return self.start(last_ms, median_ms, lone, now);
        }
        if elapsed < SLEW_STEP_MS {
            return plain.max(last_ms);
        }
        let room = (elapsed / 10) as i64;
        let slew = (median_ms as i64 - plain as i64).clamp(-room, room);
        let time = ((plain as i64 + slew) as u64).max(last_ms);
        self.anchor = Some((time, now.mono_ms));
        time
    }

    /// The time that `stamp` would give now. It is no entry: whoever only looks, however often, must not keep a shard that
    /// rests from starting at the median again.
    pub fn foresee(&mut self, last_ms: u64, median_ms: u64, lone: bool, now: Now) -> u64 {
        let before = *self;
        let time = self.stamp(last_ms, median_ms, lone, now);
        let sighting = self.sighting.or(before.sighting);
        *self = LogClock { anchor: before.anchor.or(self.anchor), sighting };
        time
    }

    fn start(&mut self, last_ms: u64, median_ms: u64, lone: bool, now: Now) -> u64 {
        let far = lone && last_ms > 0 && median_ms > last_ms + LONE_JUMP_MAX_MS;
        if far && !self.confirmed(median_ms, now) {
            // Until the jump is confirmed, time goes on from the last entry; the anchor stays unset.
            let since = self.sighting.map_or(0, |(_, at)| now.mono_ms.saturating_sub(at));
            return last_ms + since.min(1);
        }
        self.sighting = None;
        let time = median_ms.max(last_ms);
        self.anchor = Some((time, now.mono_ms));
        time
    }

    fn confirmed(&mut self, median_ms: u64, now: Now) -> bool {
        let Some((target, at)) = self.sighting else {
            self.sighting = Some((median_ms, now.mono_ms));
            return false;
        };
        let elapsed = now.mono_ms.saturating_sub(at);
        let agrees = median_ms.abs_diff(target + elapsed) <= LONE_AGREE_MS;
        if !agrees {
            self.sighting = Some((median_ms, now.mono_ms));
        }
        agrees && elapsed >= LONE_CONFIRM_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(mono_ms: u64, wall_ms: u64) -> Now {
        Now { mono_ms, wall_ms }
    }

    #[test]
    fn time_never_goes_back_and_follows_the_monotonic_clock() {
        // TQ-14: a leader whose wall clock is an hour behind the last entry does not move time back.
        let mut clock = LogClock::default();
        let first = clock.stamp(10_000_000, 6_400_000, false, now(5, 6_400_000));
        assert_eq!(first, 10_000_000);
        let second = clock.stamp(first, 6_400_050, false, now(55, 6_400_050));
        assert_eq!(second, 10_000_050);
    }

    #[test]
    fn slews_by_at_most_a_tenth() {
        let mut clock = LogClock::default();
        let first = clock.stamp(0, 1_000_000, false, now(0, 1_000_000));
        assert_eq!(first, 1_000_000);
        // The median leaps an hour ahead: one second later at most 1.1 s have passed.
        let second = clock.stamp(first, 4_600_000, false, now(1_000, 4_600_000));
        assert_eq!(second, 1_001_100);
        // And falls an hour behind: at least 0.9 s.
        let third = clock.stamp(second, 0, false, now(2_000, 0));
        assert_eq!(third, 1_002_000);
    }

    #[test]
    fn looking_at_the_time_is_no_entry() {
        // A shard was founded while clocks were seven minutes slow; a task waits in it, and every tick looks for its time.
        let mut clock = LogClock::default();
        let last = clock.stamp(0, 1_000_000, false, now(0, 1_000_000));
        let look = |clock: &mut LogClock, mono_ms: u64| {
            let wall_ms = 1_420_000 + mono_ms;
            clock.foresee(last, wall_ms, false, now(mono_ms, wall_ms))
        };
        for mono_ms in (100..=REST_MS).step_by(100) {
            assert!(look(&mut clock, mono_ms) <= last + mono_ms + mono_ms / 10);
        }
        assert_eq!(look(&mut clock, REST_MS + 100), 1_430_100);
        let wall_ms = 1_430_100;
        assert_eq!(clock.stamp(last, wall_ms, false, now(REST_MS + 100, wall_ms)), wall_ms);
    }

    #[test]
    fn a_shard_ahead_of_the_clocks_goes_on_while_it_rests() {
        // A new leader finds an entry of an hour ahead; a task waits, and nobody writes.
        let (mut clock, last) = (LogClock::default(), 4_600_000);
        for mono_ms in (0..=60_000).step_by(100) {
            let wall_ms = 1_000_000 + mono_ms;
            let time = clock.foresee(last, wall_ms, false, now(mono_ms, wall_ms));
            assert!(time >= last + mono_ms * 9 / 10, "{time} after {mono_ms} ms");
            assert!(time <= last + mono_ms);
        }
    }

    #[test]
    fn a_far_jump_that_was_only_looked_at_is_confirmed_as_well() {
        let mut clock = LogClock::default();
        let last = 1_000_000;
        let far = last + 2 * LONE_JUMP_MAX_MS;
        assert!(clock.foresee(last, far, true, now(0, far)) < last + 10);
        let later = far + LONE_CONFIRM_MS;
        assert_eq!(clock.foresee(last, later, true, now(LONE_CONFIRM_MS, later)), later);
        assert_eq!(clock.stamp(last, later, true, now(LONE_CONFIRM_MS, later)), later);
    }

    #[test]
    fn one_bad_clock_does_not_move_the_median() {
        // F-18
        let mut clocks = WallClocks::default();
        clocks.hear(2, 1_000_100, now(50, 9_999_999_999));
        clocks.hear(3, 1_000_200, now(50, 9_999_999_999));
        let median = clocks.median(1, &[1, 2, 3], now(60, 9_999_999_999));
        assert_eq!(median, 1_000_210);
        // A jump of our own wall clock does not move what the others said.
        assert_eq!(clocks.median(1, &[1, 2, 3], now(60, 5)), 1_000_110);
    }

    #[test]
    fn a_lone_voter_needs_two_sightings_for_a_far_jump() {
        let mut clock = LogClock::default();
        let last = 1_000_000;
        let far = last + 2 * LONE_JUMP_MAX_MS;
        assert!(clock.stamp(last, far, true, now(0, far)) < last + 10);
        assert!(clock.stamp(last, far + 5_000, true, now(5_000, far + 5_000)) < last + 10);
        let later = clock.stamp(last, far + 10_000, true, now(10_000, far + 10_000));
        assert_eq!(later, far + 10_000);
        // A disagreeing second sighting starts the count again.
        let mut clock = LogClock::default();
        clock.stamp(last, far, true, now(0, far));
        let other = far * 3;
        assert!(clock.stamp(last, other, true, now(10_000, other)) < last + 10);
    }
}
