//! One node's replica of all shards. This file holds the parts together and routes inputs; every rule lives in a file of
//! its own (gate: what a leader decides; origin: what a call collects; leg: how a leader is found; turn: what a turn
//! does; snapshot, liveness, clock, hashes, outbox: what their names say).
//!
//! Promise: pure. The same inputs at the same times give the same outputs, byte for byte.

use std::collections::BTreeMap;

use ikada_consensus::{Consensus, NodeId, OpenError, Outbox, Recovered};
use ikada_state::{
    BucketName, Command, Member, Namespace, Order, Shard, ShardId, Sweep, TaskId, Void,
    routing_key, slot_of,
};

use crate::call::CallId;
use crate::clock::WallClocks;
use crate::config::ReplicaConfig;
use crate::database::DatabaseWatch;
use crate::disk::DiskWatch;
use crate::events::Events;
use crate::hashes::Hashes;
use crate::leg::Legs;
use crate::members::Tending;
use crate::origin::OpenCall;
use crate::output::{Halt, Input, Now, Outputs};
use crate::peer::{Framer, Header, PeerMessage};
use crate::schedule::Planner;
use crate::seat::Seat;
use crate::snapshot::Transfers;

/// A frame is closed once it is this long; a single longer message still travels alone.
const FRAME_BYTES_MAX: usize = 4 << 20;

/// What is known of a peer.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Peer {
    pub up: bool,
    pub heard_ms: Option<u64>,
    /// Its disk stands still, by its own word, which counts until then.
    pub disk_still_until_ms: Option<u64>,
    /// Its disk has hardly any room left, by its own word, which counts until then.
    pub disk_low_until_ms: Option<u64>,
    /// What its program understands, by its own word over this connection.
    pub level: Option<u32>,
}

/// One node's share of the cluster.
pub struct Replica {
    pub(crate) config: ReplicaConfig,
    pub(crate) consensus: Consensus,
    pub(crate) seats: Vec<Seat>,
    pub(crate) legs: Legs,
    pub(crate) calls: BTreeMap<CallId, OpenCall>,
    pub(crate) reads_gathered: BTreeMap<ShardId, Vec<CallId>>,
    pub(crate) reads_waiting: Vec<CallId>,
    /// Calls that wait for leases, or for news of them.
    pub(crate) lease_calls: Vec<CallId>,
    pub(crate) lease_changes_seen: u64,
    pub(crate) read_count: u64,
    pub(crate) claim_turn: usize,
    pub(crate) peers: BTreeMap<NodeId, Peer>,
    /// How far other nodes are in each shard, where logs live in a database.
    pub(crate) reaches: BTreeMap<NodeId, Vec<u64>>,
    pub(crate) clocks: WallClocks,
    pub(crate) hashes: Hashes,
    pub(crate) transfers: Transfers,
    pub(crate) events: Events,
    pub(crate) tending: Tending,
    pub(crate) disk: DiskWatch,
    pub(crate) database: DatabaseWatch,
    /// Instants to come; empty unless this node leads shard 0.
    pub(crate) planner: Planner,
    /// The added shard whose first state is being written.
    pub(crate) opening: Option<ShardId>,
    /// Messages between shards wait that need not wait for a tick.
    pub(crate) outbox_due: bool,
    /// The frames of this turn, sorted by addressee.
    pub(crate) framers: Vec<(NodeId, Framer)>,
    pub(crate) outbox: Outbox,
    pub(crate) outputs: Outputs,
    pub(crate) stopping_since_ms: Option<u64>,
    pub(crate) applied_orders: u64,
    pub(crate) proposed_entries: u64,
    pub(crate) clock_watched_ms: u64,
    /// The wall clock of this turn, for frame headers.
    pub(crate) wall_ms: u64,
}

impl Replica {
    /// A replica of the given shards (all of them, in order from 0), each with what its disk holds.
    pub fn new(
        config: ReplicaConfig,
        shards: Vec<(Recovered, Shard)>,
        now: Now,
    ) -> Result<Self, OpenError> {
        assert!(!shards.is_empty(), "a node has at least shard 0");
        let mut consensus = Consensus::new(config.consensus.clone());
        let mut seats = Vec::with_capacity(shards.len());
        for (position, (recovered, state)) in shards.into_iter().enumerate() {
            let shard = position as ShardId;
            consensus.open(shard, recovered, now.mono_ms)?;
            seats.push(Seat::new(shard, state));
        }
        let legs = Legs::starting(config.consensus.seed);
        let mut replica = Replica {
            config,
            consensus,
            seats,
            legs,
            calls: BTreeMap::new(),
            reads_gathered: BTreeMap::new(),
            reads_waiting: Vec::new(),
            lease_calls: Vec::new(),
            lease_changes_seen: 0,
            read_count: 0,
            claim_turn: 0,
            peers: BTreeMap::new(),
            reaches: BTreeMap::new(),
            clocks: WallClocks::default(),
            hashes: Hashes::default(),
            transfers: Transfers::default(),
            events: Events::default(),
            tending: Tending::default(),
            disk: DiskWatch::default(),
            database: DatabaseWatch::default(),
            planner: Planner::default(),
            opening: None,
            outbox_due: false,
            framers: Vec::new(),
            outbox: Outbox::default(),
            outputs: Outputs::default(),
            stopping_since_ms: None,
            applied_orders: 0,
            proposed_entries: 0,
            clock_watched_ms: now.mono_ms,
            wall_ms: now.wall_ms,
        };
        if replica.is_leased() {
            replica.take_turns();
        }
        Ok(replica)
    }

    /// Takes one input in. Outputs gather until `poll`.
    pub fn step(&mut self, input: Input, now: Now) {
        self.wall_ms = now.wall_ms;
        match input {
            Input::Call(call) => self.open_call(call, now),
            Input::CallGone(call) => self.call_gone(call, now),
            Input::Frame(from, frame) => self.frame(from, frame, now),
            Input::PeerUp(peer) => self.peers.entry(peer).or_default().up = true,
            Input::PeerDown { peer, refused } => self.peer_down(peer, refused, now),
            Input::Persisted(sequence) => {
                self.disk.persisted(sequence, now);
                self.consensus.persisted(sequence);
            }
            Input::DiskLow(is_low) => self.disk.is_low = is_low,
            Input::Tick => self.tick(now),
            Input::Snapshot(done) => self.snapshot_done(done, now),
            Input::Removed => {
                self.outputs.halt = Some(Halt::Removed { node: self.config.node });
            }
            Input::Database(told) => self.database_told(told, now),
            Input::Stop => {
                self.stopping_since_ms.get_or_insert(now.mono_ms);
                self.hand_over();
            }
        }
    }

    /// When `Input::Tick` is wanted next.
    pub fn next_wake_ms(&self) -> u64 {
        self.consensus.next_wake_ms()
    }

    /// The consensus engine, for checks and status.
    pub fn consensus(&self) -> &Consensus {
        &self.consensus
    }

    /// The state of one shard, for checks and status.
    pub fn shard(&self, shard: ShardId) -> Option<&Shard> {
        self.seats.get(usize::from(shard)).map(|seat| &seat.state)
    }

    /// Orders applied and entries proposed by this process, for metrics.
    pub fn work_done(&self) -> (u64, u64) {
        (self.applied_orders, self.proposed_entries)
    }

    pub(crate) fn members(&self) -> &[Member] {
        self.seats[0].state.members()
    }

    /// The shard that an order belongs to.
    pub(crate) fn shard_of(&self, order: &Order) -> ShardId {
        if let Some(id) = order.command.task() {
            return self.shard_of_task(&order.namespace, id);
        }
        match &order.command {
            // These name their shard. One that is not open here yet has no leader that this node knows of: they wait.
            Command::Sweep(Sweep { shard, .. }) | Command::Void(Void { shard, .. }) => *shard,
            // All others are for shard 0, or are sent to their shard by whoever makes them.
            command => {
                let key = command.routing_key();
                key.map_or(0, |key| self.shard_of_key(&order.namespace, key))
            }
        }
    }

    /// The shard that a task lives in.
    pub(crate) fn shard_of_task(&self, namespace: &Namespace, id: &TaskId) -> ShardId {
        self.shard_of_key(namespace, id.routing_key())
    }

    /// The shard that an object lives in, with all others of its bucket, task or job.
    pub(crate) fn shard_of_object(
        &self,
        namespace: &Namespace,
        bucket: &BucketName,
        name: &str,
    ) -> ShardId {
        self.shard_of_key(namespace, routing_key(bucket, name))
    }

    pub(crate) fn shard_of_key(&self, namespace: &Namespace, routing_key: &str) -> ShardId {
        // A shard that is not open here yet has no leader that this node knows of: whoever asks waits.
        let map = self.seats[0].state.slot_map();
        map.map_or(0, |map| map.shard(slot_of(namespace, routing_key)))
    }

    /// Version of the map that this node routes by.
    pub(crate) fn map_version(&self) -> u64 {
        self.seats[0].state.slot_map().map_or(0, |map| map.version())
    }

    /// Puts a message into the peer's next frame.
    pub(crate) fn send(&mut self, to: NodeId, message: &PeerMessage) {
        let place = self.framers.binary_search_by_key(&to, |(node, _)| *node);
        let position = place.unwrap_or_else(|position| {
            self.framers.insert(position, (to, Framer::new()));
            position
        });
        let framer = &mut self.framers[position].1;
        framer.push(message);
        if framer.len() >= FRAME_BYTES_MAX {
            let framer = std::mem::take(framer);
            let frame = framer.finish(&self.header(to));
            self.outputs.frames.push((to, frame));
        }
    }

    /// Closes all frames of this turn.
    pub(crate) fn close_frames(&mut self) {
        // The list comes back empty, with its room.
        let mut framers = std::mem::take(&mut self.framers);
        for (to, framer) in framers.drain(..) {
            if !framer.is_empty() {
                self.outputs.frames.push((to, framer.finish(&self.header(to))));
            }
        }
        self.framers = framers;
    }

    fn header(&self, to: NodeId) -> Header {
        let member = self.members().iter().find(|member| member.node == to);
        Header {
            cluster: self.config.cluster,
            from: self.config.node,
            from_incarnation: self.config.incarnation,
            to,
            to_incarnation: member.map_or(0, |member| member.incarnation),
            wall_ms: self.wall_ms,
        }
    }
}
