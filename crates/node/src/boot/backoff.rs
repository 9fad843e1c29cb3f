//! Waits between two rounds of asking: they double, and each is drawn whole, so that nodes which start together do not
//! ask together (CH-12).

/// The first wait is drawn from 0 to this.
const FIRST_MS: u64 = 50;

/// Waits that double up to a bound, with full jitter.
#[derive(Debug)]
pub(super) struct Backoff {
    next_ms: u64,
    bound_ms: u64,
}

impl Backoff {
    pub(super) fn new(bound_ms: u64) -> Backoff {
        Backoff { next_ms: FIRST_MS.min(bound_ms), bound_ms }
    }

    /// The next wait.
    pub(super) fn draw(&mut self, random: &mut fastrand::Rng) -> u64 {
        let wait_ms = random.u64(0..=self.next_ms);
        self.next_ms = (self.next_ms * 2).min(self.bound_ms);
        wait_ms
    }

    /// Something new was heard: worth asking again soon.
    pub(super) fn reset(&mut self) {
        self.next_ms = FIRST_MS.min(self.bound_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH-12
    #[test]
    fn ch_12_waits_double_from_50_ms_with_full_jitter_up_to_the_bound() {
        let mut random = fastrand::Rng::with_seed(1);
        let bounds: [u64; 10] = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        let mut sums = [0; 10];
        for _ in 0..2_000 {
            let mut backoff = Backoff::new(10_000);
            for (sum, bound) in sums.iter_mut().zip(bounds) {
                let wait_ms = backoff.draw(&mut random);
                assert!(wait_ms <= bound, "{wait_ms} of {bound}");
                *sum += wait_ms;
            }
            backoff.reset();
            assert!(backoff.draw(&mut random) <= FIRST_MS);
        }
        for (sum, bound) in sums.iter().zip(bounds) {
            let mean = sum / 2_000;
            assert!(mean.abs_diff(bound / 2) <= bound / 20 + 1, "mean {mean} of {bound}");
        }
    }
}
