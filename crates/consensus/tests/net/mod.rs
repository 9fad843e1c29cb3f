//! A small world around `Consensus`: nodes, disks that lose what was not synced, and a network with delays and
//! cuts. It checks after every event that a term has one leader, that applied entries agree and that nobody
//! reports a fault. Time moves in steps of one millisecond; all chance comes from one seed.

#![allow(dead_code)]

mod disk;
pub mod storm;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use ikada_consensus::{
    Conf, Config, Consensus, Entry, Message, NodeId, Outbox, Recovered, Role, RoleChange, ShardId,
    Start,
};

pub use disk::Disk;

/// The shard that most tests use.
pub const SHARD: ShardId = 0;

/// One node: its process, if it runs, and its disk.
pub struct Node {
    pub running: Option<Consensus>,
    pub disk: Disk,
    /// Batches on their way to the disk, with the time at which each is durable.
    pub writes: VecDeque<(u64, ikada_consensus::Io)>,
    pub applied: u64,
    pub reads: Vec<(u64, u64)>,
    pub reads_lost: Vec<u64>,
    pub roles: Vec<RoleChange>,
    /// Milliseconds that a sync takes.
    pub sync_ms: u64,
}

/// The world.
pub struct Net {
    pub now_ms: u64,
    pub seed: u64,
    pub nodes: BTreeMap<NodeId, Node>,
    pub rng: fastrand::Rng,
    /// Directed links that lose everything.
    pub cuts: BTreeSet<(NodeId, NodeId)>,
    /// Chance in percent that a message is lost, and that it comes twice.
    pub loss: u8,
    pub duplicates: u8,
    /// Messages on their way, by time of arrival and order of sending.
    wire: BTreeMap<(u64, u64), (NodeId, NodeId, Packet)>,
    sent: u64,
    /// Leader of each term.
    pub leaders: BTreeMap<u64, NodeId>,
    /// Membership after each change entry that was applied anywhere, by index.
    pub confs: BTreeMap<u64, Conf>,
    /// What was applied anywhere, by index.
    pub history: BTreeMap<u64, Entry>,
    /// One line per observable output, for comparisons of whole runs.
    pub trace: Vec<String>,
    /// Adjusts settings of new processes.
    pub tune: fn(&mut Config),
    /// Starts so far: every process draws from its own seed.
    starts: u64,
    /// Applied anywhere when each read was asked, by its id.
    asked: BTreeMap<u64, u64>,
    /// A node whose disk was damaged and that is not repaired yet.
    pub damaged: Option<NodeId>,
    /// Faults seen are allowed (hostile tests only).
    pub allow_faults: bool,
    pub faults: Vec<String>,
    /// Appends sent so far: with entries, and without.
    pub appends: (usize, usize),
}

enum Packet {
    Frame(Bytes),
    Snapshot(Bytes),
}

impl Net {
    /// Bootstrapped voters, all running.
    pub fn new(seed: u64, voters: &[NodeId]) -> Net {
        Net::tuned(seed, voters, |_| {})
    }

    pub fn tuned(seed: u64, voters: &[NodeId], tune: fn(&mut Config)) -> Net {
        let mut net = Net {
            now_ms: 1_000,
            seed,
            nodes: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(seed),
            cuts: BTreeSet::new(),
            loss: 0,
            duplicates: 0,
            wire: BTreeMap::new(),
            sent: 0,
            leaders: BTreeMap::new(),
            confs: BTreeMap::new(),
            history: BTreeMap::new(),
            trace: Vec::new(),
            tune,
            starts: 0,
            asked: BTreeMap::new(),
            damaged: None,
            allow_faults: false,
            faults: Vec::new(),
            appends: (0, 0),
        };
        for node in voters {
            let conf = Conf::of_voters(voters.iter().copied());
            net.add(*node, Recovered::bootstrap(conf));
        }
        net
    }

    /// Adds a node with this disk and starts it.
    pub fn add(&mut self, node: NodeId, recovered: Recovered) {
        let disk = Disk::new(recovered);
        let fresh = Node {
            running: None,
            disk,
            writes: VecDeque::new(),
            applied: 0,
            reads: Vec::new(),
            reads_lost: Vec::new(),
            roles: Vec::new(),
            sync_ms: 1,
        };
        self.nodes.insert(node, fresh);
        self.start(node);
    }

    /// Starts the process of a node from its disk.
    pub fn start(&mut self, node: NodeId) {
        self.starts += 1;
        let mut config = Config::new(node, self.seed.wrapping_add(self.starts << 32));
        (self.tune)(&mut config);
        let now_ms = self.now_ms;
        let found = self.nodes.get_mut(&node).expect("known node");
        assert!(found.running.is_none(), "node {node} runs already");
        let mut consensus = Consensus::new(config);
        let recovered = found.disk.recover();
        found.applied = recovered.start.index;
        consensus.open(SHARD, recovered, now_ms).expect("a disk that can be opened");
        found.running = Some(consensus);
        self.work(node);
    }

    /// Kills the process: all that was not synced is lost.
    pub fn kill(&mut self, node: NodeId) {
        let found = self.nodes.get_mut(&node).expect("known node");
        found.running = None;
        found.writes.clear();
    }

    /// Kills a process and lets the others notice that its connection is refused.
    pub fn kill_loudly(&mut self, node: NodeId) {
        self.kill(node);
        // Whoever sees a closed connection has read all that came over it.
        self.drop_sent(node);
        for peer in self.running() {
            let now_ms = self.now_ms;
            self.at(peer).peer_gone(node, now_ms);
            self.work(peer);
        }
    }

    /// Loses what a node has sent and nobody received yet.
    pub fn drop_sent(&mut self, node: NodeId) {
        self.wire.retain(|_, (from, _, _)| *from != node);
    }

    pub fn running(&self) -> Vec<NodeId> {
        let alive = self.nodes.iter().filter(|(_, node)| node.running.is_some());
        alive.map(|(id, _)| *id).collect()
    }

    pub fn at(&mut self, node: NodeId) -> &mut Consensus {
        let found = self.nodes.get_mut(&node).expect("known node");
        found.running.as_mut().expect("running node")
    }

    pub fn see(&self, node: NodeId) -> &Consensus {
        self.nodes[&node].running.as_ref().expect("running node")
    }

    /// Cuts both directions between two nodes.
    pub fn cut(&mut self, one: NodeId, other: NodeId) {
        self.cuts.insert((one, other));
        self.cuts.insert((other, one));
    }

    /// Cuts a node off from everybody.
    pub fn isolate(&mut self, node: NodeId) {
        for other in self.nodes.keys().copied().collect::<Vec<_>>() {
            if other != node {
                self.cut(node, other);
            }
        }
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    /// Lets time pass.
    pub fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms {
            self.step();
        }
    }

    /// Lets time pass until `done`, at most `limit_ms`; false if it never came.
    pub fn run_until(&mut self, limit_ms: u64, mut done: impl FnMut(&Net) -> bool) -> bool {
        for _ in 0..limit_ms {
            if done(self) {
                return true;
            }
            self.step();
        }
        done(self)
    }

    /// One millisecond.
    fn step(&mut self) {
        self.now_ms += 1;
        while let Some(entry) = self.wire.first_entry() {
            if entry.key().0 > self.now_ms {
                break;
            }
            let (from, to, packet) = entry.remove();
            self.deliver(from, to, packet);
        }
        for node in self.running() {
            self.finish_writes(node);
            let now_ms = self.now_ms;
            if self.see(node).next_wake_ms() <= now_ms {
                self.at(node).tick(now_ms);
                self.work(node);
            }
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, packet: Packet) {
        if self.cuts.contains(&(from, to)) || self.nodes[&to].running.is_none() {
            if matches!(packet, Packet::Snapshot(_)) {
                self.report_snapshot(from, to, false);
            }
            return;
        }
        let now_ms = self.now_ms;
        match packet {
            Packet::Frame(bytes) => {
                let message = Message::decode(bytes).expect("own encoding");
                self.at(to).receive(from, message, now_ms);
            }
            Packet::Snapshot(bytes) => {
                let message = Message::decode(bytes).expect("own encoding");
                self.at(to).snapshot_offered(SHARD, from, message);
                self.report_snapshot(from, to, true);
            }
        }
        self.work(to);
    }

    fn report_snapshot(&mut self, from: NodeId, to: NodeId, ok: bool) {
        if self.nodes[&from].running.is_some() {
            self.at(from).snapshot_result(SHARD, to, ok);
            self.work(from);
        }
    }

    fn finish_writes(&mut self, node: NodeId) {
        let now_ms = self.now_ms;
        let found = self.nodes.get_mut(&node).expect("known node");
        let mut durable = None;
        while found.writes.front().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
            let (_, io) = found.writes.pop_front().expect("just seen");
            found.disk.write(&io);
            durable = Some(io.seq);
        }
        if let Some(seq) = durable {
            self.at(node).persisted(seq);
            self.work(node);
        }
    }
}

/// What tests ask and do.
impl Net {
    /// The running leader of the highest term, if a majority could follow it.
    pub fn leader(&self) -> Option<NodeId> {
        let running = self.running();
        let leading =
            running.into_iter().filter(|node| self.see(*node).role(SHARD) == Some(Role::Leader));
        leading.max_by_key(|node| self.see(*node).term(SHARD))
    }

    /// Waits until one leader is settled and all running members that it can reach follow it.
    pub fn settle(&mut self) -> NodeId {
        let found = self.run_until(10_000, |net| {
            let Some(leader) = net.leader() else {
                return false;
            };
            let term = net.see(leader).term(SHARD);
            let conf = net.see(leader).conf(SHARD);
            let reached =
                |node: &NodeId| conf.is_member(*node) && !net.cuts.contains(&(leader, *node));
            let follows = |node: NodeId| {
                net.see(node).leader(SHARD) == Some(leader) && net.see(node).term(SHARD) == term
            };
            let mut others = net.running().into_iter().filter(reached);
            net.see(leader).is_settled(SHARD) && others.all(follows)
        });
        assert!(found, "no leader after 10 s (seed {}): {}", self.seed, self.describe());
        self.leader().expect("just seen")
    }

    /// One line per running node, for failure messages.
    pub fn describe(&self) -> String {
        let lines = self.running().into_iter().map(|node| {
            let see = self.see(node);
            let (role, term) = (see.role(SHARD), see.term(SHARD));
            let (commit, last) = (see.commit(SHARD), see.last_index(SHARD));
            let (conf, is_repairing) = (see.conf(SHARD), see.is_repairing(SHARD));
            format!("\n{node}: {role:?} term {term} commit {commit} last {last} repairing {is_repairing} {conf:?}")
        });
        lines.collect()
    }

    /// Proposes at the leader and waits until it is applied there; again elsewhere if that leader falls.
    pub fn commit(&mut self, payload: &str) -> u64 {
        for _ in 0..5 {
            let leader = self.settle();
            let Ok((term, index)) = self.propose(leader, payload) else {
                continue;
            };
            let is_over = |net: &Net| {
                let is_applied = net.nodes[&leader].applied >= index;
                is_applied || net.see(leader).term(SHARD) != term
            };
            assert!(self.run_until(5_000, is_over), "{payload} hangs (seed {})", self.seed);
            if self.history.get(&index).is_some_and(|entry| entry.term == term) {
                return index;
            }
        }
        panic!("{payload} finds no lasting leader (seed {})", self.seed);
    }

    pub fn propose(
        &mut self,
        node: NodeId,
        payload: &str,
    ) -> Result<(u64, u64), ikada_consensus::NotLeader> {
        let proposed = self.at(node).propose(SHARD, Bytes::from(payload.to_owned()));
        self.work(node);
        proposed
    }

    /// Asks for a read with a fresh id, if the node leads.
    pub fn read(&mut self, node: NodeId) {
        let id = self.asked.len() as u64;
        let last = self.history.last_key_value().map_or(0, |(index, _)| *index);
        self.asked.insert(id, last);
        let _ = self.at(node).read(SHARD, id);
        self.work(node);
    }

    /// Kills a node and damages its disk, unless another one is damaged already.
    pub fn damage(&mut self, node: NodeId, entries: usize) {
        let is_repaired = |hurt: NodeId| {
            self.nodes[&hurt].running.as_ref().is_some_and(|node| !node.is_repairing(SHARD))
        };
        if self.damaged.is_none_or(is_repaired) {
            self.kill(node);
            self.nodes.get_mut(&node).expect("known node").disk.damage(entries);
            self.damaged = Some(node);
        }
    }

    /// Waits until all running nodes have applied the same, at least up to `index`.
    pub fn agree(&mut self, index: u64) {
        let agreed = self.run_until(10_000, |net| {
            net.running().iter().all(|node| net.nodes[node].applied >= index)
        });
        assert!(agreed, "not all applied {index} (seed {})", self.seed);
    }

    /// Takes a snapshot of what a node has applied and compacts its log.
    pub fn compact(&mut self, node: NodeId) -> Start {
        let index = self.nodes[&node].applied;
        let consensus = self.see(node);
        let term = consensus.term_at(SHARD, index).expect("applied entries are known");
        let conf = consensus.conf_at(SHARD, index).expect("conf of an applied entry");
        let start = Start { index, term };
        self.nodes.get_mut(&node).expect("known node").disk.compact(start, conf.clone());
        self.at(node).compact(SHARD, start, conf);
        self.work(node);
        start
    }

    pub fn outbox(&mut self, node: NodeId) -> Outbox {
        let mut out = Outbox::default();
        self.at(node).poll(&mut out);
        out
    }
}
