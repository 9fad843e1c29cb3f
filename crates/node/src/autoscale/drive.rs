//! The loop: looks every few seconds, and acts if this node leads shard 0. What to do is a plan (`plan.rs`); here it is carried out,
//! written down and kept for all nodes (`keep.rs`).

use std::time::Duration;

use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use ikada_replica::consensus::Role;
use ikada_replica::peer::WorkerTold;
use ikada_replica::state::{Command, DrainWorker, Order, QueueView, WorkerKey};
use tracing::{info, warn};

use super::keep::{keep, recall};
use super::{Act, Driver, Held, History, ScaleRule, Scaled, Wish, plan};
use crate::http::Door;
use crate::watch::wall_ms;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long one question to the cluster may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs until the node stops.
pub async fn autoscale<D: Door>(
    door: D,
    rule: ScaleRule,
    driver: Driver,
    history: History,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut held = None;
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let status = door.status().await;
        let leads = status.shards.first().is_some_and(|shard| shard.role == Role::Leader);
        if !leads {
            held = None;
            continue;
        }
        if held.is_none() {
            held = take_over(&door, &driver, &history).await;
        }
        let Some(held) = &mut held else {
            continue;
        };
        if let Some((queues, workers)) = look(&door).await {
            let scaler = Scaler { door: &door, rule: &rule, driver: &driver, history: &history };
            scaler.step(held, &queues, &workers, wall_ms()).await;
        }
    }
}

/// Begins to lead: with fresh eyes, but knowing what the leader before did not finish. None while that cannot be read.
async fn take_over<D: Door>(door: &D, driver: &Driver, history: &History) -> Option<Held> {
    history.begin(recall(door).await?);
    let mut held = Held::default();
    // Who drains by itself was told at once; started processes have gone with the node that started them.
    if matches!(driver, Driver::Exec(_)) {
        held.lowering = history.unfinished().map(|wish| (wish, 0));
    }
    Some(held)
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

/// All that one look needs.
struct Scaler<'a, D> {
    door: &'a D,
    rule: &'a ScaleRule,
    driver: &'a Driver,
    history: &'a History,
}

impl<D: Door> Scaler<'_, D> {
    async fn step(
        &self,
        held: &mut Held,
        queues: &[QueueView],
        workers: &[WorkerTold],
        now_ms: u64,
    ) {
        let acts = plan(self.rule, self.driver.drains(), held, (queues, workers), now_ms);
        let is_busy = !acts.is_empty();
        for act in acts {
            match act {
                Act::Drain(keys, wish) => {
                    for key in keys {
                        self.drain(key).await;
                    }
                    self.note(&wish, None, true, now_ms);
                }
                Act::Tell(wish) => {
                    let error = self.driver.scale(&wish).await.err();
                    if error.is_some() {
                        held.failed(self.rule, wish.clone(), now_ms);
                    }
                    self.note(&wish, error, false, now_ms);
                }
            }
        }
        if is_busy && let Err(error) = keep(self.door, self.history.all()).await {
            warn!(%error, "the autoscaler's decisions are kept on this node only");
        }
    }

    async fn drain(&self, (namespace, id): WorkerKey) {
        let command = Command::DrainWorker(DrainWorker { id });
        let order = Order { namespace, request: None, command };
        // One that is not told now is told after a cooldown.
        let _ = self.door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await;
    }

    fn note(&self, wish: &Wish, error: Option<String>, pending: bool, now_ms: u64) {
        let (driver, from, to) = (self.driver.name(), wish.current, wish.desired);
        let reason = match pending {
            true => format!("{}; some are drained first", wish.reason),
            false => wish.reason.clone(),
        };
        match &error {
            None if pending => info!(driver, from, to, reason, "workers drained"),
            None => info!(driver, from, to, reason, "workers scaled"),
            Some(error) => warn!(driver, from, to, %error, "workers not scaled"),
        }
        let node = Some(self.door.info().name.clone());
        self.history.add(Scaled { at_ms: now_ms, from, to, reason, error, pending, node });
    }
}
