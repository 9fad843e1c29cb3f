//! Leases bound to an attempt of a task. The lease's shard tells the task's shard of each grant (`Bind`); when the attempt
//! ends, in whatever way, that shard answers with `Unbind`. Both are messages of the outbox, so they arrive once and in
//! order; until then, and where a bound leaves no room for them, the ttl holds.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{BoundTask, LeaseKey};
use crate::hash::{RecordKind, digest_record};
use crate::limits::{BINDINGS_MAX, BOUND_LEASES_MAX};
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::task::TaskState;
use crate::{Fence, LeaseName, Namespace, ShardId, TaskId};

/// A holding that ends with an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BoundLease {
    /// The lease, of the task's namespace.
    #[n(0)]
    pub name: LeaseName,
    /// Token of the holding.
    #[n(1)]
    pub fence: Fence,
    /// The lease's shard when it was bound.
    #[n(2)]
    pub home: ShardId,
}

/// "This holding ends with that attempt."
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BindLease {
    /// Owner of both.
    #[n(0)]
    pub namespace: Namespace,
    /// The task.
    #[n(1)]
    pub task: TaskId,
    /// Token of its attempt.
    #[n(2)]
    pub attempt: Fence,
    /// The holding.
    #[n(3)]
    pub lease: BoundLease,
}

/// What ends with a task's running attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Binding {
    #[n(0)]
    pub(crate) namespace: Namespace,
    #[n(1)]
    pub(crate) task: TaskId,
    #[n(2)]
    pub(crate) attempt: Fence,
    #[n(3)]
    pub(crate) leases: Vec<BoundLease>,
}

impl Binding {
    /// Whether a decoded record obeys its bounds.
    pub(crate) fn is_valid(&self) -> bool {
        (1..=BOUND_LEASES_MAX).contains(&self.leases.len())
    }
}

impl Shard {
    /// Tells the task's shard of a grant.
    pub(super) fn bind_lease(
        &mut self,
        batch: &mut Batch,
        (namespace, name): LeaseKey,
        fence: Fence,
        task: BoundTask,
    ) {
        let lease = BoundLease { name, fence, home: self.core.shard };
        let bind = BindLease { namespace, task: task.id, attempt: task.fence, lease };
        match task.shard == self.core.shard {
            true => self.take_bind(batch, &bind),
            false => self.send_about_lease(batch, task.shard, Message::BindLease(Box::new(bind))),
        }
    }

    /// Sends a message if there is room and such a shard; the ttl does without it.
    fn send_about_lease(&mut self, batch: &mut Batch, target: ShardId, message: Message) {
        let room = self.core.outbox.len() < self.core.limits.outbox_max as usize;
        if room && target < self.core.shards && target != self.core.shard {
            self.put_message(batch, target, message);
        }
    }

    /// Notes that a holding ends with an attempt; if the attempt is over already, so is the holding.
    pub(crate) fn take_bind(&mut self, batch: &mut Batch, bind: &BindLease) {
        let BindLease { namespace, task, attempt, lease } = bind;
        if let Some(target) = self.forwarding(namespace, task.routing_key()) {
            return self.send_about_lease(
                batch,
                target,
                Message::BindLease(Box::new(bind.clone())),
            );
        }
        let found = self.find_task(namespace, task).and_then(|slot| self.core.tasks.get(slot));
        let runs = found.is_some_and(|t| t.state == TaskState::Claimed && t.fence == *attempt);
        if !runs {
            return self.end_bound(batch, namespace, lease);
        }
        let key = (namespace.clone(), task.clone());
        let mut binding = match self.core.bindings.get(&key) {
            Some(known) => (**known).clone(),
            None => Binding {
                namespace: namespace.clone(),
                task: task.clone(),
                attempt: *attempt,
                leases: Vec::new(),
            },
        };
        if binding.leases.is_empty() && self.core.bindings.len() >= BINDINGS_MAX {
            return;
        }
        if binding.leases.len() >= BOUND_LEASES_MAX {
            // The oldest is the likeliest to be over; if it is not, its ttl holds.
            binding.leases.remove(0);
        }
        binding.leases.push(lease.clone());
        self.put_binding(binding);
    }

    /// Stores a binding, new or changed.
    pub(crate) fn put_binding(&mut self, binding: Binding) {
        let key = (binding.namespace.clone(), binding.task.clone());
        self.core.hash.add(digest_record(RecordKind::Binding, &binding));
        if let Some(before) = self.core.bindings.insert(key, Arc::new(binding)) {
            self.core.hash.remove(digest_record(RecordKind::Binding, &*before));
        }
    }

    /// Takes a binding out.
    pub(crate) fn remove_binding(&mut self, key: &(Namespace, TaskId)) -> Option<Arc<Binding>> {
        let before = self.core.bindings.remove(key)?;
        self.core.hash.remove(digest_record(RecordKind::Binding, &*before));
        Some(before)
    }

    /// An attempt has ended: whatever is bound to it ends too.
    pub(crate) fn end_bindings(&mut self, batch: &mut Batch, slot: u32) {
        let Some(task) = self.core.tasks.get(slot) else {
            return;
        };
        let key = (self.core.queues[task.queue as usize].namespace.clone(), task.id.clone());
        if let Some(binding) = self.remove_binding(&key) {
            for lease in &binding.leases {
                self.end_bound(batch, &binding.namespace, lease);
            }
        }
    }

    fn end_bound(&mut self, batch: &mut Batch, namespace: &Namespace, lease: &BoundLease) {
        match lease.home == self.core.shard {
            true => self.take_unbind(batch, namespace, lease),
            false => {
                let (namespace, lease) = (namespace.clone(), lease.clone());
                let home = lease.home;
                self.send_about_lease(batch, home, Message::UnbindLease { namespace, lease });
            }
        }
    }

    /// The attempt that a holding was bound to is over.
    pub(crate) fn take_unbind(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        lease: &BoundLease,
    ) {
        if let Some(target) = self.forwarding(namespace, lease.name.as_str()) {
            let (namespace, lease) = (namespace.clone(), lease.clone());
            return self.send_about_lease(batch, target, Message::UnbindLease { namespace, lease });
        }
        let key = (namespace.clone(), lease.name.clone());
        if self.core.leases.get(&key).is_some_and(|held| held.holding.fence == lease.fence) {
            self.pass_lease(batch, key);
        }
    }
}
