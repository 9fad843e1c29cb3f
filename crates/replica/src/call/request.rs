//! The question: a call, its deadline and its kind.

use ikada_consensus::{Change, NodeId};
use ikada_state::{
    AcquireLease, BucketName, Digest, Fence, HolderName, JobId, JobKey, Labels, LeaseKey,
    LeaseName, Lsn, Namespace, ObjectKey, Order, Progress, QueueName, RegisterWorker, RequestId,
    RequestKey, ScheduleKey, ScheduleName, SessionId, ShardId, TaskFilter, TaskId, WorkerId,
};

/// The caller's handle for one call; unique within one process run.
pub type CallId = u64;

/// One client request.
#[derive(Debug, Clone)]
pub struct Call {
    /// Handle under which the answer comes back.
    pub id: CallId,
    /// How long the caller waits, from now on.
    pub timeout_ms: u64,
    /// What to do when another node leads.
    pub routing: Routing,
    /// The question itself.
    pub request: Request,
}

/// What a node does with a call that another node must decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// Pass it on and answer on the leader's behalf.
    Forward,
    /// Tell the caller which node to ask, if a single other node leads all that it touches.
    Redirect,
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum Request {
    /// Commands, each with its own outcome. Every order carries a request key, or is idempotent by its fence.
    Write(Vec<Order>),
    /// The next ready tasks, waiting for some if there are none.
    Claim(ClaimCall),
    /// Proof of life for claims; costs no log entry.
    Renew(Renewal),
    /// A look at the state.
    Read(Query, Consistency),
    /// Take a lease, waiting in line for it if another holds it.
    Lease(LeaseCall),
    /// Proof of life of a lease's holder; costs no log entry.
    RenewLease {
        /// The lease.
        key: LeaseKey,
        /// Its holder.
        holder: HolderName,
        /// Token of the holding.
        fence: Fence,
    },
    /// Wait for another holder of a lease.
    WatchLease(LeaseWatch),
    /// A worker lives, and says who it is.
    Beat {
        /// Where it works.
        namespace: Namespace,
        /// Who it is.
        worker: RegisterWorker,
        /// Slots that are busy.
        busy: u32,
        /// It has stopped.
        leaving: bool,
    },
    /// All workers, as the leader of shard 0 sees them.
    Workers,
    /// Why is a task not running? Told by its shard's leader, from memory.
    Explain(Namespace, TaskId),
    /// Raise the number of shards.
    Grow {
        /// Shards in the end.
        shards: u16,
        /// Makes a resend return the first answer.
        request: Option<RequestKey>,
    },
    /// Move leadership of one shard (or of all that this names) to a node, or away from its leader.
    Transfer {
        /// Which shard.
        shard: ShardId,
        /// The chosen node; absent means the most caught-up other voter.
        to: Option<NodeId>,
    },
    /// Change the voters of one shard.
    Change {
        /// Which shard.
        shard: ShardId,
        /// What to add and remove.
        change: Change,
    },
}

/// A worker's wish for tasks.
#[derive(Debug, Clone)]
pub struct ClaimCall {
    /// Namespace of the queues.
    pub namespace: Namespace,
    /// The worker that will run them.
    pub worker: WorkerId,
    /// The worker's process run.
    pub session: SessionId,
    /// Queues to take from, at least one.
    pub queues: Vec<QueueName>,
    /// What the worker has; tasks that want something else are not for it.
    pub labels: Labels,
    /// Marks of the digests of programs and inputs that the worker has at hand.
    pub holds: Option<Vec<u64>>,
    /// Free slots, at least one.
    pub count_max: u32,
    /// How long to wait for work before answering with nothing.
    pub wait_ms: u64,
    /// Makes a resend return the same grant.
    pub request: RequestId,
}

/// A wish for a lease.
#[derive(Debug, Clone)]
pub struct LeaseCall {
    /// Owner of the lease.
    pub namespace: Namespace,
    /// What is wanted; the shard of a task that it names is filled in here.
    pub wish: AcquireLease,
    /// How long to wait for the turn before answering with the place in line.
    pub wait_ms: u64,
}

/// A look at a lease that waits for news.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    /// The lease.
    pub key: LeaseKey,
    /// Token of the holding that the caller knows; none if it knows of no holder.
    pub seen: Option<Fence>,
    /// How long to wait for another.
    pub wait_ms: u64,
}

/// A worker's proof that it still runs what it claimed, and with a session a roll call: what the session does not name
/// it does not have.
#[derive(Debug, Clone)]
pub struct Renewal {
    /// Namespace of the tasks.
    pub namespace: Namespace,
    /// The worker that holds them.
    pub worker: WorkerId,
    /// The worker's process run, if the claims are all that it holds; then none is a list too.
    pub session: Option<SessionId>,
    /// Each claim held, by task and fence.
    pub claims: Vec<(TaskId, Fence)>,
    /// How far some of them are, by their place in the list.
    pub progress: Vec<(u32, Progress)>,
}

/// How fresh a read must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consistency {
    /// Includes every write acknowledged before the read began.
    Linearizable,
    /// Whatever this node has applied; the answer is labelled with its age.
    Stale,
    /// At least as new as these positions (read your own writes).
    AtLeast(Vec<(ShardId, Lsn)>),
}

/// What to look at.
#[derive(Debug, Clone)]
pub enum Query {
    /// One task.
    Task(Namespace, TaskId),
    /// A page of tasks, shard by shard.
    Tasks {
        /// Which ones.
        filter: TaskFilter,
        /// Where the page begins: the `next` of the page before.
        after: Option<(ShardId, u32)>,
        /// At most this many.
        limit: usize,
    },
    /// Settings and counters of one queue, summed over all shards.
    Queue(Namespace, QueueName),
    /// All queues of a namespace.
    Queues(Namespace),
    /// All queues of all namespaces, for those who watch over them.
    EveryQueue,
    /// What became of a request id.
    Request(Namespace, RequestId, u32),
    /// One schedule.
    Schedule(ScheduleKey),
    /// A page of schedules, in order of their names.
    Schedules {
        /// Their owner.
        namespace: Namespace,
        /// Only names after this one.
        after: Option<ScheduleName>,
        /// At most this many.
        limit: usize,
    },
    /// All schedules of all namespaces, for those who watch over them.
    EverySchedule,
    /// One object with its versions.
    Object(ObjectKey),
    /// A page of a bucket's objects, in order of their names.
    Objects {
        /// Owner of the bucket.
        namespace: Namespace,
        /// The bucket.
        bucket: BucketName,
        /// Only names that begin with this.
        prefix: String,
        /// Only names after this one.
        after: Option<String>,
        /// At most this many.
        limit: usize,
    },
    /// One job.
    Job(JobKey),
    /// A page of jobs, in order of their ids.
    Jobs {
        /// Their owner.
        namespace: Namespace,
        /// Only ids after this one.
        after: Option<JobId>,
        /// At most this many.
        limit: usize,
    },
    /// Tasks of one stage of a job, in order.
    JobTasks {
        /// The job.
        job: JobKey,
        /// The stage, by place.
        stage: usize,
        /// Number of the first.
        from: u32,
        /// At most this many.
        limit: u32,
    },
    /// Names of buckets that have objects, in order.
    Buckets {
        /// Their owner.
        namespace: Namespace,
        /// Only names after this one.
        after: Option<BucketName>,
        /// At most this many.
        limit: usize,
    },
    /// Which of these blobs no object of any shard has as a piece.
    Unreferenced(Vec<Digest>),
    /// Blobs that objects of one shard have as pieces, in order of their digests.
    References {
        /// Which shard.
        shard: ShardId,
        /// Only digests after this one.
        after: Option<Digest>,
        /// At most this many.
        limit: usize,
    },
    /// One lease.
    Lease(LeaseKey),
    /// Leases of a namespace that somebody holds, in order of their names.
    Leases {
        /// Their owner.
        namespace: Namespace,
        /// Only names after this one.
        after: Option<LeaseName>,
        /// At most this many.
        limit: usize,
    },
    /// All tokens.
    Tokens,
    /// Namespaces with what they have, over all shards.
    Namespaces {
        /// Only those that have a quota.
        only_bounded: bool,
    },
    /// The state of every shard, for a backup.
    Backup,
    /// The cluster's members.
    Members,
    /// The number of shards, and the growth that runs.
    Shards,
}
