//! Which slots a shard has given away or taken in, and where things of a slot are while it gives.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::object::routing_key;
use crate::shard::{Core, Shard};
use crate::slots::{SLOTS, slot_of};
use crate::{Command, Namespace, Order, ShardId, TaskId};

/// No shard.
const HERE: ShardId = ShardId::MAX;

/// What a shard knows of slots that moved. Absent in a shard that was founded with the cluster and gave none.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Away {
    /// Where each slot went.
    #[n(0)]
    gone: Vec<ShardId>,
    /// Whether the shard began without any slot.
    #[n(1)]
    pub(crate) added: bool,
    /// Slots that came, in an added shard.
    #[n(2)]
    came: Vec<bool>,
    /// Version of the map from which on all slots that came are known to be here.
    #[n(3)]
    pub(crate) map_version: u64,
    /// Log time up to which tombstones were sent to each target.
    #[n(4)]
    pub(crate) voids_sent: Vec<(ShardId, u64)>,
}

impl Away {
    /// Of a shard that has given nothing yet.
    pub(crate) fn new(added: bool) -> Away {
        let slots = usize::from(SLOTS);
        let came = vec![false; if added { slots } else { 0 }];
        Away { gone: vec![HERE; slots], added, came, map_version: 0, voids_sent: Vec::new() }
    }

    /// Whether things of a slot are not, or not yet, or no longer here.
    pub(crate) fn is_away(&self, slot: u16) -> bool {
        let slot = usize::from(slot % SLOTS);
        self.gone[slot] != HERE || self.added && !self.came[slot]
    }

    /// Where a slot went.
    pub(crate) fn target(&self, slot: u16) -> Option<ShardId> {
        Some(self.gone[usize::from(slot % SLOTS)]).filter(|target| *target != HERE)
    }

    pub(crate) fn leave(&mut self, slot: u16, target: ShardId) {
        self.gone[usize::from(slot % SLOTS)] = target;
    }

    pub(crate) fn arrive(&mut self, slot: u16, map_version: u64) {
        if let Some(came) = self.came.get_mut(usize::from(slot % SLOTS)) {
            *came = true;
        }
        self.map_version = self.map_version.max(map_version);
    }

    /// Its share of the state hash: a sum, so that one slot's change costs little.
    pub(crate) fn digest(&self) -> u64 {
        let slots = (0..SLOTS).map(|slot| self.slot_digest(slot));
        slots.fold(self.rest_digest(), u64::wrapping_add)
    }

    fn slot_digest(&self, slot: u16) -> u64 {
        let place = usize::from(slot % SLOTS);
        let came = self.came.get(place).is_some_and(|came| *came);
        if self.gone[place] == HERE && !came {
            return 0;
        }
        digest_record(RecordKind::Away, &(slot, self.gone[place], came))
    }

    fn rest_digest(&self) -> u64 {
        digest_record(RecordKind::Away, &(self.added, self.map_version, &self.voids_sent))
    }

    /// Whether a decoded record is usable.
    pub(crate) fn is_valid(&self) -> bool {
        let slots = usize::from(SLOTS);
        self.gone.len() == slots && self.came.len() == if self.added { slots } else { 0 }
    }
}

/// Where the tasks and remembered requests of each slot are; kept only while slots leave. Lists only grow: what is in
/// them is checked when it is used.
#[derive(Clone, Debug)]
pub(crate) struct BySlot {
    pub(crate) tasks: Vec<Vec<u32>>,
    pub(crate) submits: Vec<Vec<u64>>,
}

impl BySlot {
    /// Of all records of a shard.
    pub(crate) fn of(core: &Core) -> BySlot {
        let lists = usize::from(SLOTS);
        let mut by_slot =
            BySlot { tasks: vec![Vec::new(); lists], submits: vec![Vec::new(); lists] };
        for (place, task) in core.tasks.iter() {
            let namespace = &core.queues[task.queue as usize].namespace;
            by_slot.note_task(slot_of(namespace, task.id.routing_key()), place);
        }
        for (number, entry) in core.submits.iter() {
            by_slot.note_submit(entry.slot(), number);
        }
        by_slot
    }

    pub(crate) fn note_task(&mut self, slot: u16, place: u32) {
        self.tasks[usize::from(slot % SLOTS)].push(place);
    }

    pub(crate) fn note_submit(&mut self, slot: Option<u16>, number: u64) {
        if let Some(slot) = slot {
            self.submits[usize::from(slot % SLOTS)].push(number);
        }
    }
}

impl Command {
    /// The task that a command is about, if it is about one; by it the order is routed.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Command::Enqueue(verb) => Some(&verb.id),
            Command::Complete(verb) => Some(&verb.id),
            Command::Fail(verb) => Some(&verb.id),
            Command::Expire(verb) => Some(&verb.id),
            Command::Duplicate(verb) => Some(&verb.id),
            Command::Checkpoint(verb) => Some(&verb.id),
            Command::Unclaim(verb) => Some(&verb.id),
            Command::Cancel(verb) => Some(&verb.id),
            Command::Retry(verb) => Some(&verb.id),
            Command::Drop(verb) => Some(&verb.id),
            _ => None,
        }
    }
}

impl Command {
    /// What decides the shard of an order; none if it names its shard, or is for shard 0.
    pub fn routing_key(&self) -> Option<&str> {
        match self {
            Command::PutObject(verb) => Some(routing_key(&verb.bucket, verb.name.as_str())),
            Command::DeleteObject(verb) => Some(routing_key(&verb.bucket, verb.name.as_str())),
            Command::AcquireLease(verb) => Some(verb.name.as_str()),
            Command::ReleaseLease(verb) => Some(verb.name.as_str()),
            Command::ExpireLease(verb) => Some(verb.name.as_str()),
            Command::SubmitJob(verb) => Some(verb.id.as_str()),
            Command::CancelJob(verb) => Some(verb.id.as_str()),
            _ => self.task().map(TaskId::routing_key),
        }
    }
}

impl Shard {
    /// Whether a routing key's slot is away from this shard.
    pub fn is_key_away(&self, namespace: &Namespace, routing_key: &str) -> bool {
        match &self.core.away {
            None => false,
            Some(away) => away.is_away(slot_of(namespace, routing_key)),
        }
    }

    /// Whether a task's slot is away from this shard: another has it, or will.
    pub fn is_away(&self, namespace: &Namespace, id: &TaskId) -> bool {
        self.is_key_away(namespace, id.routing_key())
    }

    /// Whether an order is for a slot that is away.
    pub fn is_order_away(&self, order: &Order) -> bool {
        self.core.away.is_some()
            && order
                .command
                .routing_key()
                .is_some_and(|key| self.is_key_away(&order.namespace, key))
    }

    /// Where a routing key's slot went, if it left this shard.
    pub(crate) fn forwarding(&self, namespace: &Namespace, key: &str) -> Option<ShardId> {
        self.core.away.as_ref()?.target(slot_of(namespace, key))
    }

    /// Version of the map from which on all slots that moved here are known to be here; 0 if none did.
    pub fn map_version_needed(&self) -> u64 {
        self.core.away.as_ref().map_or(0, |away| away.map_version)
    }

    /// Changes what is known of one moved slot, and the hash with it.
    pub(crate) fn change_away(&mut self, slot: u16, change: impl FnOnce(&mut Away)) {
        let (before, shared) = match self.core.away.take() {
            Some(away) => (away.rest_digest().wrapping_add(away.slot_digest(slot)), away),
            None => (0, Arc::new(Away::new(false))),
        };
        let mut away = Arc::unwrap_or_clone(shared);
        change(&mut away);
        self.core.hash.remove(before);
        self.core.hash.add(away.rest_digest().wrapping_add(away.slot_digest(slot)));
        self.core.away = Some(Arc::new(away));
    }
}
