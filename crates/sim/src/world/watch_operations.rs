//! Follows cancels, retries, sweeps and voids of committed entries in the model of tasks.

use ikada_state::{Command, Effect, Order, Reply, ShardId, Sweep, SweepAction, TaskId, TaskState};

use super::World;
use crate::check::Verdict;
use crate::check::operations::Move;
use crate::marks::Mark;
use crate::oracle::model::End;

impl World {
    /// The changes of state of an entry, with the names of queues.
    pub(super) fn moves(&self, shard: ShardId, effects: &[Effect]) -> Vec<Move> {
        let Some(reference) = self.watch.ledgers[usize::from(shard)].reference() else {
            return Vec::new();
        };
        let moves = effects.iter().filter_map(|effect| {
            let Effect::Moved { queue, id, from, to, .. } = effect else { return None };
            let (_, queue) = reference.queue_at(*queue)?;
            Some(Move { queue: queue.clone(), id: id.clone(), from: *from, to: *to })
        });
        moves.collect()
    }

    /// Q13: dead tasks leave by an order or by their own age.
    pub(super) fn follow_dead(
        &mut self,
        shard: ShardId,
        orders: &[Option<Order>],
        replies: &[Reply],
        moves: &[Move],
    ) -> Verdict {
        let rules = &self.watch.rules[usize::from(shard)];
        let has_own =
            |id: &TaskId| rules.wish(id).is_none_or(|wish| wish.options.retention_ms.is_some());
        let kept_ms = self.plan.knobs.dead_retention_ms;
        let entry = (shard, rules.time_ms);
        let aged = self.watch.dead_kept.entry(entry, (orders, replies), moves, kept_ms, has_own)?;
        self.marks.hit_if(aged, Mark::DeadAged);
        Ok(())
    }

    /// Cancels, retries and what operators do. A resend is answered as the first time and moves nothing.
    pub(super) fn follow_operation(&mut self, order: &Order, reply: &Reply, moves: &[Move]) {
        let moved = |id: &TaskId, to: TaskState| {
            moves.iter().any(|step| step.id == *id && step.to == Some(to))
        };
        match (&order.command, reply) {
            (Command::Cancel(cancel), Reply::Cancelled)
                if moved(&cancel.id, TaskState::Cancelled) =>
            {
                let task = self.watch.model.task_mut(&cancel.id);
                let claimed = task.claim.is_some();
                if task.end.is_none() {
                    self.watch.model.settle(&cancel.id, End::Cancelled);
                }
                if claimed {
                    self.marks.hit(Mark::CancelWon);
                }
            }
            (Command::Retry(retry), Reply::Retried) if moved(&retry.id, TaskState::Ready) => {
                let end = &self.watch.model.task_mut(&retry.id).end;
                if matches!(end, Some(End::Dead | End::Cancelled)) {
                    self.revived(&retry.id);
                }
            }
            (Command::Sweep(sweep), Reply::Swept { count, .. }) => {
                self.follow_sweep(sweep, *count, moves);
            }
            (Command::Drop(_), Reply::Dropped) => self.marks.hit(Mark::TaskDropped),
            (Command::Void(_), Reply::Voided) => self.marks.hit(Mark::RequestVoided),
            _ => {}
        }
    }

    /// The tasks that a step of a sweep changed: the first moves of its kind that the model has not followed yet.
    fn follow_sweep(&mut self, sweep: &Sweep, count: u32, moves: &[Move]) {
        let mut left = count;
        for step in moves.iter().filter(|step| step.queue == sweep.queue) {
            let end = self.watch.model.task_mut(&step.id).end.clone();
            let cancelled = step.to == Some(TaskState::Cancelled) && end.is_none();
            let retried = step.from == Some(TaskState::Dead) && end == Some(End::Dead);
            match sweep.action {
                _ if left == 0 => return,
                SweepAction::CancelWaiting | SweepAction::CancelUnfinished if cancelled => {
                    self.watch.model.settle(&step.id, End::Cancelled);
                    self.marks.hit(Mark::QueuePurged);
                }
                SweepAction::RetryDead if retried && step.to == Some(TaskState::Ready) => {
                    self.revived(&step.id);
                }
                _ => continue,
            }
            left -= 1;
        }
    }

    /// Deaths of waiting tasks, which no order asks for: their deadline was over, as Q11 has judged. Those that come
    /// first for their task are followed before the orders of the entry, others after them.
    pub(super) fn follow_deadlines(&mut self, moves: &[Move], first: bool) {
        for (place, step) in moves.iter().enumerate() {
            let waited = matches!(step.from, Some(TaskState::Ready | TaskState::Scheduled));
            let same = |other: &Move| other.id == step.id;
            let chosen = match first {
                true => !moves[..place].iter().any(same),
                false => moves[..place].iter().any(same) && !moves[place + 1..].iter().any(same),
            };
            if waited && step.to == Some(TaskState::Dead) && chosen {
                self.watch.model.settle(&step.id, End::Dead);
                self.marks.hit(Mark::DeadlinePassed);
            }
        }
    }

    fn revived(&mut self, id: &TaskId) {
        self.watch.model.revive(id);
        self.watch.cancels.revived(id);
        self.marks.hit(Mark::TaskRetried);
    }
}
