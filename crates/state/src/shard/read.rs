//! Reading a shard as a whole.

use super::{Line, Shard};
use crate::dedup::RingEntry;
use crate::snapshot::Frozen;
use crate::task::{Task, TaskState};
use crate::{Limits, Lsn, Member, Roster, ShardId, SlotMap};

/// Sizes of a shard, for metrics and for the check of its bounds (Q13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Tasks waiting for their time.
    pub scheduled: u64,
    /// Tasks that may be claimed.
    pub ready: u64,
    /// Tasks held by workers.
    pub claimed: u64,
    /// Finished tasks still kept.
    pub finished: u64,
    /// Bytes of unfinished tasks.
    pub pending_bytes: u64,
    /// Bytes of finished tasks still kept.
    pub finished_bytes: u64,
    /// Queues.
    pub queues: u64,
    /// Request ids remembered.
    pub submits: u64,
    /// Claim request ids remembered.
    pub claims: u64,
    /// Tombstones of requests.
    pub voids: u64,
    /// Remembered reports about tasks that are no longer there.
    pub settled: u64,
    /// Messages waiting for other shards.
    pub outbox: u64,
    /// Schedules.
    pub schedules: u64,
    /// Objects.
    pub objects: u64,
    /// Versions of all objects.
    pub object_versions: u64,
    /// Bytes of all versions.
    pub object_bytes: u64,
    /// Pieces of all versions.
    pub object_references: u64,
    /// Jobs.
    pub jobs: u64,
    /// Tokens.
    pub tokens: u64,
    /// Leases that somebody holds.
    pub leases: u64,
    /// Running attempts that leases are bound to.
    pub bindings: u64,
    /// Workers that are recorded.
    pub workers: u64,
    /// Entries refused as a whole.
    pub entries_refused: u64,
}

impl Shard {
    /// Number of this shard.
    pub fn shard(&self) -> ShardId {
        self.core.shard
    }

    /// Number of shards.
    pub fn shards(&self) -> u16 {
        self.core.shards
    }

    /// Log time: that of the newest entry, never decreasing.
    pub fn time_ms(&self) -> u64 {
        self.core.time_ms
    }

    /// Position of the newest applied entry.
    pub fn applied(&self) -> Lsn {
        self.core.applied
    }

    /// Hash of the whole state; equal on all replicas at equal positions.
    pub fn hash(&self) -> u64 {
        self.core.state_hash()
    }

    /// The bounds of this shard.
    pub fn limits(&self) -> &Limits {
        &self.core.limits
    }

    /// The restore epoch: upper bits of every new fence.
    pub fn epoch(&self) -> u16 {
        self.core.epoch
    }

    /// Fences granted so far.
    pub fn grants(&self) -> u64 {
        self.core.grants
    }

    /// Where keys live; only in shard 0.
    pub fn slot_map(&self) -> Option<&SlotMap> {
        self.core.slot_map.as_ref()
    }

    /// Recorded members by node id; empty outside shard 0.
    pub fn members(&self) -> &[Member] {
        &self.core.members
    }

    /// The change of membership under way, who left, and how leadership is steered; none if nothing was asked for.
    pub fn roster(&self) -> Option<&Roster> {
        self.core.roster.as_deref()
    }

    /// Highest message number applied from a source shard; 0 if none.
    pub fn inbox_applied(&self, source: ShardId) -> u64 {
        self.core.inbox.get(&source).copied().unwrap_or(0)
    }

    /// A copy that later entries do not change; costs one pointer per page.
    pub fn freeze(&self) -> Frozen {
        Frozen::new(self.core.clone())
    }

    /// Log time of the oldest submission that is remembered; none if none is. One that is older and sent again makes
    /// another task, unless the first is still there.
    pub fn oldest_submit_ms(&self) -> Option<u64> {
        self.core.submits.front().map(RingEntry::time_ms)
    }

    /// Current sizes.
    pub fn sizes(&self) -> Sizes {
        let count = |state| self.index.lines.iter().map(|line| line.count(state)).sum();
        Sizes {
            scheduled: count(TaskState::Scheduled),
            ready: count(TaskState::Ready),
            claimed: count(TaskState::Claimed),
            finished: self.index.finished_count(),
            pending_bytes: self.index.pending_bytes,
            finished_bytes: self.index.finished_bytes,
            queues: self.core.queues.len() as u64,
            submits: self.core.submits.len() as u64,
            claims: self.core.claims.len() as u64,
            voids: self.core.voids.len() as u64,
            settled: self.core.settled.len() as u64,
            outbox: self.core.outbox.len() as u64,
            schedules: self.core.schedules.len() as u64,
            objects: self.core.objects.len() as u64,
            object_versions: self.index.object_versions,
            object_bytes: self.index.object_bytes,
            object_references: self.index.reference_count,
            jobs: self.core.jobs.len() as u64,
            tokens: self.core.tokens.len() as u64,
            leases: self.core.leases.len() as u64,
            bindings: self.core.bindings.len() as u64,
            workers: self.core.workers.len() as u64,
            entries_refused: self.core.entries_refused,
        }
    }

    /// Whether every task and queue is found by its name and every line holds all its tasks, which
    /// a damaged snapshot could break.
    pub(crate) fn has_unique_places(&self) -> bool {
        let sizes = self.sizes();
        let in_line = |line: &Line| {
            line.plain_ready() + line.labelled_ready() + line.held_back() + line.twins_ready()
        };
        let ready: usize = self.index.lines.iter().map(in_line).sum();
        let total = sizes.scheduled + sizes.ready + sizes.claimed + sizes.finished;
        let tasks_found = self.core.tasks.iter().all(|(slot, task)| {
            let namespace = &self.core.queues[task.queue as usize].namespace;
            self.find_task(namespace, &task.id) == Some(slot)
        });
        let queues_found = self.core.queues.iter().enumerate().all(|(queue, record)| {
            self.find_queue(&record.namespace, &record.name) == Some(queue as u32)
        });
        let count = |is_it: fn(&Task) -> bool| {
            self.core.tasks.iter().filter(|(_, task)| is_it(task)).count()
        };
        let late = count(|task| task.deadline_place().is_some());
        let kept = count(|task| task.state.is_terminal() && task.kept_until_ms().is_some());
        tasks_found
            && queues_found
            && self.index.deadlines.len() == late
            && self.index.kept.len() == kept
            && self.index.remembered_line.len() == self.core.remembered.len()
            && ready as u64 == sizes.ready
            && self.index.scheduled.len() as u64 == sizes.scheduled
            && self.core.tasks.len() as u64 == total
    }
}
