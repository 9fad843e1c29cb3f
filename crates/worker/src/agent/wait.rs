//! Waits after calls that came to nothing: doubled, capped, with jitter.

/// The waits of one kind of call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    base_ms: u64,
    cap_ms: u64,
    failures: u32,
}

impl Wait {
    pub(super) fn new(base_ms: u64, cap_ms: u64) -> Wait {
        Wait { base_ms: base_ms.max(1), cap_ms: cap_ms.max(1), failures: 0 }
    }

    /// The wait after one more failure.
    pub(super) fn after_failure(&mut self, random: &mut fastrand::Rng) -> u64 {
        let top_ms = self.cap_ms.min(self.base_ms.saturating_mul(1 << self.failures.min(20)));
        self.failures = self.failures.saturating_add(1);
        random.u64(top_ms.div_ceil(2)..=top_ms)
    }

    pub(super) fn after_success(&mut self) {
        self.failures = 0;
    }
}
