//! What a replica is told and what it asks for: the whole surface between pure code and the world.
//!
//! The driver of the node and the simulator's world are the two callers. Contract, in this order, every turn:
//! 1. `step` each input that has arrived;
//! 2. `poll` once;
//! 3. hand `io` to the log (append, then one sync) and come back with `Input::Persisted(seq)`;
//! 4. send `frames` at once: whatever promises durability was held back inside until `Persisted`;
//! 5. deliver `answers`; carry out `snapshots` beside the hot path, results return as inputs.
//!
//! Batches of `io` must reach the log in the order given; several may share one sync.

use std::sync::Arc;

use bytes::Bytes;
use ikada_consensus::lease::{Answer as DatabaseAnswer, Ask};
use ikada_consensus::{Conf, Io, NodeId, RoleChange, Start};
use ikada_state::{Frozen, Job, Lsn, Shard, ShardId, TaskView};

use crate::call::{Answer, Call, CallId};
use crate::members::Roll;

/// Both clocks of the machine, read by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic milliseconds; decides all waits.
    pub mono_ms: u64,
    /// Wall clock milliseconds since 1970; only ever one vote towards log time.
    pub wall_ms: u64,
}

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// A client asks.
    Call(Call),
    /// The client has gone; its answer is not wanted any more.
    CallGone(CallId),
    /// A frame from a peer whose identity was admitted.
    Frame(NodeId, Bytes),
    /// A connection to this peer stands.
    PeerUp(NodeId),
    /// The connection closed; `refused` when a reconnect was refused at once (the process is gone).
    PeerDown {
        /// Which peer.
        peer: NodeId,
        /// Whether the peer's process is known to be gone.
        refused: bool,
    },
    /// All log batches up to this number are on disk.
    Persisted(u64),
    /// Whether the log's disk has no room beyond what the log holds already; said when it changes.
    DiskLow(bool),
    /// Time has passed.
    Tick,
    /// A piece of snapshot work is done.
    Snapshot(SnapshotDone),
    /// A peer says that this node was removed from the cluster.
    Removed,
    /// The database that holds the logs was heard.
    Database(DatabaseTold),
    /// Hand leadership over and refuse new work.
    Stop,
}

/// What the world shall do.
#[derive(Debug, Default)]
pub struct Outputs {
    /// One log batch for all shards, at most one sync.
    pub io: Option<Io>,
    /// One frame per peer.
    pub frames: Vec<(NodeId, Bytes)>,
    /// Answers to calls.
    pub answers: Vec<(CallId, Answer)>,
    /// Role changes, for the event ring and the log.
    pub roles: Vec<RoleChange>,
    /// Snapshot work, to be done off the hot path.
    pub snapshots: Vec<SnapshotWork>,
    /// Questions for the database that holds the logs; each is answered once, by `DatabaseTold::Answered`.
    pub asks: Vec<Ask>,
    /// Shards whose log in the database begins after what this node has: bring the snapshot stored there into the
    /// snapshot files and answer `DatabaseTold::Fetched`.
    pub fetches: Vec<ShardId>,
    /// Log prefixes that a durable snapshot covers.
    pub purges: Vec<(ShardId, Start)>,
    /// The members have changed: links and addresses follow.
    pub roll: Option<Roll>,
    /// Tasks and jobs that have ended here, where they are led; only if the settings ask for them.
    pub ended: Vec<Ended>,
    /// Our wall clock is this far from the voters' median: the operator should know.
    pub clock_alarm: Option<i64>,
    /// This process must stop now and say why.
    pub halt: Option<Halt>,
    /// Graceful stop: no shard is led here any more (or none could be handed over in time).
    pub stopped: bool,
}

/// Something that has ended, as its record says.
#[derive(Debug, Clone)]
pub enum Ended {
    /// A task.
    Task {
        /// Its shard.
        shard: ShardId,
        /// The entry that ended it.
        lsn: Lsn,
        /// Its record.
        task: Box<TaskView>,
    },
    /// A job.
    Job {
        /// Its shard.
        shard: ShardId,
        /// The entry that ended it.
        lsn: Lsn,
        /// Its record.
        job: Arc<Job>,
    },
}

/// How a database that holds logs takes writes, as a node last met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DatabaseHealth {
    /// It does, as far as is known.
    #[default]
    Well,
    /// It does not answer.
    Away,
    /// It has no room.
    Full,
    /// It takes no writes.
    ReadOnly,
}

impl DatabaseHealth {
    /// Its public word.
    pub fn as_str(self) -> &'static str {
        match self {
            DatabaseHealth::Well => "well",
            DatabaseHealth::Away => "away",
            DatabaseHealth::Full => "full",
            DatabaseHealth::ReadOnly => "read_only",
        }
    }
}

/// What the database said, where logs live in one.
#[derive(Debug)]
pub enum DatabaseTold {
    /// The answer to a question.
    Answered {
        /// Which shard.
        shard: ShardId,
        /// Number of the question.
        id: u64,
        /// What was said.
        answer: DatabaseAnswer,
    },
    /// A shard's log or lease changed.
    Changed(ShardId),
    /// How it took what was last written, or was not.
    Health(DatabaseHealth),
    /// A wanted snapshot is among the snapshot files, at this point; nothing if there is none yet.
    Fetched {
        /// Which shard.
        shard: ShardId,
        /// Its position and the membership there.
        found: Option<(Start, Conf)>,
    },
}

/// Work on snapshot files.
#[derive(Debug)]
pub enum SnapshotWork {
    /// Write this state; answer `Saved` or `SaveFailed`.
    Save {
        /// Which shard.
        shard: ShardId,
        /// The state, cheaply cloned.
        frozen: Frozen,
        /// Its log position.
        start: Start,
        /// The membership at that position.
        conf: Conf,
    },
    /// Read the manifest of the newest snapshot; answer `Manifest`.
    Describe {
        /// Which shard.
        shard: ShardId,
        /// Who will be offered it.
        to: NodeId,
    },
    /// Read one chunk; answer `Chunk`.
    Read {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
        /// Who asked.
        to: NodeId,
    },
    /// Begin to receive a snapshot with this manifest; answer `Receiving`.
    Receive {
        /// Which shard.
        shard: ShardId,
        /// Its position.
        start: Start,
        /// The manifest as the sender described it.
        manifest: Bytes,
    },
    /// Check and write one received chunk; answer `Wrote`.
    Write {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Load a stored snapshot into a state; answer `Loaded`.
    Load {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
    },
}

/// Results of snapshot work.
#[derive(Debug)]
pub enum SnapshotDone {
    /// The snapshot is durable.
    Saved {
        /// Which shard.
        shard: ShardId,
        /// Its position.
        start: Start,
        /// The membership stored with it.
        conf: Conf,
        /// Its size.
        bytes: u64,
    },
    /// It could not be written; it is tried again later.
    SaveFailed {
        /// Which shard.
        shard: ShardId,
    },
    /// The newest snapshot's manifest, if there is one.
    Manifest {
        /// Which shard.
        shard: ShardId,
        /// Who will be offered it.
        to: NodeId,
        /// Position and manifest.
        found: Option<(Start, Bytes)>,
    },
    /// A chunk that was read, if it is still there and whole.
    Chunk {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
        /// Who asked.
        to: NodeId,
        /// Its bytes.
        bytes: Option<Bytes>,
    },
    /// Ready to take chunks, or already whole (`chunks` = number of chunks to fetch).
    Receiving {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// How many chunks it has; `None` when the manifest was refused.
        chunks: Option<u32>,
    },
    /// A chunk was written (`ok`) or refused; after the last one the snapshot is durable.
    Wrote {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// Which chunk.
        chunk: u32,
        /// Whether it was whole.
        ok: bool,
    },
    /// The state of a stored snapshot.
    Loaded {
        /// Which shard.
        shard: ShardId,
        /// Which snapshot.
        start: Start,
        /// The state, or why it could not be read.
        state: Result<Box<Shard>, String>,
    },
}

/// Why a process must not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// This node's state differs from the majority's at the same position.
    #[error(
        "shard {shard} at index {index}: state hash {ours:016x} differs from the majority's {theirs:016x}; this node must be rebuilt from its peers"
    )]
    Diverged {
        /// Which shard.
        shard: ShardId,
        /// At which index.
        index: u64,
        /// Our hash.
        ours: u64,
        /// The hash that a majority of the voters has.
        theirs: u64,
    },
    /// The log holds something that only a newer version can apply.
    #[error(
        "shard {shard}: entry {index} was written by a newer version, which this one cannot apply; start the newer version on this node"
    )]
    Newer {
        /// Which shard.
        shard: ShardId,
        /// Where in its log.
        index: u64,
    },
    /// A peer says that this node's id belongs to another disk.
    #[error(
        "node {node} was wiped or replaced: the cluster knows it with another disk, and its votes went with that one"
    )]
    Wiped {
        /// Our id.
        node: NodeId,
    },
    /// This node was removed from the cluster.
    #[error(
        "node {node} was removed from the cluster and stops; its data folder can be deleted, its id is not used again"
    )]
    Removed {
        /// Our id.
        node: NodeId,
    },
    /// The consensus engine found its own state broken.
    #[error("consensus: {0}")]
    Engine(ikada_consensus::Fault),
    /// A snapshot that must be installed cannot be read back.
    #[error("shard {shard}: a received snapshot cannot be restored: {why}")]
    BadSnapshot {
        /// Which shard.
        shard: ShardId,
        /// What the reader said.
        why: String,
    },
}
