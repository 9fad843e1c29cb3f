//! Message kinds between nodes. Numbers are stable: nodes of two versions talk during a rolling upgrade.

use bytes::Bytes;
use ikada_consensus::{Message, NodeId, Start};
use ikada_state::{
    Explanation, Fence, HolderName, LeaseKey, Namespace, Order, Progress, QueueName, RefusalCode,
    RegisterWorker, Reply, RequestKey, SessionId, ShardId, TaskId, WorkerId, WorkerRecord,
    WorkerStanding,
};
use minicbor::{Decode, Encode};

/// One message.
#[derive(Debug, Clone)]
pub enum PeerMessage {
    /// The consensus engine's own.
    Raft(Message),
    /// A node asks a shard's leader on behalf of a caller.
    Ask {
        /// The asker's handle.
        leg: u64,
        /// Which shard.
        shard: ShardId,
        /// What.
        ask: Ask,
    },
    /// The leader's answer.
    Told {
        /// The asker's handle.
        leg: u64,
        /// What it came to.
        told: Told,
    },
    /// Work became ready in a queue that the node was interested in.
    Hint(Hint),
    /// A replica's state hash at a checkpoint.
    Hash(HashReport),
    /// A step of a snapshot transfer.
    Snapshot(SnapshotMessage),
    /// The sender's disk stands still.
    DiskStill,
    /// The sender's disk has hardly any room left.
    DiskLow,
    /// What the sender's program understands.
    Level(u32),
    /// How far the sender is in each shard, in their order, where logs live in a database.
    Reach(Vec<u64>),
}

/// What a leader is asked.
#[derive(Debug, Clone, Encode, Decode)]
pub enum Ask {
    /// Commit these orders.
    #[n(0)]
    Write(#[n(0)] Vec<Order>),
    /// Commit this claim if anything is ready; else remember our interest.
    #[n(1)]
    Claim(#[n(0)] Box<Order>),
    /// These claims are alive.
    #[n(2)]
    Renew {
        /// Namespace of the tasks.
        #[n(0)]
        namespace: Namespace,
        /// Their holder.
        #[n(1)]
        worker: WorkerId,
        /// Tasks and fences.
        #[n(2)]
        claims: Vec<(TaskId, Fence)>,
        /// The holder's process run, if these are all the claims that it holds in this shard.
        #[n(3)]
        session: Option<SessionId>,
        /// Version of the map by which the asker chose the claims of this shard.
        #[n(4)]
        #[cbor(default)]
        map_version: u64,
        /// How far some of them are, by their place in the list. Older leaders pass it over.
        #[n(5)]
        progress: Option<Vec<(u32, Progress)>>,
    },
    /// Up to which index must a linearizable read wait?
    #[n(3)]
    ReadIndex,
    /// Hand leadership over.
    #[n(4)]
    Transfer {
        /// To whom; absent: the most caught-up voter.
        #[n(0)]
        to: Option<NodeId>,
    },
    /// Change the membership.
    #[n(5)]
    Change {
        /// New voters.
        #[n(0)]
        add_voters: Vec<NodeId>,
        /// New learners.
        #[n(1)]
        add_learners: Vec<NodeId>,
        /// Members to leave.
        #[n(2)]
        remove: Vec<NodeId>,
    },
    /// Why is this task not running?
    #[n(20)]
    Explain {
        /// Its owner.
        #[n(0)]
        namespace: Namespace,
        /// The task.
        #[n(1)]
        id: TaskId,
    },
    /// Raise the number of shards.
    #[n(60)]
    Grow {
        /// Shards in the end.
        #[n(0)]
        shards: u16,
        /// Makes a resend return the first answer.
        #[n(1)]
        request: Option<RequestKey>,
    },
    /// Commit this wish for a lease unless the state answers it; the asker lives.
    #[n(100)]
    Lease(#[n(0)] Order),
    /// The holder of a lease lives.
    #[n(101)]
    RenewLease {
        /// The lease.
        #[n(0)]
        key: LeaseKey,
        /// Its holder.
        #[n(1)]
        holder: HolderName,
        /// Token of the holding.
        #[n(2)]
        fence: Fence,
    },
    /// A worker lives; record it if it is not recorded as it says.
    #[n(120)]
    Beat {
        /// Where it works.
        #[n(0)]
        namespace: Namespace,
        /// Who it is.
        #[n(1)]
        worker: RegisterWorker,
        /// Slots that are busy.
        #[n(2)]
        busy: u32,
        /// It has stopped, and will not beat again.
        #[n(3)]
        leaving: bool,
    },
    /// All workers, as the leader of shard 0 sees them.
    #[n(121)]
    Workers,
}

/// What the leader answers.
#[derive(Debug, Clone, Encode, Decode)]
pub enum Told {
    /// Applied at this position, one reply per order.
    #[n(0)]
    Replies {
        /// Term of the entry.
        #[n(0)]
        term: u64,
        /// Index of the entry.
        #[n(1)]
        index: u64,
        /// In the order asked.
        #[n(2)]
        replies: Vec<Reply>,
    },
    /// Nothing was proposed: another node leads, or none is known.
    #[n(1)]
    NotLeader {
        /// Who leads, as far as known.
        #[n(0)]
        leader: Option<NodeId>,
    },
    /// It was proposed, and its fate is open.
    #[n(2)]
    Unknown,
    /// One per claim.
    #[n(3)]
    Renewed(#[n(0)] Vec<RenewTold>),
    /// A read may be served from this index on.
    #[n(4)]
    Index(#[n(0)] u64),
    /// The administrative order was taken.
    #[n(5)]
    Accepted,
    /// The administrative order was refused.
    #[n(6)]
    Refused {
        /// Stable code.
        #[n(0)]
        code: String,
        /// In words.
        #[n(1)]
        detail: String,
    },
    /// Too much waits at the leader; nothing was proposed.
    #[n(7)]
    Busy,
    /// Why the task is not running; none if there is no such task.
    #[n(20)]
    Explained(#[n(0)] Option<Explanation>),
    /// The task's slot is in another shard, or on its way there; nothing was proposed.
    #[n(60)]
    Moved,
    /// Not every member understands what was asked for; nothing was proposed.
    #[n(80)]
    LevelTooLow {
        /// The level that does.
        #[n(0)]
        needed: u32,
        /// The cluster's.
        #[n(1)]
        level: u32,
    },
    /// The worker is recorded.
    #[n(120)]
    Beat {
        /// What is wanted of it.
        #[n(0)]
        standing: WorkerStanding,
        /// Term of the leader who wants it.
        #[n(1)]
        term: u64,
    },
    /// All workers.
    #[n(121)]
    Workers {
        /// Term of the leader.
        #[n(0)]
        term: u64,
        /// In order of their names.
        #[n(1)]
        workers: Vec<WorkerTold>,
    },
}

/// A worker as the leader of shard 0 sees it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WorkerTold {
    /// What is recorded.
    #[n(0)]
    pub record: WorkerRecord,
    /// Whether it beats.
    #[n(1)]
    pub alive: bool,
    /// How long ago it was heard; the highest number if never by this leader.
    #[n(2)]
    pub heard_ms_ago: u64,
    /// Slots that were busy then.
    #[n(3)]
    pub busy: u32,
    /// Another session that uses its name.
    #[n(4)]
    pub impostor: Option<SessionId>,
}

/// What became of one renewal.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RenewTold {
    /// Alive for this long again.
    #[n(0)]
    Renewed(#[n(0)] u64),
    /// Not, or no longer, this worker's.
    #[n(1)]
    Refused(#[n(0)] RefusalCode),
}

/// "There is work."
#[derive(Debug, Clone, Encode, Decode)]
pub struct Hint {
    /// Where.
    #[n(0)]
    pub shard: ShardId,
    /// Namespace of the queue.
    #[n(1)]
    pub namespace: Namespace,
    /// The queue.
    #[n(2)]
    pub queue: QueueName,
    /// How many tasks are ready.
    #[n(3)]
    pub ready: u64,
    /// Mark of the program of one of the first, if they run programs; 0 if it has no digest. Then many claims look, and those
    /// first whose workers have it.
    #[n(4)]
    pub program: Option<u64>,
}

/// A state hash at a checkpoint index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct HashReport {
    /// Which shard.
    #[n(0)]
    pub shard: ShardId,
    /// At which index.
    #[n(1)]
    pub index: u64,
    /// The hash.
    #[n(2)]
    pub hash: u64,
}

/// Steps of a snapshot transfer; the receiver pulls, so that it sets the pace.
#[derive(Debug, Clone)]
pub enum SnapshotMessage {
    /// The leader offers its newest snapshot together with the engine's own message.
    Offer {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Its manifest.
        manifest: Bytes,
        /// The engine's message, stepped once all chunks are here.
        message: Message,
    },
    /// The receiver wants a chunk.
    Want {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
    },
    /// A chunk.
    Chunk {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
        /// Its bytes.
        bytes: Bytes,
    },
    /// The transfer has ended.
    End {
        /// Which shard.
        shard: ShardId,
        /// Whether the receiver has it all.
        ok: bool,
    },
}
