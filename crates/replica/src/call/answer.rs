//! The answer: outcomes per item, views, or why not now.

use std::sync::Arc;

use ikada_consensus::NodeId;
use ikada_state::{
    BucketName, Digest, Explanation, Frozen, Grant, GrowthView, Job, JobPage, JobTask, Lease, Lsn,
    Member, NamespaceView, Object, ObjectPage, QueueView, RecordedRequest, References, RefusalCode,
    Reply, Schedule, ShardId, TaskView, Token, WorkerStanding,
};

use crate::output::DatabaseHealth;
use crate::peer::WorkerTold;

/// What a call came to.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // one per call, moved once or twice
pub enum Answer {
    /// One outcome per order, in the order given.
    Written(Vec<Outcome>),
    /// Tasks granted; empty when the wait ended without any.
    Claimed(Vec<Grant>),
    /// One outcome per claim, in the order given.
    Renewed(Vec<RenewOutcome>),
    /// The state asked for.
    View {
        /// What was found.
        view: View,
        /// The position of each shard that was read.
        lsns: Vec<(ShardId, Lsn)>,
        /// For stale reads: time since this node last heard that it is up to date; 0 otherwise.
        age_ms: u64,
    },
    /// Why a task is not running; none if there is no such task.
    Explained(Option<Explanation>),
    /// A worker's beat was heard.
    Beat {
        /// What is wanted of it.
        standing: WorkerStanding,
        /// Term of the leader who wants it.
        term: u64,
    },
    /// All workers.
    Workers {
        /// Term of the leader who told.
        term: u64,
        /// In order of their names.
        workers: Vec<WorkerTold>,
    },
    /// An administrative order was accepted.
    Accepted,
    /// An administrative order was refused; in words, naming the thing and what to do.
    Refused {
        /// Stable code.
        code: String,
        /// In words.
        detail: String,
    },
    /// Ask this node instead (only for `Routing::Redirect`).
    Redirect(NodeId),
    /// Nothing was decided.
    Unavailable(Unavailable),
}

/// What became of one order.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Committed and applied; a refusal is also a committed reply.
    Reply {
        /// What apply said.
        reply: Reply,
        /// Where.
        shard: ShardId,
        /// At which position.
        lsn: Lsn,
    },
    /// May or may not have been committed: ask again with the same request id.
    Unknown,
    /// Was not committed by this call.
    Unavailable(Unavailable),
}

/// What became of one renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The claim lives for this long again.
    Renewed {
        /// Lifetime from now.
        ttl_ms: u64,
    },
    /// The claim is not, or no longer, this worker's.
    Refused(RefusalCode),
    /// No leader answered in time; the claim may still be good.
    Unknown,
}

/// Why a call could not be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// No leader of a needed shard was known until the deadline.
    NoLeader {
        /// The shard without one.
        shard: ShardId,
    },
    /// Too much is waiting already.
    Overloaded {
        /// Which bound was met.
        what: &'static str,
    },
    /// Not every member understands the order yet.
    LevelTooLow {
        /// The level that does.
        needed: u32,
        /// The cluster's.
        level: u32,
    },
    /// Too few disks have room for what is to be added.
    DiskFull {
        /// Whose.
        shard: ShardId,
    },
    /// The database that holds the logs takes no writes.
    Database {
        /// What is wrong with it.
        health: DatabaseHealth,
    },
    /// The node is stopping.
    Stopping,
}

/// What became of one item of a request, over all shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFate {
    /// It was committed, with this outcome.
    Committed(RecordedRequest),
    /// It was not, and may yet be.
    NotYet,
    /// It was not and never will be: every shard refuses it since this log time.
    Voided {
        /// Log time in ms.
        since_ms: u64,
    },
}

/// What a read found.
#[derive(Debug, Clone)]
pub enum View {
    /// A task, if it exists.
    Task(Option<Box<TaskView>>),
    /// A page of tasks.
    Tasks {
        /// The tasks.
        tasks: Vec<TaskView>,
        /// Where the next page begins; none at the end.
        next: Option<(ShardId, u32)>,
    },
    /// A queue, if it exists.
    Queue(Option<Box<QueueView>>),
    /// All queues, in name order.
    Queues(Vec<QueueView>),
    /// What became of a request.
    Request(RequestFate),
    /// A schedule, if it exists.
    Schedule(Option<Arc<Schedule>>),
    /// Schedules in order of their names.
    Schedules(Vec<Arc<Schedule>>),
    /// An object, if it exists.
    Object(Option<Arc<Object>>),
    /// A page of objects.
    Objects(ObjectPage),
    /// A job, if it exists.
    Job(Option<Arc<Job>>),
    /// A page of jobs.
    Jobs(JobPage),
    /// Tasks of a job.
    JobTasks(Vec<JobTask>),
    /// Names of buckets.
    Buckets(Vec<BucketName>),
    /// Blobs that are no object's piece.
    Unreferenced(Vec<Digest>),
    /// Blobs that are.
    References(References),
    /// A lease, if somebody holds it.
    Lease(Option<Arc<Lease>>),
    /// Leases in order of their names.
    Leases(Vec<Arc<Lease>>),
    /// Tokens in order of their ids.
    Tokens(Vec<Arc<Token>>),
    /// Namespaces in order of their names.
    Namespaces(Vec<NamespaceView>),
    /// The state of every shard, in order.
    Frozen(Vec<Frozen>),
    /// The members.
    Members(Vec<Member>),
    /// How many shards there are, and the growth that runs.
    Shards {
        /// Shards, also those that a running growth adds.
        shards: u16,
        /// Version of the map of slots.
        map_version: u64,
        /// The growth that runs.
        growth: Option<GrowthView>,
    },
}
