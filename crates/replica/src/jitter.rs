//! The spread of waits between attempts: drawn by the leader, as wide as the task's queue says.
//!
//! Promise: tasks that fail together are not all ready again at one moment. Drawn from the fence, which no two attempts of
//! a shard share, so that the same failure reported again is spread alike.
//! Leaves out: what the spread does to the wait (`state/task/fail.rs`).

use std::borrow::Cow;

use ikada_state::{Command, Fence, Order, Shard};

/// A number from `-width` to `width`.
pub(crate) fn draw(fence: Fence, width: u16) -> i16 {
    let mixed = fence.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let span = u64::from(width) * 2 + 1;
    (i64::try_from(mixed % span).unwrap_or(0) - i64::from(width)) as i16
}

/// The same orders, with the spread of every reported failure drawn.
pub(crate) fn spread<'a>(state: &Shard, orders: &'a [Order]) -> Cow<'a, [Order]> {
    let is_fail = |order: &Order| matches!(order.command, Command::Fail(_));
    if !orders.iter().any(is_fail) {
        return Cow::Borrowed(orders);
    }
    let mut orders = orders.to_vec();
    for order in &mut orders {
        if let Command::Fail(fail) = &mut order.command {
            let width = state.jitter_of(&order.namespace, &fail.id).unwrap_or(0);
            fail.jitter_permille = draw(fail.fence, width);
        }
    }
    Cow::Owned(orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tq_7_waits_are_spread_within_their_width() {
        for width in [0u16, 1, 100, 500] {
            let drawn: Vec<i16> = (1..2_000).map(|fence| draw(Fence(fence), width)).collect();
            let widest = width as i16;
            assert!(drawn.iter().all(|one| (-widest..=widest).contains(one)), "{width}");
            let reached = |low: i16, high: i16| drawn.iter().any(|one| (low..=high).contains(one));
            assert!(reached(-widest, -widest / 2) && reached(widest / 2, widest), "{width}");
        }
    }
}
