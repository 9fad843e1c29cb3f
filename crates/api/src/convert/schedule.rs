//! Schedules: settings to orders, records to documents. What a cron line means is not known here.

use ikada_state::limits::{
    EVERY_MS_MAX, EVERY_MS_MIN, GRACE_MS_MAX, SCHEDULE_NAME_BYTES_MAX, SCHEDULE_TASK_BYTES_MAX,
    TIMING_BYTES_MAX,
};
use ikada_state::{
    Command, DeleteSchedule, Enqueue, Missed, Namespace, Order, Overlap, RequestKey, Schedule,
    ScheduleName, ScheduleSpec, SetSchedule, TaskId, Timing,
};

use super::check::check_size;
use super::enqueue::{keyed, read_task};
use super::field::{FieldError, parse_name};
use crate::v1::{MissedPolicy, OverlapPolicy, ScheduleBody, ScheduleInfo, ScheduledTask};

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
) -> Result<Order, FieldError> {
    let name = schedule_name(name)?;
    let grace_ms = body.grace_ms.unwrap_or(GRACE_MS_DEFAULT);
    if grace_ms > GRACE_MS_MAX {
        return Err(FieldError::bad_value("grace_ms", format!("must be at most {GRACE_MS_MAX}")));
    }
    let spec = ScheduleSpec {
        timing: read_timing(body)?,
        task: read_template(&name, body).map_err(|error| error.inside("task"))?,
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

/// The task of a schedule. What would fix one moment or one name has no place in it.
fn read_template(name: &ScheduleName, body: &ScheduleBody) -> Result<Enqueue, FieldError> {
    let task = &body.task;
    let fixed = [
        ("id", task.id.is_some(), "is made of the schedule's name and the instant; leave it out"),
        ("run_at_ms", task.run_at_ms.is_some(), "is one moment; use delay_ms"),
        ("deadline_ms", task.deadline_ms.is_some(), "is one moment; use deadline_in_ms"),
        (
            "then",
            !task.then.is_empty(),
            "a schedule's task has no follow-ups of its own; let its worker give them with the completion",
        ),
        (
            "program",
            task.program.is_some() || !task.inputs.is_empty() || !task.settings.is_empty(),
            "a schedule's task names no program, inputs or settings; let the worker of a plain task submit such a task or job",
        ),
    ];
    if let Some((field, _, detail)) = fixed.into_iter().find(|(_, given, _)| *given) {
        return Err(FieldError::bad_value(field, detail));
    }
    let id = match &task.key {
        Some(key) => keyed(key, name.as_str())?,
        None => parse_name("id", name.as_str(), TaskId::parse)?,
    };
    let task = read_task(id, task, None, None)?;
    check_size("payload", task.payload.len(), SCHEDULE_TASK_BYTES_MAX as u32)?;
    Ok(task)
}

/// A schedule. `next_ms` are its next instants, none if its timing cannot be read; `now_ms` is the time of the look.
pub fn show_schedule(schedule: &Schedule, next_ms: Option<Vec<u64>>, now_ms: u64) -> ScheduleInfo {
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
        task: ScheduledTask {
            queue: spec.task.queue.to_string(),
            key: spec.task.id.key().map(str::to_owned),
            payload_bytes_count: spec.task.payload.len() as u64,
        },
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
