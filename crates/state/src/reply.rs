//! What an order's sender learns.

use minicbor::{Decode, Encode};

use crate::{Fence, QueueName, RefusalCode, SharedBytes, SharedWork, TaskId};

/// One task handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Grant {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Its queue.
    #[n(1)]
    pub queue: QueueName,
    /// Token that must come back with the completion.
    #[n(2)]
    pub fence: Fence,
    /// Which try this is, from 1.
    #[n(3)]
    pub attempt: u16,
    /// Most tries.
    #[n(4)]
    pub max_attempts: u16,
    /// Lifetime of the claim unless renewed.
    #[n(5)]
    pub ttl_ms: u32,
    /// What to do.
    #[n(6)]
    pub payload: SharedBytes,
    /// Longest time for the whole attempt, renewed or not; 0 if there is none.
    #[n(7)]
    #[cbor(default)]
    pub timeout_ms: u32,
    /// What to run; none for a plain task.
    #[n(8)]
    #[cbor(default)]
    pub work: Option<SharedWork>,
    /// Whether an earlier attempt left a checkpoint; none is no.
    #[n(9)]
    pub checkpoint: Option<bool>,
}

/// What becomes of a task whose attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum FailNext {
    /// Ready again at once.
    #[n(0)]
    Ready,
    /// Ready again at this log time.
    #[n(1)]
    Scheduled {
        /// Log time in ms.
        #[n(0)]
        at_ms: u64,
    },
    /// No attempt is left, or none was wanted.
    #[n(2)]
    Dead,
}

/// Answer to one order, in the order of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Reply {
    /// The task exists.
    #[n(0)]
    Enqueued {
        /// The task.
        #[n(0)]
        id: TaskId,
        /// False if it existed with the same body.
        #[n(1)]
        created: bool,
    },
    /// The tasks granted; may be empty.
    #[n(1)]
    Claimed {
        /// One grant per task.
        #[n(0)]
        tasks: Vec<Grant>,
    },
    /// The task is done by this fence.
    #[n(2)]
    Completed,
    /// The attempt has failed.
    #[n(3)]
    Failed {
        /// What follows.
        #[n(0)]
        next: FailNext,
    },
    /// The claim has expired.
    #[n(4)]
    Expired {
        /// What follows.
        #[n(0)]
        next: FailNext,
    },
    /// The claim was returned and not counted.
    #[n(5)]
    Unclaimed,
    /// The task is cancelled.
    #[n(6)]
    Cancelled,
    /// The queue's settings are stored in this shard and on their way to the others.
    #[n(7)]
    QueueSet {
        /// Version of the settings.
        #[n(0)]
        version: u64,
    },
    /// The message is applied.
    #[n(8)]
    Delivered {
        /// False if it had been applied before.
        #[n(0)]
        fresh: bool,
    },
    /// Delivered messages are removed from the outbox.
    #[n(9)]
    Acked,
    /// The members are recorded.
    #[n(10)]
    MembersSet,
    /// The restore epoch is raised.
    #[n(11)]
    EpochRaised,
    /// Nothing was done.
    #[n(12)]
    Refused {
        /// Why.
        #[n(0)]
        code: RefusalCode,
    },
    /// The task is ready again, with fresh attempts.
    #[n(20)]
    Retried,
    /// The finished task is removed.
    #[n(21)]
    Dropped,
    /// Dead tasks are kept apart from now on.
    #[n(25)]
    DeadKept,
    /// One step of a sweep is done.
    #[n(22)]
    Swept {
        /// Tasks changed by this step.
        #[n(0)]
        count: u32,
        /// Where the next step begins; none when the shard is done.
        #[n(1)]
        next: Option<u32>,
    },
    /// The request is ruled out in this shard.
    #[n(23)]
    Voided,
    /// The schedule is stored.
    #[n(40)]
    ScheduleSet {
        /// Version of its settings.
        #[n(0)]
        version: u64,
    },
    /// The schedule is removed.
    #[n(41)]
    ScheduleDeleted,
    /// The instant is decided.
    #[n(42)]
    Fired {
        /// False if it had been decided before.
        #[n(0)]
        fresh: bool,
    },
    /// The object is written.
    #[n(60)]
    ObjectPut {
        /// Its newest version.
        #[n(0)]
        version: u64,
        /// False if that version had the same content already.
        #[n(1)]
        fresh: bool,
    },
    /// The object, or one version of it, is removed.
    #[n(61)]
    ObjectDeleted {
        /// How many versions went.
        #[n(0)]
        versions: u32,
    },
    /// Blobs may be removed, as far as this shard is concerned.
    #[n(62)]
    Collected,
    /// The token exists.
    #[n(70)]
    TokenAdded {
        /// False if it existed before.
        #[n(0)]
        fresh: bool,
    },
    /// The token is no more.
    #[n(71)]
    TokenRevoked,
    /// The change of membership is under way, or done already.
    #[n(80)]
    ChangeBegun {
        /// Its number; 0 if there is nothing left to do.
        #[n(0)]
        number: u64,
    },
    /// The change of membership is over.
    #[n(81)]
    ChangeSettled,
    /// The wish about a member is recorded.
    #[n(82)]
    MemberSteered,
    /// The cluster's level is raised.
    #[n(83)]
    LevelRaised,
    /// The wait before elections is recorded.
    #[n(84)]
    ElectionsTuned,
    /// The cluster grows.
    #[n(90)]
    Growing {
        /// Shards in the end.
        #[n(0)]
        shards: u16,
        /// Slots that will move.
        #[n(1)]
        slots: u16,
    },
    /// The lease is the asker's.
    #[n(100)]
    LeaseGranted {
        /// Token of the holding.
        #[n(0)]
        fence: Fence,
        /// False if it was the asker's before.
        #[n(1)]
        fresh: bool,
    },
    /// Another holds the lease; the asker stands in line.
    #[n(101)]
    LeaseWaiting {
        /// How many are before it.
        #[n(0)]
        ahead: u32,
    },
    /// The lease, or the place in line, is given back.
    #[n(102)]
    LeaseReleased,
    /// The holding or the wait is over.
    #[n(103)]
    LeaseExpired,
    /// The job exists.
    #[n(110)]
    JobSubmitted {
        /// False if it existed with the same body.
        #[n(0)]
        created: bool,
    },
    /// The job is cancelled.
    #[n(111)]
    JobCancelled,
    /// The worker is recorded.
    #[n(120)]
    WorkerRegistered,
    /// The worker will leave.
    #[n(121)]
    WorkerDraining,
    /// The worker's session is over.
    #[n(122)]
    WorkerGone,
    /// The quota is stored in this shard and on its way to the others.
    #[n(130)]
    QuotaSet {
        /// Version of the quota.
        #[n(0)]
        version: u64,
    },
}

impl Reply {
    /// A refusal.
    pub fn refused(code: RefusalCode) -> Reply {
        Reply::Refused { code }
    }
}
