//! Committed commands per second of three nodes in one process.
//!
//! `memory`: three replicas, the leader in one thread and its followers in another, disks that answer at once: the cost
//! of deciding, framing and applying alone, with 1,024 orders in flight.
//! `disk`: three whole servers (threads, loopback TCP, fdatasync on each), 1,024 callers in flight at the leader's node.
//!
//! Run: `cargo bench -p ikada-node --bench commit`. Prints figures; asserts nothing about time.

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ikada_node::config::{RawConfig, resolve};
use ikada_node::http::Door;
use ikada_node::{Handle, run};
use ikada_replica::call::{Answer, Call, ClaimCall, Outcome, Request, Routing};
use ikada_replica::consensus::{Conf, Recovered, Role};
use ikada_replica::state::{
    Command, Complete, Enqueue, Grant, Member, Namespace, Order, QueueName, RequestId, RequestKey,
    SessionId, Shard, TaskId, WorkerId,
};
use ikada_replica::{Input, Now, Replica, ReplicaConfig, SnapshotDone, SnapshotWork};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const IN_FLIGHT: u64 = 1_024;
/// Orders per call where calls carry lists.
const LIST: usize = 16;

fn order(number: u64) -> Order {
    let text = format!("t{number}");
    let id = TaskId::parse(&text).expect("id");
    let key = RequestKey { id: RequestId::parse(&text).expect("id"), item: 0 };
    let queue = QueueName::parse("bench").expect("queue");
    let command = Command::Enqueue(Enqueue::new(id, queue, vec![7; 100]));
    Order { namespace: Namespace::default(), request: Some(key), command }
}

/// Some of the nodes, run by one thread. Disks answer at once.
struct Part {
    nodes: BTreeMap<u64, Replica>,
    frames: VecDeque<(u64, u64, Bytes)>,
    now: Now,
    answers: Vec<(u64, Answer)>,
}

impl Part {
    fn new(ids: &[u64]) -> Self {
        let now = Now { mono_ms: 1, wall_ms: 1_700_000_000_000 };
        let members: Vec<Member> = (1..=3)
            .map(|node| Member {
                node,
                incarnation: node,
                peer_addr: String::new(),
                client_addr: String::new(),
            })
            .collect();
        let nodes = ids
            .iter()
            .map(|node| {
                let mut config = ReplicaConfig::new(*node, *node, 1, *node);
                config.consensus.priority = if *node == 1 { 1 } else { 0 };
                let recovered = Recovered::bootstrap(Conf::of_voters(1..=3));
                let parts = vec![(recovered, Shard::genesis(0, 1, &members))];
                (*node, Replica::new(config, parts, now).expect("opens"))
            })
            .collect();
        Part { nodes, frames: VecDeque::new(), now, answers: Vec::new() }
    }

    fn step(&mut self, node: u64, input: Input) {
        self.nodes.get_mut(&node).expect("node").step(input, self.now);
    }

    fn turn(&mut self, node: u64) {
        loop {
            let replica = self.nodes.get_mut(&node).expect("node");
            let outputs = replica.poll(self.now);
            for (to, frame) in outputs.frames {
                self.frames.push_back((node, to, frame));
            }
            self.answers.extend(outputs.answers);
            for work in outputs.snapshots {
                if let SnapshotWork::Save { shard, start, conf, .. } = work {
                    let done = SnapshotDone::Saved { shard, start, conf, bytes: 1 << 20 };
                    replica.step(Input::Snapshot(done), self.now);
                }
            }
            let Some(io) = outputs.io else { return };
            replica.step(Input::Persisted(io.seq), self.now);
        }
    }

    fn tick(&mut self) {
        self.now.mono_ms += 10;
        self.now.wall_ms += 10;
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for node in ids {
            self.step(node, Input::Tick);
            self.turn(node);
        }
    }

    fn leads(&self) -> bool {
        self.nodes.values().any(|replica| replica.consensus().role(0) == Some(Role::Leader))
    }
}

/// Node 1 leads in this thread, nodes 2 and 3 follow in another.
struct Memory {
    leader: Part,
    to_followers: mpsc::Sender<Vec<(u64, u64, Bytes)>>,
    from_followers: mpsc::Receiver<Vec<(u64, u64, Bytes)>>,
    calls: u64,
    /// Batches sent to the followers and not answered yet.
    awaited: u64,
}

impl Memory {
    fn new() -> Self {
        let (to_followers, inbox) = mpsc::channel::<Vec<(u64, u64, Bytes)>>();
        let (outbox, from_followers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut part = Part::new(&[2, 3]);
            while let Ok(frames) = inbox.recv() {
                for (from, to, frame) in frames {
                    part.step(to, Input::Frame(from, frame));
                }
                part.turn(2);
                part.turn(3);
                if outbox.send(part.frames.drain(..).collect()).is_err() {
                    return;
                }
            }
        });
        let mut memory =
            Memory { leader: Part::new(&[1]), to_followers, from_followers, calls: 0, awaited: 0 };
        while !memory.leader.leads() {
            memory.leader.tick();
            memory.exchange(true);
        }
        memory
    }

    /// Sends what the leader has for the followers, takes what they have for it.
    fn exchange(&mut self, wait: bool) {
        let frames: Vec<_> = self.leader.frames.drain(..).collect();
        if !frames.is_empty() {
            self.to_followers.send(frames).expect("followers live");
            self.awaited += 1;
        }
        // Every batch sent is answered by exactly one, so waiting needs no spinning.
        let first = if wait && self.awaited > 0 { self.from_followers.recv().ok() } else { None };
        for frames in first.into_iter().chain(self.from_followers.try_iter()) {
            self.awaited -= 1;
            for (from, _, frame) in frames {
                self.leader.step(1, Input::Frame(from, frame));
            }
        }
        self.leader.turn(1);
    }

    /// Asks what the source has to ask with a bounded number of orders in flight, until it is empty and all is answered.
    fn run(&mut self, source: &mut impl Source) {
        let (mut in_flight, mut weights) = (0, BTreeMap::new());
        loop {
            // A turn every quarter: so leader and followers work at the same time.
            let mut turn = 0;
            while in_flight < IN_FLIGHT
                && turn < IN_FLIGHT / 4
                && let Some((request, weight)) = source.next()
            {
                self.calls += 1;
                let (id, routing) = (self.calls, Routing::Forward);
                self.leader.step(1, Input::Call(Call { id, timeout_ms: 60_000, routing, request }));
                in_flight += weight;
                turn += weight;
                weights.insert(id, weight);
            }
            if in_flight == 0 {
                return;
            }
            self.leader.turn(1);
            self.exchange(turn < IN_FLIGHT / 4);
            for (id, answer) in self.leader.answers.drain(..) {
                in_flight -= weights.remove(&id).expect("asked");
                source.take(answer);
            }
        }
    }
}

/// What a phase asks next, and what it makes of the answers.
trait Source {
    /// The next call and the orders it stands for; nothing while it waits for answers, or at its end.
    fn next(&mut self) -> Option<(Request, u64)>;
    fn take(&mut self, answer: Answer);
}

/// Calls that are known beforehand.
struct Fill {
    calls: std::vec::IntoIter<(Request, u64)>,
    answered: u64,
}

impl Fill {
    fn new(calls: Vec<(Request, u64)>) -> Self {
        Fill { calls: calls.into_iter(), answered: 0 }
    }
}

impl Source for Fill {
    fn next(&mut self) -> Option<(Request, u64)> {
        self.calls.next()
    }

    fn take(&mut self, answer: Answer) {
        let Answer::Written(_) = answer else { panic!("{answer:?}") };
        self.answered += 1;
    }
}

/// Claims and completes side by side, as workers with many slots do: a claim is asked whenever fewer than half of the
/// orders in flight could be completions, until one comes back empty.
struct Drain {
    round: u64,
    grants: VecDeque<Grant>,
    /// Claims asked and not answered.
    claims: u64,
    commands: u64,
    empty: bool,
}

/// Tasks per claim.
const CLAIM: u32 = 128;

impl Source for Drain {
    fn next(&mut self) -> Option<(Request, u64)> {
        let coming = self.grants.len() as u64 + self.claims * u64::from(CLAIM);
        if !self.empty && coming < IN_FLIGHT / 2 {
            self.claims += 1;
            self.commands += 1;
            // A claim writes one entry, so it is one order in flight.
            return Some((claim(&format!("c{}-{}", self.round, self.commands)), 1));
        }
        let grant = self.grants.pop_front()?;
        self.commands += 1;
        Some((Request::Write(vec![complete(&grant)]), 1))
    }

    fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Claimed(grants) => {
                self.claims -= 1;
                self.empty |= grants.is_empty();
                self.grants.extend(grants);
            }
            Answer::Written(outcomes) => {
                assert!(matches!(outcomes[0], Outcome::Reply { .. }), "{outcomes:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Fills and drains the queue several times. The first round only warms up: it pays for the memory's first touch.
fn memory(count: u64) {
    const ROUNDS: u64 = 5;
    let mut cluster = Memory::new();
    let (mut filling, mut draining) = (Duration::ZERO, Duration::ZERO);
    let (mut filled, mut drained) = (0, 0);
    let mut listing = Duration::ZERO;
    for round in 0..ROUNDS {
        let numbers = (0..count).map(|number| round * count + number);
        let calls = numbers.map(|number| (Request::Write(vec![order(number)]), 1)).collect();
        let started = Instant::now();
        let mut fill = Fill::new(calls);
        cluster.run(&mut fill);
        assert_eq!(fill.answered, count, "every call is answered");
        if round > 0 {
            filling += started.elapsed();
            filled += count;
        }
        let orders: Vec<Order> =
            (0..count).map(|number| order(1 << 40 | round << 30 | number)).collect();
        let lists = orders.chunks(LIST);
        let calls = lists.map(|list| (Request::Write(list.to_vec()), list.len() as u64)).collect();
        let started = Instant::now();
        let mut fill = Fill::new(calls);
        cluster.run(&mut fill);
        assert_eq!(fill.answered, count.div_ceil(LIST as u64), "every list is answered");
        if round > 0 {
            listing += started.elapsed();
        }
        let started = Instant::now();
        let mut drain =
            Drain { round, grants: VecDeque::new(), claims: 0, commands: 0, empty: false };
        cluster.run(&mut drain);
        if round > 0 {
            draining += started.elapsed();
            drained += drain.commands;
        }
    }
    report("memory, enqueue, one per call", filled, filling);
    report("memory, enqueue, 16 per call", filled, listing);
    report("memory, claim 128 and complete one per call", drained, draining);
}

fn claim(request: &str) -> Request {
    Request::Claim(ClaimCall {
        holds: None,
        labels: Default::default(),
        namespace: Namespace::default(),
        worker: WorkerId::parse("w").expect("id"),
        session: SessionId(1),
        queues: vec![QueueName::parse("bench").expect("queue")],
        count_max: CLAIM,
        wait_ms: 0,
        request: RequestId::parse(request).expect("id"),
    })
}

fn complete(grant: &Grant) -> Order {
    let command = Command::Complete(Complete {
        keeps_digest: None,
        then: None,
        id: grant.id.clone(),
        fence: grant.fence,
        worker: WorkerId::parse("w").expect("id"),
        result: None,
        outputs: Vec::new(),
    });
    Order { namespace: Namespace::default(), request: None, command }
}

fn report(what: &str, count: u64, elapsed: Duration) {
    let rate = count as f64 / elapsed.as_secs_f64();
    let seconds = elapsed.as_secs_f64();
    let cpu = cpu_seconds();
    // Processor time of the whole process so far is printed too: it tells a busy machine from slow code.
    println!(
        "{what:<44} {rate:>9.0} commands/s  ({count} in {seconds:.2} s; {cpu:.2} s of CPU since start)"
    );
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("addr").port()
}

async fn servers(folder: &std::path::Path) -> Vec<Handle> {
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut handles = Vec::new();
    for node in 1..=3u64 {
        let raw = RawConfig {
            data: Some(folder.join(format!("n{node}"))),
            listen: Some("127.0.0.1:0".into()),
            peer_listen: Some(format!("127.0.0.1:{}", ports[node as usize - 1])),
            peer: Some(ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()),
            expect: Some(3),
            shards: Some(1),
            node_id: Some(node),
            ..RawConfig::default()
        };
        let (ready, handle) = tokio::sync::oneshot::channel();
        let config = resolve(vec![raw]).expect("valid");
        tokio::spawn(run(config, std::future::pending(), move |started| {
            let _ = ready.send(started.handle);
        }));
        handles.push(handle);
    }
    let mut started = Vec::new();
    for handle in handles {
        started.push(handle.await.expect("started"));
    }
    started
}

async fn disk(count: u64) {
    let folder = tempfile::tempdir_in(".").expect("folder");
    let handles = servers(folder.path()).await;
    let leader = loop {
        let status = handles[0].status().await;
        if let Some(leader) = status.shards.first().and_then(|shard| shard.leader) {
            break handles.iter().find(|handle| handle.info().node == leader).expect("one of us");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let next = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut callers = Vec::new();
    for _ in 0..IN_FLIGHT {
        let (handle, next) = (leader.clone(), next.clone());
        callers.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= count {
                    return;
                }
                let request = Request::Write(vec![order(number)]);
                let answer = handle.call(request, Duration::from_secs(30), Routing::Forward).await;
                let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
                assert!(matches!(outcomes[0], Outcome::Reply { .. }), "{outcomes:?}");
            }
        }));
    }
    for caller in callers {
        caller.await.expect("caller");
    }
    report("disk (fdatasync), enqueue, one per call", count, started.elapsed());
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--test");
    let count = if quick { 2_000 } else { 500_000 };
    memory(count / 5);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(disk(count));
    std::process::exit(0);
}
