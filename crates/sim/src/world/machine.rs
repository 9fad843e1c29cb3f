//! One machine: its disk and clock, which outlive processes, and the process that runs on it now.

use std::collections::{BTreeMap, VecDeque};

use ikada_consensus::{Conf, Io, NodeId, Start};
use ikada_replica::output::Input;
use ikada_replica::{Move, Replica};
use ikada_state::ShardId;
use ikada_store::{Log, SimDisk, Snapshots};

use super::clock::Clock;
use super::database::Asked;
use crate::check::ShardView;
use crate::node::boot::Setup;
use crate::node::snapshot::Receiving;
use crate::oracle::mirror::{MarkBatch, NodeMirror};

/// What has happened to a machine's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nothing that a restart does not mend.
    Sound,
    /// Bytes at rest were changed; peers must repair it.
    Damaged,
    /// The disk was replaced by an empty one; the node must be refused.
    Wiped,
    /// It will not run again: refused, unreadable, or removed.
    Gone(String),
}

/// One machine.
pub struct Machine {
    /// Its id.
    pub node: NodeId,
    /// How its node starts.
    pub setup: Setup,
    /// Its disk.
    pub disk: SimDisk,
    /// Its clocks.
    pub clock: Clock,
    /// What has happened to its disk.
    pub health: Health,
    /// Counts processes.
    pub generation: u64,
    /// The process, if one runs.
    pub process: Option<Process>,
    /// What the world knows about its log.
    pub mirror: NodeMirror,
    /// The process stands still until then.
    pub paused_until_us: u64,
    /// The disk is slow until then.
    pub slow_until_us: u64,
    /// What every sync takes beyond the usual.
    pub sync_extra_us: u64,
    /// Its disk was hurt since the last start: its next stop must keep what proves that.
    pub fragile: bool,
    /// Damage waits for the next vote that its disk syncs.
    pub aimed: bool,
    /// When the disk was wiped.
    pub wiped_us: u64,
    /// Entries committed before the disk was wiped; a wiped node must not go beyond.
    pub wiped_at: BTreeMap<ShardId, u64>,
}

/// One process.
pub struct Process {
    /// The product.
    pub replica: Replica,
    /// Its log.
    pub log: Log<SimDisk>,
    /// Its snapshots.
    pub snapshots: Snapshots<SimDisk>,
    /// Snapshots being received.
    pub receiving: Receiving,
    /// Inputs that wait for the next turn.
    pub inbox: Vec<Input>,
    /// Whether a turn is scheduled.
    pub turn_due: bool,
    /// When the next tick is scheduled, by true time.
    pub wake_us: u64,
    /// Batches that wait for the disk.
    pub batches: VecDeque<(Io, MarkBatch)>,
    /// Log prefixes to give up once what was handed over before is written.
    pub purges: Vec<(ShardId, Start)>,
    /// Bytes appended when the last purge was made, and syncs since: files go only with a later sync.
    pub purged: Option<(u64, u32)>,
    /// The number up to which batches are written and wait for a sync; absent when the disk is idle.
    pub syncing: Option<u64>,
    /// When the sync under way began.
    pub syncing_since_us: u64,
    /// What the replica was last told of the disk's room.
    pub is_low: bool,
    /// Whether another look at a full disk is scheduled.
    pub retry_due: bool,
    /// The newest move of its balancer that was looked at.
    pub move_seen: Option<Move>,
    /// Nodes that were cordoned, as far as this one knew after its turn before.
    pub cordons_seen: Vec<NodeId>,
    /// Snapshot saves under way.
    pub saving: u32,
    /// Snapshots installed so far, per shard.
    pub installed: BTreeMap<ShardId, u32>,
    /// The last view of each shard.
    pub views: Vec<Option<ShardView>>,
    /// The last configuration of each shard.
    pub confs: Vec<Conf>,
    /// Peers with which a connection stands.
    pub connected: BTreeMap<NodeId, u64>,
    /// A graceful stop has begun.
    pub stopping: bool,
    /// Questions to the database without an answer.
    pub asked: BTreeMap<(ShardId, u64), Asked>,
    /// Until when each shard's lease may be acted on, by the machine's monotonic clock.
    pub held_until_ms: BTreeMap<ShardId, u64>,
}

impl Machine {
    /// Whether a process runs (paused or not).
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Whether the process stands still.
    pub fn is_paused(&self, now_us: u64) -> bool {
        self.paused_until_us > now_us
    }

    /// Whether it may take part again after a restart.
    pub fn is_usable(&self) -> bool {
        matches!(self.health, Health::Sound | Health::Damaged)
    }

    /// Whether this machine's process leads a shard.
    pub fn leads_any(&self) -> bool {
        let leads = |view: &ShardView| view.role == ikada_consensus::Role::Leader;
        self.process.as_ref().is_some_and(|p| p.views.iter().flatten().any(leads))
    }
}
