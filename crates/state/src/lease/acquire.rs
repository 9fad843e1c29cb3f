//! `AcquireLease`: takes a lease, or a place in its line.
//!
//! The holder's name is the identity: whoever holds the lease and asks again is told the same fence, whoever waits keeps
//! the place. So a resend changes nothing, and no request id is remembered. Only the ttl of a holding follows a new wish; whoever
//! asks again for another attempt, or with another ttl in line, is refused rather than left with terms it did not ask for.

use minicbor::{Decode, Encode};

use super::{BoundTask, Lease, LeaseHolding, LeaseKey, LeaseMark, LeaseWaiter};
use crate::limits::{LEASE_WAITERS_MAX, LEASES_MAX};
use crate::shard::{Batch, Shard};
use crate::{Effect, Fence, HolderName, LeaseName, Namespace, RefusalCode, Reply};

/// Wants one lease.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AcquireLease {
    /// The lease.
    #[n(0)]
    pub name: LeaseName,
    /// Who wants it.
    #[n(1)]
    pub holder: HolderName,
    /// Lifetime unless renewed.
    #[n(2)]
    pub ttl_ms: u32,
    /// Whether to wait in line if another holds it.
    #[n(3)]
    pub wait: bool,
    /// The attempt with which it ends.
    #[n(4)]
    pub task: Option<BoundTask>,
}

impl Shard {
    pub(crate) fn apply_acquire_lease(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: AcquireLease,
    ) -> Reply {
        match self.acquire_lease(batch, namespace, order) {
            Ok(reply) => reply,
            Err(code) => Reply::refused(code),
        }
    }

    fn acquire_lease(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: AcquireLease,
    ) -> Result<Reply, RefusalCode> {
        let limits = &self.core.limits;
        if !(limits.ttl_ms_min..=limits.ttl_ms_max).contains(&order.ttl_ms) {
            return Err(RefusalCode::BadValue);
        }
        let key = (namespace.clone(), order.name.clone());
        let Some(known) = self.core.leases.get(&key).cloned() else {
            if self.core.leases.len() >= LEASES_MAX {
                return Err(RefusalCode::TooManyLeases);
            }
            let fence = self.next_fence().ok_or(RefusalCode::FenceExhausted)?;
            let next = (order.holder, order.ttl_ms, order.task);
            self.grant_lease(batch, key, fence, next, Vec::new());
            return Ok(Reply::LeaseGranted { fence, fresh: true });
        };
        let mut lease = (*known).clone();
        if !lease.fits(&order) {
            return Err(RefusalCode::LeaseTerms);
        }
        if lease.holding.holder == order.holder {
            let fence = lease.holding.fence;
            if lease.holding.ttl_ms != order.ttl_ms {
                lease.holding.ttl_ms = order.ttl_ms;
                self.put_lease(lease);
            }
            let mark = LeaseMark::Held(fence);
            batch.tell(Effect::LeaseTimed { key, mark, ttl_ms: order.ttl_ms });
            return Ok(Reply::LeaseGranted { fence, fresh: false });
        }
        if let Some(place) = lease.place_of(&order.holder) {
            return Ok(Reply::LeaseWaiting { ahead: place as u32 });
        }
        if !order.wait {
            return Err(RefusalCode::LeaseHeld);
        }
        if lease.waiters.len() >= LEASE_WAITERS_MAX {
            return Err(RefusalCode::TooManyWaiters);
        }
        let ahead = lease.waiters.len() as u32;
        let place = self.next_sequence();
        lease.waiters.push(LeaseWaiter {
            holder: order.holder,
            place,
            ttl_ms: order.ttl_ms,
            since_ms: self.core.time_ms,
            task: order.task,
        });
        self.put_lease(lease);
        batch.tell(Effect::LeaseTimed { key, mark: LeaseMark::Waits(place), ttl_ms: order.ttl_ms });
        Ok(Reply::LeaseWaiting { ahead })
    }

    /// Makes somebody the holder, and tells the task that the holding is bound to.
    pub(super) fn grant_lease(
        &mut self,
        batch: &mut Batch,
        key: LeaseKey,
        fence: Fence,
        (holder, ttl_ms, task): (HolderName, u32, Option<BoundTask>),
        waiters: Vec<LeaseWaiter>,
    ) {
        let since_ms = self.core.time_ms;
        let holding = LeaseHolding { holder, fence, ttl_ms, since_ms, task: task.clone() };
        let (namespace, name) = key.clone();
        self.put_lease(Lease { namespace, name, holding, waiters });
        batch.tell(Effect::LeaseTimed { key: key.clone(), mark: LeaseMark::Held(fence), ttl_ms });
        if let Some(task) = task {
            self.bind_lease(batch, key, fence, task);
        }
    }
}
