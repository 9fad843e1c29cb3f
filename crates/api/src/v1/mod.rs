//! Version 1 of the public types. Numbers that may exceed 2^53 travel as decimal text.

mod cluster;
mod events;
mod explain;
mod job;
mod lease;
mod log;
mod members;
mod namespace;
mod number;
mod object;
mod payload;
mod position;
mod program;
mod queue;
mod request;
mod schedule;
mod task;
mod token;
mod upload;
mod work;
mod worker;

pub use cluster::{
    ClusterView, FollowerView, GrowAnswer, GrowRequest, GrowthView, LoadView, MemberView, NodeSelf,
    PeerView, ShardSelf, ShardView, TransferOutcome, TransferRequest, TransferResult,
};
pub use events::{BadEventPlace, BallotView, EventPage, EventPlace, EventSource, EventView};
pub use explain::{ReasonInfo, TaskExplanation};
pub use job::{
    GatherBody, JobInfo, JobPage, JobResult, JobTaskInfo, JobTaskPage, NewJob, NewReduce, NewStage,
    RangeBody, SettleBody, ShuffleBody, StageInfo,
};
pub use lease::{
    AcquireLease, LeaseAnswer, LeaseInfo, LeasePage, LeaseReleased, LeaseState, LeaseTask,
    LeaseWaiterInfo, ReleaseLease, RenewLease,
};
pub use log::{LogEnd, LogGap, LogText};
pub use members::{AddNode, ChangeView, ElectionsView, SteerNode, TuneElections};
pub use namespace::{NamespaceInfo, NamespacePage, QuotaBody, QuotaInfo};
pub use number::Number;
pub use object::{BucketPage, ObjectInfo, ObjectPage, ObjectPieces, ObjectRemoved};
pub use payload::{Body, BodyError, JSON_DEPTH_MAX, RawBytes, json_depth};
pub use position::{Position, PositionError, parse_positions, print_positions};
pub use program::{
    NewProgram, OutputItem, ProgramFile, ProgramInfo, ProgramManifest, ProgramPage, ProgramRemoved,
    UploadInfo, WorkInfo, WorkInput, WorkPart, WorkProgram,
};
pub use queue::{
    AlertsBody, AlertsInfo, QueueCounts, QueueHealth, QueueInfo, QueuePage, QueueSettingsBody,
    QueueSettingsInfo, SweepAnswer,
};
pub use request::{RequestInfo, RequestStatus};
pub use schedule::{
    MissedPolicy, OverlapPolicy, ScheduleBody, ScheduleInfo, SchedulePage, ScheduleRemoved,
    ScheduledTask,
};
pub use task::{
    AttemptInfo, BackoffBody, EnqueueAnswer, EnqueueBatch, ItemOutcome, NewTask, OutcomeKind, Task,
    TaskPage, TaskStateName,
};
pub use token::{NewToken, TokenInfo, TokenMade, TokenPage, TokenRevoked, Whoami};
pub use upload::{FinishUpload, NewUpload, UploadEnded, UploadPage, UploadPart, UploadView};
pub use work::{
    ClaimAnswer, ClaimRequest, ClaimedTask, CompleteItem, CompleteRequest, FailItem, FailRequest,
    NewCheckpoint, OutcomeList, ProgressBody, RenewItem, RenewRequest,
};

pub use worker::{
    ScalingPage, ScalingView, SlotCount, WorkerBeat, WorkerChanged, WorkerInfo, WorkerOrders,
    WorkerPage, WorkerStateName, WorkerSummary, WorkerWanted,
};

/// Header that names a request, so that a resend is recognised.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Header with the positions a write was applied at: `shard:term:index`, separated by commas.
pub const LSN_HEADER: &str = "ikada-lsn";
/// Header of a stale answer: how long ago this node last knew to be up to date.
pub const AGE_HEADER: &str = "ikada-age-ms";
/// Header by which a caller says how long it waits.
pub const TIMEOUT_HEADER: &str = "ikada-timeout-ms";
/// Header by which a caller asks to be redirected (`redirect`) instead of being served by way of another node.
pub const ROUTING_HEADER: &str = "ikada-routing";
/// Header with the BLAKE3 digest of an object's bytes in hex: a wrong one is refused.
pub const OBJECT_DIGEST_HEADER: &str = "ikada-digest";
/// Header with the number of an object's version.
pub const OBJECT_VERSION_HEADER: &str = "ikada-version";
/// When the version of an object in the answer was written, ms since 1970.
pub const OBJECT_MODIFIED_HEADER: &str = "ikada-modified-ms";
/// Header that names the namespace.
pub const NAMESPACE_HEADER: &str = "ikada-namespace";
