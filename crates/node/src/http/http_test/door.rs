//! A node of one shard without log or network: the real state behind the same trait. Answers can be scripted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::state::{
    BatchBuilder, Claim, Command, Grow, LEVEL, Lsn, Member, Namespace, Order, Reply, RequestId,
    RequestKey, Shard, TaskState,
};
use ikada_replica::Roll;
use ikada_replica::call::{
    Answer, Call, CallId, ClaimCall, Outcome, Query, RenewOutcome, Renewal, Request, RequestFate,
    Routing, View,
};
use ikada_replica::consensus::Role;
use ikada_replica::founding::FoundingMessage;
use ikada_replica::peer::WorkerTold;
use ikada_replica::status::{NodeStatus, PeerStatus, RoleEvent, ShardStatus};
use ikada_store::RealDisk;

use crate::driver::AnswerSender;
use crate::http::door::{Door, NodeInfo};
use crate::metrics::Counters;
use crate::objects::{Shelf, ShelfOptions};
use crate::peers::{BlobDialling, Directory, link_hello};

/// What the fake does with the next call instead of its own work.
pub(super) enum Script {
    /// Gives this answer.
    Answer(Box<Answer>),
    /// Panics.
    Panic,
    /// Does its own work.
    Work,
    /// Does the next write, and never answers it.
    Silence,
    /// Does the next claim, and never answers it.
    SilentClaim,
}

struct World {
    shard: Shard,
    index: u64,
    script: VecDeque<Script>,
    /// Whether the cluster seems to have more logs than this one.
    has_others: bool,
    status: NodeStatus,
    events: Vec<RoleEvent>,
    /// Who answers at which peer address.
    strangers: BTreeMap<String, FoundingMessage>,
    /// The last call's timeout and routing.
    last: Option<(Duration, Routing)>,
}

#[derive(Clone)]
pub(super) struct FakeDoor {
    world: Arc<Mutex<World>>,
    info: Arc<NodeInfo>,
    ids: Arc<AtomicU64>,
    shelf: Shelf,
    directory: Directory,
    folder: Arc<tempfile::TempDir>,
}

impl FakeDoor {
    pub(super) fn new() -> FakeDoor {
        let member = |node: u64| Member {
            node,
            incarnation: 1,
            peer_addr: format!("10.0.0.{node}:7401"),
            client_addr: format!("10.0.0.{node}:7400"),
        };
        let members = [member(1), member(2), member(3)];
        let world = World {
            shard: Shard::genesis(0, 1, &members),
            index: 1,
            script: VecDeque::new(),
            has_others: false,
            status: status(&members),
            events: Vec::new(),
            strangers: BTreeMap::new(),
            last: None,
        };
        let info = NodeInfo {
            node: 1,
            name: "north".into(),
            cluster: u64::MAX,
            client_addr: "10.0.0.1:7400".into(),
            peer_addr: "10.0.0.1:7401".into(),
            version: "0.0.0-test".into(),
            started_wall_ms: 1_000,
            traced: false,
        };
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(folder.path()).unwrap();
        let options = ShelfOptions { grace_ms: 0, ..ShelfOptions::default() };
        let directory = Directory::default();
        let reach = BlobDialling::new(link_hello(u64::MAX, 1, 1), None, directory.clone());
        FakeDoor {
            shelf: Shelf::open(disk, &options, reach).unwrap(),
            directory,
            folder: Arc::new(folder),
            world: Arc::new(Mutex::new(world)),
            info: Arc::new(info),
            ids: Arc::new(AtomicU64::new(0)),
        }
    }

    /// A second node that never answers comes, or goes.
    pub(super) fn silent_peer(&self, is_there: bool) {
        let member = |node| Member {
            node,
            incarnation: 1,
            peer_addr: "127.0.0.1:1".into(),
            client_addr: "127.0.0.1:1".into(),
        };
        let (members, removed) =
            if is_there { (vec![member(9)], vec![]) } else { (vec![], vec![9]) };
        self.directory.learn(&Roll { members, removed });
    }

    /// Files of blobs, their temporary files included.
    pub(super) fn blob_files(&self) -> Vec<std::path::PathBuf> {
        let folders = std::fs::read_dir(self.folder.path().join("blob")).unwrap();
        let inside = |folder: std::fs::DirEntry| std::fs::read_dir(folder.path()).unwrap();
        folders.flatten().flat_map(inside).map(|file| file.unwrap().path()).collect()
    }

    /// Puts something in place of the next call's own work.
    /// As if there were other shards.
    pub(super) fn add_logs(&self) {
        self.world.lock().unwrap().has_others = true;
    }

    pub(super) fn script(&self, next: Script) {
        self.world.lock().unwrap().script.push_back(next);
    }

    pub(super) fn answer_next(&self, answer: Answer) {
        self.script(Script::Answer(Box::new(answer)));
    }

    pub(super) fn change_status(&self, change: impl FnOnce(&mut NodeStatus)) {
        change(&mut self.world.lock().unwrap().status);
    }

    pub(super) fn add_stranger(&self, peer_addr: &str, says: FoundingMessage) {
        self.world.lock().unwrap().strangers.insert(peer_addr.to_owned(), says);
    }

    pub(super) fn add_event(&self, event: RoleEvent) {
        self.world.lock().unwrap().events.push(event);
    }

    /// Where the log ends: rises with everything that is written.
    pub(super) fn log_end(&self) -> u64 {
        self.world.lock().unwrap().index
    }

    pub(super) fn last(&self) -> (Duration, Routing) {
        self.world.lock().unwrap().last.expect("a call was made")
    }
}

fn status(members: &[Member]) -> NodeStatus {
    let shard = ShardStatus {
        shard: 0,
        role: Role::Leader,
        term: 7,
        leader: Some(1),
        voted_for: Some(1),
        commit: 12,
        applied: Lsn { term: 7, index: 12 },
        log_time_ms: 5_000,
        last_index: 12,
        start_index: 1,
        hash: 0xabc,
        voters: vec![1, 2, 3],
        learners: vec![],
        joint: false,
        repairing: false,
        role_since_ms: 2_000,
        scheduled: 0,
        ready: 3,
        claimed: 1,
        finished: 2,
        submits: 4,
        oldest_submit_age_ms: Some(3_600_000),
        followers: vec![(2, 12), (3, 9)],
    };
    let peer = |node| PeerStatus {
        node,
        connected: true,
        heard_ms_ago: Some(20),
        clock_offset_ms: Some(-1),
        level: Some(LEVEL),
    };
    NodeStatus {
        node: 1,
        cluster: u64::MAX,
        shards: vec![shard],
        growth: None,
        shard_count: 1,
        peers: vec![peer(2), peer(3)],
        members: members.to_vec(),
        roster: None,
        level: LEVEL,
        own_level: LEVEL,
        elections_ms: Some((1_000, 100)),
        database: None,
        clock_offset_ms: -3,
        calls_waiting: 0,
        claims_parked: 0,
        stopping: false,
    }
}

impl World {
    fn apply(&mut self, orders: &[Order]) -> Vec<Outcome> {
        self.index += 1;
        let lsn = Lsn { term: 7, index: self.index };
        let mut batch = BatchBuilder::new();
        for order in orders {
            batch.push(order);
        }
        let applied = self.shard.apply(lsn, &batch.finish(1_000 + self.index));
        applied.replies.into_iter().map(|reply| Outcome::Reply { reply, shard: 0, lsn }).collect()
    }

    fn claim(&mut self, call: ClaimCall) -> Answer {
        let claim = Claim {
            share: None,
            holds: call.holds,
            worker: call.worker,
            session: call.session,
            queues: call.queues,
            max: call.count_max,
            labels: call.labels,
        };
        let order = Order {
            namespace: call.namespace,
            request: Some(RequestKey { id: call.request, item: 0 }),
            command: Command::Claim(claim),
        };
        match self.apply(&[order]).pop() {
            Some(Outcome::Reply { reply: Reply::Claimed { tasks }, .. }) => Answer::Claimed(tasks),
            other => panic!("{other:?}"),
        }
    }

    fn renew(&self, renewal: &Renewal) -> Answer {
        let outcomes = renewal.claims.iter().map(|(id, fence)| {
            let task = self.shard.task(&renewal.namespace, id);
            match task.filter(|task| task.state == TaskState::Claimed && task.fence == *fence) {
                Some(task) => RenewOutcome::Renewed { ttl_ms: u64::from(task.ttl_ms) },
                None => RenewOutcome::Refused(ikada_api::state::RefusalCode::StaleFence),
            }
        });
        Answer::Renewed(outcomes.collect())
    }

    fn read(&self, query: &Query) -> Answer {
        let view = match query {
            Query::Task(namespace, id) => View::Task(self.shard.task(namespace, id).map(Box::new)),
            Query::Tasks { filter, after, limit } => {
                let list = self.shard.tasks(filter, after.map(|(_, place)| place), *limit);
                View::Tasks { tasks: list.tasks, next: list.next.map(|place| (0, place)) }
            }
            Query::Queue(namespace, name) => {
                View::Queue(self.shard.queue(namespace, name).map(Box::new))
            }
            Query::EveryQueue => View::Queues(self.shard.queues(None).collect()),
            Query::Queues(namespace) => View::Queues(self.shard.queues(Some(namespace)).collect()),
            Query::Request(namespace, id, item) => {
                let key = RequestKey { id: id.clone(), item: *item };
                View::Request(match self.shard.request(namespace, &key) {
                    Some(recorded) => RequestFate::Committed(recorded),
                    None => match self.shard.voided_ms(namespace, id) {
                        Some(since_ms) => RequestFate::Voided { since_ms },
                        None => RequestFate::NotYet,
                    },
                })
            }
            Query::Schedule(key) => View::Schedule(self.shard.schedule(key).cloned()),
            Query::Schedules { namespace, after, limit } => {
                View::Schedules(self.shard.schedules_of(namespace, after.as_ref(), *limit))
            }
            Query::EverySchedule => View::Schedules(self.shard.schedules().cloned().collect()),
            Query::Lease(key) => View::Lease(self.shard.lease(key).cloned()),
            Query::Leases { namespace, after, limit } => {
                View::Leases(self.shard.leases_of(namespace, after.as_ref(), *limit))
            }
            Query::Namespaces { only_bounded } => {
                View::Namespaces(self.shard.namespaces(*only_bounded))
            }
            Query::Tokens => View::Tokens(self.shard.tokens().cloned().collect()),
            Query::Object(key) => View::Object(self.shard.object(key).cloned()),
            Query::Objects { namespace, bucket, prefix, after, limit } => View::Objects(
                self.shard.objects(namespace, bucket, prefix, after.as_deref(), *limit),
            ),
            Query::Job(key) => View::Job(self.shard.job(&key.0, &key.1).cloned()),
            Query::Jobs { namespace, after, limit } => {
                View::Jobs(self.shard.jobs(namespace, after.as_ref(), *limit))
            }
            Query::JobTasks { job, stage, from, limit } => {
                View::JobTasks(self.shard.job_tasks(job, *stage, *from, *limit))
            }
            Query::Buckets { namespace, after, limit } => {
                View::Buckets(self.shard.buckets(namespace, after.as_ref(), *limit))
            }
            Query::Unreferenced(digests) => {
                let free = digests.iter().filter(|digest| !self.shard.refers_to(digest));
                View::Unreferenced(free.copied().collect())
            }
            Query::References { after, limit, .. } => {
                View::References(self.shard.references(after.as_ref(), *limit))
            }
            Query::Backup => View::Frozen(vec![self.shard.freeze()]),
            Query::Shards => View::Shards {
                // Only shard 0 works here; the others of a test of growth do not exist.
                shards: 1,
                map_version: 1,
                growth: self.shard.growth_view(),
            },
            Query::Members => View::Members(self.shard.members().to_vec()),
        };
        Answer::View { view, lsns: vec![(0, self.shard.applied())], age_ms: 42 }
    }
}

impl FakeDoor {
    fn answer(&self, request: Request, timeout: Duration, routing: Routing) -> Answer {
        let mut world = self.world.lock().unwrap();
        world.last = Some((timeout, routing));
        match world.script.pop_front() {
            Some(Script::Answer(answer)) => return *answer,
            Some(Script::Panic) => {
                drop(world);
                panic!("scripted");
            }
            // It is for a write or a claim alone.
            Some(silence @ (Script::Silence | Script::SilentClaim)) => {
                world.script.push_front(silence);
            }
            Some(Script::Work) | None => {}
        }
        match request {
            Request::Write(orders) => Answer::Written(world.apply(&orders)),
            Request::Claim(call) => world.claim(call),
            Request::Renew(renewal) => world.renew(&renewal),
            Request::Read(query, _) => world.read(&query),
            Request::Lease(call) => {
                let (namespace, command) = (call.namespace, Command::AcquireLease(call.wish));
                Answer::Written(world.apply(&[Order { namespace, request: None, command }]))
            }
            Request::RenewLease { key, holder, fence } => {
                use ikada_api::state::RefusalCode;
                let outcome = match world.shard.lease(&key).map(|lease| &lease.holding) {
                    None => RenewOutcome::Refused(RefusalCode::LeaseNotHeld),
                    Some(held) if held.fence != fence => {
                        RenewOutcome::Refused(RefusalCode::StaleFence)
                    }
                    Some(held) if held.holder != holder => {
                        RenewOutcome::Refused(RefusalCode::NotOwner)
                    }
                    Some(held) => RenewOutcome::Renewed { ttl_ms: u64::from(held.ttl_ms) },
                };
                Answer::Renewed(vec![outcome])
            }
            Request::WatchLease(watch) => world.read(&Query::Lease(watch.key)),
            Request::Beat { namespace, worker, .. } => {
                let command = Command::RegisterWorker(worker);
                let order = Order { namespace, request: None, command };
                world.apply(&[order]);
                let standing = ikada_api::state::WorkerStanding::Active;
                Answer::Beat { standing, term: 7 }
            }
            Request::Workers => {
                let told = |record: &Arc<ikada_api::state::WorkerRecord>| WorkerTold {
                    record: (**record).clone(),
                    alive: record.id.as_str() != "w-dead",
                    heard_ms_ago: 5,
                    busy: 1,
                    impostor: None,
                };
                Answer::Workers { term: 7, workers: world.shard.workers().map(told).collect() }
            }
            Request::Explain(namespace, id) => {
                Answer::Explained(world.shard.explain(&namespace, &id))
            }
            Request::Grow { shards, request } => {
                let command = Command::Grow(Grow { shards, voters: vec![1] });
                let order = Order { namespace: Namespace::default(), request, command };
                Answer::Written(world.apply(&[order]))
            }
            Request::Transfer { to: Some(9), .. } => Answer::Refused {
                code: "node_not_found".into(),
                detail: "node 9 is not a voter".into(),
            },
            Request::Transfer { .. } | Request::Change { .. } => Answer::Accepted,
        }
    }
}

impl FakeDoor {
    /// Whether a call is done and not answered.
    fn swallows(&self, request: &Request) -> bool {
        let mut world = self.world.lock().unwrap();
        let swallows = match world.script.front() {
            Some(Script::Silence) => matches!(request, Request::Write(_)),
            Some(Script::SilentClaim) => matches!(request, Request::Claim(_)),
            _ => false,
        };
        swallows.then(|| world.script.pop_front());
        swallows
    }
}

impl Door for FakeDoor {
    async fn call(&self, request: Request, timeout: Duration, routing: Routing) -> Answer {
        let swallows = self.swallows(&request);
        let answer = self.answer(request, timeout, routing);
        if swallows {
            std::future::pending::<()>().await;
        }
        answer
    }

    fn next_call(&self) -> CallId {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        CALLS.fetch_add(1, Ordering::Relaxed)
    }

    fn has_one_log(&self) -> bool {
        !self.world.lock().unwrap().has_others
    }

    fn call_many(&self, calls: Vec<Call>, answers: AnswerSender) {
        for Call { id, timeout_ms, routing, request } in calls {
            let swallows = self.swallows(&request);
            let answer = self.answer(request, Duration::from_millis(timeout_ms), routing);
            if !swallows {
                answers.send(vec![(id, answer)]).unwrap();
            }
        }
    }

    fn forget(&self, _: CallId) {}

    async fn status(&self) -> NodeStatus {
        self.world.lock().unwrap().status.clone()
    }

    async fn events(&self, after_sequence: u64) -> Vec<RoleEvent> {
        let world = self.world.lock().unwrap();
        world.events.iter().filter(|event| event.sequence > after_sequence).cloned().collect()
    }

    fn info(&self) -> &NodeInfo {
        &self.info
    }

    fn address_of(&self, node: u64) -> Option<String> {
        (node <= 3).then(|| format!("10.0.0.{node}:7400"))
    }

    async fn meet(&self, peer_addr: &str) -> Option<FoundingMessage> {
        self.world.lock().unwrap().strangers.get(peer_addr).cloned()
    }

    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn counters(&self) -> Counters {
        Counters { log_syncs: 17, ..Counters::default() }
    }

    fn fresh_request_id(&self) -> RequestId {
        let count = self.ids.fetch_add(1, Ordering::Relaxed);
        RequestId::parse(&format!("fresh-{count}")).unwrap()
    }
}
