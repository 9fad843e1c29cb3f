//! The state's records as public documents.

use ikada_state::{AttemptOutcome, AttemptView, Grant, Progress, QueueView, TaskState, TaskView};

use super::program::show_work;
use crate::v1::{
    AlertsInfo, AttemptInfo, BackoffBody, Body, ClaimedTask, Number, ProgressBody, QueueCounts,
    QueueHealth, QueueInfo, QueueSettingsInfo, Task, TaskStateName,
};

/// In which form payloads and results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// As JSON where they are JSON, else as base64.
    #[default]
    Json,
    /// As byte strings.
    Cbor,
}

impl Form {
    /// Shows bytes in this form.
    pub fn show(self, bytes: &[u8]) -> Body {
        match self {
            Form::Json => Body::of(bytes),
            Form::Cbor => Body::raw(bytes),
        }
    }
}

/// A task.
pub fn show_task(view: &TaskView, form: Form) -> Task {
    let payload = form.show(&view.payload);
    let result = view.result.as_ref().map(|result| form.show(result)).unwrap_or_default();
    Task {
        payload: payload.json,
        payload_base64: payload.base64,
        payload_bytes: payload.bytes,
        result: result.json,
        result_base64: result.base64,
        result_bytes: result.bytes,
        attempts: show_attempts(view),
        ..show_task_brief(view)
    }
}

/// The attempts with what each ran, read and brought. Lists leave the digests out.
fn show_attempts(view: &TaskView) -> Vec<AttemptInfo> {
    let work = view.work.as_ref();
    let program = work.and_then(|work| work.program.digest).map(|digest| digest.to_string());
    let inputs = work.and_then(|work| work.inputs_digest()).map(|digest| digest.to_string());
    let show = |attempt: &AttemptView| {
        let counts = attempt.outcome == AttemptOutcome::Completed;
        let outputs = view.outputs_digest.filter(|_| counts).map(|digest| digest.to_string());
        AttemptInfo {
            program_digest: program.clone(),
            inputs_digest: inputs.clone(),
            outputs_digest: outputs,
            ..show_attempt(attempt)
        }
    };
    view.attempts.iter().map(show).collect()
}

/// A task without its payload and result, for lists of where tasks stand.
pub fn show_task_brief(view: &TaskView) -> Task {
    let live = (view.state == TaskState::Claimed).then(|| view.attempts.last()).flatten();
    Task {
        id: view.id.to_string(),
        key: view.id.key().map(str::to_owned),
        key_limit: Some(view.key_limit).filter(|limit| *limit > 0),
        queue: view.queue.to_string(),
        state: show_state(view.state),
        priority: view.priority,
        attempts_begun: view.attempt,
        max_attempts: view.max_attempts,
        ttl_ms: view.ttl_ms,
        backoff: BackoffBody { base_ms: view.backoff.base_ms, cap_ms: view.backoff.cap_ms },
        labels: view
            .labels
            .pairs()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        timeout_ms: view.timeout_ms,
        deadline_ms: view.deadline_ms,
        retention_ms: view.retention_ms,
        work: view.work.as_ref().map(|work| Box::new(show_work(work))),
        outputs: view.outputs,
        then: view.then.iter().map(ToString::to_string).collect(),
        created_ms: view.enqueued_ms,
        ready_at_ms: view.due_ms,
        finished_ms: view.finished_ms,
        worker: live.map(|attempt| attempt.worker.to_string()),
        fence: live.map(|attempt| Number(attempt.fence.0)),
        progress: None,
        payload: None,
        payload_base64: None,
        payload_bytes: None,
        result: None,
        result_base64: None,
        result_bytes: None,
        dead_reason: view.dead_reason.map(|reason| reason.as_str().to_owned()),
        attempts: view.attempts.iter().map(show_attempt).collect(),
        attempts_dropped: view.attempts_dropped,
    }
}

/// How far an attempt is.
pub fn show_progress(progress: &Progress) -> ProgressBody {
    ProgressBody { permille: progress.permille, note: progress.note.clone() }
}

fn show_attempt(attempt: &AttemptView) -> AttemptInfo {
    let outcome = match attempt.outcome {
        AttemptOutcome::Running => "running",
        AttemptOutcome::Completed => "completed",
        AttemptOutcome::Failed { .. } | AttemptOutcome::FailedDead => "failed",
        AttemptOutcome::Expired => "expired",
        AttemptOutcome::Unclaimed => "returned",
        AttemptOutcome::Cancelled => "cancelled",
        AttemptOutcome::TimedOut => "timed_out",
        AttemptOutcome::Outrun => "outrun",
    };
    AttemptInfo {
        fence: Number(attempt.fence.0),
        worker: attempt.worker.to_string(),
        started_ms: attempt.started_ms,
        ended_ms: attempt.ended_ms,
        outcome: outcome.to_owned(),
        error: attempt.error.as_ref().map(|error| String::from_utf8_lossy(error).into_owned()),
        program_digest: None,
        inputs_digest: None,
        outputs_digest: None,
    }
}

/// The public word for a state.
pub(super) fn show_state(state: TaskState) -> TaskStateName {
    match state {
        TaskState::Scheduled => TaskStateName::Scheduled,
        TaskState::Ready => TaskStateName::Ready,
        TaskState::Claimed => TaskStateName::Claimed,
        TaskState::Done => TaskStateName::Done,
        TaskState::Dead => TaskStateName::Dead,
        TaskState::Cancelled => TaskStateName::Cancelled,
    }
}

/// The state's word for a public one.
pub fn task_state(name: TaskStateName) -> TaskState {
    match name {
        TaskStateName::Scheduled => TaskState::Scheduled,
        TaskStateName::Ready => TaskState::Ready,
        TaskStateName::Claimed => TaskState::Claimed,
        TaskStateName::Done => TaskState::Done,
        TaskStateName::Dead => TaskState::Dead,
        TaskStateName::Cancelled => TaskState::Cancelled,
    }
}

/// A task handed to a worker.
pub fn show_grant(grant: &Grant, form: Form) -> ClaimedTask {
    let payload = form.show(&grant.payload);
    ClaimedTask {
        id: grant.id.to_string(),
        queue: grant.queue.to_string(),
        fence: Number(grant.fence.0),
        attempt: grant.attempt,
        max_attempts: grant.max_attempts,
        ttl_ms: grant.ttl_ms,
        timeout_ms: Some(grant.timeout_ms).filter(|timeout_ms| *timeout_ms > 0),
        payload: payload.json,
        payload_base64: payload.base64,
        payload_bytes: payload.bytes,
        work: grant.work.as_ref().map(|work| Box::new(show_work(work))),
        checkpoint: grant.checkpoint == Some(true),
        traceparent: None,
    }
}

/// A queue; how it does is for the caller to say.
pub fn show_queue(view: &QueueView) -> QueueInfo {
    let settings = &view.settings;
    let backoff = settings.backoff;
    QueueInfo {
        name: view.name.to_string(),
        settings: QueueSettingsInfo {
            version: settings.version,
            paused: settings.paused,
            max_attempts: settings.max_attempts,
            ttl_ms: settings.ttl_ms,
            backoff: BackoffBody { base_ms: backoff.base_ms, cap_ms: backoff.cap_ms },
            retention_count: settings.retention_count,
            retention_ms: settings.retention_ms,
            pending_max: settings.pending_max,
            alerts: AlertsInfo {
                pending: settings.alerts.pending,
                claim_age_percent: settings.alerts.claim_age_percent,
                dead_percent: settings.alerts.dead_percent,
                growing_s: settings.alerts.growing_s,
            },
            timeout_ms: settings.timeout_ms,
            deadline_in_ms: settings.deadline_in_ms,
            key_limit: settings.key_limit,
            dead_max: settings.dead_max(),
            dead_retention_ms: settings.dead_retention_ms(),
            jitter_permille: settings.jitter_permille(),
        },
        counts: QueueCounts {
            scheduled: view.scheduled,
            ready: view.ready,
            claimed: view.claimed,
            finished: view.finished,
            dead: view.dead,
            submitted_total: view.counters.submitted,
            done_total: view.counters.done,
            dead_total: view.counters.dead,
            cancelled_total: view.counters.cancelled,
            removed_total: view.counters.removed,
            retried_total: view.counters.retried,
            failed_attempts_total: view.counters.failed,
            dead_dropped_total: view.counters.dead_dropped.unwrap_or(0),
        },
        health: QueueHealth::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_one_word_on_both_sides() {
        for state in TaskState::ALL {
            assert_eq!(show_state(state).as_str(), state.as_str());
            assert_eq!(task_state(show_state(state)), state);
        }
    }
}
