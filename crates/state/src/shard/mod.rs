//! The state machine of one shard: what is stored (`Core`), what is derived from it (`Index`), and
//! the entry point `apply`.

mod apply;
mod index;
mod key_line;
mod line;
mod read;
mod row;

pub(crate) use index::{Index, queue_digest};
pub(crate) use line::Line;
pub use read::Sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::dedup::{ClaimEntry, Ring, SettledEntry, SubmitEntry, VoidEntry};
use crate::growth::{Away, Growth};
use crate::hash::{RecordKind, StateHash, digest_record};
use crate::job::{Job, JobKey};
use crate::lease::{Binding, Lease, LeaseKey};
use crate::limits::Limits;
use crate::namespace::QuotaRecord;
use crate::object::{Object, ObjectKey, Pages};
use crate::outbox::Outbox;
use crate::queue::QueueRecord;
use crate::reuse::{Remembered, RememberedKey};
use crate::schedule::{Schedule, ScheduleKey};
use crate::task::{Slab, Task, TaskState};
use crate::worker::{WorkerKey, WorkerRecord};
use crate::{
    Audience, Effect, JobPart, Lsn, Member, Namespace, QueueHandle, Roster, ShardId, SharedBytes,
    SlotMap, TaskId, Token, TokenId,
};

/// Everything that is true of a shard and travels in its snapshot. Cloning it is cheap: bulk data
/// sits in shared pages.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) shard: ShardId,
    pub(crate) shards: u16,
    pub(crate) limits: Limits,
    pub(crate) applied: Lsn,
    pub(crate) time_ms: u64,
    /// Restore epoch: upper bits of every new fence.
    pub(crate) epoch: u16,
    /// Fences granted so far: lower bits of every new fence.
    pub(crate) grants: u64,
    /// Last place in line given to a task.
    pub(crate) sequence: u64,
    /// Queue at which removal by age goes on.
    pub(crate) retain_cursor: u32,
    /// Entries refused as a whole.
    pub(crate) entries_refused: u64,
    /// Whether dead tasks are kept apart from those that ended otherwise; since `KeepDead`.
    pub(crate) dead_apart: bool,
    pub(crate) tasks: Slab,
    pub(crate) queues: Vec<QueueRecord>,
    pub(crate) submits: Ring<SubmitEntry>,
    pub(crate) claims: Ring<ClaimEntry>,
    /// Tombstones of requests that were ruled out.
    pub(crate) voids: Ring<VoidEntry>,
    /// Reports that settled tasks which were removed since.
    pub(crate) settled: Ring<SettledEntry>,
    pub(crate) outbox: Outbox,
    /// Highest message number applied, per source shard.
    pub(crate) inbox: BTreeMap<ShardId, u64>,
    pub(crate) members: Vec<Member>,
    /// Only in shard 0, once anything was asked for.
    pub(crate) roster: Option<Box<Roster>>,
    /// Only in shard 0.
    pub(crate) slot_map: Option<SlotMap>,
    /// Only in shard 0.
    pub(crate) schedules: BTreeMap<ScheduleKey, Arc<Schedule>>,
    pub(crate) objects: Pages<ObjectKey, Arc<Object>>,
    /// Only in shard 0.
    pub(crate) tokens: BTreeMap<TokenId, Arc<Token>>,
    /// Slots that left or came; none in a shard that was founded with the cluster and gave none.
    pub(crate) away: Option<Arc<Away>>,
    /// Parts of slots on their way here.
    pub(crate) parts: BTreeMap<u16, Vec<SharedBytes>>,
    /// Only in shard 0, once the cluster has grown.
    pub(crate) growth: Option<Arc<Growth>>,
    /// Leases that somebody holds.
    pub(crate) leases: BTreeMap<LeaseKey, Arc<Lease>>,
    /// Running attempts that leases are bound to.
    pub(crate) bindings: BTreeMap<(Namespace, TaskId), Arc<Binding>>,
    pub(crate) jobs: BTreeMap<JobKey, Arc<Job>>,
    /// Only in shard 0.
    pub(crate) workers: BTreeMap<WorkerKey, Arc<WorkerRecord>>,
    /// Quotas with this shard's share.
    pub(crate) quotas: BTreeMap<Namespace, Arc<QuotaRecord>>,
    /// Results of work that was done before.
    pub(crate) remembered: BTreeMap<RememberedKey, Arc<Remembered>>,
    /// Sum of the digests of all records but the header.
    pub(crate) hash: StateHash,
}

/// The single-valued part of the state, as stored and hashed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Header {
    #[n(0)]
    pub(crate) version: u32,
    #[n(1)]
    pub(crate) shard: ShardId,
    #[n(2)]
    pub(crate) shards: u16,
    #[n(3)]
    pub(crate) limits: Limits,
    #[n(4)]
    pub(crate) applied: Lsn,
    #[n(5)]
    pub(crate) time_ms: u64,
    #[n(6)]
    pub(crate) epoch: u16,
    #[n(7)]
    pub(crate) grants: u64,
    #[n(8)]
    pub(crate) sequence: u64,
    #[n(9)]
    pub(crate) retain_cursor: u32,
    #[n(10)]
    pub(crate) entries_refused: u64,
    #[n(11)]
    pub(crate) submits_head: u64,
    #[n(12)]
    pub(crate) claims_head: u64,
    /// None is no: a shard that never heard of it has none.
    #[n(13)]
    pub(crate) dead_apart: Option<bool>,
}

impl Core {
    /// The header of this state.
    pub(crate) fn header(&self) -> Header {
        Header {
            version: crate::snapshot::VERSION,
            shard: self.shard,
            shards: self.shards,
            limits: self.limits.clone(),
            applied: self.applied,
            time_ms: self.time_ms,
            epoch: self.epoch,
            grants: self.grants,
            sequence: self.sequence,
            retain_cursor: self.retain_cursor,
            entries_refused: self.entries_refused,
            submits_head: self.submits.head(),
            claims_head: self.claims.head(),
            dead_apart: self.dead_apart.then_some(true),
        }
    }

    /// An empty state with the values of a header.
    pub(crate) fn from_header(header: Header) -> Core {
        Core {
            shard: header.shard,
            shards: header.shards,
            limits: header.limits,
            applied: header.applied,
            time_ms: header.time_ms,
            epoch: header.epoch,
            grants: header.grants,
            sequence: header.sequence,
            retain_cursor: header.retain_cursor,
            entries_refused: header.entries_refused,
            dead_apart: header.dead_apart == Some(true),
            tasks: Slab::default(),
            queues: Vec::new(),
            submits: Ring::starting_at(header.submits_head),
            claims: Ring::starting_at(header.claims_head),
            voids: Ring::starting_at(0),
            settled: Ring::starting_at(0),
            outbox: Outbox::default(),
            inbox: BTreeMap::new(),
            members: Vec::new(),
            roster: None,
            slot_map: None,
            schedules: BTreeMap::new(),
            objects: Pages::default(),
            tokens: BTreeMap::new(),
            away: None,
            parts: BTreeMap::new(),
            growth: None,
            leases: BTreeMap::new(),
            bindings: BTreeMap::new(),
            jobs: BTreeMap::new(),
            workers: BTreeMap::new(),
            quotas: BTreeMap::new(),
            remembered: BTreeMap::new(),
            hash: StateHash::default(),
        }
    }

    /// The hash of the whole state.
    pub(crate) fn state_hash(&self) -> u64 {
        let mut hash = self.hash;
        hash.add(digest_record(RecordKind::Header, &self.header()));
        hash.0
    }
}

/// What one entry gathers while it is applied.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) audience: Audience,
    pub(crate) effects: Vec<Effect>,
    /// Queues already announced as ready by this entry.
    pub(crate) woken: BTreeSet<u32>,
    /// Tasks of jobs that have ended in this entry and may have somebody running beside them, with their queues.
    pub(crate) ended: Vec<(u32, JobPart)>,
    /// Whether an order was met that only a newer version can follow.
    pub(crate) is_newer: bool,
}

impl Batch {
    /// Tells the leader something.
    pub(crate) fn tell(&mut self, effect: Effect) {
        if self.audience != Audience::Nobody {
            self.effects.push(effect);
        }
    }

    /// Tells a watcher that a task changed state.
    pub(crate) fn moved(&mut self, task: &Task, from: Option<TaskState>, to: Option<TaskState>) {
        if self.audience == Audience::Watcher {
            let (queue, id, fence) = (QueueHandle(task.queue), task.id.clone(), task.fence);
            self.effects.push(Effect::Moved { queue, id, from, to, fence });
        }
    }
}

impl Batch {
    /// Tells a watcher that a task left or came with its slot.
    pub(crate) fn travelled(&mut self, queue: QueueHandle, task: &Task, came: bool) {
        if self.audience == Audience::Watcher {
            let (id, state, fence) = (task.id.clone(), task.state, task.fence);
            self.effects.push(Effect::Travelled { queue, id, state, fence, came });
        }
    }
}

/// The state machine of one shard.
#[derive(Clone, Debug)]
pub struct Shard {
    pub(crate) core: Core,
    pub(crate) index: Index,
    /// Reused buffer for digests.
    pub(crate) scratch: Vec<u8>,
    /// Entries this instance applied; read only by a planted defect.
    pub(crate) instance_applies: u64,
    /// Changes of leases that this instance made, for those who watch.
    pub(crate) lease_changes: u64,
}

impl Shard {
    /// The first state of a shard. Members and slot map are recorded in shard 0.
    pub fn genesis(shard: ShardId, shards: u16, members: &[Member]) -> Shard {
        Self::genesis_with(shard, shards, members, Limits::default())
    }

    /// The first state with other bounds; all replicas must start with the same.
    pub fn genesis_with(shard: ShardId, shards: u16, members: &[Member], limits: Limits) -> Shard {
        assert!(shard < shards, "shard number is outside the cluster");
        assert!(limits.is_valid(), "limits exceed what a shard can hold");
        let header = Header {
            version: crate::snapshot::VERSION,
            shard,
            shards,
            limits,
            applied: Lsn::default(),
            time_ms: 0,
            epoch: 0,
            grants: 0,
            sequence: 0,
            retain_cursor: 0,
            entries_refused: 0,
            submits_head: 0,
            claims_head: 0,
            dead_apart: None,
        };
        let mut shard = Shard::from_core(Core::from_header(header));
        if shard.core.shard == 0 {
            let mut members = members.to_vec();
            members.sort();
            shard.replace_members(members);
            let map = SlotMap::balanced(shards);
            shard.core.hash.add(map.digest());
            shard.core.slot_map = Some(map);
        }
        shard
    }

    /// The first state of a shard that was added to a running cluster: it holds no slot yet.
    pub fn added(shard: ShardId, shards: u16, limits: Limits) -> Shard {
        assert!(shard > 0, "shard 0 is founded with the cluster");
        let mut shard = Self::genesis_with(shard, shards, &[], limits);
        let away = Away::new(true);
        shard.core.hash.add(away.digest());
        shard.core.away = Some(Arc::new(away));
        shard
    }

    /// Wraps a stored state and derives the indexes.
    pub(crate) fn from_core(core: Core) -> Shard {
        let index = Index::derive(&core);
        Shard { core, index, scratch: Vec::new(), instance_applies: 0, lease_changes: 0 }
    }

    /// Replaces the recorded members, which are sorted.
    pub(crate) fn replace_members(&mut self, members: Vec<Member>) {
        for member in &self.core.members {
            self.core.hash.remove(digest_record(RecordKind::Member, member));
        }
        for member in &members {
            self.core.hash.add(digest_record(RecordKind::Member, member));
        }
        self.core.members = members;
    }

    /// The next place in line.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.core.sequence += 1;
        self.core.sequence
    }

    /// Notes that a queue's record changed; its digest follows at the end of the entry.
    pub(crate) fn mark_queue(&mut self, queue: u32) {
        self.index.mark_queue(queue);
    }

    /// Number of unfinished tasks.
    pub(crate) fn pending_tasks(&self) -> u64 {
        self.core.tasks.len() as u64 - self.index.finished_count()
    }
}
