//! What is derived from the stored state: name tables, lines of ready, scheduled and finished
//! tasks, sums. Never in a snapshot; rebuilt from the records in exactly the same order, since
//! every record carries its place in line.

use std::collections::{BTreeMap, BTreeSet};

use super::row::Row;
use super::{Core, Line};
use crate::growth::BySlot;
use crate::hash::{BitSet, Lookup, RecordKind, digest_bytes, encode_into};
use crate::ids::task_hash;
use crate::job::JobKey;
use crate::limits::JobPace;
use crate::namespace::Waiting;
use crate::queue::QueueRecord;
use crate::reuse::RememberedKey;
use crate::task::{Task, TaskState};
use crate::{Digest, Namespace, QueueName};

/// All derived data of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub(crate) task_names: Lookup,
    pub(crate) queue_names: Lookup,
    pub(crate) submits: Lookup,
    pub(crate) claims: Lookup,
    pub(crate) voids: Lookup,
    pub(crate) settled: Lookup,
    /// Always 0: remembered submissions are bounded by number alone.
    pub(crate) submit_weight: u64,
    /// Always 0: tombstones are bounded by number alone.
    pub(crate) void_weight: u64,
    /// Always 0: remembered reports are bounded by number alone.
    pub(crate) settled_weight: u64,
    /// Grants held by remembered claims.
    pub(crate) claim_weight: u64,
    pub(crate) free: BitSet,
    /// Slots with a live claim.
    pub(crate) claimed: BitSet,
    /// Slots by due time and place in line.
    pub(crate) scheduled: BTreeMap<(u64, u64), u32>,
    /// Slots of waiting tasks by deadline and place of submission.
    pub(crate) deadlines: BTreeMap<(u64, u64), u32>,
    /// Slots of finished tasks with a retention of their own, by end of it and place in line.
    pub(crate) kept: BTreeMap<(u64, u64), u32>,
    /// Slots of finished tasks by place in line; without the dead, once those are kept apart.
    pub(crate) finished: Row,
    /// Slots of dead tasks by place in line, once they are kept apart.
    pub(crate) dead: Row,
    /// Bytes of those.
    pub(crate) dead_bytes: u64,
    /// Whether dead tasks are kept apart.
    pub(crate) dead_apart: bool,
    /// How fast jobs bring their tasks into being, by the shard's bounds.
    pub(crate) job_pace: JobPace,
    pub(crate) lines: Vec<Line>,
    /// Where the things of each slot are; only while slots leave.
    pub(crate) by_slot: Option<Box<BySlot>>,
    /// Jobs with tasks to make or to cancel.
    pub(crate) busy_jobs: BTreeSet<JobKey>,
    /// Running jobs whose slow tasks are duplicated.
    pub(crate) watched_jobs: BTreeSet<JobKey>,
    /// Ended jobs by the time until which they are kept.
    pub(crate) job_ends: BTreeSet<(u64, JobKey)>,
    /// Bytes of what all jobs are to do.
    pub(crate) job_bytes: u64,
    pub(crate) pending_bytes: u64,
    pub(crate) finished_bytes: u64,
    /// How often each blob is a piece of a version.
    pub(crate) references: BTreeMap<Digest, u32>,
    /// Sum of those numbers.
    pub(crate) reference_count: u64,
    /// Changes of objects since the index was derived; tells readers whether to look again.
    pub(crate) object_changes: u64,
    /// Versions of all objects.
    pub(crate) object_versions: u64,
    /// Their sizes, blobs that several share counted again for each.
    pub(crate) object_bytes: u64,
    /// What each namespace with a queue has waiting, in order of their first queues.
    pub(crate) spaces: Vec<Waiting>,
    /// Their places by name.
    pub(crate) space_names: BTreeMap<Namespace, u32>,
    /// The place of each queue's namespace.
    pub(crate) space_of: Vec<u32>,
    /// Bytes of each namespace's objects.
    pub(crate) stored: BTreeMap<Namespace, u64>,
    /// Names of remembered results by place, the oldest first.
    pub(crate) remembered_line: BTreeMap<u64, RememberedKey>,
    /// Their bytes in memory.
    pub(crate) remembered_bytes: u64,
    /// Bytes of their files.
    pub(crate) remembered_stored: u64,
    /// Digest of each queue as it stands in the state hash; none until the first flush.
    queue_digests: Vec<Option<u64>>,
    /// Queues whose record changed during this entry.
    marked: BitSet,
    /// Jobs that changed during this entry, with their digest as it stands in the state hash: a job changes with each of its
    /// tasks.
    pub(crate) changed_jobs: BTreeMap<JobKey, u64>,
}

impl Index {
    /// Derives everything from the records.
    pub(crate) fn derive(core: &Core) -> Index {
        let (free, dead_apart) = (core.tasks.free_slots(), core.dead_apart);
        let job_pace = core.limits.job_pace();
        let mut index = Index { free, dead_apart, job_pace, ..Index::default() };
        for (queue, record) in core.queues.iter().enumerate() {
            index.add_queue(&record.namespace, &record.name, queue as u32);
            index.queue_digests[queue] = Some(queue_digest(queue as u32, record));
        }
        for (slot, task) in core.tasks.iter() {
            let namespace = &core.queues[task.queue as usize].namespace;
            index.task_names.insert(task_hash(namespace.as_str(), task.id.as_str()), slot);
            if !task.state.is_terminal() {
                index.came(task.queue, task.weight());
                index.link(slot, task);
            }
        }
        // Finished lines are queues, so their tasks must come in order.
        let mut finished: Vec<(u64, u32)> = core
            .tasks
            .iter()
            .filter(|(_, task)| task.state.is_terminal())
            .map(|(slot, task)| (task.sequence, slot))
            .collect();
        finished.sort_unstable();
        for (_, slot) in finished {
            if let Some(task) = core.tasks.get(slot) {
                index.finished_bytes += task.weight();
                index.link(slot, task);
            }
        }
        index.lines.iter_mut().for_each(Line::settle_all_keys);
        for (number, entry) in core.submits.iter() {
            index.submits.insert(entry.key[0], number as u32);
        }
        for (number, entry) in core.claims.iter() {
            index.claims.insert(entry.key[0], number as u32);
            index.claim_weight += entry.grants.len() as u64;
        }
        for (number, entry) in core.voids.iter() {
            index.voids.insert(entry.key[0], number as u32);
        }
        for (number, entry) in core.settled.iter() {
            index.settled.insert(entry.key[0], number as u32);
        }
        for (key, job) in &core.jobs {
            index.job_bytes += job.spec.bytes;
            index.link_job(key, job);
        }
        for (_, object) in core.objects.iter() {
            object
                .versions
                .iter()
                .for_each(|version| index.add_version(&object.namespace, version));
        }
        core.remembered.values().for_each(|record| index.link_remembered(record));
        core.outbox.items().for_each(|item| index.refer(item.message.pieces()));
        index
    }

    /// Makes room for a new queue.
    pub(crate) fn add_queue(&mut self, namespace: &Namespace, name: &QueueName, queue: u32) {
        self.queue_names.insert(task_hash(namespace.as_str(), name.as_str()), queue);
        let space = self.open_space(namespace);
        self.space_of.push(space);
        self.lines.push(Line::default());
        self.queue_digests.push(None);
    }

    /// Puts a task into the line of its state.
    pub(crate) fn link(&mut self, slot: u32, task: &Task) {
        let line = &mut self.lines[task.queue as usize];
        line.link(slot, task);
        match task.state {
            TaskState::Scheduled => {
                self.scheduled.insert((task.moment_ms, task.sequence), slot);
            }
            TaskState::Ready => {}
            TaskState::Claimed => {
                self.claimed.insert(slot);
            }
            TaskState::Done | TaskState::Dead | TaskState::Cancelled => {
                match task.kept_until_ms() {
                    Some(until_ms) => {
                        self.kept.insert((until_ms, task.sequence), slot);
                    }
                    None if self.dead_apart && task.state == TaskState::Dead => {
                        line.dead.insert(task.sequence, slot);
                    }
                    None => line.finished.insert(task.sequence, slot),
                }
                if self.dead_apart && task.state == TaskState::Dead {
                    self.dead.insert(task.sequence, slot);
                    self.dead_bytes += task.weight();
                } else {
                    self.finished.insert(task.sequence, slot);
                }
            }
        }
        if let Some(place) = task.deadline_place() {
            self.deadlines.insert(place, slot);
        }
    }

    /// Takes a task out of the line of its state.
    pub(crate) fn unlink(&mut self, slot: u32, task: &Task) {
        let line = &mut self.lines[task.queue as usize];
        line.unlink(task);
        match task.state {
            TaskState::Scheduled => {
                self.scheduled.remove(&(task.moment_ms, task.sequence));
            }
            TaskState::Ready => {}
            TaskState::Claimed => {
                self.claimed.remove(slot);
            }
            TaskState::Done | TaskState::Dead | TaskState::Cancelled => {
                match task.kept_until_ms() {
                    Some(until_ms) => {
                        self.kept.remove(&(until_ms, task.sequence));
                    }
                    None if self.dead_apart && task.state == TaskState::Dead => {
                        line.dead.remove(task.sequence);
                    }
                    None => {
                        line.finished.remove(task.sequence);
                    }
                }
                if self.dead_apart && task.state == TaskState::Dead {
                    self.dead.remove(task.sequence);
                    self.dead_bytes -= task.weight();
                } else {
                    self.finished.remove(task.sequence);
                }
            }
        }
        if let Some(place) = task.deadline_place() {
            self.deadlines.remove(&place);
        }
    }

    /// Offers what the task's key allows now that the task changed; tells whether anything was.
    pub(crate) fn settle_key(&mut self, task: &Task) -> bool {
        match task.ordering_key() {
            Some(key) => self.lines[task.queue as usize].settle_key(key),
            None => false,
        }
    }

    /// Deadline and slot of the waiting task with the earliest one.
    pub(crate) fn first_deadline(&self) -> Option<(u64, u32)> {
        self.deadlines.first_key_value().map(|((deadline_ms, _), slot)| (*deadline_ms, *slot))
    }

    /// Due time and slot of the earliest scheduled task.
    pub(crate) fn first_scheduled(&self) -> Option<(u64, u32)> {
        self.scheduled.first_key_value().map(|((due_ms, _), slot)| (*due_ms, *slot))
    }

    /// Number of finished tasks, dead ones included.
    pub(crate) fn finished_count(&self) -> u64 {
        (self.finished.len() + self.dead.len()) as u64
    }

    /// Notes that a queue's record changed.
    pub(crate) fn mark_queue(&mut self, queue: u32) {
        self.marked.insert(queue);
    }

    /// Brings the digests of changed queues up to date; tells the sum of the changes.
    pub(crate) fn flush_queues(&mut self, queues: &[QueueRecord]) -> u64 {
        let mut change = 0u64;
        while let Some(queue) = self.marked.first() {
            self.marked.remove(queue);
            let digest = queue_digest(queue, &queues[queue as usize]);
            let before = self.queue_digests[queue as usize].replace(digest).unwrap_or(0);
            change = change.wrapping_add(digest).wrapping_sub(before);
        }
        change
    }
}

/// A queue's share of the state hash.
pub(crate) fn queue_digest(queue: u32, record: &QueueRecord) -> u64 {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(&queue.to_le_bytes());
    encode_into(record, &mut bytes);
    digest_bytes(RecordKind::Queue, &bytes)
}
