//! Submissions: a task, its handle, its rare settings and its follow-ups.

use ikada_state::limits::{
    LABELS_WANTED_MAX, PRIORITY_MAX, THEN_COUNT_MAX, THEN_DEPTH_MAX, THEN_TOTAL_MAX,
};
use ikada_state::{
    Command, Enqueue, Limits, Namespace, Order, QueueName, RequestKey, SharedBytes, SharedWork,
    TaskId, TaskOptions, derive_follow_id, derive_task_id, encode_then,
};

use super::check::{
    check_attempts, check_deadline_in, check_delay, check_key_limit, check_moment, check_retention,
    check_size, check_timeout, check_ttl, given_as, read_backoff, read_body, read_labels,
};
use super::field::{FieldError, parse_name};
use super::program::{FindProgram, read_work};
use crate::v1::NewTask;

/// The queue of a task that names none.
const QUEUE_DEFAULT: &str = "default";

/// A task to submit. `key` names its place in the request; a missing id is derived from it.
pub fn enqueue_order(
    namespace: &Namespace,
    key: RequestKey,
    task: &NewTask,
    programs: &dyn FindProgram,
) -> Result<Order, FieldError> {
    let id = read_handle(task, || derive_task_id(namespace, &key))?;
    let then = read_then(namespace, &id, 0, &task.then, programs)?;
    let work = read_work(namespace, task, programs)?;
    let command = Command::Enqueue(read_task(id, task, then, work)?);
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// The handle that a task gives itself: by id, by key, by both, or none of its own.
fn read_handle(task: &NewTask, derive: impl Fn() -> TaskId) -> Result<TaskId, FieldError> {
    match (&task.id, &task.key) {
        (None, None) => Ok(derive()),
        (Some(id), None) => parse_name("id", id, TaskId::parse),
        (None, Some(key)) => keyed(key, derive().bare_id()),
        (Some(id), Some(key)) if id.contains(':') => {
            let handle = parse_name("id", id, TaskId::parse)?;
            match handle.key() == Some(key) {
                true => Ok(handle),
                false => Err(FieldError::key_conflict("key", "the id begins with another key")),
            }
        }
        (Some(id), Some(key)) => keyed(key, id),
    }
}

pub(super) fn keyed(key: &str, id: &str) -> Result<TaskId, FieldError> {
    TaskId::keyed(key, id).map_err(|error| {
        let field = if error.what == "task key" { "key" } else { "id" };
        FieldError { field: field.to_owned(), code: "bad_name", detail: error.to_string() }
    })
}

pub(super) fn read_task(
    id: TaskId,
    task: &NewTask,
    then: Option<SharedBytes>,
    work: Option<SharedWork>,
) -> Result<Enqueue, FieldError> {
    let limits = Limits::default();
    let queue = task.queue.as_deref().unwrap_or(QUEUE_DEFAULT);
    let queue = parse_name("queue", queue, QueueName::parse)?;
    let (json, base64) = (task.payload.as_deref(), task.payload_base64.as_deref());
    let payload = read_body("payload", json, base64, task.payload_bytes.as_ref())?;
    let given = given_as("payload", json, base64);
    check_size(&given, payload.len(), limits.payload_bytes_max)?;
    let below = then.as_ref().map_or(0, |then| then.len());
    check_size("then", payload.len() + below, limits.payload_bytes_max)?;
    if task.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        return Err(FieldError::bad_value("priority", format!("must be 0 to {PRIORITY_MAX}")));
    }
    if task.run_at_ms.is_some() && task.delay_ms.is_some() {
        return Err(FieldError::bad_value("delay_ms", "give delay_ms or run_at_ms, not both"));
    }
    check_delay(task.delay_ms, &limits)?;
    check_moment("run_at_ms", task.run_at_ms)?;
    check_attempts(task.max_attempts, &limits)?;
    check_ttl(task.ttl_ms, &limits)?;
    let options = read_options(&id, task, (then, work), &limits)?;
    Ok(Enqueue {
        id,
        queue,
        payload: SharedBytes::from(payload),
        priority: task.priority,
        run_at_ms: task.run_at_ms,
        delay_ms: task.delay_ms,
        max_attempts: task.max_attempts,
        ttl_ms: task.ttl_ms,
        backoff: task.backoff.map(read_backoff).transpose()?,
        options: options.map(Box::new),
    })
}

/// The settings that most tasks do not name; none if this one names none.
fn read_options(
    id: &TaskId,
    task: &NewTask,
    (then, work): (Option<SharedBytes>, Option<SharedWork>),
    limits: &Limits,
) -> Result<Option<TaskOptions>, FieldError> {
    check_key_limit(task.key_limit)?;
    if task.key_limit.is_some() && id.key().is_none() {
        return Err(FieldError::bad_value("key_limit", "only a task with a key has a key limit"));
    }
    check_timeout(task.timeout_ms)?;
    check_moment("deadline_ms", task.deadline_ms)?;
    check_retention("retention_ms", task.retention_ms, limits)?;
    check_deadline_in(task.deadline_in_ms, limits)?;
    if task.deadline_ms.is_some() && task.deadline_in_ms.is_some() {
        let detail = "give deadline_ms or deadline_in_ms, not both";
        return Err(FieldError::bad_value("deadline_ms", detail));
    }
    let early = |at_ms: u64| task.run_at_ms.is_some_and(|run_at_ms| run_at_ms >= at_ms);
    if task.deadline_ms.is_some_and(|at_ms| at_ms == 0 || early(at_ms)) {
        let detail = "must come after the task may begin";
        return Err(FieldError::bad_value("deadline_ms", detail));
    }
    let options = TaskOptions {
        key_limit: task.key_limit,
        labels: read_labels(&task.labels, LABELS_WANTED_MAX)?,
        timeout_ms: task.timeout_ms,
        deadline_ms: task.deadline_ms,
        deadline_in_ms: task.deadline_in_ms,
        retention_ms: task.retention_ms,
        then,
        work,
        asked: None,
    };
    Ok((options != TaskOptions::default()).then_some(options))
}

/// Follow-ups of a task. `fence` is that of the completion which brings them; 0 if they come with the task.
pub(super) fn read_then(
    namespace: &Namespace,
    parent: &TaskId,
    fence: u64,
    tasks: &[NewTask],
    programs: &dyn FindProgram,
) -> Result<Option<SharedBytes>, FieldError> {
    let mut level = Level { namespace, programs, depth: 1, left: THEN_TOTAL_MAX };
    read_level(parent, fence, tasks, &mut level)
}

/// How deep among the follow-ups a reader is.
struct Level<'a> {
    namespace: &'a Namespace,
    programs: &'a dyn FindProgram,
    depth: usize,
    /// How many more there may be in all.
    left: usize,
}

fn read_level(
    parent: &TaskId,
    fence: u64,
    tasks: &[NewTask],
    level: &mut Level<'_>,
) -> Result<Option<SharedBytes>, FieldError> {
    if tasks.is_empty() {
        return Ok(None);
    }
    if level.depth > THEN_DEPTH_MAX {
        let detail = format!("follow-ups may go {THEN_DEPTH_MAX} deep");
        return Err(FieldError::too_large("then", detail));
    }
    level.left = match level.left.checked_sub(tasks.len()) {
        Some(rest) if tasks.len() <= THEN_COUNT_MAX => rest,
        _ => {
            let detail = format!(
                "a task may have {THEN_COUNT_MAX} follow-ups, and {THEN_TOTAL_MAX} with all below them"
            );
            return Err(FieldError::too_large("then", detail));
        }
    };
    let mut orders = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        let order = read_follow_up(parent, fence, place, task, level)
            .map_err(|error| error.inside(&format!("then[{place}]")))?;
        orders.push(order);
    }
    Ok(Some(encode_then(&orders)))
}

fn read_follow_up(
    parent: &TaskId,
    fence: u64,
    place: usize,
    task: &NewTask,
    level: &mut Level<'_>,
) -> Result<Enqueue, FieldError> {
    let routing_key = parent.routing_key();
    if task.key.as_deref().is_some_and(|key| key != routing_key) {
        let detail = "a follow-up has the key of its parent; leave it out";
        return Err(FieldError::key_conflict("key", detail));
    }
    let id = match &task.id {
        None => keyed(routing_key, &derive_follow_id(parent, fence, place as u32))?,
        Some(id) if id.contains(':') => {
            let handle = parse_name("id", id, TaskId::parse)?;
            if handle.key() != Some(routing_key) {
                let detail = "a follow-up has the key of its parent; give the id alone";
                return Err(FieldError::key_conflict("id", detail));
            }
            handle
        }
        Some(id) => keyed(routing_key, id)?,
    };
    level.depth += 1;
    let then = read_level(&id, 0, &task.then, level)?;
    level.depth -= 1;
    let work = read_work(level.namespace, task, level.programs)?;
    read_task(id, task, then, work)
}
