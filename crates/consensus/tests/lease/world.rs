//! Nodes around one database: clocks that drift, questions that arrive late, answers that get lost, processes that stop.
//!
//! Checked after every step: each node applies exactly the database's log, in order; an index of an epoch has one content;
//! at most one node that runs takes proposals (while clocks run within the margin); no read falls behind what any node has
//! applied; no node forgets an epoch.

use std::collections::BTreeMap;

use bytes::Bytes;
use ikada_consensus::lease::{Answer, Ask, LeaseConfig, Work};
use ikada_consensus::{
    BOOTSTRAP, Conf, Config, Consensus, Entry, Fault, IoRecord, NodeId, Outbox, Recovered, Role,
    RoleChange, Start,
};

use crate::database::{Database, Life};

/// How long a client waits for the database before it says that nobody knows.
const PATIENCE_MS: u64 = 1_000;

pub struct Node {
    pub consensus: Consensus,
    pub life: Life,
    /// Local time per 1,000 ms of the world's.
    pub rate: u64,
    pub is_paused: bool,
    /// Its questions do not reach the database.
    pub is_cut_off: bool,
    /// It was told to hand over: it takes no more proposals, and may not know yet that its lease is gone.
    is_leaving: bool,
    pub applied: Vec<Entry>,
    pub start: Start,
    pub roles: Vec<RoleChange>,
    pub faults: Vec<Fault>,
    pub reads: BTreeMap<u64, Option<u64>>,
    term: u64,
    /// How far its disk knows the log, and the chain there.
    noted: (u64, u64),
    /// How many of the applied entries were compared with the log.
    checked: usize,
}

struct Flight {
    life: Life,
    ask: Ask,
    happens_ms: u64,
    answers_ms: u64,
    answer: Option<Answer>,
    has_happened: bool,
}

pub struct World {
    pub now_ms: u64,
    pub database: Database,
    pub is_database_down: bool,
    pub nodes: BTreeMap<NodeId, Node>,
    pub rng: fastrand::Rng,
    pub delay_ms: u64,
    /// Out of a hundred: answers that are lost, works that happen only after the client gave up.
    pub lost_percent: u64,
    pub late_percent: u64,
    pub checks_one_leader: bool,
    /// The database was set back: it has more than one history, and who applies which is the test's to check.
    pub is_forked: bool,
    /// No reading of the log is answered.
    pub readings_fail: bool,
    /// Whether the database tells everybody at once when a log grew or a lease was given back.
    pub has_notices: bool,
    flights: Vec<Flight>,
    /// What somebody had applied when a read began.
    read_floors: BTreeMap<u64, u64>,
    /// Everything ever in the log, by index.
    pub written: BTreeMap<u64, Entry>,
    lives: u64,
    /// How often a node's timer fired.
    pub wakes: u64,
}

pub fn config() -> LeaseConfig {
    LeaseConfig::default()
}

impl World {
    pub fn new(seed: u64, count: u64) -> World {
        let mut world = World {
            now_ms: 0,
            database: Database::default(),
            is_database_down: false,
            nodes: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(seed),
            delay_ms: 3,
            lost_percent: 0,
            late_percent: 0,
            checks_one_leader: true,
            is_forked: false,
            readings_fail: false,
            has_notices: false,
            flights: Vec::new(),
            read_floors: BTreeMap::new(),
            written: BTreeMap::new(),
            lives: 0,
            wakes: 0,
        };
        for node in 1..=count {
            world.start(node, 1_000);
        }
        world
    }

    /// Starts a process, from the beginning of the log or, where that is purged, from a snapshot.
    pub fn start(&mut self, node: NodeId, rate: u64) {
        self.lives += 1;
        let life = Life { node, number: self.lives };
        let mut config = Config::new(node, self.rng.u64(..));
        config.lease = Some(crate::world::config());
        let term = self.nodes.get(&node).map_or(BOOTSTRAP.term, |node| node.term);
        let start = self.snapshot();
        let conf = Conf::of_voters(1..=self.nodes.len().max(3) as u64);
        let (index, chain) = self.nodes.get(&node).map_or((0, 0), |node| node.noted);
        let recovered =
            Recovered { term, start, noted: index, vote: chain, ..Recovered::bootstrap(conf) };
        let mut consensus = Consensus::new(config);
        consensus.open(0, recovered, self.now_ms * rate / 1_000).unwrap();
        let node = Node {
            consensus,
            life,
            rate,
            is_paused: false,
            is_cut_off: false,
            is_leaving: false,
            applied: Vec::new(),
            start,
            roles: Vec::new(),
            faults: Vec::new(),
            reads: BTreeMap::new(),
            term,
            noted: (index, chain),
            checked: 0,
        };
        self.nodes.insert(life.node, node);
    }

    /// The newest snapshot that the database could have: at the point where the log begins.
    fn snapshot(&self) -> Start {
        let index = self.database.purged_index;
        let term = self.written.get(&index).map_or(BOOTSTRAP.term, |entry| entry.term);
        Start { index, term }
    }

    pub fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
        }
    }

    /// One millisecond.
    pub fn step(&mut self) {
        self.now_ms += 1;
        self.database.clock_ms += 1;
        self.carry_out_works();
        self.deliver_answers();
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for id in ids {
            self.turn(id);
        }
        self.check();
    }

    fn local_ms(&self, node: NodeId) -> u64 {
        self.now_ms * self.nodes[&node].rate / 1_000
    }

    fn turn(&mut self, id: NodeId) {
        let now_ms = self.local_ms(id);
        let node = self.nodes.get_mut(&id).unwrap();
        if node.is_paused {
            return;
        }
        if node.consensus.next_wake_ms() <= now_ms {
            node.consensus.tick(now_ms);
            self.wakes += 1;
        }
        self.drain(id);
    }

    fn drain(&mut self, id: NodeId) {
        let mut out = Outbox::default();
        let node = self.nodes.get_mut(&id).unwrap();
        node.consensus.poll(&mut out);
        for (_, entries) in out.apply.drain(..) {
            let last = entries.last().map_or(0, |entry| entry.index);
            node.applied.extend(entries);
            node.consensus.applied(0, last);
        }
        for (_, read, index) in out.reads.drain(..) {
            let floor = self.read_floors.get(&read).copied().unwrap_or(0);
            assert!(
                self.is_forked || index >= floor,
                "read {read} is answered at {index}, but {floor} was seen"
            );
            node.reads.insert(read, Some(index));
        }
        for (_, read) in out.reads_lost.drain(..) {
            node.reads.remove(&read);
        }
        for record in out.io.iter().flat_map(|io| &io.records) {
            if let IoRecord::Hard { commit, vote, .. } = record {
                assert!(*commit >= node.noted.0, "disk is told less than it knows");
                node.noted = (*commit, *vote);
            }
        }
        node.roles.append(&mut out.roles);
        node.faults.append(&mut out.faults);
        let term = node.consensus.term(0);
        assert!(term >= node.term, "P2: node {id} forgets epoch {} for {term}", node.term);
        node.term = term;
        let life = node.life;
        if !out.snapshots_behind.is_empty() {
            let start = self.snapshot();
            let node = self.nodes.get_mut(&id).unwrap();
            let conf = node.consensus.conf(0);
            (node.start, node.applied, node.checked) = (start, Vec::new(), 0);
            node.consensus.snapshot_installed(0, start, conf);
        }
        for ask in out.asks {
            self.fly(life, ask);
        }
    }

    fn fly(&mut self, life: Life, ask: Ask) {
        let happens_ms = self.now_ms + self.rng.u64(0..=self.delay_ms);
        let mut answers_ms = happens_ms + self.rng.u64(0..=self.delay_ms);
        let mut happens_ms = happens_ms;
        if self.rng.u64(0..100) < self.late_percent {
            answers_ms = self.now_ms + PATIENCE_MS;
            happens_ms = answers_ms + self.rng.u64(0..9_000);
        } else if self.rng.u64(0..100) < self.lost_percent {
            answers_ms = self.now_ms + PATIENCE_MS;
        }
        let answer = (answers_ms == self.now_ms + PATIENCE_MS).then_some(Answer::Failed);
        let has_happened = false;
        self.flights.push(Flight { life, ask, happens_ms, answers_ms, answer, has_happened });
    }

    /// What a node has asked gets stuck on the way, and happens long after the node gave up waiting.
    pub fn stall(&mut self, node: NodeId) {
        for flight in self.flights.iter_mut().filter(|flight| flight.life.node == node) {
            if !flight.has_happened {
                flight.happens_ms = self.now_ms + self.rng.u64(3_000..9_000);
                flight.answer = Some(Answer::Failed);
            }
        }
    }

    fn carry_out_works(&mut self) {
        for position in 0..self.flights.len() {
            let flight = &mut self.flights[position];
            if flight.has_happened || flight.happens_ms > self.now_ms {
                continue;
            }
            flight.has_happened = true;
            let cut_off = |node: &Node| node.life == flight.life && node.is_cut_off;
            let is_cut_off = self.nodes.get(&flight.life.node).is_some_and(cut_off);
            let is_reading = matches!(flight.ask.work, Work::Read { .. });
            let fails = self.is_database_down || is_cut_off || self.readings_fail && is_reading;
            let answer = match fails {
                true => Answer::Failed,
                false => self.database.carry_out(flight.life, &flight.ask.work),
            };
            let is_news = matches!(answer, Answer::Appended { .. })
                || matches!(flight.ask.work, Work::Release { .. });
            flight.answer.get_or_insert(answer);
            if is_news && self.has_notices {
                self.notify();
            }
        }
        self.note_written();
    }

    fn notify(&mut self) {
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for id in ids {
            let local_ms = self.local_ms(id);
            let node = self.nodes.get_mut(&id).unwrap();
            if !node.is_paused && !node.is_cut_off {
                node.consensus.database_changed(0, local_ms);
            }
        }
    }

    fn deliver_answers(&mut self) {
        let (now_ms, mut kept) = (self.now_ms, Vec::new());
        for mut flight in std::mem::take(&mut self.flights) {
            let node = self.nodes.get(&flight.life.node);
            let reachable = node.is_some_and(|node| node.life == flight.life && !node.is_paused);
            if flight.answers_ms <= now_ms
                && reachable
                && let Some(answer) = flight.answer.take()
            {
                let local_ms = self.local_ms(flight.life.node);
                let node = self.nodes.get_mut(&flight.life.node).unwrap();
                node.consensus.database_answered(0, flight.ask.id, answer, local_ms);
                flight.answers_ms = u64::MAX;
            }
            let is_over = flight.has_happened && flight.answers_ms == u64::MAX;
            let is_orphan = flight.has_happened && node_is_gone(&self.nodes, flight.life);
            if !is_over && !is_orphan {
                kept.push(flight);
            }
        }
        self.flights = kept;
    }

    pub fn leader(&self) -> Option<NodeId> {
        let leads = |node: &&Node| !node.is_paused && node.consensus.role(0) == Some(Role::Leader);
        self.nodes.values().find(leads).map(|node| node.life.node)
    }

    pub fn transfer(&mut self, from: NodeId, to: NodeId) -> bool {
        let Some(node) = self.nodes.get_mut(&from) else { return false };
        let is_taken = node.consensus.transfer(0, to).is_ok();
        node.is_leaving |= is_taken;
        is_taken
    }

    pub fn propose(&mut self, node: NodeId, text: &str) -> Option<(u64, u64)> {
        let found = self.nodes.get_mut(&node)?;
        found.consensus.propose(0, Bytes::copy_from_slice(text.as_bytes())).ok()
    }

    /// Begins a read on a node that takes itself for the leader, rightly or not; its answer is checked as it comes.
    pub fn read(&mut self, node: NodeId) -> bool {
        let id = self.read_floors.len() as u64 + 1;
        let seen = self.nodes.values().filter_map(|node| node.applied.last());
        let floor = seen.map(|entry| entry.index).max().unwrap_or(0);
        let begins = self.nodes.get_mut(&node).is_some_and(|it| it.consensus.read(0, id).is_ok());
        if begins {
            self.read_floors.insert(id, floor);
        }
        begins
    }

    /// Whether a node has applied this very proposal.
    pub fn is_applied(&self, node: NodeId, at: (u64, u64), text: &str) -> bool {
        self.nodes[&node]
            .applied
            .iter()
            .any(|entry| (entry.term, entry.index) == at && entry.data.as_ref() == text.as_bytes())
    }

    fn check(&mut self) {
        if self.is_forked {
            return;
        }
        let mut leaders = 0;
        for node in self.nodes.values_mut() {
            for entry in &node.applied[node.checked..] {
                node.checked += 1;
                let expected = node.start.index + node.checked as u64;
                assert_eq!(entry.index, expected, "node {} skips", node.life.node);
                assert_eq!(Some(entry), self.written.get(&entry.index), "node {}", node.life.node);
            }
            let leads = node.consensus.role(0) == Some(Role::Leader);
            node.is_leaving &= leads;
            leaders += usize::from(leads && !node.is_paused && !node.is_leaving);
        }
        assert!(leaders <= 1 || !self.checks_one_leader, "{leaders} leaders at {} ms", self.now_ms);
    }

    /// Takes note of what is new in the log.
    fn note_written(&mut self) {
        if self.is_forked {
            return;
        }
        let next = self.written.last_key_value().map_or(0, |(index, _)| index + 1);
        let first = self.database.log.first().map_or(next, |entry| entry.index);
        for entry in self.database.log.iter().skip(next.saturating_sub(first) as usize) {
            let before = self.written.last_key_value().map_or(0, |(_, entry)| entry.term);
            assert!(before <= entry.term, "P1: epochs in the log only rise");
            self.written.insert(entry.index, entry.clone());
        }
    }

    pub fn faults(&self) -> Vec<String> {
        self.nodes.values().flat_map(|node| &node.faults).map(|fault| fault.what.clone()).collect()
    }
}

fn node_is_gone(nodes: &BTreeMap<NodeId, Node>, life: Life) -> bool {
    nodes.get(&life.node).is_none_or(|node| node.life != life)
}
