//! Requests of clients and workers as orders of the state.

use ikada_state::limits::PRIORITY_MAX;
use ikada_state::{
    AlertThresholds, Backoff, Cancel, Command, Complete, DropTask, Enqueue, Fail, Fence, Limits,
    Namespace, Order, QueueChange, QueueName, RequestKey, Retry, SetQueue, SharedBytes, TaskId,
    WorkerId, derive_task_id,
};
use serde_json::value::RawValue;

use super::field::{FieldError, parse_name};
use crate::v1::{
    BackoffBody, Body, ClaimRequest, CompleteItem, FailItem, NewTask, QueueSettingsBody,
};

/// The queue of a task that names none.
const QUEUE_DEFAULT: &str = "default";
/// Jitter on retries, in thousandths either way: enough to spread a burst of failures.
const JITTER_PERMILLE: i16 = 100;

/// A task to submit. `key` names its place in the request; a missing id is derived from it.
pub fn enqueue_order(
    namespace: &Namespace,
    key: RequestKey,
    task: &NewTask,
) -> Result<Order, FieldError> {
    let limits = Limits::default();
    let id = match &task.id {
        Some(id) => parse_name("id", id, TaskId::parse)?,
        None => derive_task_id(namespace, &key),
    };
    let queue = task.queue.as_deref().unwrap_or(QUEUE_DEFAULT);
    let queue = parse_name("queue", queue, QueueName::parse)?;
    let payload = read_body("payload", task.payload.as_deref(), task.payload_base64.as_deref())?;
    check_size("payload", payload.len(), limits.payload_bytes_max)?;
    if task.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        return Err(FieldError::bad_value("priority", format!("must be 0 to {PRIORITY_MAX}")));
    }
    if task.run_at_ms.is_some() && task.delay_ms.is_some() {
        return Err(FieldError::bad_value("delay_ms", "give delay_ms or run_at_ms, not both"));
    }
    check_delay(task.delay_ms, &limits)?;
    check_attempts(task.max_attempts, &limits)?;
    check_ttl(task.ttl_ms, &limits)?;
    let order = Enqueue {
        id,
        queue,
        payload: SharedBytes::from(payload),
        priority: task.priority,
        run_at_ms: task.run_at_ms,
        delay_ms: task.delay_ms,
        max_attempts: task.max_attempts,
        ttl_ms: task.ttl_ms,
        backoff: task.backoff.map(read_backoff).transpose()?,
    };
    Ok(Order { namespace: namespace.clone(), request: Some(key), command: Command::Enqueue(order) })
}

/// A task that is done. It carries no request key: its fence makes it idempotent.
pub fn complete_order(
    namespace: &Namespace,
    worker: &WorkerId,
    item: &CompleteItem,
) -> Result<Order, FieldError> {
    let result = read_body("result", item.result.as_deref(), item.result_base64.as_deref())?;
    check_size("result", result.len(), Limits::default().result_bytes_max)?;
    let command = Command::Complete(Complete {
        id: parse_name("id", &item.id, TaskId::parse)?,
        fence: Fence(item.fence.0),
        worker: worker.clone(),
        result: (!result.is_empty()).then(|| SharedBytes::from(result)),
    });
    Ok(Order { namespace: namespace.clone(), request: None, command })
}

/// An attempt that failed. `draw` is a random number; it spreads the retries of many failures.
pub fn fail_order(
    namespace: &Namespace,
    worker: &WorkerId,
    item: &FailItem,
    draw: u64,
) -> Result<Order, FieldError> {
    let limits = Limits::default();
    check_delay(item.delay_ms, &limits)?;
    let error = cut(&item.error, limits.error_bytes_max as usize);
    let span = i64::from(JITTER_PERMILLE) * 2 + 1;
    let jitter = (draw % span as u64) as i64 - i64::from(JITTER_PERMILLE);
    let command = Command::Fail(Fail {
        id: parse_name("id", &item.id, TaskId::parse)?,
        fence: Fence(item.fence.0),
        worker: worker.clone(),
        error: SharedBytes::from(error.as_bytes()),
        retry: item.retry,
        delay_ms: item.delay_ms,
        jitter_permille: jitter as i16,
    });
    Ok(Order { namespace: namespace.clone(), request: None, command })
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

/// Worker and queues of a claim, checked together with its count.
pub fn claim_names(request: &ClaimRequest) -> Result<(WorkerId, Vec<QueueName>), FieldError> {
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
    Ok((worker, queues))
}

fn read_body(
    field: &str,
    json: Option<&RawValue>,
    base64: Option<&str>,
) -> Result<Vec<u8>, FieldError> {
    Body::bytes(json, base64)
        .map_err(|error| FieldError::bad_value(format!("{field}_base64"), error.to_string()))
}

fn check_size(field: &str, bytes: usize, bytes_max: u32) -> Result<(), FieldError> {
    if bytes > bytes_max as usize {
        let detail = format!("has {bytes} bytes, at most {bytes_max} are allowed");
        return Err(FieldError::too_large(field, detail));
    }
    Ok(())
}

fn check_delay(delay_ms: Option<u64>, limits: &Limits) -> Result<(), FieldError> {
    match delay_ms {
        Some(delay_ms) if delay_ms > limits.delay_ms_max => Err(FieldError::bad_value(
            "delay_ms",
            format!("must be at most {}", limits.delay_ms_max),
        )),
        _ => Ok(()),
    }
}

fn check_attempts(max_attempts: Option<u16>, limits: &Limits) -> Result<(), FieldError> {
    match max_attempts {
        Some(count) if !(1..=limits.attempts_max).contains(&count) => Err(FieldError::bad_value(
            "max_attempts",
            format!("must be 1 to {}", limits.attempts_max),
        )),
        _ => Ok(()),
    }
}

fn check_ttl(ttl_ms: Option<u32>, limits: &Limits) -> Result<(), FieldError> {
    match ttl_ms {
        Some(ttl_ms) if !(limits.ttl_ms_min..=limits.ttl_ms_max).contains(&ttl_ms) => {
            let detail = format!("must be {} to {}", limits.ttl_ms_min, limits.ttl_ms_max);
            Err(FieldError::bad_value("ttl_ms", detail))
        }
        _ => Ok(()),
    }
}

fn check_at_most(field: &str, value: Option<u32>, value_max: u32) -> Result<(), FieldError> {
    match value {
        Some(value) if value > value_max => {
            Err(FieldError::bad_value(field, format!("must be at most {value_max}")))
        }
        _ => Ok(()),
    }
}

fn read_backoff(backoff: BackoffBody) -> Result<Backoff, FieldError> {
    if backoff.base_ms > backoff.cap_ms {
        return Err(FieldError::bad_value("backoff.cap_ms", "must not be less than base_ms"));
    }
    Ok(Backoff { base_ms: backoff.base_ms, cap_ms: backoff.cap_ms })
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
