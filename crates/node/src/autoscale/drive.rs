//! The loop: looks every few seconds, and acts if this node leads shard 0.

use std::time::Duration;

use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use ikada_replica::consensus::Role;
use ikada_replica::peer::WorkerTold;
use ikada_replica::state::{Command, DrainWorker, Order, QueueView, WorkerStanding};
use tracing::{info, warn};

use super::{
    Decision, Driver, History, Look, Looks, Memory, ScaleRule, Scaled, Seen, Wish, decide,
};
use crate::http::Door;
use crate::watch::wall_ms;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long one question to the cluster may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the loop remembers while this node leads.
#[derive(Default)]
struct Held {
    memory: Memory,
    looks: Looks,
    /// A lower number that the driver hears once the drained workers are gone.
    lowering: Option<Wish>,
}

/// Runs until the node stops.
pub async fn autoscale<D: Door>(
    door: D,
    rule: ScaleRule,
    driver: Driver,
    history: History,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut held = Held::default();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let status = door.status().await;
        let leads = status.shards.first().is_some_and(|shard| shard.role == Role::Leader);
        if !leads {
            // Whoever leads next begins with fresh eyes.
            held = Held::default();
            continue;
        }
        if let Some((queues, workers)) = look(&door).await {
            step(&door, &rule, &driver, &history, &mut held, &queues, &workers).await;
        }
    }
}

async fn look<D: Door>(door: &D) -> Option<(Vec<QueueView>, Vec<WorkerTold>)> {
    let read = Request::Read(Query::EveryQueue, Consistency::Stale);
    let queues = door.call(read, PATIENCE, Routing::Forward).await;
    let Answer::View { view: View::Queues(queues), .. } = queues else {
        return None;
    };
    match door.call(Request::Workers, PATIENCE, Routing::Forward).await {
        Answer::Workers { workers, .. } => Some((queues, workers)),
        _ => None,
    }
}

fn is_working(worker: &WorkerTold) -> bool {
    worker.alive && worker.record.standing == WorkerStanding::Active
}

fn see(looks: &mut Looks, queues: &[QueueView], workers: &[WorkerTold], now_ms: u64) -> Seen {
    let open = queues.iter().filter(|queue| !queue.settings.paused);
    let claimed = queues.iter().map(|queue| queue.claimed).sum();
    let ended = queues.iter().map(|queue| queue.counters.done + queue.counters.failed).sum();
    looks.add(Look { at_ms: now_ms, claimed, ended });
    Seen {
        backlog: open.map(|queue| queue.ready).sum(),
        claimed,
        service_ms: looks.service_ms(),
        workers: workers.iter().filter(|worker| is_working(worker)).count() as u32,
    }
}

async fn step<D: Door>(
    door: &D,
    rule: &ScaleRule,
    driver: &Driver,
    history: &History,
    held: &mut Held,
    queues: &[QueueView],
    workers: &[WorkerTold],
) {
    let now_ms = wall_ms();
    let seen = see(&mut held.looks, queues, workers, now_ms);
    let leaving = workers.iter().any(|worker| worker.alive && !is_working(worker));
    if let Some(wish) = held.lowering.take_if(|_| !leaving) {
        tell(driver, history, wish, now_ms).await;
    }
    let Decision { desired, reason } = decide(rule, &seen, &mut held.memory, now_ms);
    let wish = Wish { desired, current: seen.workers, reason };
    if desired < seen.workers && !driver.drains() {
        for worker in victims(workers, (seen.workers - desired) as usize) {
            drain(door, worker).await;
        }
        held.lowering = Some(wish);
    } else if desired != seen.workers {
        held.lowering = None;
        tell(driver, history, wish, now_ms).await;
    }
}

/// Those with the least to do, and of those the youngest.
fn victims(workers: &[WorkerTold], count: usize) -> Vec<&WorkerTold> {
    let mut working: Vec<&WorkerTold> = workers.iter().filter(|w| is_working(w)).collect();
    working.sort_by_key(|worker| (worker.busy, std::cmp::Reverse(worker.record.since_ms)));
    working.truncate(count);
    working
}

async fn drain<D: Door>(door: &D, worker: &WorkerTold) {
    let (namespace, id) = worker.record.key();
    let command = Command::DrainWorker(DrainWorker { id });
    let order = Order { namespace, request: None, command };
    // One that is not told now is told after the next look.
    let _ = door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await;
}

async fn tell(driver: &Driver, history: &History, wish: Wish, now_ms: u64) {
    let error = driver.scale(&wish).await.err();
    let (from, to) = (wish.current, wish.desired);
    match &error {
        None => info!(driver = driver.name(), from, to, reason = wish.reason, "workers scaled"),
        Some(error) => warn!(driver = driver.name(), from, to, %error, "workers not scaled"),
    }
    history.add(Scaled { at_ms: now_ms, from, to, reason: wish.reason, error });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_replica::state::{Labels, Namespace, SessionId, WorkerId, WorkerRecord};

    fn worker(name: &str, busy: u32, since_ms: u64) -> WorkerTold {
        let record = WorkerRecord {
            namespace: Namespace::default(),
            id: WorkerId::parse(name).unwrap(),
            session: SessionId(1),
            slots: 2,
            labels: Labels::default(),
            queues: Vec::new(),
            version: String::new(),
            since_ms,
            standing: WorkerStanding::Active,
        };
        WorkerTold { record, alive: true, heard_ms_ago: 1, busy, impostor: None }
    }

    #[test]
    fn b4_23_those_with_the_least_to_do_leave_first() {
        let mut workers =
            [worker("a", 2, 1), worker("b", 0, 2), worker("c", 1, 3), worker("d", 0, 4)];
        workers[3].alive = false;
        let names: Vec<String> =
            victims(&workers, 2).iter().map(|worker| worker.record.id.to_string()).collect();
        assert_eq!(names, ["b", "c"], "a dead worker is not drained");
        let mut looks = Looks::default();
        assert_eq!(see(&mut looks, &[], &workers, 1).workers, 3);
    }
}
