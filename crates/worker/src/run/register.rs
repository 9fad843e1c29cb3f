//! Registration: the worker says who it is and that it lives, every few seconds, and hears what is wanted of it.
//!
//! Promises: work goes on whether or not anybody hears; an order of an older term than one heard before is refused (B4-24);
//! while another session lives under the same name, this worker claims nothing and says so (B4-20).

use std::sync::atomic::Ordering;
use std::time::Duration;

use ikada_api::v1::{Number, WorkerBeat, WorkerOrders, WorkerWanted};
use tokio::sync::mpsc;

use super::Context;
use crate::agent::Input;

/// Until the cluster says otherwise.
const BEAT_DEFAULT: Duration = Duration::from_secs(3);
/// A worker that leaves waits this long at most for somebody to hear of it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Code of a refusal: this session is over.
pub(super) const REMOVED: &str = "worker_removed";

/// Refuses what an older leader wants.
#[derive(Debug, Default)]
pub(super) struct Obedience {
    term: u64,
}

impl Obedience {
    /// What to do; none if the order is older than one heard before.
    pub(super) fn take(&mut self, orders: &WorkerOrders) -> Option<WorkerWanted> {
        if orders.term < self.term {
            return None;
        }
        self.term = orders.term;
        Some(orders.wanted)
    }
}

fn describe(context: &Context, leaving: bool) -> WorkerBeat {
    WorkerBeat {
        session: Number(context.session),
        slots: context.agent.slots,
        busy: context.busy.load(Ordering::Relaxed),
        labels: context.labels.clone(),
        queues: context.queues.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        leaving,
    }
}

/// Beats until the worker stops.
pub(super) async fn keep(context: Context, inputs: mpsc::Sender<Input>) {
    let mut obedience = Obedience::default();
    loop {
        let mut pause = BEAT_DEFAULT;
        let mut kept_out = false;
        match context.client.beat(&context.worker, &describe(&context, false)).await {
            Ok(orders) => {
                pause = Duration::from_millis(orders.beat_ms.clamp(100, 60_000));
                match obedience.take(&orders) {
                    Some(WorkerWanted::Work) | None => {}
                    Some(WorkerWanted::Drain) => drop(inputs.send(Input::Drain).await),
                    Some(WorkerWanted::Stop) => {
                        tracing::warn!(worker = &*context.worker, "the worker was removed");
                        drop(inputs.send(Input::Removed).await);
                    }
                }
            }
            Err(error) if error.code() == Some("worker_exists") => {
                tracing::error!(worker = &*context.worker, %error, "kept out");
                kept_out = true;
            }
            Err(error) if error.code() == Some(REMOVED) => {
                tracing::warn!(worker = &*context.worker, %error, "the worker was removed");
                drop(inputs.send(Input::Removed).await);
            }
            Err(error) => tracing::debug!(worker = &*context.worker, %error, "nobody heard"),
        }
        context.kept_out.store(kept_out, Ordering::Relaxed);
        tokio::time::sleep(pause).await;
    }
}

/// Says goodbye, if anybody hears it soon.
pub(super) async fn leave(context: &Context) {
    let beat = describe(context, true);
    let _ = tokio::time::timeout(GOODBYE, context.client.beat(&context.worker, &beat)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_24_an_order_of_an_older_term_is_refused() {
        let orders = |wanted, term| WorkerOrders { wanted, term, beat_ms: 3_000 };
        let mut obedience = Obedience::default();
        assert_eq!(obedience.take(&orders(WorkerWanted::Work, 4)), Some(WorkerWanted::Work));
        assert_eq!(obedience.take(&orders(WorkerWanted::Drain, 3)), None);
        assert_eq!(obedience.take(&orders(WorkerWanted::Drain, 4)), Some(WorkerWanted::Drain));
        assert_eq!(obedience.take(&orders(WorkerWanted::Stop, 5)), Some(WorkerWanted::Stop));
    }
}
