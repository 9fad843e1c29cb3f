//! Which claims are alive, as their shard's leader sees it.
//!
//! Promise: a claim is offered for expiry only after this leader's monotonic clock saw a whole ttl since the grant,
//! the last renewal, or the moment it became leader, whichever is latest (Q6); a leader that slept through it all
//! gives everyone a fresh ttl, so that no stall ends in mass expiry. Renewals cost no log entry (TQ-13).
//!
//! Leaves out: the decision. Expiry is a command; its fence check in apply decides whether it counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ikada_state::Fence;

/// How long after an expiry was proposed it is proposed again, should the first be lost.
const REPROPOSE_MS: u64 = 1_000;
/// A gap between two looks at the clock longer than this means the process slept: every claim starts afresh.
pub const STALL_MS: u64 = 1_000;

#[derive(Debug, Clone, Copy)]
struct Live {
    fence: Fence,
    ttl_ms: u64,
    deadline_ms: u64,
    /// Its expiry was offered and may be in the log already: too late for a renewal.
    expiring: bool,
}

/// The live claims of one shard; empty on nodes that do not lead it.
#[derive(Debug, Default)]
pub struct Liveness {
    /// By the task's slot in the state.
    claims: Vec<Option<Live>>,
    /// (when to look again, slot, fence); entries whose claim is gone or renewed are passed over lazily.
    due: BinaryHeap<Reverse<(u64, u32, u64)>>,
    looked_ms: u64,
}

impl Liveness {
    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Liveness::default();
    }

    /// A claim was granted, or is found alive by a new leader.
    pub fn grant(&mut self, slot: u32, fence: Fence, ttl_ms: u64, now_ms: u64) {
        let deadline_ms = now_ms + ttl_ms;
        let index = slot as usize;
        if self.claims.len() <= index {
            self.claims.resize(index + 1, None);
        }
        self.claims[index] = Some(Live { fence, ttl_ms, deadline_ms, expiring: false });
        self.due.push(Reverse((deadline_ms, slot, fence.0)));
    }

    /// The claim has ended.
    pub fn release(&mut self, slot: u32, fence: Fence) {
        if let Some(live) = self.claims.get_mut(slot as usize)
            && live.is_some_and(|live| live.fence == fence)
        {
            *live = None;
        }
    }

    /// The worker lives: its claim gets a whole ttl again. `None` when no such claim is alive here, or its expiry is
    /// under way: a renewal that was confirmed must never be overruled (Q6).
    pub fn renew(&mut self, slot: u32, fence: Fence, now_ms: u64) -> Option<u64> {
        let live = self.claims.get_mut(slot as usize)?.as_mut()?;
        if live.fence != fence || live.expiring {
            return None;
        }
        live.deadline_ms = now_ms + live.ttl_ms;
        Some(live.ttl_ms)
    }

    /// Claims whose ttl has run out, at most `count_max`; each is offered again later, should its expiry be lost.
    pub fn expired(&mut self, now_ms: u64, count_max: usize) -> Vec<(u32, Fence)> {
        if now_ms.saturating_sub(self.looked_ms) > STALL_MS && self.looked_ms > 0 {
            self.start_afresh(now_ms);
        }
        self.looked_ms = now_ms;
        let mut out = Vec::new();
        while let Some(Reverse((at, slot, fence))) = self.due.peek().copied() {
            if at > now_ms || out.len() >= count_max {
                break;
            }
            self.due.pop();
            let Some(Some(live)) = self.claims.get_mut(slot as usize) else {
                continue;
            };
            if live.fence.0 != fence {
                continue;
            }
            if live.deadline_ms <= now_ms {
                live.expiring = true;
                out.push((slot, live.fence));
                self.due.push(Reverse((now_ms + REPROPOSE_MS, slot, fence)));
            } else {
                self.due.push(Reverse((live.deadline_ms, slot, fence)));
            }
        }
        out
    }

    fn start_afresh(&mut self, now_ms: u64) {
        for live in self.claims.iter_mut().flatten().filter(|live| !live.expiring) {
            live.deadline_ms = now_ms + live.ttl_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_survives_sweeps_within_its_ttl_and_not_beyond() {
        // TQ-12: a 30 s claim survives 29 s of sweeps and not 31 s.
        let mut live = Liveness::default();
        live.grant(7, Fence(1), 30_000, 0);
        for second in 1..=29 {
            assert!(live.expired(second * 1_000, 10).is_empty());
        }
        assert_eq!(live.expired(30_000, 10), vec![(7, Fence(1))]);
        assert_eq!(live.expired(30_900, 10), vec![]);
        assert_eq!(live.expired(31_000, 10), vec![(7, Fence(1))]);
        live.release(7, Fence(1));
        live.grant(7, Fence(2), 1_000, 31_000);
        assert_eq!(live.expired(31_900, 10), vec![]);
        assert_eq!(live.expired(32_000, 10), vec![(7, Fence(2))]);
        // Offered once, then again only after a while.
        assert_eq!(live.expired(32_100, 10), vec![]);
        assert_eq!(live.expired(33_000, 10), vec![(7, Fence(2))]);
    }

    #[test]
    fn renewal_and_release_are_honoured() {
        let mut live = Liveness::default();
        live.grant(0, Fence(5), 1_000, 0);
        assert_eq!(live.renew(0, Fence(5), 900), Some(1_000));
        assert_eq!(live.renew(0, Fence(4), 900), None);
        assert_eq!(live.expired(1_000, 10), vec![]);
        assert_eq!(live.expired(1_900, 10), vec![(0, Fence(5))]);
        assert_eq!(live.renew(0, Fence(5), 1_950), None, "its expiry is under way");
        live.release(0, Fence(5));
        assert_eq!(live.expired(2_900, 10), vec![]);
    }

    #[test]
    fn a_leader_that_slept_gives_everyone_a_fresh_ttl() {
        // F-10: no mass expiry on wake.
        let mut live = Liveness::default();
        for slot in 0..100 {
            live.grant(slot, Fence(u64::from(slot) + 1), 2_000, 0);
        }
        live.expired(500, 1_000);
        assert_eq!(live.expired(20_500, 1_000), vec![]);
        assert_eq!(live.expired(21_400, 1_000), vec![]);
        live.expired(22_000, 1_000);
        assert_eq!(live.expired(22_600, 1_000).len(), 100);
    }
}
