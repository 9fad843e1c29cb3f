//! The one route table: it drives the server's routing, the query parameters it takes, who may use it, and the OpenAPI
//! document. A route without a policy does not compile.
//!
//! Order matters where a fixed word and a name compete: the first match counts, and a fixed word only claims the
//! methods it has, so that a task named `claim` can still be shown.

mod callers;
mod cluster;
mod find;
mod holders;
mod parameters;
pub mod policy;
mod shape;
mod table;
mod uploads;

use schemars::{Schema, SchemaGenerator};

pub use find::{Found, find, read_query};
pub use policy::{Access, BodyBound, Class, Policy, Role, Scope};
pub use table::ROUTES;

/// Request methods in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Looks; changes nothing.
    Get,
    /// Acts.
    Post,
    /// Sets.
    Put,
    /// Removes.
    Delete,
}

impl Verb {
    /// The method's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each name is explained by its route's summary.
pub enum Operation {
    Enqueue,
    ListTasks,
    ShowTask,
    CancelTask,
    RetryTask,
    DropTask,
    ExplainTask,
    TaskLogs,
    Checkpoint,
    Claim,
    Complete,
    Fail,
    Renew,
    ListQueues,
    ShowQueue,
    SetQueue,
    PauseQueue,
    ResumeQueue,
    RetryQueue,
    DropQueue,
    PurgeQueue,
    ListSchedules,
    ShowSchedule,
    SetSchedule,
    DeleteSchedule,
    PauseSchedule,
    ResumeSchedule,
    ListWorkers,
    ShowWorker,
    Beat,
    DrainWorker,
    RemoveWorker,
    ListLeases,
    ShowLease,
    AcquireLease,
    RenewLease,
    ReleaseLease,
    ListBuckets,
    ListObjects,
    GetObject,
    PutObject,
    DeleteObject,
    Upload,
    ListUploads,
    ShowUpload,
    BeginUpload,
    PutPart,
    FinishUpload,
    EndUpload,
    PushProgram,
    ListPrograms,
    ShowProgram,
    DeleteProgram,
    SubmitJob,
    ListJobs,
    ShowJob,
    ShowJobResult,
    ListJobTasks,
    FollowJob,
    JobLogs,
    CancelJob,
    ShowRequest,
    VoidRequest,
    Pipe,
    CreateToken,
    ListTokens,
    RevokeToken,
    Whoami,
    ListNamespaces,
    ShowNamespace,
    SetQuota,
    ShowQuota,
    ShowCluster,
    Live,
    ListEvents,
    ShowScaling,
    Transfer,
    Backup,
    AddNode,
    RemoveNode,
    SteerNode,
    TuneElections,
    Grow,
    ShowNode,
    Dashboard,
    Metrics,
    Health,
    Ready,
    OpenApi,
}

/// A query parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// Derives a type's schema.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Request method.
    pub verb: Verb,
    /// Path; a segment in braces is a name, and one that ends in `*}` takes all that follows, slashes included.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
    /// Who may use it, how it ranks, how large its body may be.
    pub policy: Policy,
    /// One line for people.
    pub summary: &'static str,
    /// Query parameters; any other is refused by name.
    pub query: &'static [Parameter],
    /// The request body; absent when there is none.
    pub body: Option<SchemaOf>,
    /// The answer; absent when it is not JSON.
    pub answer: Option<SchemaOf>,
    /// Whether an Idempotency-Key means something here.
    pub keyed: bool,
}
