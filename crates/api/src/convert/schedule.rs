//! Schedules: settings to orders, records to documents. What a cron line means is not known here.

use ikada_state::limits::{
    EVERY_MS_MAX, EVERY_MS_MIN, GRACE_MS_MAX, SCHEDULE_NAME_BYTES_MAX, SCHEDULE_TASK_BYTES_MAX,
    TIMING_BYTES_MAX,
};
use ikada_state::{
    Command, DeleteSchedule, Enqueue, Missed, Namespace, Order, Overlap, RequestKey, Schedule,
    ScheduleName, ScheduleSpec, SetSchedule, TaskId, Timing, decode_then,
};

use super::check::check_size;
use super::enqueue::{keyed, read_task, read_then};
use super::field::{FieldError, parse_name};
use super::program::{FindProgram, read_work, show_work};
use super::show::Form;
use crate::v1::{
    BackoffBody, MissedPolicy, NewTask, OverlapPolicy, ScheduleBody, ScheduleInfo, ScheduledTask,
};

/// Zone of a cron line that names none.
const ZONE_DEFAULT: &str = "UTC";
/// Grace time of a schedule that names none: more than a change of leaders takes.
const GRACE_MS_DEFAULT: u64 = 60_000;

/// A schedule's name, short enough to be part of its tasks' ids.
pub fn schedule_name(name: &str) -> Result<ScheduleName, FieldError> {
    if name.len() > SCHEDULE_NAME_BYTES_MAX {
        let rule = "must be at most 96 bytes, since the ids of its tasks begin with it";
        return Err(FieldError {
            field: "name".to_owned(),
            code: "bad_name",
            detail: format!("schedule name is not valid: {rule}"),
        });
    }
    parse_name("name", name, ScheduleName::parse)
}

/// A schedule to make or change. The caller checks that its timing can be read.
pub fn set_schedule_order(
    namespace: &Namespace,
    key: RequestKey,
    name: &str,
    body: &ScheduleBody,
    programs: &dyn FindProgram,
) -> Result<Order, FieldError> {
    let name = schedule_name(name)?;
    let grace_ms = body.grace_ms.unwrap_or(GRACE_MS_DEFAULT);
    if grace_ms > GRACE_MS_MAX {
        return Err(FieldError::bad_value("grace_ms", format!("must be at most {GRACE_MS_MAX}")));
    }
    let spec = ScheduleSpec {
        timing: read_timing(body)?,
        task: read_template(namespace, &name, body, programs)
            .map_err(|error| error.inside("task"))?,
        missed: match body.missed.unwrap_or_default() {
            MissedPolicy::Skip => Missed::Skip,
            MissedPolicy::One => Missed::One,
            MissedPolicy::All => Missed::All,
        },
        overlap: match body.overlap.unwrap_or_default() {
            OverlapPolicy::Allow => Overlap::Allow,
            OverlapPolicy::Skip => Overlap::Skip,
        },
        grace_ms,
        paused: body.paused.unwrap_or(false),
    };
    let set = SetSchedule {
        name,
        spec: Some(Box::new(spec)),
        paused: None,
        expected_version: body.expected_version,
    };
    let command = Command::SetSchedule(set);
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// A schedule to pause or resume.
pub fn pause_schedule_order(
    namespace: &Namespace,
    key: RequestKey,
    name: &str,
    paused: bool,
) -> Result<Order, FieldError> {
    let set = SetSchedule {
        name: schedule_name(name)?,
        spec: None,
        paused: Some(paused),
        expected_version: None,
    };
    let command = Command::SetSchedule(set);
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// A schedule to remove.
pub fn delete_schedule_order(
    namespace: &Namespace,
    key: RequestKey,
    name: &str,
) -> Result<Order, FieldError> {
    let command = Command::DeleteSchedule(DeleteSchedule { name: schedule_name(name)? });
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

fn read_timing(body: &ScheduleBody) -> Result<Timing, FieldError> {
    match (&body.cron, body.every_ms) {
        (Some(_), Some(_)) => {
            Err(FieldError::bad_value("every_ms", "give cron or every_ms, not both"))
        }
        (None, None) => Err(FieldError::bad_value("cron", "give cron or every_ms")),
        (Some(line), None) => {
            if body.anchor_ms.is_some() {
                let detail = "only an interval has an anchor";
                return Err(FieldError::bad_value("anchor_ms", detail));
            }
            let zone = body.zone.as_deref().unwrap_or(ZONE_DEFAULT);
            if line.len() + zone.len() > TIMING_BYTES_MAX {
                let detail = format!("may have {TIMING_BYTES_MAX} bytes together with zone");
                return Err(FieldError::too_large("cron", detail));
            }
            Ok(Timing::Cron { line: line.clone(), zone: zone.to_owned() })
        }
        (None, Some(every_ms)) => {
            if body.zone.is_some() {
                return Err(FieldError::bad_value("zone", "only a cron line has a time zone"));
            }
            if !(EVERY_MS_MIN..=EVERY_MS_MAX).contains(&every_ms) {
                let detail = format!("must be {EVERY_MS_MIN} to {EVERY_MS_MAX}");
                return Err(FieldError::bad_value("every_ms", detail));
            }
            let anchor_ms = body.anchor_ms.unwrap_or(0);
            if body.anchor_ms == Some(0) || anchor_ms > u64::MAX / 4 {
                let detail = "must be a time after 1970, in ms";
                return Err(FieldError::bad_value("anchor_ms", detail));
            }
            Ok(Timing::Every { every_ms, anchor_ms })
        }
    }
}

/// The task of a schedule. A program is taken as it is now, as by a submission.
fn read_template(
    namespace: &Namespace,
    name: &ScheduleName,
    body: &ScheduleBody,
    programs: &dyn FindProgram,
) -> Result<Enqueue, FieldError> {
    let task = &body.task;
    check_unfixed(task)?;
    let id = match &task.key {
        Some(key) => keyed(key, name.as_str())?,
        None => parse_name("id", name.as_str(), TaskId::parse)?,
    };
    let then = read_then(namespace, &id, 0, &task.then, programs)?;
    let work = read_work(namespace, task, programs)?;
    let task = read_task(id, task, then, work)?;
    check_size("payload", task.payload.len(), SCHEDULE_TASK_BYTES_MAX as u32)?;
    Ok(task)
}

/// What would fix one moment or one name has no place in a template, nor in what follows.
fn check_unfixed(task: &NewTask) -> Result<(), FieldError> {
    let fixed = [
        ("id", task.id.is_some(), "is made of the schedule's name and the instant; leave it out"),
        ("run_at_ms", task.run_at_ms.is_some(), "is one moment; use delay_ms"),
        ("deadline_ms", task.deadline_ms.is_some(), "is one moment; use deadline_in_ms"),
    ];
    if let Some((field, _, detail)) = fixed.into_iter().find(|(_, given, _)| *given) {
        return Err(FieldError::bad_value(field, detail));
    }
    for (place, below) in task.then.iter().enumerate() {
        check_unfixed(below).map_err(|error| error.inside(&format!("then[{place}]")))?;
    }
    Ok(())
}

/// What a schedule submits, as it was told.
fn show_template(task: &Enqueue, form: Form) -> ScheduledTask {
    let body = form.show(&task.payload);
    let options = task.options.as_deref().cloned().unwrap_or_default();
    let then = options.then.as_ref().and_then(|then| decode_then(then)).unwrap_or_default();
    let labels = options.labels.pairs().iter();
    ScheduledTask {
        queue: task.queue.to_string(),
        key: task.id.key().map(str::to_owned),
        key_limit: options.key_limit,
        payload_bytes_count: task.payload.len() as u64,
        payload: body.json,
        payload_base64: body.base64,
        payload_bytes: body.bytes,
        priority: task.priority,
        delay_ms: task.delay_ms,
        max_attempts: task.max_attempts,
        ttl_ms: task.ttl_ms,
        backoff: task
            .backoff
            .map(|backoff| BackoffBody { base_ms: backoff.base_ms, cap_ms: backoff.cap_ms }),
        timeout_ms: options.timeout_ms,
        deadline_in_ms: options.deadline_in_ms,
        retention_ms: options.retention_ms,
        labels: labels.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        work: options.work.as_ref().map(|work| Box::new(show_work(work))),
        then: then
            .iter()
            .map(|below| ScheduledTask { key: None, ..show_template(below, form) })
            .collect(),
    }
}

/// A schedule. `next_ms` are its next instants, none if its timing cannot be read; `now_ms` is the time of the look.
pub fn show_schedule(
    schedule: &Schedule,
    next_ms: Option<Vec<u64>>,
    now_ms: u64,
    form: Form,
) -> ScheduleInfo {
    let spec = &schedule.spec;
    let (cron, zone, every_ms, anchor_ms) = match &spec.timing {
        Timing::Cron { line, zone } => (Some(line.clone()), Some(zone.clone()), None, None),
        Timing::Every { every_ms, anchor_ms } => (None, None, Some(*every_ms), Some(*anchor_ms)),
    };
    let last = schedule.last.as_ref();
    let given = |moment_ms: u64| Some(moment_ms).filter(|moment_ms| *moment_ms > 0);
    ScheduleInfo {
        name: schedule.name.to_string(),
        version: schedule.version,
        cron,
        zone,
        every_ms,
        anchor_ms,
        task: show_template(&spec.task, form),
        missed: match spec.missed {
            Missed::Skip => MissedPolicy::Skip,
            Missed::One => MissedPolicy::One,
            Missed::All => MissedPolicy::All,
        },
        overlap: match spec.overlap {
            Overlap::Allow => OverlapPolicy::Allow,
            Overlap::Skip => OverlapPolicy::Skip,
        },
        grace_ms: spec.grace_ms,
        paused: spec.paused,
        created_ms: schedule.created_ms,
        last_ms: last.map(|last| last.instant_ms),
        last_fired_ms: last.map(|last| last.fired_ms),
        last_task: last.map(|last| last.id.to_string()),
        last_missed_ms: given(schedule.last_missed_ms),
        last_overlapped_ms: given(schedule.last_overlapped_ms),
        fired_total: schedule.fired,
        missed_total: schedule.missed,
        overlapped_total: schedule.overlapped,
        alarms: alarms(schedule, next_ms.as_deref(), now_ms),
        next_ms: next_ms.unwrap_or_default(),
    }
}

/// What is wrong with a schedule now (LS-17): a run that did not happen is told as long as it is the newest.
fn alarms(schedule: &Schedule, next_ms: Option<&[u64]>, now_ms: u64) -> Vec<String> {
    let kept_ms = schedule.last.as_ref().map_or(0, |last| last.instant_ms);
    let next = next_ms.and_then(|next_ms| next_ms.first());
    let late = |next_ms: &u64| next_ms.saturating_add(schedule.spec.grace_ms) < now_ms;
    let all = [
        ("overdue", next.is_some_and(late) && !schedule.spec.paused),
        ("missed", schedule.last_missed_ms > kept_ms.max(schedule.last_overlapped_ms)),
        ("overlapped", schedule.last_overlapped_ms > kept_ms.max(schedule.last_missed_ms)),
        ("unreadable", next_ms.is_none()),
    ];
    all.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
#[path = "schedule_test.rs"]
mod schedule_test;
