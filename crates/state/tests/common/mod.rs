//! A shard with short ways to give it orders, checking every invariant after each entry.
#![allow(dead_code, missing_docs)]

use ikada_state::invariants;
use ikada_state::*;

pub fn limits_small() -> Limits {
    Limits {
        pending_tasks_max: 200,
        finished_tasks_max: 60,
        submit_window_max: 50,
        submit_window_ms: 100_000,
        claim_window_max: 8,
        queues_max: 8,
        attempts_kept_max: 3,
        promote_per_entry_max: 4,
        retain_per_entry_max: 4,
        forget_per_entry_max: 4,
        ..Limits::default()
    }
}

pub fn task_id(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

pub fn worker(name: &str) -> WorkerId {
    WorkerId::parse(name).unwrap()
}

pub fn key(name: &str) -> RequestKey {
    RequestKey { id: RequestId::parse(name).unwrap(), item: 0 }
}

pub fn order(command: Command) -> Order {
    Order { namespace: Namespace::default(), request: None, command }
}

pub fn requested(request: &str, command: Command) -> Order {
    Order { request: Some(key(request)), ..order(command) }
}

/// A stage that runs a function, with nothing to say about it.
pub fn stage(name: &str, source: StageSource) -> StageSpec {
    StageSpec {
        name: StageName::parse(name).unwrap(),
        program: ProgramRef {
            name: ProgramName::parse("count").unwrap(),
            kind: ProgramKind::Handler,
            digest: None,
            entry: None,
        },
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle: Settle::All,
    }
}

/// A job of these stages in queue `q`, with nothing to say about it.
pub fn job_spec(stages: Vec<StageSpec>) -> JobSpec {
    JobSpec {
        name: String::new(),
        queue: queue("q"),
        stages,
        priority: None,
        max_attempts: None,
        ttl_ms: None,
        timeout_ms: None,
        backoff: None,
        labels: Labels::default(),
        retention_ms: 60_000,
        reuse: None,
        duplicate_after: None,
        output_url: None,
    }
}

pub fn enqueue(id: &str, line: &str) -> Enqueue {
    Enqueue::new(task_id(id), queue(line), id.as_bytes().to_vec())
}

pub fn claim(name: &str, lines: &[&str], max: u32) -> Claim {
    let queues = lines.iter().map(|line| queue(line)).collect();
    Claim {
        worker: worker(name),
        session: SessionId(1),
        queues,
        max,
        labels: Labels::default(),
        share: None,
        holds: None,
    }
}

pub fn complete(grant: &Grant, name: &str) -> Command {
    let result = Some(b"result".to_vec().into());
    let (id, fence) = (grant.id.clone(), grant.fence);
    Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence,
        worker: worker(name),
        result,
        then: None,
        outputs: Vec::new(),
    })
}

pub fn fail(grant: &Grant, name: &str) -> Fail {
    Fail {
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker(name),
        error: b"boom".to_vec().into(),
        retry: true,
        delay_ms: None,
        jitter_permille: 0,
    }
}

pub fn expire(id: TaskId, fence: Fence) -> Command {
    let cause = ExpireCause::Silent;
    Command::Expire(Expire { id, fence, cause, jitter_permille: 0 })
}

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    let label = |text: &str| Label::parse(text).unwrap();
    Labels::new(pairs.iter().map(|(name, value)| (label(name), label(value))).collect()).unwrap()
}

/// An order with some rare settings.
pub fn enqueue_with(id: &str, line: &str, change: impl FnOnce(&mut TaskOptions)) -> Enqueue {
    let mut options = TaskOptions::default();
    change(&mut options);
    Enqueue { options: Some(Box::new(options)), ..enqueue(id, line) }
}

pub fn refused(code: RefusalCode) -> Reply {
    Reply::Refused { code }
}

pub struct World {
    pub shard: Shard,
    pub now_ms: u64,
    pub effects: Vec<Effect>,
    /// Invariants are checked after every so many entries.
    pub check_every: u64,
}

impl World {
    pub fn new() -> World {
        World::with(Limits::default())
    }

    pub fn with(limits: Limits) -> World {
        World::of(Shard::genesis_with(0, 1, &[], limits))
    }

    pub fn of(shard: Shard) -> World {
        let now_ms = shard.time_ms().max(1_000);
        World { shard, now_ms, effects: Vec::new(), check_every: 1 }
    }

    pub fn entry(&mut self, entry: &[u8]) -> Vec<Reply> {
        let index = self.shard.applied().index + 1;
        let applied = self.shard.apply(Lsn { term: 1, index }, entry);
        self.effects = applied.effects;
        if index.is_multiple_of(self.check_every)
            && let Err(violation) = invariants::all(&self.shard)
        {
            panic!("{violation}");
        }
        applied.replies
    }

    pub fn give(&mut self, orders: &[Order]) -> Vec<Reply> {
        let mut builder = BatchBuilder::new();
        orders.iter().for_each(|order| builder.push(order));
        self.entry(&builder.finish(self.now_ms))
    }

    pub fn one(&mut self, order: Order) -> Reply {
        self.give(&[order]).remove(0)
    }

    pub fn run(&mut self, command: Command) -> Reply {
        self.one(order(command))
    }

    pub fn tick(&mut self, passed_ms: u64) {
        self.now_ms += passed_ms;
        self.give(&[]);
    }

    pub fn add(&mut self, id: &str) {
        let reply = self.run(Command::Enqueue(enqueue(id, "q")));
        assert_eq!(reply, Reply::Enqueued { id: task_id(id), created: true });
    }

    pub fn put(&mut self, task: Enqueue) {
        let id = task.id.clone();
        let reply = self.run(Command::Enqueue(task));
        assert_eq!(reply, Reply::Enqueued { id, created: true });
    }

    /// Handles of the tasks that a worker with these labels is granted.
    pub fn take_with(&mut self, wanted: &[(&str, &str)], max: u32) -> Vec<Grant> {
        let claim = Claim { labels: labels(wanted), ..claim("w", &["q"], max) };
        match self.run(Command::Claim(claim)) {
            Reply::Claimed { tasks } => tasks,
            other => panic!("claim was answered with {other:?}"),
        }
    }

    pub fn take(&mut self, max: u32) -> Vec<Grant> {
        match self.run(Command::Claim(claim("w", &["q"], max))) {
            Reply::Claimed { tasks } => tasks,
            other => panic!("claim was answered with {other:?}"),
        }
    }

    pub fn view(&self, id: &str) -> TaskView {
        self.shard.task(&Namespace::default(), &task_id(id)).unwrap()
    }

    pub fn state(&self, id: &str) -> TaskState {
        self.view(id).state
    }

    /// Snapshot and restore; the restored shard must be the same in every way that shows.
    pub fn reload(&self) -> World {
        let shard = Shard::restore(self.shard.freeze().chunks()).unwrap();
        assert_eq!(shard.hash(), self.shard.hash());
        assert_eq!(shard.sizes(), self.shard.sizes());
        invariants::all(&shard).unwrap();
        let (now_ms, check_every) = (self.now_ms, self.check_every);
        World { shard, now_ms, effects: Vec::new(), check_every }
    }
}
