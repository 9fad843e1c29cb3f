//! What is stored about one lease. A lease that nobody holds is not stored at all.

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};

use super::AcquireLease;
use crate::limits::{LEASE_WAITERS_MAX, Limits};
use crate::{Fence, HolderName, LeaseName, Namespace, ShardId, TaskId};

/// Full name of a lease.
pub type LeaseKey = (Namespace, LeaseName);

/// The attempt of a task with which a lease ends.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BoundTask {
    /// The task, of the lease's namespace.
    #[n(0)]
    pub id: TaskId,
    /// Token of the attempt.
    #[n(1)]
    pub fence: Fence,
    /// The task's shard, as the node knew it that took the order.
    #[n(2)]
    pub shard: ShardId,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LeaseHolding {
    /// The holder.
    #[n(0)]
    pub holder: HolderName,
    /// Token of this holding.
    #[n(1)]
    pub fence: Fence,
    /// Lifetime unless renewed.
    #[n(2)]
    pub ttl_ms: u32,
    /// Log time of the grant.
    #[n(3)]
    pub since_ms: u64,
    /// The attempt with which it ends.
    #[n(4)]
    pub task: Option<BoundTask>,
}

/// One who waits.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LeaseWaiter {
    /// Who.
    #[n(0)]
    pub holder: HolderName,
    /// Place in line; rises with each waiter.
    #[n(1)]
    pub place: u64,
    /// Lifetime of the holding to come, and of the wait unless it is renewed.
    #[n(2)]
    pub ttl_ms: u32,
    /// Log time at which the wait began.
    #[n(3)]
    pub since_ms: u64,
    /// The attempt with which the holding is to end.
    #[n(4)]
    pub task: Option<BoundTask>,
}

/// One lease as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Lease {
    /// Its owner.
    #[n(0)]
    pub namespace: Namespace,
    /// Its name.
    #[n(1)]
    pub name: LeaseName,
    /// Who holds it.
    #[n(2)]
    pub holding: LeaseHolding,
    /// Who waits, the next first.
    #[n(3)]
    pub waiters: Vec<LeaseWaiter>,
}

/// What a leader times: a holding by its fence, or a wait by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum LeaseMark {
    /// A holding.
    #[n(0)]
    Held(#[n(0)] Fence),
    /// A wait.
    #[n(1)]
    Waits(#[n(0)] u64),
}

impl Lease {
    /// Its full name.
    pub fn key(&self) -> LeaseKey {
        (self.namespace.clone(), self.name.clone())
    }

    /// Where somebody stands in the line of those who wait, from 0.
    pub fn place_of(&self, holder: &HolderName) -> Option<usize> {
        self.waiters.iter().position(|waiter| waiter.holder == *holder)
    }

    /// Whether what somebody has of this lease already is what is wished for now; so too for whoever has nothing of it.
    pub fn fits(&self, wish: &AcquireLease) -> bool {
        if self.holding.holder == wish.holder {
            return is_same_attempt(self.holding.task.as_ref(), wish.task.as_ref());
        }
        let waiter = self.waiters.iter().find(|waiter| waiter.holder == wish.holder);
        waiter.is_none_or(|waiter| {
            waiter.ttl_ms == wish.ttl_ms
                && is_same_attempt(waiter.task.as_ref(), wish.task.as_ref())
        })
    }

    /// Lifetime of what a mark names, if it is still so.
    pub fn ttl_of(&self, mark: LeaseMark) -> Option<u32> {
        match mark {
            LeaseMark::Held(fence) => (self.holding.fence == fence).then_some(self.holding.ttl_ms),
            LeaseMark::Waits(place) => {
                let waiter = self.waiters.iter().find(|waiter| waiter.place == place);
                waiter.map(|waiter| waiter.ttl_ms)
            }
        }
    }

    /// All that its leader times, with lifetimes.
    pub fn marks(&self) -> impl Iterator<Item = (LeaseMark, u32)> + '_ {
        let held = (LeaseMark::Held(self.holding.fence), self.holding.ttl_ms);
        let waiters = self.waiters.iter();
        [held].into_iter().chain(waiters.map(|w| (LeaseMark::Waits(w.place), w.ttl_ms)))
    }

    /// Whether the record obeys the rules that the verbs rely on.
    pub(crate) fn is_valid(&self, limits: &Limits, highest: Fence, sequence: u64) -> bool {
        let ttl_fits = |ttl_ms: u32| (limits.ttl_ms_min..=limits.ttl_ms_max).contains(&ttl_ms);
        let mut names: BTreeSet<&HolderName> = BTreeSet::from([&self.holding.holder]);
        self.holding.fence <= highest
            && self.waiters.len() <= LEASE_WAITERS_MAX
            && self.waiters.windows(2).all(|pair| pair[0].place < pair[1].place)
            && self.waiters.iter().all(|waiter| waiter.place <= sequence)
            && self.waiters.iter().all(|waiter| names.insert(&waiter.holder))
            && self.marks().all(|(_, ttl_ms)| ttl_fits(ttl_ms))
    }
}

/// The shard is only what some node knew at some time.
fn is_same_attempt(one: Option<&BoundTask>, other: Option<&BoundTask>) -> bool {
    let attempt = |task: &BoundTask| (task.id.clone(), task.fence);
    one.map(attempt) == other.map(attempt)
}
