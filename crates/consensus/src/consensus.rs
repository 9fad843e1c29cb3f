//! All shards of one node: routes every call to its shard and gathers what they want done.
//!
//! Promises: one log batch per poll for all shards, numbered without gaps. Leaves out: every rule; those live
//! in `shard/`.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::conf::{Change, Conf, NO_CONF};
use crate::config::{BOOTSTRAP, Config, NodeId, Recovered, ShardId, Start};
use crate::engine::Engine;
use crate::entry::Entry;
use crate::errors::{ChangeError, NotLeader, OpenError, TransferError};
use crate::lease::Answer;
use crate::message::Message;
use crate::outbox::{Io, IoRecord, Outbox, Role};
use crate::shard::{PeerProgress, Shard, Standing};

/// More elapsed ticks than this are dropped: a node that slept must hear its peers before it judges them.
const CATCH_UP_TICKS: u64 = 3;

/// All shards of one node.
pub struct Consensus {
    config: Config,
    shards: BTreeMap<ShardId, Engine>,
    /// Length of one engine tick now.
    tick_ms: u64,
    /// Time of the last engine tick; absent before the first call that tells the time.
    ticked_ms: Option<u64>,
    /// When the time was told last.
    woken_ms: u64,
    /// Number of the next batch.
    next_seq: u64,
    /// First records of shards that were added, for the next batch.
    beginnings: Vec<IoRecord>,
}

impl Consensus {
    /// A node without shards. The node must not be 0 and the settings must be sound.
    pub fn new(config: Config) -> Self {
        assert!(config.node != 0, "node 0 cannot take part");
        assert!(config.tick_ms > 0, "a tick must last");
        assert!(config.heartbeat_ticks > 0, "a heartbeat must take ticks");
        assert!(
            config.election_ticks > config.heartbeat_ticks,
            "an election timeout must be longer than a heartbeat"
        );
        assert!(config.max_inflight > 0, "one append must be allowed");
        Consensus {
            tick_ms: config.tick_ms,
            config,
            shards: BTreeMap::new(),
            ticked_ms: None,
            woken_ms: 0,
            next_seq: 1,
            beginnings: Vec::new(),
        }
    }

    /// Opens a shard from what disk holds.
    pub fn open(
        &mut self,
        shard: ShardId,
        recovered: Recovered,
        now_ms: u64,
    ) -> Result<(), OpenError> {
        if self.shards.contains_key(&shard) {
            return Err(OpenError::AlreadyOpen(shard));
        }
        self.ticked_ms.get_or_insert(now_ms);
        let opened = Engine::open(&self.config, shard, recovered, now_ms)?;
        self.shards.insert(shard, opened);
        Ok(())
    }

    /// Opens a shard that was added to a running cluster, with its first voters. Its first snapshot, at [`BOOTSTRAP`],
    /// must be durable.
    pub fn open_added(&mut self, shard: ShardId, conf: Conf, now_ms: u64) -> Result<(), OpenError> {
        self.open(shard, Recovered::bootstrap(conf), now_ms)?;
        self.beginnings.push(IoRecord::Restart { shard, start: BOOTSTRAP });
        Ok(())
    }

    /// Forgets a shard; what it held back is dropped.
    pub fn close(&mut self, shard: ShardId) {
        self.shards.remove(&shard);
    }

    /// Tells the time: engine ticks by elapsed time, then due campaigns.
    pub fn tick(&mut self, now_ms: u64) {
        let ticked_ms = *self.ticked_ms.get_or_insert(now_ms);
        self.woken_ms = now_ms;
        let due = now_ms.saturating_sub(ticked_ms) / self.tick_ms;
        let ticks = due.min(CATCH_UP_TICKS);
        if due > 0 {
            let behind = if due > ticks { now_ms } else { ticked_ms + due * self.tick_ms };
            self.ticked_ms = Some(behind);
        }
        for shard in self.shards.values_mut() {
            shard.tick(ticks, now_ms);
        }
    }

    /// When `tick` has something to do next.
    pub fn next_wake_ms(&self) -> u64 {
        let next_tick_ms = self.ticked_ms.unwrap_or(0).saturating_add(self.tick_ms);
        // Others than the engine go by these ticks too: they stay as frequent however long the engine's are.
        let next_ms = next_tick_ms.min(self.woken_ms.saturating_add(self.config.tick_ms));
        let timers = self.shards.values().filter_map(Engine::timer_ms);
        timers.fold(next_ms, u64::min)
    }

    /// The least silence before a campaign; the actual one is drawn from this up to twice this.
    pub fn election_ms(&self) -> u64 {
        self.tick_ms * self.config.election_ticks as u64
    }

    /// Time between two heartbeats of a leader.
    pub fn heartbeat_ms(&self) -> u64 {
        self.tick_ms * self.config.heartbeat_ticks as u64
    }

    /// Sets the least silence before a campaign; heartbeats follow in the same ratio. Counts from the next tick on.
    pub fn set_election_ms(&mut self, election_ms: u64) {
        self.tick_ms = (election_ms / self.config.election_ticks as u64).max(1);
    }

    /// Takes a message that came from `from`. Snapshot messages are taken by `snapshot_offered` only.
    pub fn receive(&mut self, from: NodeId, message: Message, now_ms: u64) {
        if let Some(shard) = self.raft_mut(message.shard) {
            shard.receive(from, message, now_ms);
        }
    }

    /// Appends a payload if this node leads; gives the term and index to wait for.
    pub fn propose(&mut self, shard: ShardId, payload: Bytes) -> Result<(u64, u64), NotLeader> {
        self.shard_mut(shard)?.propose(payload)
    }

    /// Asks for a point at which a linearizable read may be answered; the answer comes in the outbox.
    pub fn read(&mut self, shard: ShardId, id: u64) -> Result<(), NotLeader> {
        self.shard_mut(shard)?.read(id)
    }

    /// Hands leadership to `to`, after it has caught up. Proposals are refused meanwhile.
    pub fn transfer(&mut self, shard: ShardId, to: NodeId) -> Result<(), TransferError> {
        self.shard_mut(shard)?.transfer(to)
    }

    /// Proposes a membership change; gives the term and index of its first step.
    pub fn change(&mut self, shard: ShardId, change: Change) -> Result<(u64, u64), ChangeError> {
        self.shard_mut(shard)?.change(change)
    }

    /// Starts a campaign as soon as the log is durable, if this node may lead.
    pub fn campaign(&mut self, shard: ShardId) {
        if let Some(shard) = self.raft_mut(shard) {
            shard.campaign_on_request();
        }
    }

    /// Sets this node's priority in one shard.
    pub fn set_priority(&mut self, shard: ShardId, priority: i64) {
        if let Some(shard) = self.shards.get_mut(&shard) {
            shard.set_priority(priority);
        }
    }

    /// All batches up to and including `seq` are durable.
    pub fn persisted(&mut self, seq: u64) {
        assert!(seq < self.next_seq, "batch {seq} was never handed out");
        for shard in self.shards.values_mut().filter_map(Engine::raft_mut) {
            shard.persisted(seq);
        }
    }

    /// All entries up to and including `index` are applied.
    pub fn applied(&mut self, shard: ShardId, index: u64) {
        if let Some(shard) = self.shards.get_mut(&shard) {
            shard.applied(index);
        }
    }

    /// A snapshot at `start`, where the membership is `conf`, is durable: older entries may be dropped.
    pub fn compact(&mut self, shard: ShardId, start: Start, conf: Conf) {
        if let Some(shard) = self.shards.get_mut(&shard) {
            shard.compact(start, conf);
        }
    }

    /// The connection to `peer` closed and cannot be opened again: where it led, it is forgotten at once.
    pub fn peer_gone(&mut self, peer: NodeId, now_ms: u64) {
        for shard in self.shards.values_mut().filter_map(Engine::raft_mut) {
            shard.peer_gone(peer, now_ms);
        }
    }

    /// A message to `peer` was probably lost.
    pub fn peer_unreachable(&mut self, peer: NodeId) {
        for shard in self.shards.values_mut().filter_map(Engine::raft_mut) {
            shard.peer_unreachable(peer);
        }
    }

    /// Leader: the snapshot for `to` arrived there (`ok`) or failed. Every need that was handed out must get an
    /// answer, or that peer is fed nothing more while this node leads.
    pub fn snapshot_result(&mut self, shard: ShardId, to: NodeId, ok: bool) {
        if let Some(shard) = self.raft_mut(shard) {
            shard.snapshot_result(to, ok);
        }
    }

    /// Follower: all data of the snapshot in `message` is here and durable. True if it was accepted: then the
    /// next poll asks for its installation. Otherwise the data is not needed.
    pub fn snapshot_offered(&mut self, shard: ShardId, from: NodeId, message: Message) -> bool {
        match self.shards.get_mut(&shard) {
            Some(found) if message.shard == shard => found.snapshot_offered(from, message),
            _ => false,
        }
    }

    /// Follower: the state of the snapshot at `start` is loaded and durable. Until then, and until the batch with
    /// the restart is durable, the leader hears nothing of it.
    pub fn snapshot_installed(&mut self, shard: ShardId, start: Start, conf: Conf) {
        if let Some(shard) = self.shards.get_mut(&shard) {
            shard.snapshot_installed(start, conf);
        }
    }

    /// The database answered a question.
    pub fn database_answered(&mut self, shard: ShardId, id: u64, answer: Answer, now_ms: u64) {
        if let Some(shard) = self.shards.get_mut(&shard).and_then(Engine::lease_mut) {
            shard.answered(id, answer, now_ms);
        }
    }

    /// The database says that a shard's log or lease changed.
    pub fn database_changed(&mut self, shard: ShardId, now_ms: u64) {
        if let Some(shard) = self.shards.get_mut(&shard).and_then(Engine::lease_mut) {
            shard.notified(now_ms);
        }
    }

    /// Who the members are, where the log does not say: logs in a database.
    pub fn set_members(&mut self, conf: &Conf) {
        for shard in self.shards.values_mut().filter_map(Engine::lease_mut) {
            shard.set_conf(conf.clone());
        }
    }

    /// How long this node lets others go first when a lease is free.
    pub fn set_turn(&mut self, shard: ShardId, turn_ms: u64) {
        if let Some(shard) = self.shards.get_mut(&shard).and_then(Engine::lease_mut) {
            shard.set_turn(turn_ms);
        }
    }

    /// Hands out everything there is to do. The outbox is emptied first.
    pub fn poll(&mut self, out: &mut Outbox) {
        out.clear();
        let records = std::mem::take(&mut self.beginnings);
        let must_sync = !records.is_empty();
        let mut io = Io { seq: self.next_seq, records, must_sync };
        for shard in self.shards.values_mut() {
            shard.drain(&mut io, out);
        }
        if !io.records.is_empty() {
            self.next_seq += 1;
            out.io = Some(io);
        }
    }

    fn shard_mut(&mut self, shard: ShardId) -> Result<&mut Engine, NotLeader> {
        self.shards.get_mut(&shard).ok_or(NotLeader { leader: None })
    }

    fn raft_mut(&mut self, shard: ShardId) -> Option<&mut Shard> {
        self.shards.get_mut(&shard).and_then(Engine::raft_mut)
    }
}

/// What can be asked without changing anything. Unknown shards give the empty answer.
impl Consensus {
    /// This node.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// The open shards, sorted.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.shards.keys().copied()
    }

    /// This node's role.
    pub fn role(&self, shard: ShardId) -> Option<Role> {
        self.shards.get(&shard).map(Engine::role)
    }

    /// The current term; 0 for an unknown shard.
    pub fn term(&self, shard: ShardId) -> u64 {
        self.shards.get(&shard).map_or(0, Engine::term)
    }

    /// The proven leader of the current term.
    pub fn leader(&self, shard: ShardId) -> Option<NodeId> {
        self.shards.get(&shard).and_then(Engine::leader)
    }

    /// The node voted for in the current term.
    pub fn vote(&self, shard: ShardId) -> Option<NodeId> {
        self.shards.get(&shard).and_then(Engine::vote)
    }

    /// The known commit index.
    pub fn commit(&self, shard: ShardId) -> u64 {
        self.shards.get(&shard).map_or(0, Engine::commit)
    }

    /// The last index of the log, durable or not.
    pub fn last_index(&self, shard: ShardId) -> u64 {
        self.shards.get(&shard).map_or(0, Engine::last_index)
    }

    /// Where this node stands in the shard, all at once; absent for an unknown shard.
    pub fn standing(&self, shard: ShardId) -> Option<Standing> {
        self.shards.get(&shard).map(Engine::standing)
    }

    /// The first index that is still in memory.
    pub fn first_index(&self, shard: ShardId) -> u64 {
        self.shards.get(&shard).map_or(0, Engine::first_index)
    }

    /// The membership in force.
    pub fn conf(&self, shard: ShardId) -> Conf {
        self.shards.get(&shard).map_or_else(Conf::default, Engine::conf)
    }

    /// The membership of the newest change that was applied, without a copy.
    pub fn conf_applied(&self, shard: ShardId) -> &Conf {
        self.shards.get(&shard).map_or(&NO_CONF, Engine::conf_applied)
    }

    /// The membership as of `index`, which must not be below the last snapshot point.
    pub fn conf_at(&self, shard: ShardId, index: u64) -> Option<Conf> {
        self.shards.get(&shard).and_then(|shard| shard.conf_at(index))
    }

    /// A leader's view of the other members, sorted by node; empty elsewhere.
    pub fn progress(&self, shard: ShardId) -> Vec<PeerProgress> {
        self.shards.get(&shard).map_or_else(Vec::new, Engine::progress)
    }

    /// The node that leadership is being handed to.
    pub fn transferring(&self, shard: ShardId) -> Option<NodeId> {
        self.shards.get(&shard).and_then(Engine::transferring)
    }

    /// Whether the shard's log is damaged and not yet repaired.
    pub fn is_repairing(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_some_and(Engine::is_repairing)
    }

    /// Whether a leader has committed an entry of its own term, so that reads and changes can go ahead.
    pub fn is_settled(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_some_and(Engine::is_settled)
    }

    /// The term of the entry at `index`, if the log still knows it.
    pub fn term_at(&self, shard: ShardId, index: u64) -> Option<u64> {
        self.shards.get(&shard).and_then(|shard| shard.term_at(index))
    }

    /// Entries from `low` up to and including `high`, as far as they are in memory.
    pub fn entries(&self, shard: ShardId, low: u64, high: u64) -> Vec<Entry> {
        self.shards.get(&shard).map_or_else(Vec::new, |shard| shard.entries(low, high))
    }
}
