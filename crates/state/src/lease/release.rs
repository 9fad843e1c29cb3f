//! `ReleaseLease`: gives a lease back, or a place in its line. The next in line has it in the same step.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{LeaseKey, LeaseMark};
use crate::hash::encode_into;
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{Effect, Fence, HolderName, LeaseName, Namespace, RefusalCode, Reply};

/// Gives up what somebody has of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReleaseLease {
    /// The lease.
    #[n(0)]
    pub name: LeaseName,
    /// Who gives it up.
    #[n(1)]
    pub holder: HolderName,
    /// Token of the holding; absent: whatever the holder has, the lease or a place in line.
    #[n(2)]
    pub fence: Option<Fence>,
}

impl ReleaseLease {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        encode_into(self, &mut bytes);
        xxh3_64_with_seed(&bytes, 101)
    }
}

impl Shard {
    pub(crate) fn apply_release_lease(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &ReleaseLease,
    ) -> Reply {
        let key = (namespace.clone(), order.name.clone());
        match self.release_lease(batch, key, order) {
            Ok(()) => Reply::LeaseReleased,
            Err(code) => Reply::refused(code),
        }
    }

    fn release_lease(
        &mut self,
        batch: &mut Batch,
        key: LeaseKey,
        order: &ReleaseLease,
    ) -> Result<(), RefusalCode> {
        let lease = self.core.leases.get(&key).ok_or(RefusalCode::LeaseNotHeld)?;
        let held = lease.holding.holder == order.holder;
        match order.fence {
            Some(fence) if fence != lease.holding.fence => Err(RefusalCode::StaleFence),
            Some(_) if !held => Err(RefusalCode::NotOwner),
            _ if held => {
                self.pass_lease(batch, key);
                Ok(())
            }
            _ => {
                let waiter = lease.place_of(&order.holder).ok_or(RefusalCode::LeaseNotHeld)?;
                let place = lease.waiters[waiter].place;
                self.leave_lease_line(batch, &key, place);
                Ok(())
            }
        }
    }

    /// Ends the holding; the first in line has the lease next. Without anybody it is forgotten.
    pub(super) fn pass_lease(&mut self, batch: &mut Batch, key: LeaseKey) {
        let Some(lease) = self.core.leases.get(&key).cloned() else {
            return;
        };
        let fence = lease.holding.fence;
        batch.tell(Effect::LeaseEnded { key: key.clone(), mark: LeaseMark::Held(fence) });
        let mut waiters = lease.waiters.clone();
        // Fences that are used up end the line too: whoever asks again is told why.
        let next = match waiters.is_empty() {
            true => None,
            false => self.next_fence(),
        };
        let Some(fence) = next else {
            self.end_lease_waits(batch, &key, waiters.iter().map(|waiter| waiter.place));
            self.remove_lease(&key);
            return;
        };
        let first = if planted::active(Bug::LeaseLastWaiterFirst) { waiters.len() - 1 } else { 0 };
        let fence =
            if planted::active(Bug::LeaseFenceReused) { lease.holding.fence } else { fence };
        let waiter = waiters.remove(first);
        self.end_lease_waits(batch, &key, [waiter.place].into_iter());
        let next = (waiter.holder, waiter.ttl_ms, waiter.task);
        self.grant_lease(batch, key, fence, next, waiters);
    }

    /// Removes one who waits.
    pub(super) fn leave_lease_line(&mut self, batch: &mut Batch, key: &LeaseKey, place: u64) {
        let Some(known) = self.core.leases.get(key) else {
            return;
        };
        let mut lease = (**known).clone();
        lease.waiters.retain(|waiter| waiter.place != place);
        self.put_lease(lease);
        self.end_lease_waits(batch, key, [place].into_iter());
    }

    fn end_lease_waits(
        &self,
        batch: &mut Batch,
        key: &LeaseKey,
        places: impl Iterator<Item = u64>,
    ) {
        for place in places {
            batch.tell(Effect::LeaseEnded { key: key.clone(), mark: LeaseMark::Waits(place) });
        }
    }
}
