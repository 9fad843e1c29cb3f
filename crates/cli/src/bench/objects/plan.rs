//! What a client of the recipes does and when: a function of its number, without clock or network.
//!
//! CH-29: ten uploads first, then one call in two hundred is an upload, all others are downloads. CH-30: ten calls per
//! second, and four spikes that come at the same time for all clients, give or take two seconds.
//!
//! Leaves out: sending, waiting, counting.

use std::time::Duration;

/// Recipes that each client uploads first.
pub(super) const RECIPES: u64 = 10;
/// One call in so many is an upload.
const UPLOAD_EVERY: u64 = 200;
/// Calls per second of a client between spikes.
const BASE_RATE: u64 = 10;
/// Lowest rate within a spike.
const SPIKE_RATE: u64 = 50;
/// When spikes come, in seconds of a run of 60; other runs are stretched.
const SPIKES_S: [u32; 4] = [15, 25, 45, 50];
const RUN_S: u32 = 60;
/// How far a client may be off.
const SPIKE_JITTER: Duration = Duration::from_secs(2);
/// How long a spike lasts, ms.
const SPIKE_MS: std::ops::RangeInclusive<u64> = 1_000..=3_000;

/// A small generator; nothing hangs on its quality.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A time with more calls than usual.
struct Spike {
    from: Duration,
    to: Duration,
    rate: u64,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A new recipe.
    Upload,
    /// One of the client's own recipes, by its number.
    Download(u64),
}

/// A call and when it is due, after the first uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) due: Duration,
    pub(super) kind: Kind,
}

/// The calls of one client, in order.
pub(super) struct Plan {
    random: Draw,
    spikes: Vec<Spike>,
    length: Duration,
    due: Duration,
}

impl Plan {
    /// For a client, a run of some length, and spikes of up to so many calls per second more than fifty.
    pub(super) fn new(client: u64, length: Duration, spike: u32) -> Plan {
        let mut random = Draw(client + 1);
        let spikes = SPIKES_S.iter().map(|at_s| {
            let off = random.below(2 * SPIKE_JITTER.as_millis() as u64 + 1);
            let from = length * *at_s / RUN_S + Duration::from_millis(off);
            let from = from.saturating_sub(SPIKE_JITTER);
            let long = SPIKE_MS.start() + random.below(SPIKE_MS.end() - SPIKE_MS.start() + 1);
            let rate = SPIKE_RATE + random.below(u64::from(spike) + 1);
            Spike { from, to: from + Duration::from_millis(long), rate }
        });
        let spikes = spikes.collect();
        Plan { random, spikes, length, due: Duration::ZERO }
    }
}

impl Iterator for Plan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let due = self.due;
        if due >= self.length {
            return None;
        }
        let within = |spike: &&Spike| (spike.from..spike.to).contains(&due);
        let rate = self.spikes.iter().find(within).map_or(BASE_RATE, |spike| spike.rate);
        self.due += Duration::from_secs_f64(1.0 / rate as f64);
        let kind = match self.random.below(UPLOAD_EVERY) {
            0 => Kind::Upload,
            _ => Kind::Download(self.random.below(RECIPES)),
        };
        Some(Planned { due, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn is_upload(planned: &Planned) -> bool {
        planned.kind == Kind::Upload
    }

    // CH-29
    #[test]
    fn ch_29_one_call_in_two_hundred_is_an_upload_and_all_recipes_are_read() {
        let calls: Vec<Planned> =
            (0..200).flat_map(|client| Plan::new(client, MINUTE, 100)).collect();
        let uploads = calls.iter().filter(|call| is_upload(call)).count();
        let share = uploads as f64 / calls.len() as f64;
        assert!((0.004..0.006).contains(&share), "{uploads} of {}", calls.len());
        for number in 0..RECIPES {
            assert!(calls.iter().any(|call| call.kind == Kind::Download(number)));
        }
        assert_eq!(RECIPES, 10);
    }

    // CH-30
    #[test]
    fn ch_30_spikes_come_together_and_are_as_high_and_long_as_they_should() {
        for (spike, highest) in [(50, 100), (100, 150)] {
            let mut rates = Vec::new();
            for client in 0..7 {
                let plan = Plan::new(client, MINUTE, spike);
                assert_eq!(plan.spikes.len(), 4);
                for (spike, at_s) in plan.spikes.iter().zip([15.0, 25.0, 45.0, 50.0]) {
                    assert!((spike.from.as_secs_f64() - at_s).abs() <= 2.0);
                    assert!((1.0..=3.0).contains(&(spike.to - spike.from).as_secs_f64()));
                    assert!((50..=highest).contains(&spike.rate), "{}", spike.rate);
                    rates.push(spike.rate);
                }
            }
            rates.sort_unstable();
            rates.dedup();
            assert!(rates.len() > 7, "drawn: {rates:?}");
        }
    }

    // CH-30
    #[test]
    fn ch_30_ten_calls_per_second_between_spikes_and_the_rate_of_the_spike_within() {
        let plan = Plan::new(3, MINUTE, 100);
        let spikes: Vec<(Duration, Duration, u64)> =
            plan.spikes.iter().map(|spike| (spike.from, spike.to, spike.rate)).collect();
        let due: Vec<Duration> = plan.map(|call| call.due).collect();
        let count = |from: Duration, to: Duration| {
            due.iter().filter(|due| (from..to).contains(*due)).count() as f64
        };
        assert_eq!(count(Duration::ZERO, Duration::from_secs(10)), 100.0);
        let (from, to, rate) = spikes[0];
        let wanted = (to - from).as_secs_f64() * rate as f64;
        assert!((count(from, to) - wanted).abs() <= rate as f64 / 10.0 + 1.0, "{wanted}");
        assert!(due.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(due.last().is_some_and(|last| *last < MINUTE));
    }
}
