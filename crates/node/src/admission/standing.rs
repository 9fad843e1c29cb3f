//! Whether calls of a lane stand in line, and how many may be under way then, in the manner of CoDel (F-32).
//!
//! A call that waits for others is nothing bad; a line that does not empty is. So the middle one of the times that calls of an
//! interval took decides: while that is above the target, calls stand in line, and no more of them are let in than
//! are answered within the target. The longer it lasts, the fewer; when the line has gone, more again, until there is no
//! bound. (CoDel looks at the smallest time. Behind this door is more than one line: a call may be through at once while most
//! wait, so that the smallest is small whatever stands.) The target follows what a call takes that has the lane to itself, since disks and distances differ.
//!
//! Promise: a pure function of what it is told; time comes in as an argument, and whoever asks learns the answer at once.
//!
//! Leaves out: which lanes have a line, and when a node counts as strained (`mod.rs`).

/// The times of so long decide, us.
pub(super) const INTERVAL_US: u64 = 100_000;
/// A call in a line may take so many times what it takes alone.
const TIMES_ALONE: u64 = 2;
/// Less than this is no line, us.
const TARGET_US_MIN: u64 = 5_000;
/// More than this is one, whatever a call takes alone, us.
const TARGET_US_MAX: u64 = 200_000;
/// The target until a call was alone, us.
const TARGET_US_UNKNOWN: u64 = 20_000;
/// A new time of a call that was alone counts one part in this many.
const WEIGHT: u64 = 10;
/// So many calls under way are never too many: they keep disk and CPU busy.
pub(super) const BOUND_MIN: u64 = 4;
/// A bound above this is none.
const BOUND_MAX: u64 = 4_096;
/// The bound moves by one part in this many.
const STEP: u64 = 8;

/// What is known of one lane's line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// When the interval ends; 0 before the first.
    ends_us: u64,
    /// Calls of the interval that took no longer than the target, and those that did.
    quick: u64,
    slow: u64,
    /// Calls answered in the interval.
    answered: u64,
    /// Whether a call was turned away in the interval.
    turned_away: bool,
    /// What a call takes that has the lane to itself: a moving average.
    alone_us: Option<u64>,
    /// Most calls under way; none while nobody stands in line.
    bound: Option<u64>,
}

impl Standing {
    /// Calls that were answered.
    pub(super) fn answered(&mut self, now_us: u64, strained: bool, count: u64) {
        self.advance(now_us, strained);
        self.answered += count;
    }

    /// How long a call took from its admission to its answer; `alone` if it met no other in its lane.
    pub(super) fn took(&mut self, now_us: u64, strained: bool, time_us: u64, alone: bool) {
        self.advance(now_us, strained);
        match time_us > self.target_us() {
            true => self.slow += 1,
            false => self.quick += 1,
        }
        if alone {
            let mean = |before: u64| before - before / WEIGHT + time_us / WEIGHT;
            self.alone_us = Some(self.alone_us.map_or(time_us, mean));
        }
    }

    /// Whether one more call may come to those under way.
    pub(super) fn admits(&mut self, now_us: u64, strained: bool, under_way: u64) -> bool {
        self.advance(now_us, strained);
        let admits = self.bound.is_none_or(|bound| under_way < bound);
        self.turned_away |= !admits;
        admits
    }

    /// Whether calls stand in line as of now.
    pub(super) fn stands(&mut self, now_us: u64, strained: bool) -> bool {
        self.advance(now_us, strained);
        self.bound.is_some()
    }

    /// Most calls under way; none while nobody stands in line.
    pub(super) fn bound(&self) -> Option<u64> {
        self.bound
    }

    /// What a call may take before it stands in line, us.
    pub(super) fn target_us(&self) -> u64 {
        let alone = self.alone_us.map(|alone| alone * TIMES_ALONE);
        alone.unwrap_or(TARGET_US_UNKNOWN).clamp(TARGET_US_MIN, TARGET_US_MAX)
    }

    /// Ends the intervals that are over.
    fn advance(&mut self, now_us: u64, strained: bool) {
        if self.ends_us == 0 {
            self.ends_us = now_us + INTERVAL_US;
        }
        if now_us < self.ends_us {
            return;
        }
        let stands = strained && self.slow > self.quick;
        self.bound = match (stands, self.bound) {
            (true, bound) => Some(self.tighter(bound)),
            (false, bound) => bound.and_then(|bound| self.wider(bound)),
        };
        // Nothing was heard for longer than an interval: there is no line.
        if now_us - self.ends_us >= INTERVAL_US * STEP {
            self.bound = None;
        }
        (self.ends_us, self.answered) = (now_us + INTERVAL_US, 0);
        (self.quick, self.slow, self.turned_away) = (0, 0, false);
    }

    fn tighter(&self, bound: Option<u64>) -> u64 {
        let bound = match bound {
            // What arrives at some rate and stays for a time is rate times time.
            None => self.answered * self.target_us() / INTERVAL_US,
            Some(bound) => bound - (bound / STEP).max(1),
        };
        bound.max(BOUND_MIN)
    }

    fn wider(&self, bound: u64) -> Option<u64> {
        let wider = match self.turned_away {
            true => bound + (bound / STEP).max(1),
            false => bound * 2,
        };
        Some(wider).filter(|bound| *bound <= BOUND_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// What one call takes.
    const SERVICE_US: u64 = 1_000;
    const SECOND_US: u64 = 1_000_000;

    /// A server that answers one call after the other, and the line before it.
    struct Server {
        standing: Standing,
        /// When each call under way came, and when it will be answered.
        line: VecDeque<(u64, u64)>,
        /// When each call was answered, and how long it took.
        answered: Vec<(u64, u64)>,
    }

    impl Server {
        fn new() -> Server {
            let mut standing = Standing::default();
            standing.took(1, false, SERVICE_US, true);
            Server { standing, line: VecDeque::new(), answered: Vec::new() }
        }

        /// One call every so many us, from one time to another.
        fn offer(&mut self, every_us: u64, from_us: u64, to_us: u64, strained: bool) {
            for now in (from_us..to_us).step_by(every_us as usize) {
                while let Some((came, ends)) = self.line.front().copied().filter(|it| it.1 <= now) {
                    self.line.pop_front();
                    self.standing.answered(ends, strained, 1);
                    self.standing.took(ends, strained, ends - came, false);
                    self.answered.push((ends, ends - came));
                }
                if self.standing.admits(now, strained, self.line.len() as u64) {
                    let begins = self.line.back().map_or(now, |(_, ends)| (*ends).max(now));
                    self.line.push_back((now, begins + SERVICE_US));
                }
            }
        }

        fn longest_us(&self, from_us: u64, to_us: u64) -> u64 {
            let then = self.answered.iter().filter(|(at, _)| (from_us..to_us).contains(at));
            then.map(|(_, time)| *time).max().unwrap_or(0)
        }
    }

    #[test]
    fn f_32_five_times_the_capacity_makes_no_line() {
        let mut server = Server::new();
        server.offer(SERVICE_US / 5, SECOND_US, 6 * SECOND_US, true);
        let longest = server.longest_us(3 * SECOND_US, 6 * SECOND_US);
        assert!(longest <= 2 * TARGET_US_MIN, "{longest} us");
        let served = server.answered.iter().filter(|(at, _)| *at > 3 * SECOND_US).count();
        assert!(served >= 2_990, "the server is kept busy: {served} of 3000");
        // Where nothing is bounded the line grows as long as the load lasts.
        let mut unbounded = Server::new();
        unbounded.offer(SERVICE_US / 5, SECOND_US, 6 * SECOND_US, false);
        assert!(unbounded.longest_us(0, u64::MAX) > SECOND_US);
    }

    #[test]
    fn f_32_when_the_load_is_over_nobody_is_turned_away() {
        let mut server = Server::new();
        server.offer(SERVICE_US / 5, SECOND_US, 4 * SECOND_US, true);
        assert!(server.standing.bound().is_some());
        server.offer(SERVICE_US * 2, 4 * SECOND_US, 7 * SECOND_US, true);
        assert_eq!(server.standing.bound(), None);
        server.offer(SERVICE_US / 5, 8 * SECOND_US, 10 * SECOND_US, true);
        assert!(server.standing.bound().is_some(), "and it begins again");
        assert!(server.standing.admits(20 * SECOND_US, true, 8_000), "silence ends it as well");
    }

    // A burst, or large calls among small ones, are no line; and one that gets through does not say that there is none.
    #[test]
    fn f_32_the_time_in_the_middle_decides() {
        let mut standing = Standing::default();
        let mut interval = 0;
        let mut take = |standing: &mut Standing, times: &[u64]| {
            interval += 1;
            for (time, place) in times.iter().zip(0..) {
                standing.took(interval * INTERVAL_US + place, true, *time, false);
            }
        };
        for _ in 0..50 {
            take(&mut standing, &[1_000, 900_000]);
            assert_eq!(standing.bound(), None);
        }
        for _ in 0..10 {
            take(&mut standing, &[900_000, 1_000, 900_000]);
        }
        assert!(standing.bound().is_some());
    }

    #[test]
    fn f_32_the_longer_it_stands_the_fewer_are_let_in() {
        let mut standing = Standing::default();
        let mut bounds = Vec::new();
        for interval in 1..40 {
            standing.answered(interval * INTERVAL_US, true, 200);
            standing.took(interval * INTERVAL_US, true, 60_000, false);
            bounds.extend(standing.bound());
        }
        assert_eq!(bounds.first(), Some(&40), "200 in an interval, 20 ms each");
        assert!(bounds.is_sorted_by(|one, next| one >= next), "{bounds:?}");
        assert_eq!(bounds.last(), Some(&BOUND_MIN), "some are always let in");
    }

    // Where the disk is slow or the other nodes are far away, a call takes long without any line.
    #[test]
    fn f_32_the_target_follows_what_a_call_takes_alone() {
        let mut standing = Standing::default();
        assert_eq!(standing.target_us(), TARGET_US_UNKNOWN);
        for alone in [1_000, 30_000, 10_000_000] {
            let mut standing = Standing::default();
            standing.took(1, false, alone, true);
            let wanted = (2 * alone).clamp(TARGET_US_MIN, TARGET_US_MAX);
            assert_eq!(standing.target_us(), wanted);
        }
        for interval in 1..20 {
            standing.took(interval * INTERVAL_US, true, 90_000, interval < 3);
        }
        assert_eq!(standing.bound(), None, "90 ms are what it takes");
    }
}
