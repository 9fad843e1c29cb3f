//! Follows growth: shards that are added, and tasks that move to them with their slots (TQ-29). Every task that leaves must
//! come, as it left, to the shard that the message named, and nothing else may come.

use ikada_consensus::Conf;
use ikada_state::{Command, Effect, Grow, Message, Reply, Shard, ShardId, TaskState};

use super::World;
use crate::check::{Verdict, violation};
use crate::marks::Mark;
use crate::oracle::batch::Batch;
use crate::workload::tenant;

const NAME: &str = "Q1 accounting";

impl World {
    /// Shards that exist, also those that not every node has opened yet.
    pub fn shard_count(&self) -> ShardId {
        self.watch.ledgers.len() as ShardId
    }

    /// Whether slots are on their way.
    pub fn is_growing(&self) -> bool {
        let reference = self.watch.ledgers.first().and_then(|ledger| ledger.reference());
        reference.is_some_and(|state| state.growth_view().is_some())
    }

    /// A growth was committed: the watch begins to look at the new shards.
    pub(super) fn follow_growth(&mut self, grow: &Grow, reply: &Reply) {
        let Reply::Growing { shards, .. } = reply else {
            return;
        };
        let Some(limits) = self.watch.ledgers[0].reference().map(|state| state.limits().clone())
        else {
            return;
        };
        let conf = Conf::of_voters(grow.voters.iter().copied());
        for shard in self.shard_count()..*shards {
            self.watch.add_shard(shard, Shard::added(shard, *shards, limits.clone()), &conf);
        }
        let count = usize::from(self.shard_count());
        for process in self.machines.values_mut().filter_map(|machine| machine.process.as_mut()) {
            process.views.resize(count, None);
            process.confs.resize(count, Conf::default());
        }
    }

    /// A task leaves or comes.
    pub(super) fn follow_travel(&mut self, at: (ShardId, u64), effect: &Effect) -> Verdict {
        let Effect::Travelled { id, state, fence, came, .. } = effect else {
            return Ok(());
        };
        let position = usize::from(at.0);
        self.watch.terminal_once[position].travelled(id, *state, *came)?;
        if !*came {
            return Ok(());
        }
        if at.0 != self.target_of(id) {
            return violation(NAME, format!("task {id} came to shard {}, not its own", at.0));
        }
        let Some(left) = self.watch.travelling.remove(id) else {
            return violation(NAME, format!("task {id} came to shard {} from nowhere", at.0));
        };
        self.watch.rules[position].arrive(id, left);
        if *state == TaskState::Claimed {
            self.marks.hit(Mark::ClaimTravelled);
            if let Some(holder) = self.watch.model.holders.get_mut(&(id.clone(), *fence)) {
                holder.granted = at;
            }
        }
        Ok(())
    }

    /// Tasks that leave do so once the rules have followed the entry: it may have brought them, or their end, before.
    pub(super) fn follow_leaves(&mut self, shard: ShardId, effects: &[Effect]) {
        for effect in effects {
            let Effect::Travelled { id, came: false, .. } = effect else {
                continue;
            };
            if let Some(left) = self.watch.rules[usize::from(shard)].leave(id) {
                self.watch.travelling.insert(id.clone(), left);
            }
        }
    }

    /// Where a task is or will be: the shard that took its slot in last.
    fn target_of(&self, id: &ikada_state::TaskId) -> ShardId {
        let namespaces = [ikada_state::Namespace::default(), tenant::namespace()];
        let here = |ledger: &crate::oracle::ledger::ShardLedger| {
            ledger.reference().is_some_and(|state| {
                namespaces.iter().any(|namespace| state.task(namespace, id).is_some())
            })
        };
        self.watch.ledgers.iter().rposition(here).map_or(0, |position| position as ShardId)
    }

    /// What a shard knows of requests goes along with a slot: noted when it leaves, handed on when it arrives.
    pub(super) fn follow_slots(
        &mut self,
        shard: ShardId,
        batch: &Batch,
        applied: &ikada_state::Applied,
    ) {
        let position = usize::from(shard);
        for (order, reply) in batch.orders.iter().zip(&applied.replies) {
            let Some(Command::Deliver(deliver)) = order.as_ref().map(|order| &order.command) else {
                continue;
            };
            if let (Message::Arrive { slot, .. }, Reply::Delivered { fresh: true }) =
                (&deliver.message, reply)
                && let Some(known) = self.watch.leaving.remove(slot)
            {
                self.watch.operations[position].adopt(&known);
                self.marks.hit(Mark::SlotMoved);
            }
        }
        let puts = applied.effects.iter().filter_map(|effect| match effect {
            Effect::OutboxPut { target, sequence } => Some((*target, *sequence)),
            _ => None,
        });
        let Some(reference) = self.watch.ledgers[position].reference() else {
            return;
        };
        for (target, sequence) in puts {
            for item in reference.outbox_pending(target, sequence, 1) {
                if let Message::Arrive { slot, .. } = item.message {
                    let known = self.watch.operations[position].leaving(&batch.orders);
                    self.watch.leaving.insert(slot, known);
                }
            }
        }
    }
}
