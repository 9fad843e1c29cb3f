//! Workers: beats to records. What a leader knows of them is put together by the node.

use ikada_state::limits::{
    LABELS_OFFERED_MAX, WORKER_QUEUES_MAX, WORKER_SLOTS_MAX, WORKER_VERSION_BYTES_MAX,
};
use ikada_state::{QueueName, RegisterWorker, SessionId, WorkerId};

use super::check::read_labels;
use super::field::{FieldError, parse_name};
use crate::v1::WorkerBeat;

/// A worker's name.
pub fn worker_name(id: &str) -> Result<WorkerId, FieldError> {
    parse_name("id", id, WorkerId::parse)
}

/// A worker as it describes itself; its full name is left to the node.
pub fn register_worker(id: WorkerId, beat: &WorkerBeat) -> Result<RegisterWorker, FieldError> {
    if !(1..=WORKER_SLOTS_MAX).contains(&beat.slots) {
        return Err(FieldError::bad_value("slots", format!("must be 1 to {WORKER_SLOTS_MAX}")));
    }
    if beat.queues.len() > WORKER_QUEUES_MAX {
        let detail = format!("must be at most {WORKER_QUEUES_MAX}");
        return Err(FieldError::bad_value("queues", detail));
    }
    if beat.version.len() > WORKER_VERSION_BYTES_MAX {
        let detail = format!("must be at most {WORKER_VERSION_BYTES_MAX} bytes");
        return Err(FieldError::too_large("version", detail));
    }
    let queues = beat.queues.iter().map(|queue| parse_name("queues", queue, QueueName::parse));
    Ok(RegisterWorker {
        id,
        session: SessionId(beat.session.0),
        slots: beat.slots,
        labels: read_labels(&beat.labels, LABELS_OFFERED_MAX)?,
        queues: queues.collect::<Result<_, _>>()?,
        version: beat.version.clone(),
        replaces: None,
    })
}
