//! Workers as callers see them, one by one and summed up (B4-16).

use ikada_api::state::WorkerStanding;
use ikada_api::v1::{Number, SlotCount, WorkerInfo, WorkerStateName, WorkerSummary};
use ikada_replica::peer::WorkerTold;

/// Describes one worker.
pub(in crate::http) fn describe(worker: &WorkerTold) -> WorkerInfo {
    let record = &worker.record;
    let state = match (worker.alive, record.standing) {
        (false, _) => WorkerStateName::Dead,
        (true, WorkerStanding::Draining) => WorkerStateName::Draining,
        (true, _) => WorkerStateName::Alive,
    };
    let labels = record.labels.pairs().iter();
    WorkerInfo {
        id: record.id.to_string(),
        state,
        session: Number(record.session.0),
        slots: record.slots,
        busy: worker.busy,
        labels: labels.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        queues: record.queues.iter().map(ToString::to_string).collect(),
        version: record.version.clone(),
        since_ms: record.since_ms,
        heard_ms_ago: Some(worker.heard_ms_ago).filter(|ms| *ms < u64::MAX),
        impostor: worker.impostor.map(|session| Number(session.0)),
    }
}

/// Sums workers up: dead ones have no slots, draining ones none that are open.
pub(in crate::http) fn summarize(workers: &[WorkerTold]) -> WorkerSummary {
    let alive: Vec<&WorkerTold> = workers.iter().filter(|worker| worker.alive).collect();
    let is_draining = |worker: &&&WorkerTold| worker.record.standing == WorkerStanding::Draining;
    let draining = alive.iter().filter(is_draining).count();
    let dead = workers.len() - alive.len();
    let mut slots = SlotCount::default();
    for worker in &alive {
        slots.total += u64::from(worker.record.slots);
        if worker.record.standing == WorkerStanding::Active {
            slots.open += u64::from(worker.record.slots.saturating_sub(worker.busy));
        }
    }
    let status = match (alive.len(), dead) {
        (0, _) => "dead",
        (_, 0) => "healthy",
        _ => "degraded",
    };
    WorkerSummary {
        status: status.to_owned(),
        alive: alive.len() as u64,
        draining: draining as u64,
        dead: dead as u64,
        slots,
    }
}
