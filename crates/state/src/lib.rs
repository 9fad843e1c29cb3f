//! What is true: the replicated state machine of one shard of the task queue.
//!
//! Promise: [`Shard::apply`] is a pure, total function of (state, entry). It reads no clock, draws
//! no random number, touches no file and never panics on any entry bytes; two replicas fed the same
//! log hold equal state hashes (Q14, TQ-10). Time enters only as the log time inside an entry.
//!
//! A log entry is a *batch* of orders ([`BatchBuilder`]); each order gives one [`Reply`], and the
//! batch gives [`Effect`]s that tell a leader what to wake, time or deliver. Snapshots
//! ([`Shard::freeze`], [`Shard::restore`]) carry everything but derived indexes, which are rebuilt
//! in the same order.
//!
//! Left out: who may write (consensus), claim lifetimes in real time (the leader proposes
//! `Expire`), and the public JSON words. Callers: `replica`, `api` (ids) and the simulator.

pub mod batch;
pub mod command;
pub mod dedup;
pub mod effect;
pub mod growth;
pub mod hash;
pub mod ids;
pub mod invariants;
pub mod job;
pub mod lease;
pub mod limits;
pub mod members;
pub mod namespace;
pub mod object;
pub mod outbox;
pub mod planted;
pub mod queue;
pub mod refusal;
pub mod reply;
pub mod reuse;
pub mod schedule;
pub mod shard;
pub mod slots;
pub mod snapshot;
pub mod task;
pub mod token;
pub mod worker;

pub use batch::BatchBuilder;
pub use command::{Command, Order};
pub use dedup::{Outcome, RecordedRequest, Void};
pub use effect::{Applied, Audience, Effect};
pub use growth::{Grow, Growth, GrowthView, NewShards};
pub use ids::{
    BucketName, Fence, HolderName, JobId, Label, Labels, LeaseName, Lsn, NameError, Namespace,
    ObjectName, PrincipalName, ProgramName, QueueHandle, QueueName, RequestId, RequestKey,
    ScheduleName, SessionId, ShardId, SharedBytes, StageName, TaskId, TokenId, WorkerId,
    derive_fire_id, derive_follow_id, derive_task_id,
};
pub use job::{
    CancelJob, Duplicate, Job, JobKey, JobPage, JobSpec, JobState, JobStatus, JobTask, Settle,
    StageProgress, StageSource, StageSpec, SubmitJob,
};
pub use lease::{
    AcquireLease, BindLease, BoundLease, BoundTask, ExpireLease, Lease, LeaseHolding, LeaseKey,
    LeaseMark, LeaseWaiter, ReleaseLease,
};
pub use limits::Limits;
pub use members::{
    ChangeMembers, ELECTION_MS_MAX, ELECTION_MS_MIN, LEVEL, Member, MemberChange, PRIORITY_MAX,
    RaiseEpoch, RaiseLevel, Refound, Roster, SetMembers, SettleChange, SteerMember, TuneElections,
    VOTERS_MAX,
};
pub use namespace::{NamespaceView, Quota, QuotaChange, QuotaRecord, SetQuota};
pub use object::{
    BUCKET_AUTOSCALE, BUCKET_JOBS, BUCKET_LOGS, BUCKET_PROGRAMS, BUCKET_TASKS, BUCKET_UPLOADS,
    Collect, DeleteObject, Digest, Digests, Object, ObjectKey, ObjectPage, ObjectVersion,
    PutCondition, PutObject, References, is_owned, is_published, is_reserved, routing_key,
};
pub use outbox::{Acked, Deliver, Message, OutboxItem, messages_fit};
pub use queue::{
    AlertThresholds, Backoff, KeepDead, Offer, QueueChange, QueueCounters, QueueSettings,
    QueueView, SetQueue, Sweep, SweepAction,
};
pub use refusal::RefusalCode;
pub use reply::{FailNext, Grant, Reply};
pub use reuse::{Recall, Remembered, Stored};
pub use schedule::{
    DeleteSchedule, Fire, LastFire, Missed, Overlap, Schedule, ScheduleKey, ScheduleSpec,
    SetSchedule, Timing,
};
pub use shard::{Shard, Sizes};
pub use slots::{SLOTS, SlotMap, slot_of};
pub use snapshot::{Frozen, RestoreError};
pub use task::{
    AttemptOutcome, AttemptView, Cancel, Checkpoint, Claim, ClaimView, Complete, DeadReason,
    DropTask, Enqueue, Expire, ExpireCause, Explanation, Fail, Input, InputSource, JobPart, Output,
    ProgramKind, ProgramRef, Progress, Retry, SharedWork, TaskFilter, TaskList, TaskOptions,
    TaskState, TaskView, Unclaim, WaitReason, Work, decode_then, encode_then,
};
pub use token::{AddToken, RevokeToken, Role, S3_NAME, SecretDigest, Token};
pub use worker::{
    DrainWorker, RegisterWorker, RemoveWorker, WorkerKey, WorkerRecord, WorkerStanding,
};
