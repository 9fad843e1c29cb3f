//! Everything a caller can be told about failure, and the status that belongs to it. The only such file.
//!
//! Codes are stable. Three kinds (style 9): *refused* (4xx, deterministic), *unavailable* (429/503, try again),
//! *unknown* (504, ask or resend under the same key); 500 is a defect of ours.

use std::time::Duration;

use ikada_api::Problem;
use ikada_api::convert::FieldError;
use ikada_api::routes::{Operation, Verb};
use ikada_api::state::{Namespace, RefusalCode, Role};
use ikada_replica::DatabaseHealth;
use ikada_replica::call::Unavailable;

use crate::admission::{Lane, Reason};
use crate::objects::{FetchError, SpreadError};

/// Seconds after which a caller without a leader should come back: an election takes less.
const RETRY_SOON_S: u32 = 1;
/// Seconds after which an address that failed too often should come back.
const FAILURES_PAUSE_S: u32 = 10;
/// Most that is repeated of a host.
const HOST_CHARS_MAX: usize = 100;

/// A refusal by the state.
pub(super) fn refusal(code: RefusalCode) -> Problem {
    let (status, title) = refusal_title(code);
    let problem = Problem::new(status, code.as_str(), title, refusal_detail(code));
    if code.is_transient() { problem.with_retry_after_s(RETRY_SOON_S) } else { problem }
}

fn refusal_title(code: RefusalCode) -> (u16, &'static str) {
    use RefusalCode as Code;
    match code {
        Code::BadCommand => (400, "command not understood"),
        Code::BadValue => (400, "value out of bounds"),
        Code::TooLarge => (413, "too large"),
        Code::Conflict => (409, "task exists"),
        Code::IdempotencyConflict => (409, "key used before"),
        Code::TaskNotFound => (404, "no such task"),
        Code::TaskFinished => (409, "task finished"),
        Code::StaleFence => (409, "claim lost"),
        Code::NotOwner => (409, "not the claimant"),
        Code::QueueFull => (429, "queue full"),
        Code::DeadFull => (429, "too many dead tasks"),
        Code::TooManyQueues => (429, "too many queues"),
        Code::OutboxGap => (503, "message out of order"),
        Code::OutboxFull => (503, "shards are behind"),
        Code::WrongShard => (500, "wrong shard"),
        Code::VersionConflict => (409, "settings changed"),
        Code::FenceExhausted => (503, "fences used up"),
        Code::TaskNotFinished => (409, "task not finished"),
        Code::RequestVoided => (409, "request voided"),
        Code::TooManyVoids => (429, "too many voided requests"),
        Code::KeyConflict => (409, "key conflict"),
        Code::TooManyLabelSets => (429, "too many label sets"),
        Code::DeadlinePassed => (409, "deadline passed"),
        Code::ScheduleNotFound => (404, "no such schedule"),
        Code::TooManySchedules => (429, "too many schedules"),
        Code::ObjectNotFound => (404, "no such object"),
        Code::PreconditionFailed => (412, "precondition failed"),
        Code::BucketReserved => (403, "bucket reserved"),
        Code::TooManyObjects => (429, "too many objects"),
        Code::BlobReferenced => (409, "blob in use"),
        Code::TokenNotFound => (404, "no such token"),
        Code::TooManyTokens => (429, "too many tokens"),
        Code::TokensExist => (409, "tokens exist"),
        Code::LastAdmin => (409, "last admin token"),
        Code::ChangePending => (409, "change under way"),
        Code::NodeNotFound => (404, "no such node"),
        Code::NodeExists => (409, "node exists"),
        Code::NodeRemoved => (409, "node was removed"),
        Code::LastVoter => (409, "last voter"),
        Code::TooManyMembers => (409, "too many members"),
        Code::NodeTooOld => (409, "node too old"),
        Code::SlotMoved => (503, "task is moving"),
        Code::GrowthRunning => (409, "cluster is growing"),
        Code::BadShardCount => (400, "number of shards"),
        Code::LeaseHeld => (409, "lease held"),
        Code::LeaseNotHeld => (409, "lease not held"),
        Code::TooManyLeases => (429, "too many leases"),
        Code::TooManyWaiters => (429, "too many wait"),
        Code::LeaseTerms => (409, "other terms"),
        Code::JobNotFound => (404, "job not found"),
        Code::JobFinished => (409, "job finished"),
        Code::TooManyJobs => (429, "too many jobs"),
        Code::WorkerExists => (409, "worker exists"),
        Code::WorkerNotFound => (404, "no such worker"),
        Code::WorkerRemoved => (409, "worker was removed"),
        Code::TooManyWorkers => (429, "too many workers"),
        Code::NamespaceFull => (429, "namespace full"),
        Code::NamespaceBytes => (429, "namespace full"),
        Code::NamespaceObjects => (429, "namespace full"),
        Code::TooManyQuotas => (429, "too many quotas"),
    }
}

/// About leases, workers, jobs and namespaces.
fn holder_detail(code: RefusalCode) -> &'static str {
    use RefusalCode as Code;
    match code {
        Code::LeaseHeld => "another holds the lease; wait for it with wait_ms",
        Code::LeaseNotHeld => "this holder neither holds the lease nor waits for it",
        Code::TooManyLeases => "as many leases are held as may be; try again when some are free",
        Code::WorkerExists => "another session is alive under this name; choose another name",
        Code::WorkerNotFound => "no worker has this name; see GET /v1/workers",
        Code::WorkerRemoved => "this session was ended; start the worker again",
        Code::TooManyWorkers => "as many workers are recorded as may be; remove dead ones",
        Code::TooManyWaiters => "as many wait for this lease as may; try again later",
        Code::LeaseTerms => {
            "this holder has the lease bound to another attempt, or waits for it on other terms; release it first, or ask as before"
        }
        Code::JobNotFound => "there is no such job, or it ended and its time is over",
        Code::JobFinished => "the job has ended; submit it again",
        Code::NamespaceFull => {
            "the namespace has as many unfinished tasks as its quota lets into this task's shard; try again when some are done (GET /v1/quota)"
        }
        Code::NamespaceBytes => {
            "the namespace has as many bytes of unfinished tasks as its quota lets into this task's shard; try again when some are done (GET /v1/quota)"
        }
        Code::NamespaceObjects => {
            "the object does not fit into what is left of the namespace's quota (GET /v1/quota): remove some objects, or uploads that nobody goes on with (GET /v1/uploads)"
        }
        Code::TooManyQuotas => "as many namespaces have a quota as may",
        Code::TooManyJobs => "as many jobs are kept as may be; keep them for a shorter time",
        _ => "refused",
    }
}

/// What to do about a queue full of dead tasks.
const DEAD_FULL: &str = "the queue has as many dead tasks as it may and takes no new ones; \
     `ikada task retry` or `ikada task drop` some, or raise its `dead_max`";

/// What to do about a shard full of objects.
const OBJECTS_FULL: &str = "the shard has as many versions of objects (1000000) or pieces (4000000) as it may; \
     delete objects or finished jobs' outputs that are not needed, and what waits goes on";

fn refusal_detail(code: RefusalCode) -> &'static str {
    use RefusalCode as Code;
    match code {
        Code::BadCommand => "the cluster does not know this command; do all nodes run one version?",
        Code::BadValue => "a field is outside its bounds",
        Code::TooLarge => "the payload, result or list is too large; put big data into files",
        Code::Conflict => {
            "a task with this id exists, or did lately, with another body; choose another id"
        }
        Code::IdempotencyConflict => "this key was used with another body; choose a fresh key",
        Code::TaskNotFound => "the task does not exist, or its retention time is over",
        Code::TaskFinished => "the task is finished and cannot change any more",
        Code::StaleFence => "the fence is not that of the live claim: another attempt took over",
        Code::NotOwner => "the claim belongs to another worker",
        Code::QueueFull => "as many tasks wait as may; try again when some are done",
        Code::DeadFull => DEAD_FULL,
        Code::TooManyQueues => "as many queues exist as may; use an existing one",
        Code::OutboxGap => "a message between shards came early; it is sent again",
        Code::OutboxFull => "too many changes wait for other shards; try again",
        Code::WrongShard => "the command was sent to a shard that does not own it",
        Code::VersionConflict => "the settings have another version by now; read them again",
        Code::TaskNotFinished => "only finished tasks can be retried or dropped; cancel it first",
        Code::RequestVoided => "this request id was ruled out by a void; choose a fresh key",
        Code::TooManyVoids => "as many requests are ruled out as may be; try again later",
        Code::FenceExhausted => "the shard can grant no more claims; raise its restore epoch",
        Code::KeyConflict => "a follow-up has the key of its parent; leave its key out",
        Code::TooManyLabelSets => {
            "the queue's tasks want as many different label sets as they may; use one of those"
        }
        Code::DeadlinePassed => "the deadline is over already; submit the task with a later one",
        Code::ScheduleNotFound => {
            "there is no such schedule; make it with PUT /v1/schedules/{name}"
        }
        Code::TokenNotFound => "there is no such token; it may have been revoked already",
        Code::TooManyTokens => "as many tokens exist as may; revoke one that is not needed",
        Code::TokensExist => "the first token is made once, and this cluster has tokens",
        Code::LastAdmin => {
            "no other admin token of the whole cluster lasts as long: without one nobody could make tokens; make one first, `ikada auth token create --role admin --days 0`"
        }
        Code::TooManySchedules => "as many schedules exist as may; remove one that is not needed",
        Code::ObjectNotFound => "there is no such object, or no such version of it",
        Code::PreconditionFailed => {
            "the object is not as If-Match or If-None-Match demands; look at it again"
        }
        Code::BucketReserved => "only the cluster itself writes to this bucket; use another",
        Code::TooManyObjects => OBJECTS_FULL,
        Code::BlobReferenced => "an object has this blob as a piece; it stays",
        Code::ChangePending => {
            "another change of membership is not finished; wait for it (`ikada cluster status` shows it), or remove the node that is being added"
        }
        Code::NodeNotFound => "no member has this id; see `ikada cluster status`",
        Code::NodeExists => {
            "a member has this id with another disk, or this address; a wiped node must be replaced under a new id"
        }
        Code::NodeRemoved => {
            "this id left the cluster, and ids are not used again; join with a new --node-id"
        }
        Code::LastVoter => "the last member cannot be removed; stop the node instead",
        Code::TooManyMembers => "the cluster has as many members as it may; replace one instead",
        Code::NodeTooOld => {
            "the node runs an older version than the cluster; install the version of the other nodes there, start it, then ask again"
        }
        Code::SlotMoved => "the task is on its way to another shard; try again",
        Code::GrowthRunning => {
            "shards are being added already; ask again when that is done (ikada cluster status)"
        }
        Code::BadShardCount => "the cluster has as many shards, or can have no more",
        other => holder_detail(other),
    }
}

/// More tasks came than a namespace may submit in a second.
pub(super) fn rate_exceeded(namespace: &Namespace, wait: Duration) -> Problem {
    let detail = format!(
        "namespace {namespace} submits more tasks in a second than its quota allows; slow down"
    );
    Problem::new(429, "rate_exceeded", "too many submissions", detail)
        .with_retry_after_s(whole_seconds(wait))
}

/// A completion brings more tasks than a quota lets in now.
pub(super) fn follow_ups_wait(namespace: &Namespace, wait: Duration) -> Problem {
    let detail = format!(
        "the completion brings follow-ups, and namespace {namespace} has as many tasks, or gets as many in a second, as its quota allows; send it again, and keep the claim meanwhile"
    );
    Problem::new(429, "rate_exceeded", "too many follow-ups", detail)
        .with_retry_after_s(whole_seconds(wait))
}

fn whole_seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}

/// A refusal of an administrative order.
pub(super) fn admin_refusal(code: &str, detail: &str) -> Problem {
    let status = match code {
        "shard_not_found" | "node_not_found" => 404,
        _ => 409,
    };
    Problem::new(status, code.to_owned(), "refused", detail)
}

/// Nothing was decided.
pub(super) fn unavailable(reason: &Unavailable) -> Problem {
    let problem = match reason {
        Unavailable::NoLeader { shard } => Problem::new(
            503,
            "no_leader",
            "no leader",
            format!("shard {shard} has no known leader; try again, or ask another node"),
        ),
        Unavailable::Overloaded { what } => Problem::new(
            429,
            "overloaded",
            "overloaded",
            format!("too much is waiting already ({what}); slow down and try again"),
        ),
        Unavailable::LevelTooLow { needed, level } => Problem::new(
            503,
            "level_too_low",
            "some nodes are too old",
            format!(
                "this needs level {needed}, which some nodes do not understand (the cluster is at level {level}); upgrade those that `ikada cluster status` shows below it, then try again"
            ),
        ),
        Unavailable::DiskFull { shard } => Problem::new(
            507,
            "disk_full",
            "disk full",
            format!(
                "too few nodes have room on their disks for more in shard {shard}; what is there goes on and can be completed, cancelled and deleted: remove what is not needed, or give the nodes more room"
            ),
        ),
        // 503 and not 507: an earlier try of the same order may be waiting for room, so this is no last word.
        Unavailable::Database { health: DatabaseHealth::Full } => Problem::new(
            503,
            "database_full",
            "database full",
            "the database that holds the logs has no room, and nothing can be written: give it more; all goes on by itself then",
        ),
        Unavailable::Database { health: DatabaseHealth::ReadOnly } => Problem::new(
            503,
            "database_read_only",
            "database read-only",
            "the database that holds the logs takes no writes: end its read-only mode, or bring its primary back; all goes on by itself then",
        ),
        Unavailable::Database { health: DatabaseHealth::Away | DatabaseHealth::Well } => {
            Problem::new(
                503,
                "database_away",
                "database away",
                "the database that holds the logs does not answer; try again",
            )
        }
        Unavailable::Stopping => Problem::new(
            503,
            "stopping",
            "node stopping",
            "this node is stopping; ask another node",
        ),
    };
    problem.with_retry_after_s(RETRY_SOON_S)
}

/// It may or may not have happened.
pub(super) fn unknown(request: Option<&str>) -> Problem {
    let title = "outcome unknown";
    match request {
        Some(request) => {
            let detail = format!(
                "the request may or may not have been carried out: ask GET /v1/requests/{request}, or resend it with Idempotency-Key: {request}"
            );
            Problem::new(504, "unknown", title, detail).with_request(request)
        }
        None => {
            let detail =
                "the request may or may not have been carried out; sending it again is safe";
            Problem::new(504, "unknown", title, detail)
        }
    }
}

/// A field that cannot be taken.
pub(super) fn bad_field(error: &FieldError) -> Problem {
    let status = if error.code == "too_large" { 413 } else { 400 };
    Problem::new(status, error.code, "bad request", error.detail.clone())
        .with_field(error.field.clone())
}

/// A header or query parameter that cannot be taken.
pub(super) fn bad_parameter(name: &str, detail: impl Into<Box<str>>) -> Problem {
    Problem::new(400, "bad_parameter", "bad request", detail).with_field(name)
}

/// A body that is not what the route takes.
pub(super) fn bad_json(detail: impl Into<Box<str>>, field: Option<String>) -> Problem {
    bad_document("bad_json", detail, field)
}

/// A body that is no CBOR, or not what the route takes.
pub(super) fn bad_cbor(detail: impl Into<Box<str>>, field: Option<String>) -> Problem {
    bad_document("bad_cbor", detail, field)
}

fn bad_document(code: &'static str, detail: impl Into<Box<str>>, field: Option<String>) -> Problem {
    let code = if field.is_some() { "unknown_field" } else { code };
    let problem = Problem::new(400, code, "bad request body", detail);
    match field {
        Some(field) => problem.with_field(field),
        None => problem,
    }
}

/// A document that nests too deep.
pub(super) fn too_deep(depth_max: usize) -> Problem {
    let detail = format!("lists and maps may nest at most {depth_max} levels");
    Problem::new(400, "json_too_deep", "bad request body", detail)
}

/// A body over its bound.
pub(super) fn body_too_large(bytes_max: usize) -> Problem {
    let detail = format!(
        "the body may have at most {bytes_max} bytes; split the list, or put big data into files"
    );
    Problem::new(413, "too_large", "body too large", detail)
}

/// A list over its bound, or an empty one.
pub(super) fn bad_count(field: &str, count: usize, items_max: usize) -> Problem {
    let status = if count > items_max { 413 } else { 400 };
    let detail = format!("the list has {count} items and must have 1 to {items_max}");
    Problem::new(status, "bad_count", "bad request", detail).with_field(field)
}

/// A body that did not arrive.
pub(super) fn body_incomplete() -> Problem {
    Problem::new(408, "body_incomplete", "body incomplete", "the body did not arrive whole in time")
}

/// A body that is not JSON by its own word.
pub(super) fn bad_media_type() -> Problem {
    let detail = "send Content-Type: application/json or application/cbor";
    Problem::new(415, "unsupported_media_type", "unsupported media type", detail)
}

/// A pipe that was asked for as if it were a document.
pub(super) fn upgrade_required() -> Problem {
    let detail = "send Connection: Upgrade and Upgrade: ikada-pipe";
    Problem::new(426, "upgrade_required", "upgrade required", detail)
}

/// A path that is too long.
pub(super) fn url_too_long(bytes_max: usize) -> Problem {
    let detail = format!("path and query may have at most {bytes_max} bytes");
    Problem::new(414, "url_too_long", "URL too long", detail)
}

/// No such path.
pub(super) fn no_route(path: &str) -> Problem {
    let shown: String = path.chars().take(80).collect();
    let detail = format!("there is nothing at {shown}; see /openapi.json for what there is");
    Problem::new(404, "no_route", "no such path", detail)
}

/// The path exists with other methods.
pub(super) fn bad_method(method: &str, verbs: &[Verb]) -> Problem {
    let allowed: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    let shown: String = method.chars().take(20).collect();
    let detail = format!("{shown} is not possible here; possible: {}", allowed.join(", "));
    Problem::new(405, "bad_method", "method not allowed", detail)
}

/// A page of another site tried to use this node through a browser.
pub(super) fn foreign_origin(detail: impl Into<Box<str>>) -> Problem {
    Problem::new(403, "foreign_origin", "foreign origin", detail)
}

/// A host that is not known to be this node.
pub(super) fn foreign_host(host: &str) -> Problem {
    let host: String = host.chars().take(HOST_CHARS_MAX).collect();
    foreign_origin(format!(
        "{host:?} is not known as a name of this node: call it by address, localhost or its advertised name, or start it \
         with --host NAME (`host` in the settings)"
    ))
}

/// No token, or none that holds; strangers are not told which.
pub(super) fn unauthenticated() -> Problem {
    let detail =
        "this node asks for a token: send Authorization: Bearer <token>, or set IKADA_TOKEN";
    Problem::new(401, "unauthenticated", "token needed", detail)
}

/// A token or certificate whose time is over, told to whoever has proved that it is theirs.
pub(super) fn expired() -> Problem {
    let detail = "the token or certificate has expired; an admin makes another with `ikada auth token create`";
    Problem::new(401, "unauthenticated", "token expired", detail)
}

/// Too many failed tries from one address.
pub(super) fn too_many_failures() -> Problem {
    let detail = "too many calls without a good token came from this address; wait a little";
    Problem::new(429, "too_many_failures", "too many failures", detail)
        .with_retry_after_s(FAILURES_PAUSE_S)
}

/// A caller whose role does not fit.
pub(super) fn forbidden_role(operation: Operation, role: Role, roles: &[Role]) -> Problem {
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    let (role, names) = (role.as_str(), names.join(", "));
    let detail = format!("role {role} may not do this ({operation:?}); one of these may: {names}");
    Problem::new(403, "forbidden", "forbidden", detail)
}

/// A caller that is bound to namespaces asks about the whole cluster.
pub(super) fn forbidden_scope() -> Problem {
    let detail = "this token is bound to namespaces and may not reach beyond them";
    Problem::new(403, "forbidden", "forbidden", detail)
}

/// A caller that is bound to other namespaces.
pub(super) fn forbidden_namespace(namespace: &Namespace) -> Problem {
    let detail = format!("this token is bound to namespaces, and {namespace} is not one of them");
    Problem::new(403, "forbidden_namespace", "forbidden", detail).with_field("namespace")
}

/// A bound of this door is met.
pub(super) fn door_full(what: &'static str) -> Problem {
    let detail =
        format!("this node serves as many {what} as it may; try again, or ask another node");
    Problem::new(429, "overloaded", "overloaded", detail).with_retry_after_s(RETRY_SOON_S)
}

/// A call that the node has no strength for; nothing was begun.
pub(super) fn shed(lane: Lane, reason: Reason) -> Problem {
    let lane = lane.as_str();
    let (status, code, why) = match reason {
        Reason::Full => return door_full("requests"),
        Reason::Memory => (503, "shed_memory", "memory is short here"),
        Reason::Priority => (503, "shed_priority", "the CPU is too busy for calls of this kind"),
        Reason::Cpu => {
            (503, "shed_cpu", "the CPU is busy, and some calls of this kind are turned away")
        }
        Reason::Miss => {
            (503, "shed_miss", "the CPU is busy, and some files that are not in memory must wait")
        }
        Reason::Wait => {
            (503, "shed_wait", "calls of this kind stand in line, and one more would only wait")
        }
        Reason::Deadline => {
            (503, "shed_deadline", "the answer would come after the caller's time is over")
        }
    };
    let detail = format!("{why} ({lane}); nothing was begun: try again, or ask another node");
    Problem::new(status, code, "turned away under load", detail).with_retry_after_s(RETRY_SOON_S)
}

/// A thing that does not exist.
pub(super) fn not_found(code: &'static str, what: &str, name: &str) -> Problem {
    let detail = format!("there is no {what} {name:?} in this namespace");
    Problem::new(404, code, format!("no such {what}"), detail)
}

/// The leader is known but not where clients reach it (B4-54).
pub(super) fn no_leader_address(node: u64) -> Problem {
    let detail = format!(
        "node {node} leads, but its client address is not known; ask without Ikada-Routing: redirect"
    );
    Problem::new(503, "leader_address_unknown", "leader address unknown", detail)
        .with_retry_after_s(RETRY_SOON_S)
}

/// The node cannot serve yet.
pub(super) fn not_ready(detail: String) -> Problem {
    Problem::new(503, "not_ready", "not ready", detail).with_retry_after_s(RETRY_SOON_S)
}

/// An object over its bound.
pub(super) fn object_too_large(bytes_max: u64) -> Problem {
    let detail = format!("an object may have at most {bytes_max} bytes; split it");
    Problem::new(413, "too_large", "object too large", detail)
}

/// Bytes that are not what their sender said.
pub(super) fn wrong_digest(found: &str) -> Problem {
    let detail = format!("the bytes that arrived have the digest {found}; nothing was stored");
    Problem::new(400, "wrong_digest", "wrong digest", detail).with_field("ikada-digest")
}

/// An id that stands for an upload of something else.
pub(super) fn upload_differs(bucket: &str, key: &str) -> Problem {
    let detail = format!(
        "this upload was begun for {bucket}/{key}, or with another content type; choose another id"
    );
    Problem::new(409, "upload_differs", "upload of something else", detail)
}

/// A finish that comes again, and whose object is not known or has gone.
pub(super) fn upload_finished(version: u64) -> Problem {
    let detail = format!(
        "the upload was finished under this key, as version {version}; that version has gone, or bucket and key were not named with parts: look at the object"
    );
    Problem::new(409, "upload_finished", "upload finished", detail)
}

/// An upload whose parts are not all there, or are too many.
pub(super) fn upload_incomplete(next: u32, count: u32, found: usize) -> Problem {
    let detail = match next > count {
        true => format!("{found} parts have arrived, and only {count} are named"),
        false => format!("part {next} of {count} has not arrived; {found} have"),
    };
    Problem::new(409, "upload_incomplete", "parts missing", detail).with_field("parts")
}

/// Bytes that are not on enough disks.
pub(super) fn not_spread(error: &SpreadError) -> Problem {
    let (status, code, title, advice) = match error {
        SpreadError::Full => {
            (507, "disk_full", "disk full", "remove objects, or give the nodes more room")
        }
        SpreadError::TooFew { .. } | SpreadError::Lost { .. } => {
            (503, "too_few_copies", "too few copies", "nothing was stored; try again")
        }
    };
    Problem::new(status, code, title, format!("{error}; {advice}")).with_retry_after_s(RETRY_SOON_S)
}

/// Outputs whose bytes are not on enough nodes, or not any more. Nodes that did not answer may well have them.
pub(super) fn not_confirmed(error: &SpreadError) -> Problem {
    if !matches!(error, SpreadError::Lost { .. }) {
        let detail = format!("the outputs cannot be published now: {error}; try again");
        return Problem::new(503, "too_few_copies", "too few copies", detail)
            .with_retry_after_s(RETRY_SOON_S);
    }
    let detail = format!("the outputs cannot be published: {error}; upload them again");
    Problem::new(409, "upload_expired", "outputs not stored", detail)
}

/// A bucket that only the cluster itself writes to.
pub(super) fn bucket_reserved() -> Problem {
    refusal(RefusalCode::BucketReserved)
}

/// A piece of an object that no node gave.
pub(super) fn piece_missing(error: &FetchError) -> Problem {
    let detail = format!("{error}; try again, or start the nodes that are down");
    Problem::new(503, "piece_missing", "bytes not at hand", detail).with_retry_after_s(RETRY_SOON_S)
}

/// A defect of ours.
pub(super) fn internal() -> Problem {
    let detail = "this node met a defect while answering; the node goes on, and its log says more";
    Problem::new(500, "internal", "internal error", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_fitting_status() {
        for code in RefusalCode::ALL {
            let problem = refusal(*code);
            assert_eq!(problem.code, code.as_str());
            // A transient refusal must say when to come back; a final one must not invite a retry.
            assert_eq!(problem.retry_after_s.is_some(), code.is_transient(), "{code:?}");
            let retryable = matches!(problem.status, 429 | 503);
            assert!(!code.is_transient() || retryable, "{code:?}");
        }
    }

    #[test]
    fn an_unknown_outcome_says_how_to_find_out() {
        let problem = unknown(Some("r7"));
        assert_eq!((problem.status, problem.request.as_deref()), (504, Some("r7")));
        assert!(problem.detail.contains("GET /v1/requests/r7"));
        assert!(problem.detail.contains("Idempotency-Key: r7"));
    }
}
