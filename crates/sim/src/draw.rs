//! Small helpers for drawing from a seeded generator.
//!
//! All randomness of a run comes from generators forked from the seed in a fixed order, so that a change in what one
//! part draws (the workload, say) does not move the faults of the same seed more than it must.

use fastrand::Rng;

/// True in `permille` of 1000 draws.
pub fn chance(rng: &mut Rng, permille: u32) -> bool {
    permille > 0 && rng.u32(0..1_000) < permille
}

/// A value between both bounds, small ones as likely as large ones (by order of magnitude).
pub fn log_uniform(rng: &mut Rng, low: u64, high: u64) -> u64 {
    assert!(low >= 1 && low <= high, "log_uniform needs 1 <= low <= high");
    let span_bits = (high / low).max(1).ilog2() + 1;
    let shift = rng.u32(0..=span_bits);
    let top = low.checked_shl(shift).unwrap_or(high).clamp(low, high);
    rng.u64(low..=top)
}

/// One of the items.
pub fn pick<'a, T>(rng: &mut Rng, items: &'a [T]) -> &'a T {
    assert!(!items.is_empty(), "pick needs at least one item");
    &items[rng.usize(0..items.len())]
}

/// An index drawn in proportion to its weight; `None` when all weights are zero.
pub fn weighted(rng: &mut Rng, weights: &[u32]) -> Option<usize> {
    let total: u32 = weights.iter().sum();
    if total == 0 {
        return None;
    }
    let mut left = rng.u32(0..total);
    for (index, weight) in weights.iter().enumerate() {
        if left < *weight {
            return Some(index);
        }
        left -= weight;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_uniform_stays_inside() {
        let mut rng = Rng::with_seed(1);
        let mut small = 0;
        for _ in 0..1_000 {
            let value = log_uniform(&mut rng, 3, 5_000);
            assert!((3..=5_000).contains(&value));
            small += u32::from(value < 100);
        }
        assert!(small > 300, "small values are common, not rare");
    }

    #[test]
    fn weighted_skips_zero() {
        let mut rng = Rng::with_seed(2);
        for _ in 0..100 {
            assert_eq!(weighted(&mut rng, &[0, 7, 0]), Some(1));
        }
        assert_eq!(weighted(&mut rng, &[0, 0]), None);
    }
}
