//! Requests of clients and workers as orders of the state.

use ikada_state::limits::{
    CHECKPOINT_BYTES_MAX, HOLDS_MAX, JITTER_PERMILLE_MAX, LABELS_OFFERED_MAX,
};
use ikada_state::{
    AlertThresholds, Cancel, Checkpoint, Command, Complete, Digest, DropTask, Fail, Fence, Labels,
    Limits, Namespace, Order, Output, Progress, QueueChange, QueueName, RequestKey, Retry,
    SetQueue, SharedBytes, TaskId, WorkerId,
};

use super::check::{
    check_at_most, check_attempts, check_deadline_in, check_delay, check_key_limit,
    check_retention, check_size, check_timeout, check_ttl, given_as, read_backoff, read_body,
    read_labels,
};
use super::enqueue::read_then;
use super::field::{FieldError, parse_name};
use super::program::{FindProgram, read_output, read_outputs};
use crate::v1::{
    ClaimRequest, CompleteItem, FailItem, NewCheckpoint, OutputItem, ProgressBody,
    QueueSettingsBody,
};

/// A task that is done. It carries no request key: its fence makes it idempotent.
pub fn complete_order(
    namespace: &Namespace,
    worker: &WorkerId,
    item: &CompleteItem,
    programs: &dyn FindProgram,
) -> Result<Order, FieldError> {
    let (json, base64) = (item.result.as_deref(), item.result_base64.as_deref());
    let result = read_body("result", json, base64, item.result_bytes.as_ref())?;
    let given = given_as("result", json, base64);
    check_size(&given, result.len(), Limits::default().result_bytes_max)?;
    let id = parse_name("id", &item.id, TaskId::parse)?;
    let then = read_then(namespace, &id, item.fence.0, &item.then, programs)?;
    let command = Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence: Fence(item.fence.0),
        worker: worker.clone(),
        result: (!result.is_empty()).then(|| SharedBytes::from(result)),
        then,
        outputs: read_outputs(&item.outputs)?,
    });
    Ok(Order { namespace: namespace.clone(), request: None, command })
}

/// How far an attempt has come.
pub fn checkpoint_order(
    namespace: &Namespace,
    worker: &WorkerId,
    id: &str,
    body: &NewCheckpoint,
) -> Result<Order, FieldError> {
    let id = parse_name("id", id, TaskId::parse)?;
    let output = OutputItem {
        name: "checkpoint".to_owned(),
        size: body.size,
        digest: body.digest.clone(),
        chunks: body.chunks.clone(),
        content_type: None,
        address: None,
    };
    let Output { size, digest, chunks, .. } = read_output(&output)?;
    if size > CHECKPOINT_BYTES_MAX {
        let detail = format!("a checkpoint may have {CHECKPOINT_BYTES_MAX} bytes");
        return Err(FieldError::too_large("size", detail));
    }
    let fence = Fence(body.fence.0);
    let worker = worker.clone();
    let command = Command::Checkpoint(Checkpoint { id, fence, worker, size, digest, chunks });
    Ok(Order { namespace: namespace.clone(), request: None, command })
}

/// An attempt that failed. What spreads the retries of many failures is drawn by the leader.
pub fn fail_order(
    namespace: &Namespace,
    worker: &WorkerId,
    item: &FailItem,
) -> Result<Order, FieldError> {
    let limits = Limits::default();
    check_delay(item.delay_ms, &limits)?;
    let error = cut(&item.error, limits.error_bytes_max as usize);
    let command = Command::Fail(Fail {
        id: parse_name("id", &item.id, TaskId::parse)?,
        fence: Fence(item.fence.0),
        worker: worker.clone(),
        error: SharedBytes::from(error.as_bytes()),
        retry: item.retry,
        delay_ms: item.delay_ms,
        jitter_permille: 0,
    });
    Ok(Order { namespace: namespace.clone(), request: None, command })
}

/// How far an attempt is. A long note is cut: it is no reason to lose a claim.
pub fn read_progress(body: &ProgressBody) -> Result<Progress, FieldError> {
    check_at_most("progress.permille", Some(u32::from(body.permille)), 1000)?;
    Ok(Progress::new(body.permille, &body.note))
}

/// A task to cancel.
pub fn cancel_order(namespace: &Namespace, key: RequestKey, id: &str) -> Result<Order, FieldError> {
    let command = Command::Cancel(Cancel { id: parse_name("id", id, TaskId::parse)? });
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// A given-up task to try again.
pub fn retry_order(namespace: &Namespace, key: RequestKey, id: &str) -> Result<Order, FieldError> {
    let command = Command::Retry(Retry { id: parse_name("id", id, TaskId::parse)? });
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// A finished task to remove.
pub fn drop_order(namespace: &Namespace, key: RequestKey, id: &str) -> Result<Order, FieldError> {
    let command = Command::Drop(DropTask { id: parse_name("id", id, TaskId::parse)? });
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// New settings of a queue.
pub fn set_queue_order(
    namespace: &Namespace,
    key: RequestKey,
    name: &str,
    body: &QueueSettingsBody,
) -> Result<Order, FieldError> {
    let limits = Limits::default();
    check_attempts(body.max_attempts, &limits)?;
    check_ttl(body.ttl_ms, &limits)?;
    let alerts = body.alerts.unwrap_or_default();
    check_at_most("alerts.dead_percent", alerts.dead_percent, 100)?;
    check_at_most("alerts.growing_s", alerts.growing_s, AlertThresholds::GROWING_S_MAX)?;
    check_timeout(body.timeout_ms)?;
    check_retention("retention_ms", body.retention_ms, &limits)?;
    check_retention("dead_retention_ms", body.dead_retention_ms, &limits)?;
    check_deadline_in(body.deadline_in_ms, &limits)?;
    check_key_limit(body.key_limit)?;
    let jitter = body.jitter_permille.map(u32::from);
    check_at_most("jitter_permille", jitter, u32::from(JITTER_PERMILLE_MAX))?;
    let change = QueueChange {
        paused: body.paused,
        max_attempts: body.max_attempts,
        ttl_ms: body.ttl_ms,
        backoff: body.backoff.map(read_backoff).transpose()?,
        retention_count: body.retention_count,
        retention_ms: body.retention_ms,
        pending_max: body.pending_max,
        alert_pending: alerts.pending,
        alert_claim_age_percent: alerts.claim_age_percent,
        alert_dead_percent: alerts.dead_percent,
        alert_growing_s: alerts.growing_s,
        timeout_ms: body.timeout_ms,
        deadline_in_ms: body.deadline_in_ms,
        key_limit: body.key_limit,
        dead_max: body.dead_max,
        dead_retention_ms: body.dead_retention_ms,
        jitter_permille: body.jitter_permille,
    };
    let queue = parse_name("queue", name, QueueName::parse)?;
    let set = SetQueue { queue, change, expected_version: body.expected_version };
    Ok(Order { namespace: namespace.clone(), request: Some(key), command: Command::SetQueue(set) })
}

/// Pause or resume.
pub fn pause_order(
    namespace: &Namespace,
    key: RequestKey,
    name: &str,
    paused: bool,
) -> Result<Order, FieldError> {
    let body = QueueSettingsBody { paused: Some(paused), ..QueueSettingsBody::default() };
    set_queue_order(namespace, key, name, &body)
}

/// Worker, queues and labels of a claim, checked together with its count.
pub fn claim_names(
    request: &ClaimRequest,
) -> Result<(WorkerId, Vec<QueueName>, Labels), FieldError> {
    let limits = Limits::default();
    let worker = parse_name("worker", &request.worker, WorkerId::parse)?;
    if request.queues.is_empty() || request.queues.len() > limits.claim_queues_max as usize {
        let detail = format!("must name 1 to {} queues", limits.claim_queues_max);
        return Err(FieldError::bad_value("queues", detail));
    }
    if request.count_max == 0 || request.count_max > limits.claim_tasks_max {
        let detail = format!("must be 1 to {}", limits.claim_tasks_max);
        return Err(FieldError::bad_value("count_max", detail));
    }
    let mut queues = Vec::with_capacity(request.queues.len());
    for (position, queue) in request.queues.iter().enumerate() {
        queues.push(parse_name(&format!("queues[{position}]"), queue, QueueName::parse)?);
    }
    Ok((worker, queues, read_labels(&request.labels, LABELS_OFFERED_MAX)?))
}

/// What a claim's worker has at hand, by marks; none if it says nothing.
pub fn claim_holds(request: &ClaimRequest) -> Result<Option<Vec<u64>>, FieldError> {
    if request.holds.len() > HOLDS_MAX {
        let detail =
            format!("has {} digests, at most {HOLDS_MAX} are allowed", request.holds.len());
        return Err(FieldError::too_large("holds", detail));
    }
    let mut marks = Vec::with_capacity(request.holds.len());
    for (position, digest) in request.holds.iter().enumerate() {
        let digest = Digest::parse(digest).ok_or_else(|| {
            let field = format!("holds[{position}]");
            FieldError::bad_value(field, "must be a digest of 64 lower-case hex digits")
        })?;
        marks.push(digest.mark());
    }
    Ok(Some(marks).filter(|marks| !marks.is_empty()))
}

/// The longest whole-character prefix within a number of bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
#[path = "order_test.rs"]
mod order_test;
