//! A bucket that fills at a namespace's rate and holds a second's worth. A list takes as much as it has items, and may
//! leave a debt: so a long list is admitted, and what follows waits. What other nodes admitted is taken out afterwards,
//! by the count of tasks that came into being.

use std::time::{Duration, Instant};

/// The bucket of one namespace.
#[derive(Debug)]
pub(super) struct Bucket {
    level: f64,
    at: Instant,
    /// Tasks of the namespace that were there at the last look.
    submitted: u64,
    /// Admitted here before the last look and not seen by then, and since.
    own: [u64; 2],
}

impl Bucket {
    pub(super) fn new(rate: f64, submitted: u64, now: Instant) -> Bucket {
        Bucket { level: rate, at: now, submitted, own: [0, 0] }
    }

    /// Admits so many tasks, or tells how long to wait.
    pub(super) fn take(&mut self, rate: f64, count: u64, now: Instant) -> Result<(), Duration> {
        self.fill(rate, now);
        if self.level < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.level) / rate));
        }
        self.level -= count as f64;
        self.own[1] += count;
        Ok(())
    }

    /// Takes out what other nodes admitted, at most a second's worth: a job brings many tasks at once and owes nothing.
    pub(super) fn look(&mut self, rate: f64, submitted: u64, now: Instant) {
        self.fill(rate, now);
        let came = submitted.saturating_sub(self.submitted);
        let open = self.own[0] + self.own[1];
        let seen = came.min(open);
        let others = (came - seen) as f64;
        if others > 0.0 {
            self.level = (self.level - others).max(self.level.min(-rate));
        }
        // What was admitted and does not show by the look after next was refused.
        self.own = [self.own[1].min(open - seen), 0];
        self.submitted = submitted;
    }

    fn fill(&mut self, rate: f64, now: Instant) {
        let passed_s = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed_s * rate).min(rate);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that are admitted when one of `count` tasks comes every ten milliseconds for so many seconds.
    fn admitted(bucket: &mut Bucket, rate: f64, from: Instant, seconds: u64, count: u64) -> u64 {
        let moments = (0..seconds * 100).map(|step| from + Duration::from_millis(step * 10));
        moments.filter(|now| bucket.take(rate, count, *now).is_ok()).count() as u64
    }

    #[test]
    fn x_7_a_flood_is_admitted_at_the_rate_whatever_its_form() {
        let now = Instant::now();
        for count in [1, 7, 400] {
            let mut bucket = Bucket::new(20.0, 0, now);
            let tasks = admitted(&mut bucket, 20.0, now, 100, count) * count;
            // The second's worth that was there, what came in, and the debt of the last list.
            assert!((2_000..=2_020 + count).contains(&tasks), "{tasks} in lists of {count}");
        }
    }

    #[test]
    fn x_7_who_is_refused_may_come_back_when_told() {
        let now = Instant::now();
        let mut bucket = Bucket::new(2.0, 0, now);
        assert!(bucket.take(2.0, 3, now).is_ok());
        let wait = bucket.take(2.0, 1, now).unwrap_err();
        assert_eq!(wait, Duration::from_secs(1));
        assert!(bucket.take(2.0, 1, now + wait - Duration::from_millis(10)).is_err());
        assert!(bucket.take(2.0, 1, now + wait).is_ok());
    }

    #[test]
    fn x_7_what_other_nodes_admit_counts_and_own_tasks_count_once() {
        let now = Instant::now();
        let mut bucket = Bucket::new(10.0, 100, now);
        assert!(bucket.take(10.0, 4, now).is_ok());
        bucket.look(10.0, 104, now);
        assert!(bucket.take(10.0, 1, now).is_ok(), "own tasks were taken out already");
        bucket.look(10.0, 110, now);
        assert!(bucket.take(10.0, 1, now).is_err(), "five of others are taken out");
        bucket.look(10.0, 1_000_000, now);
        let after = now + Duration::from_millis(1_100);
        assert!(bucket.take(10.0, 1, after).is_ok(), "the debt for others is a second's worth");
    }
}
