//! Why a task is not running, as its shard's leader sees it: the state's reasons, and whether any worker asks, and
//! whether any that has the labels wanted does; of a running one also how far it is.
//!
//! An answer for people, from the leader's memory: it is not confirmed by a quorum as a linearizable read is.

use ikada_state::{Explanation, Namespace, ShardId, TaskId, TaskState, WaitReason};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::Seat;

/// A waiting claim asks every second, so that silence for this long means that nobody waits.
const LATELY_MS: u64 = 5_000;

impl Replica {
    pub(crate) fn decide_explain(
        &self,
        shard: ShardId,
        namespace: &Namespace,
        id: &TaskId,
        now: Now,
    ) -> Decision<'static> {
        let seat = &self.seats[usize::from(shard)];
        if seat.state.is_away(namespace, id) {
            return Decision::Reply(Told::Moved);
        }
        let mut explanation = seat.state.explain(namespace, id);
        if let Some(explanation) = &mut explanation {
            add_silence(seat, namespace, explanation, now);
            let claim = seat.state.claim_of(namespace, id);
            let progress = claim.and_then(|claim| seat.liveness.progress(claim.slot, claim.fence));
            explanation.progress = progress.cloned();
        }
        Decision::Reply(Told::Explained(explanation))
    }
}

/// Adds that no worker asks, once this leader has led long enough to know.
fn add_silence(seat: &Seat, namespace: &Namespace, explanation: &mut Explanation, now: Now) {
    let paused = explanation.reasons.contains(&WaitReason::QueuePaused);
    if explanation.state != TaskState::Ready || paused {
        return;
    }
    let handle = seat.state.queue_handle(namespace, &explanation.queue);
    let asked_ms = handle.and_then(|handle| seat.asked.last_ms(handle));
    let silent_since_ms = asked_ms.unwrap_or(seat.led_since_ms);
    if now.mono_ms.saturating_sub(silent_since_ms) > LATELY_MS {
        let ago_ms = asked_ms.map(|asked_ms| now.mono_ms.saturating_sub(asked_ms));
        explanation.reasons.push(WaitReason::NoWorkerAsked { ago_ms });
        return;
    }
    let labels = seat.state.labels_wanted(namespace, &explanation.id);
    let asked_ms = handle.and_then(|handle| seat.asked.last_with_ms(handle, &labels));
    let silent_since_ms = asked_ms.unwrap_or(seat.led_since_ms);
    if !labels.is_empty() && now.mono_ms.saturating_sub(silent_since_ms) > LATELY_MS {
        explanation.reasons.push(WaitReason::NoWorkerWithLabels { labels });
    }
}
