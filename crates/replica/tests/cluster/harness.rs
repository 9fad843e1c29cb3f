//! Three replicas, a queue of frames, and a clock that the test turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use ikada_replica::call::{Answer, Call, ClaimCall, Request, Routing};
use ikada_replica::consensus::{Conf, Recovered, Role};
use ikada_replica::output::{Input, Now, Outputs, SnapshotDone, SnapshotWork};
use ikada_replica::state::{
    Command, Enqueue, Member, Namespace, Order, QueueName, RequestId, RequestKey, SessionId, Shard,
    TaskId, WorkerId,
};
use ikada_replica::{Replica, ReplicaConfig};

pub struct Cluster {
    pub nodes: BTreeMap<u64, Replica>,
    pub down: BTreeSet<u64>,
    pub cut: BTreeSet<(u64, u64)>,
    pub frames: VecDeque<(u64, u64, Bytes)>,
    pub answers: BTreeMap<u64, Answer>,
    /// Snapshot work that nobody does unless the test does.
    pub works: VecDeque<(u64, SnapshotWork)>,
    pub now: Now,
    pub shards: u16,
    /// Most frames delivered before time passes: with few, long chains of messages take their time.
    pub frames_max: usize,
    /// Nodes whose disk stands still, with the newest batch that waits for it.
    held: BTreeMap<u64, u64>,
    next_call: u64,
    appended: BTreeMap<u64, u64>,
}

impl Cluster {
    pub fn new(count: u64, shards: u16) -> Self {
        Self::with(count, shards, |_| {})
    }

    pub fn with(count: u64, shards: u16, tune: impl Fn(&mut ReplicaConfig)) -> Self {
        let now = Now { mono_ms: 1_000, wall_ms: 1_700_000_000_000 };
        let members: Vec<Member> = (1..=count)
            .map(|node| Member {
                node,
                incarnation: node * 7,
                peer_addr: format!("peer{node}"),
                client_addr: format!("client{node}"),
            })
            .collect();
        let nodes = (1..=count)
            .map(|node| {
                let mut config = ReplicaConfig::new(node, node * 7, 42, 1000 + node);
                tune(&mut config);
                let parts = (0..shards)
                    .map(|shard| {
                        let recovered = Recovered::bootstrap(Conf::of_voters(1..=count));
                        (recovered, Shard::genesis(shard, shards, &members))
                    })
                    .collect();
                (node, Replica::new(config, parts, now).expect("opens"))
            })
            .collect();
        let mut cluster = Cluster {
            nodes,
            down: BTreeSet::new(),
            cut: BTreeSet::new(),
            frames: VecDeque::new(),
            answers: BTreeMap::new(),
            works: VecDeque::new(),
            now,
            shards,
            frames_max: usize::MAX,
            held: BTreeMap::new(),
            next_call: 1,
            appended: BTreeMap::new(),
        };
        let ids: Vec<u64> = cluster.nodes.keys().copied().collect();
        for a in &ids {
            for b in &ids {
                if a != b {
                    cluster.step(*a, Input::PeerUp(*b));
                }
            }
        }
        cluster
    }

    pub fn step(&mut self, node: u64, input: Input) {
        if self.down.contains(&node) {
            return;
        }
        let now = self.now;
        let replica = self.nodes.get_mut(&node).expect("node");
        replica.step(input, now);
        self.turn(node);
    }

    fn turn(&mut self, node: u64) {
        loop {
            let replica = self.nodes.get_mut(&node).expect("node");
            let Outputs { io, frames, answers, snapshots, halt, .. } = replica.poll(self.now);
            assert_eq!(halt, None, "node {node}");
            for (to, frame) in frames {
                self.frames.push_back((node, to, frame));
            }
            self.answers.extend(answers);
            let mut again = false;
            if let Some(io) = io {
                *self.appended.entry(node).or_default() += io.records.len() as u64;
                if let Some(newest) = self.held.get_mut(&node) {
                    *newest = io.seq;
                } else {
                    let done = Input::Persisted(io.seq);
                    self.nodes.get_mut(&node).expect("node").step(done, self.now);
                }
                again = true;
            }
            for work in snapshots {
                if let SnapshotWork::Save { shard, start, conf, frozen } = work {
                    let bytes = frozen.chunks().map(|chunk| chunk.len() as u64).sum();
                    let done = SnapshotDone::Saved { shard, start, conf, bytes };
                    self.nodes.get_mut(&node).expect("node").step(Input::Snapshot(done), self.now);
                    again = true;
                } else {
                    self.works.push_back((node, work));
                }
            }
            if !again {
                return;
            }
        }
    }

    /// Delivers all frames, without letting time pass.
    pub fn deliver(&mut self) {
        for _ in 0..self.frames_max {
            let Some((from, to, frame)) = self.frames.pop_front() else {
                return;
            };
            let passes = !self.cut.contains(&(from, to))
                && !self.down.contains(&from)
                && !self.down.contains(&to);
            if passes {
                self.step(to, Input::Frame(from, frame));
            }
        }
    }

    /// Lets time pass in steps of 10 ms.
    pub fn pass(&mut self, ms: u64) {
        self.deliver();
        for _ in 0..ms.div_ceil(10) {
            self.now.mono_ms += 10;
            self.now.wall_ms += 10;
            let ids: Vec<u64> = self.nodes.keys().copied().collect();
            for node in ids {
                self.step(node, Input::Tick);
            }
            self.deliver();
        }
    }

    pub fn leader(&self, shard: u16) -> Option<u64> {
        self.nodes
            .iter()
            .filter(|(node, _)| !self.down.contains(node))
            .filter(|(_, replica)| replica.consensus().role(shard) == Some(Role::Leader))
            .max_by_key(|(_, replica)| replica.consensus().term(shard))
            .map(|(node, _)| *node)
    }

    pub fn settle(&mut self) {
        for _ in 0..100 {
            self.pass(100);
            if (0..self.shards).all(|shard| self.leader(shard).is_some()) {
                self.pass(300);
                return;
            }
        }
        panic!("no leader after 10 s");
    }

    /// Has a node's disk stand still, or move again.
    pub fn hold_disk(&mut self, node: u64, is_still: bool) {
        if is_still {
            self.held.insert(node, 0);
        } else if let Some(newest) = self.held.remove(&node) {
            self.step(node, Input::Persisted(newest));
        }
    }

    pub fn kill(&mut self, node: u64) {
        self.down.insert(node);
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for other in ids {
            self.step(other, Input::PeerDown { peer: node, refused: true });
        }
    }

    /// A killed node is there again, with all it had in memory.
    pub fn revive(&mut self, node: u64) {
        self.down.remove(&node);
        let ids: Vec<u64> = self.nodes.keys().copied().filter(|id| *id != node).collect();
        for other in ids {
            self.step(other, Input::PeerUp(node));
            self.step(node, Input::PeerUp(other));
        }
    }

    pub fn call(&mut self, node: u64, request: Request) -> u64 {
        self.call_with(node, request, Routing::Forward, 5_000)
    }

    pub fn call_with(
        &mut self,
        node: u64,
        request: Request,
        routing: Routing,
        timeout_ms: u64,
    ) -> u64 {
        let id = self.next_call;
        self.next_call += 1;
        self.step(node, Input::Call(Call { id, timeout_ms, routing, request }));
        id
    }

    /// Calls and waits for the answer.
    pub fn ask(&mut self, node: u64, request: Request) -> Answer {
        let call = self.call(node, request);
        for _ in 0..700 {
            self.deliver();
            if let Some(answer) = self.answers.remove(&call) {
                return answer;
            }
            self.pass(10);
        }
        panic!("no answer");
    }

    pub fn records(&self, node: u64) -> u64 {
        self.appended.get(&node).copied().unwrap_or(0)
    }
}

pub fn enqueue(id: &str) -> Order {
    enqueue_as(id, id)
}

pub fn enqueue_as(id: &str, request: &str) -> Order {
    let id = TaskId::parse(id).expect("id");
    let queue = QueueName::parse("q").expect("queue");
    let command = Command::Enqueue(Enqueue::new(id, queue, b"payload".to_vec()));
    let key = RequestKey { id: RequestId::parse(request).expect("id"), item: 0 };
    Order { namespace: Namespace::default(), request: Some(key), command }
}

pub fn claim(worker: &str, count_max: u32, wait_ms: u64, request: &str) -> Request {
    Request::Claim(ClaimCall {
        holds: None,
        labels: Default::default(),
        namespace: Namespace::default(),
        worker: WorkerId::parse(worker).expect("id"),
        session: SessionId(1),
        queues: vec![QueueName::parse("q").expect("queue")],
        count_max,
        wait_ms,
        request: RequestId::parse(request).expect("id"),
    })
}
