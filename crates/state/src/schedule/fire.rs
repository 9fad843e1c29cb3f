//! `Fire`: decides an instant of a schedule, once (Q12). A second order for the same instant, by a resend or by a new
//! leader that had not yet seen the first, finds the cursor there and does nothing.
//!
//! The task goes to its shard by the outbox, or into the line at once if that is this shard. When there is no room for
//! it, the order is refused and the cursor stays: the instant is late, not lost.
//!
//! Whatever else shard 0 has to tell a shard waits behind such a task: slots that move, workers that are gone. So a task
//! that came by the outbox is taken beyond the bounds that hold for others, up to bounds of its own. Begins with the order
//! that keeps dead tasks apart (`queue/keep_dead.rs`), since nodes of two versions must take the same tasks.

use minicbor::{Decode, Encode};

use crate::ids::task_hash;
use crate::limits::{
    FIRED_LABEL_SETS_MAX, FIRED_OVER_BYTES_MAX, FIRED_OVER_MAX, LABEL_SETS_MAX, SCHEDULES_MAX,
};
use crate::outbox::Message;
use crate::planted::{self, Bug};
use crate::schedule::{LastFire, Schedule};
use crate::shard::{Batch, Shard};
use crate::task::BodyHashes;
use crate::{Enqueue, Namespace, RefusalCode, Reply, ScheduleName, ShardId, TaskId, slot_of};

/// Decides the instants of a schedule up to one of them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Fire {
    /// The schedule.
    #[n(0)]
    pub name: ScheduleName,
    /// The version whose instants these are.
    #[n(1)]
    pub version: u64,
    /// The newest instant decided by this order.
    #[n(2)]
    pub instant_ms: u64,
    /// Whether its task is submitted.
    #[n(3)]
    pub run: bool,
    /// How many instants since the cursor were missed and are not made up for.
    #[n(4)]
    pub missed: u32,
    /// How many are left out because the task before is unfinished.
    #[n(5)]
    pub overlapped: u32,
    /// The cursor that it goes on from. One that has moved meanwhile refuses the order: its counts would be wrong.
    #[n(6)]
    pub after_ms: u64,
}

/// How far a fired task may go beyond the bounds of its shard.
#[derive(Clone, Copy)]
struct Allowance {
    tasks: u64,
    bytes: u64,
    queues: usize,
    /// Label sets of its queue, in all.
    label_sets: usize,
}

impl Allowance {
    /// Not at all.
    fn usual() -> Allowance {
        Allowance { tasks: 0, bytes: 0, queues: 0, label_sets: LABEL_SETS_MAX }
    }

    fn wide() -> Allowance {
        Allowance {
            tasks: FIRED_OVER_MAX,
            bytes: FIRED_OVER_BYTES_MAX,
            queues: SCHEDULES_MAX,
            label_sets: FIRED_LABEL_SETS_MAX,
        }
    }
}

impl Shard {
    pub(crate) fn apply_fire(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Fire,
    ) -> Reply {
        match self.fire(batch, namespace, order) {
            Ok(fresh) => Reply::Fired { fresh },
            Err(code) => Reply::refused(code),
        }
    }

    fn fire(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Fire,
    ) -> Result<bool, RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        let key = (namespace.clone(), order.name.clone());
        let known = self.core.schedules.get(&key).ok_or(RefusalCode::ScheduleNotFound)?;
        if known.version != order.version {
            return Err(RefusalCode::VersionConflict);
        }
        let decided = order.instant_ms <= known.cursor_ms;
        if decided && !planted::active(Bug::FireNotDeduplicated) {
            return Ok(false);
        }
        // The order before it was refused, or another leader was faster: judged afresh from where the cursor is.
        if !decided && order.after_ms != known.cursor_ms {
            return Err(RefusalCode::VersionConflict);
        }
        if order.instant_ms > self.core.time_ms || known.spec.paused {
            return Err(RefusalCode::BadValue);
        }
        let mut schedule = (**known).clone();
        if order.run {
            let mut task = schedule.spec.task_at(&order.name, order.instant_ms);
            if decided {
                task.id = self.name_again(&task.id);
            }
            self.send_fired(batch, &mut schedule, order.instant_ms, task)?;
        }
        count(&mut schedule, order);
        self.put_schedule(schedule);
        Ok(!decided)
    }

    /// Submits the task of an instant, here or by the outbox.
    fn send_fired(
        &mut self,
        batch: &mut Batch,
        schedule: &mut Schedule,
        instant_ms: u64,
        task: Enqueue,
    ) -> Result<(), RefusalCode> {
        let namespace = schedule.namespace.clone();
        let (id, target) = (task.id.clone(), self.home_of(&namespace, &task.id));
        let mut sequence = 0;
        if target == self.core.shard {
            self.take_fired(batch, &namespace, task, Allowance::usual())?;
        } else {
            if self.core.outbox.len() >= self.core.limits.outbox_max as usize {
                return Err(RefusalCode::OutboxFull);
            }
            let message = Message::Submit { namespace, task: Box::new(task) };
            sequence = self.put_message(batch, target, message);
        }
        schedule.last =
            Some(LastFire { instant_ms, fired_ms: self.core.time_ms, id, sequence, target });
        schedule.fired += 1;
        Ok(())
    }

    /// The shard that a task lives in, as shard 0 knows it.
    fn home_of(&self, namespace: &Namespace, id: &TaskId) -> ShardId {
        let map = self.core.slot_map.as_ref();
        map.map_or(0, |map| map.shard(slot_of(namespace, id.routing_key())))
    }

    /// The same for a task that came by the outbox.
    pub(crate) fn take_fired_message(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        task: Enqueue,
    ) -> Result<(), RefusalCode> {
        let allowed = if self.core.dead_apart { Allowance::wide() } else { Allowance::usual() };
        self.take_fired(batch, namespace, task, allowed)
    }

    /// Takes a task that a schedule submitted. One that exists, with whatever body, is kept. The queue's own bound on
    /// waiting tasks does not count; the shard's bounds do, as far as it may not go beyond them, and whoever sends it
    /// tries again.
    fn take_fired(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        task: Enqueue,
        allowed: Allowance,
    ) -> Result<(), RefusalCode> {
        if let Some(target) = self.forwarding(namespace, task.id.routing_key()) {
            // Behind the parts of its slot, so that it finds the slot there.
            let message = Message::Submit { namespace: namespace.clone(), task: Box::new(task) };
            self.put_message(batch, target, message);
            return Ok(());
        }
        let name_hash = task_hash(namespace.as_str(), task.id.as_str());
        if self.find_task_hashed(namespace, &task.id, name_hash).is_some() {
            return Ok(());
        }
        task.check(&self.core.limits)?;
        self.check_room_beyond(task.weight() as u64, (allowed.tasks, allowed.bytes))?;
        let queue = self.open_queue_beyond(namespace, &task.queue, allowed.queues)?;
        let line = &self.index.lines[queue as usize];
        let labels = task.options.as_ref().map(|options| &options.labels);
        if labels.is_some_and(|labels| !line.has_room_within(labels, allowed.label_sets)) {
            return Err(RefusalCode::TooManyLabelSets);
        }
        let hashes = BodyHashes::of(&task);
        self.bear(batch, task, hashes, queue, name_hash, None);
        Ok(())
    }

    /// A planted defect: another name for the task of an instant that was decided before.
    fn name_again(&self, id: &TaskId) -> TaskId {
        let again = format!("{id}-{}", self.core.applied.index);
        TaskId::parse(&again).unwrap_or_else(|_| id.clone())
    }
}

/// Moves the cursor on and counts what was not kept.
fn count(schedule: &mut Schedule, order: &Fire) {
    schedule.cursor_ms = schedule.cursor_ms.max(order.instant_ms);
    schedule.missed = schedule.missed.saturating_add(u64::from(order.missed));
    schedule.overlapped = schedule.overlapped.saturating_add(u64::from(order.overlapped));
    if order.missed > 0 {
        schedule.last_missed_ms = order.instant_ms;
    }
    if order.overlapped > 0 {
        schedule.last_overlapped_ms = order.instant_ms;
    }
}
