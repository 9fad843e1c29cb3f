//! Spans from records: the words of OTLP in JSON, and what is said in them.

use ikada_replica::output::Ended;
use ikada_replica::state::{AttemptOutcome, AttemptView, Job, JobState, Lsn, TaskState, TaskView};
use serde_json::{Value, json};

use super::Origin;
use super::ids::{TaskIds, attempt_span, hex, task_ids, trace_of_job};

/// A span is within one process, or that of somebody who takes work from a queue.
const INTERNAL: u8 = 1;
const CONSUMER: u8 = 5;
/// Words of an error are cut here.
const ERROR_BYTES_MAX: usize = 1_024;

/// The document that a collector takes.
pub(super) fn document(origin: &Origin, spans: &[Value]) -> Value {
    let resource = [
        text("service.name", "ikada"),
        text("service.version", env!("CARGO_PKG_VERSION")),
        text("service.instance.id", &origin.node.to_string()),
        text("host.name", &origin.name),
        text("ikada.cluster", &format!("{:016x}", origin.cluster)),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": "ikada", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

/// Adds the spans of something that has ended.
pub(super) fn add_spans(origin: &Origin, ended: &Ended, out: &mut Vec<Value>) {
    match ended {
        Ended::Task { shard, lsn, task } => add_task(origin, (*shard, *lsn), task, out),
        Ended::Job { shard, lsn, job } => out.extend(job_span(origin, (*shard, *lsn), job)),
    }
}

fn add_task(origin: &Origin, at: (u16, Lsn), task: &TaskView, out: &mut Vec<Value>) {
    let work = task.work.as_deref();
    let ids = task_ids(origin.cluster, &task.namespace, &task.id, work);
    out.push(task_span(&ids, at, task));
    let ended = task.attempts.iter().filter(|attempt| attempt.ended_ms.is_some());
    out.extend(ended.map(|attempt| attempt_of(&ids, task, attempt)));
}

fn task_span(ids: &TaskIds, (shard, lsn): (u16, Lsn), task: &TaskView) -> Value {
    let state = match task.state {
        TaskState::Done => "done",
        TaskState::Cancelled => "cancelled",
        _ => "dead",
    };
    let mut attributes = common(task);
    attributes.extend([
        text("ikada.task.state", state),
        number("ikada.task.attempts", u64::from(task.attempt)),
        number("ikada.shard", u64::from(shard)),
        text("ikada.lsn", &format!("{}.{}", lsn.term, lsn.index)),
    ]);
    let part = task.work.as_ref().and_then(|work| work.job.as_ref());
    if let Some(part) = part {
        attributes.extend([
            text("ikada.job.id", part.job.as_str()),
            text("ikada.job.stage", part.stage.as_str()),
            number("ikada.job.index", u64::from(part.index)),
        ]);
    }
    let error = task.dead_reason.map(|reason| reason.as_str().to_owned());
    let (start_ms, end_ms) = (task.enqueued_ms, task.finished_ms.unwrap_or(task.enqueued_ms));
    json!({
        "traceId": hex(&ids.trace),
        "spanId": hex(&ids.task),
        "parentSpanId": ids.job.map(|job| hex(&job)).unwrap_or_default(),
        "name": format!("task {}", task.queue),
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(start_ms),
        "endTimeUnixNano": nanos(end_ms),
        "attributes": attributes,
        "status": status(error),
    })
}

fn attempt_of(ids: &TaskIds, task: &TaskView, attempt: &AttemptView) -> Value {
    let (outcome, is_bad) = match attempt.outcome {
        AttemptOutcome::Running => ("running", false),
        AttemptOutcome::Completed => ("completed", false),
        AttemptOutcome::Failed { .. } | AttemptOutcome::FailedDead => ("failed", true),
        AttemptOutcome::Expired => ("expired", true),
        AttemptOutcome::Unclaimed => ("returned", false),
        AttemptOutcome::Cancelled => ("cancelled", false),
        AttemptOutcome::TimedOut => ("timed_out", true),
        AttemptOutcome::Outrun => ("outrun", false),
    };
    let mut attributes = common(task);
    attributes.extend([
        text("ikada.worker", attempt.worker.as_str()),
        text("ikada.attempt.outcome", outcome),
        number("ikada.fence", attempt.fence.0),
    ]);
    let said = attempt.error.as_ref().map(|error| {
        let cut = error.len().min(ERROR_BYTES_MAX);
        String::from_utf8_lossy(&error[..cut]).into_owned()
    });
    let error = is_bad.then(|| said.unwrap_or_else(|| outcome.to_owned()));
    json!({
        "traceId": hex(&ids.trace),
        "spanId": hex(&attempt_span(ids, attempt.fence)),
        "parentSpanId": hex(&ids.task),
        "name": format!("attempt {}", task.queue),
        "kind": CONSUMER,
        "startTimeUnixNano": nanos(attempt.started_ms),
        "endTimeUnixNano": nanos(attempt.ended_ms.unwrap_or(attempt.started_ms)),
        "attributes": attributes,
        "status": status(error),
    })
}

fn job_span(origin: &Origin, (shard, lsn): (u16, Lsn), job: &Job) -> Option<Value> {
    let (trace, span) = trace_of_job(origin.cluster, job.namespace(), job.id().as_str());
    let state = match job.state() {
        JobState::Running => return None,
        JobState::Done => "done",
        JobState::Error => "error",
        JobState::Cancelled => "cancelled",
    };
    let said = || job.reason().map(|reason| String::from_utf8_lossy(reason).into_owned());
    let error = (job.state() == JobState::Error).then(|| said().unwrap_or_default());
    Some(json!({
        "traceId": hex(&trace),
        "spanId": hex(&span),
        "parentSpanId": "",
        "name": "job",
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(job.submitted_ms()),
        "endTimeUnixNano": nanos(job.finished_ms()?),
        "attributes": [
            text("ikada.namespace", job.namespace().as_str()),
            text("ikada.job.id", job.id().as_str()),
            text("ikada.job.state", state),
            number("ikada.job.stages", job.stages().len() as u64),
            number("ikada.shard", u64::from(shard)),
            text("ikada.lsn", &format!("{}.{}", lsn.term, lsn.index)),
        ],
        "status": status(error),
    }))
}

/// What task and attempts have in common; the words of messaging are those of the conventions for it.
fn common(task: &TaskView) -> Vec<Value> {
    let mut all = vec![
        text("ikada.namespace", task.namespace.as_str()),
        text("messaging.system", "ikada"),
        text("messaging.destination.name", task.queue.as_str()),
        text("messaging.message.id", task.id.as_str()),
    ];
    if let Some(work) = &task.work {
        all.push(text("ikada.program", work.program.name.as_str()));
    }
    all
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Whole numbers are text in OTLP's JSON.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn nanos(ms: u64) -> String {
    format!("{ms}000000")
}

fn status(error: Option<String>) -> Value {
    match error {
        None => json!({"code": 1}),
        Some(message) => json!({"code": 2, "message": message}),
    }
}
