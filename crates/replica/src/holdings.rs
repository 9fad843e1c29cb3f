//! Which holdings of leases, and which waits for them, are alive, as their shard's leader sees it.
//!
//! Promise: as for claims (`liveness.rs`). Something is offered for expiry only after this leader's monotonic clock saw a
//! whole ttl since the grant, the last renewal, or the moment it became leader; a leader that slept gives everyone a fresh
//! ttl. Renewals cost no log entry.
//!
//! Leaves out: the decision. Expiry is a command; its fence or place is checked when it is applied.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{LeaseKey, LeaseMark};

use crate::liveness::STALL_MS;

/// How long after an expiry was proposed it is proposed again, should the first be lost.
const REPROPOSE_MS: u64 = 1_000;

#[derive(Debug, Clone, Copy)]
struct Timed {
    ttl_ms: u64,
    deadline_ms: u64,
    /// Where it stands in `due`; a renewal leaves that alone.
    due_ms: u64,
    /// Its end was offered and may be in the log already: too late for a renewal.
    ending: bool,
}

/// The live holdings and waits of one shard; empty on nodes that do not lead it.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    timed: BTreeMap<(LeaseKey, LeaseMark), Timed>,
    due: BTreeSet<(u64, LeaseKey, LeaseMark)>,
    looked_ms: u64,
}

impl Holdings {
    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Holdings::default();
    }

    /// A holding or a wait began, or began afresh.
    pub fn start(&mut self, key: LeaseKey, mark: LeaseMark, ttl_ms: u64, now_ms: u64) {
        self.end(&key, mark);
        let deadline_ms = now_ms + ttl_ms;
        let timed = Timed { ttl_ms, deadline_ms, due_ms: deadline_ms, ending: false };
        self.due.insert((deadline_ms, key.clone(), mark));
        self.timed.insert((key, mark), timed);
    }

    /// It has ended.
    pub fn end(&mut self, key: &LeaseKey, mark: LeaseMark) {
        if let Some(timed) = self.timed.remove(&(key.clone(), mark)) {
            self.due.remove(&(timed.due_ms, key.clone(), mark));
        }
    }

    /// Its owner lives: a whole ttl again. `None` when it is not alive here, or its end is under way.
    pub fn renew(&mut self, key: &LeaseKey, mark: LeaseMark, now_ms: u64) -> Option<u64> {
        let timed = self.timed.get_mut(&(key.clone(), mark))?;
        if timed.ending {
            return None;
        }
        timed.deadline_ms = now_ms + timed.ttl_ms;
        Some(timed.ttl_ms)
    }

    /// What has run out, at most `count_max`; each is offered again later, should its expiry be lost.
    pub fn expired(&mut self, now_ms: u64, count_max: usize) -> Vec<(LeaseKey, LeaseMark)> {
        if self.looked_ms > 0 && now_ms.saturating_sub(self.looked_ms) > STALL_MS {
            for timed in self.timed.values_mut().filter(|timed| !timed.ending) {
                timed.deadline_ms = now_ms + timed.ttl_ms;
            }
        }
        self.looked_ms = now_ms;
        let mut out = Vec::new();
        while out.len() < count_max
            && let Some((due_ms, key, mark)) = self.due.pop_first()
        {
            if due_ms > now_ms {
                self.due.insert((due_ms, key, mark));
                break;
            }
            let Some(timed) = self.timed.get_mut(&(key.clone(), mark)) else {
                continue;
            };
            timed.due_ms = match timed.deadline_ms > now_ms {
                true => timed.deadline_ms,
                false => {
                    timed.ending = true;
                    out.push((key.clone(), mark));
                    now_ms + REPROPOSE_MS
                }
            };
            self.due.insert((timed.due_ms, key, mark));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Fence, LeaseName, Namespace};

    fn key(name: &str) -> LeaseKey {
        (Namespace::default(), LeaseName::parse(name).unwrap())
    }

    const HELD: LeaseMark = LeaseMark::Held(Fence(7));

    #[test]
    fn ls_a_holding_lasts_its_ttl_since_the_last_renewal() {
        let mut holdings = Holdings::default();
        holdings.start(key("a"), HELD, 1_000, 0);
        assert_eq!(holdings.expired(900, 9), vec![]);
        assert_eq!(holdings.renew(&key("a"), HELD, 900), Some(1_000));
        assert_eq!(holdings.renew(&key("a"), LeaseMark::Held(Fence(6)), 900), None);
        assert_eq!(holdings.expired(1_800, 9), vec![]);
        assert_eq!(holdings.expired(1_900, 9), vec![(key("a"), HELD)]);
        assert_eq!(holdings.renew(&key("a"), HELD, 1_900), None, "its end is under way");
        assert_eq!(holdings.expired(2_800, 9), vec![], "offered once");
        assert_eq!(
            holdings.expired(2_900, 9),
            vec![(key("a"), HELD)],
            "and again, should it be lost"
        );
        holdings.end(&key("a"), HELD);
        assert_eq!(holdings.expired(3_800, 9), vec![]);
        assert!(holdings.due.is_empty() && holdings.timed.is_empty());
    }

    #[test]
    fn ls_a_leader_that_slept_gives_everyone_a_fresh_ttl() {
        let mut holdings = Holdings::default();
        holdings.start(key("a"), HELD, 2_000, 0);
        holdings.start(key("a"), LeaseMark::Waits(3), 2_000, 0);
        holdings.expired(500, 9);
        assert_eq!(holdings.expired(9_000, 9), vec![]);
        holdings.expired(10_000, 9);
        assert_eq!(holdings.expired(10_999, 9), vec![]);
        assert_eq!(holdings.expired(11_000, 1).len(), 1, "bounded");
        assert_eq!(holdings.expired(11_000, 9).len(), 1);
    }
}
