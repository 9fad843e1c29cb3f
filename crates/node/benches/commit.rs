//! Committed commands per second of three nodes in one process.
//!
//! `memory`: three replicas in one thread, disks that answer at once: the cost of deciding, framing and applying alone.
//! `disk`: three whole servers (threads, loopback TCP, fdatasync on each), 1,024 callers in flight at the leader's node.
//!
//! Run: `cargo bench -p ikada-node --bench commit`. Prints figures; asserts nothing about time.

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ikada_node::config::{RawConfig, resolve};
use ikada_node::http::Door;
use ikada_node::{Handle, run};
use ikada_replica::call::{Answer, Call, Outcome, Request, Routing};
use ikada_replica::consensus::{Conf, Recovered, Role};
use ikada_replica::state::{
    Command, Enqueue, Member, Namespace, Order, QueueName, RequestId, RequestKey, Shard, TaskId,
};
use ikada_replica::{Input, Now, Replica, ReplicaConfig, SnapshotDone, SnapshotWork};

const IN_FLIGHT: u64 = 1_024;

fn order(number: u64) -> Order {
    let text = format!("t{number}");
    let id = TaskId::parse(&text).expect("id");
    let key = RequestKey {
        id: RequestId::parse(&text).expect("id"),
        item: 0,
    };
    let queue = QueueName::parse("bench").expect("queue");
    let command = Command::Enqueue(Enqueue::new(id, queue, vec![7; 100]));
    Order {
        namespace: Namespace::default(),
        request: Some(key),
        command,
    }
}

/// Three replicas and the frames between them.
struct Memory {
    nodes: BTreeMap<u64, Replica>,
    frames: VecDeque<(u64, u64, Bytes)>,
    now: Now,
    answered: u64,
}

impl Memory {
    fn new() -> Self {
        let now = Now {
            mono_ms: 1,
            wall_ms: 1_700_000_000_000,
        };
        let members: Vec<Member> = (1..=3)
            .map(|node| Member {
                node,
                incarnation: node,
                peer_addr: String::new(),
                client_addr: String::new(),
            })
            .collect();
        let nodes = (1..=3)
            .map(|node| {
                let config = ReplicaConfig::new(node, node, 1, node);
                let recovered = Recovered::bootstrap(Conf::of_voters(1..=3));
                let parts = vec![(recovered, Shard::genesis(0, 1, &members))];
                (node, Replica::new(config, parts, now).expect("opens"))
            })
            .collect();
        Memory {
            nodes,
            frames: VecDeque::new(),
            now,
            answered: 0,
        }
    }

    fn turn(&mut self, node: u64) {
        loop {
            let replica = self.nodes.get_mut(&node).expect("node");
            let outputs = replica.poll(self.now);
            for (to, frame) in outputs.frames {
                self.frames.push_back((node, to, frame));
            }
            self.answered += outputs.answers.len() as u64;
            let mut again = false;
            if let Some(io) = outputs.io {
                replica.step(Input::Persisted(io.seq), self.now);
                again = true;
            }
            for work in outputs.snapshots {
                if let SnapshotWork::Save {
                    shard, start, conf, ..
                } = work
                {
                    let done = SnapshotDone::Saved {
                        shard,
                        start,
                        conf,
                        bytes: 1 << 20,
                    };
                    replica.step(Input::Snapshot(done), self.now);
                }
            }
            if !again {
                return;
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, frame)) = self.frames.pop_front() {
            let replica = self.nodes.get_mut(&to).expect("node");
            replica.step(Input::Frame(from, frame), self.now);
            // Frames for the same node that wait already belong to the same turn.
            self.turn(to);
        }
    }

    fn leader(&self) -> Option<u64> {
        let leads = |replica: &Replica| replica.consensus().role(0) == Some(Role::Leader);
        self.nodes
            .iter()
            .find(|(_, replica)| leads(replica))
            .map(|(node, _)| *node)
    }

    fn settle(&mut self) {
        while self.leader().is_none() || !self.frames.is_empty() {
            self.now.mono_ms += 10;
            self.now.wall_ms += 10;
            for node in 1..=3 {
                self.nodes
                    .get_mut(&node)
                    .expect("node")
                    .step(Input::Tick, self.now);
                self.turn(node);
            }
            self.deliver();
        }
    }
}

fn memory(count: u64) {
    let mut cluster = Memory::new();
    cluster.settle();
    let leader = cluster.leader().expect("leader");
    let orders: Vec<Order> = (0..count).map(order).collect();
    let started = Instant::now();
    let mut sent = 0;
    for order in orders {
        let request = Request::Write(vec![order]);
        let call = Call {
            id: sent,
            timeout_ms: 60_000,
            routing: Routing::Forward,
            request,
        };
        let replica = cluster.nodes.get_mut(&leader).expect("node");
        replica.step(Input::Call(call), cluster.now);
        sent += 1;
        if sent.is_multiple_of(IN_FLIGHT) {
            cluster.turn(leader);
            cluster.deliver();
        }
    }
    cluster.turn(leader);
    cluster.deliver();
    let elapsed = started.elapsed();
    assert_eq!(cluster.answered, count, "every call is answered");
    report("memory, 3 nodes, 1 shard, 1 thread", count, elapsed);
}

fn report(what: &str, count: u64, elapsed: Duration) {
    let rate = count as f64 / elapsed.as_secs_f64();
    println!(
        "{what:<44} {rate:>10.0} commands/s  ({count} in {:.2} s)",
        elapsed.as_secs_f64()
    );
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .expect("bind")
        .local_addr()
        .expect("addr")
        .port()
}

async fn servers(folder: &std::path::Path) -> Vec<Handle> {
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut handles = Vec::new();
    for node in 1..=3u64 {
        let raw = RawConfig {
            data: Some(folder.join(format!("n{node}"))),
            listen: Some("127.0.0.1:0".into()),
            peer_listen: Some(format!("127.0.0.1:{}", ports[node as usize - 1])),
            peer: Some(
                ports
                    .iter()
                    .map(|port| format!("127.0.0.1:{port}"))
                    .collect(),
            ),
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
            break handles
                .iter()
                .find(|handle| handle.info().node == leader)
                .expect("one of us");
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
                let answer = handle
                    .call(request, Duration::from_secs(30), Routing::Forward)
                    .await;
                let Answer::Written(outcomes) = answer else {
                    panic!("{answer:?}")
                };
                assert!(matches!(outcomes[0], Outcome::Reply { .. }), "{outcomes:?}");
            }
        }));
    }
    for caller in callers {
        caller.await.expect("caller");
    }
    report(
        "disk, 3 nodes, 1 shard, fdatasync, 1,024 calls",
        count,
        started.elapsed(),
    );
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--test");
    let count = if quick { 2_000 } else { 500_000 };
    memory(count);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(disk(count));
    std::process::exit(0);
}
