//! Many times in a few numbers.

use std::time::Duration;

use serde::Serialize;

/// Percentiles by nearest rank: every figure is a time that was really met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// How many were measured.
    pub(super) count: usize,
    /// Half were at most this.
    pub(super) p50_ms: u64,
    /// All but one in a hundred were at most this.
    pub(super) p99_ms: u64,
    /// The longest.
    pub(super) max_ms: u64,
}

impl Summary {
    pub(super) fn of(times_ms: impl IntoIterator<Item = u64>) -> Summary {
        let mut sorted: Vec<u64> = times_ms.into_iter().collect();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let position = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(position).copied().unwrap_or(0)
        };
        Summary {
            count: sorted.len(),
            p50_ms: rank(50),
            p99_ms: rank(99),
            max_ms: sorted.last().copied().unwrap_or(0),
        }
    }

    /// As cells of a table.
    pub(super) fn cells(&self) -> [String; 3] {
        [self.p50_ms, self.p99_ms, self.max_ms].map(|ms| format!("{ms} ms"))
    }
}

/// Whole milliseconds.
pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_met() {
        let summary = Summary::of((1..=100).rev());
        assert_eq!(summary, Summary { count: 100, p50_ms: 50, p99_ms: 99, max_ms: 100 });
        assert_eq!(Summary::of([7]), Summary { count: 1, p50_ms: 7, p99_ms: 7, max_ms: 7 });
        assert_eq!(Summary::of([]), Summary::default());
    }
}
