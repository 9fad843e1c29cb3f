//! Waits between tries: doubled each time, capped, with full jitter, so that many clients do not return at once.

use std::time::Duration;

/// The first wait is at most this long: a leader change settles in a few hundred ms.
const BASE_MS: u64 = 20;
/// No wait is longer than this, unless the server asks for it.
const CAP_MS: u64 = 1_000;

/// The waits of one call.
#[derive(Debug)]
pub(crate) struct Backoff {
    tries: u32,
    random: fastrand::Rng,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Backoff {
        Backoff { tries: 0, random: fastrand::Rng::with_seed(seed) }
    }

    /// The next wait. `asked` is what the server asked for; it is kept to, plus some jitter.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let top_ms = CAP_MS.min(BASE_MS << self.tries.min(16));
        self.tries += 1;
        let jitter = Duration::from_millis(self.random.u64(top_ms / 4..=top_ms));
        match asked {
            Some(asked) => asked + jitter / 4,
            None => jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_heed_the_server() {
        let mut backoff = Backoff::new(7);
        let mut tops = Vec::new();
        for _ in 0..40 {
            tops.push(backoff.next(None).as_millis() as u64);
        }
        assert!(tops[0] <= BASE_MS);
        assert!(tops.iter().all(|wait| *wait <= CAP_MS));
        assert!(tops[30..].iter().any(|wait| *wait > CAP_MS / 4));
        let asked = Duration::from_secs(2);
        assert!(backoff.next(Some(asked)) >= asked);
    }
}
