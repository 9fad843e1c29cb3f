//! Q13 Dead letters are kept: once a shard keeps its dead tasks apart, one leaves only by somebody's order, by its own
//! retention, or when its time is over; never because others finished.
//!
//! Fed with every committed entry, in log order; shares no code with the product. The runs stay far below a shard's own
//! bound, at which the oldest would go.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{Command, Order, QueueName, Reply, ShardId, SweepAction, TaskId, TaskState};

use super::operations::Move;
use super::{Verdict, Violation, violation};

const NAME: &str = "Q13 dead_kept";

/// Since when which task is dead.
#[derive(Debug, Default)]
pub struct DeadKept {
    /// Shards that keep dead tasks apart.
    apart: BTreeSet<ShardId>,
    /// Log time of each death; it goes along when a slot moves.
    died: BTreeMap<TaskId, u64>,
}

/// What the orders of one entry may remove.
#[derive(Debug, Default)]
struct Removed {
    tasks: BTreeSet<TaskId>,
    queues: BTreeSet<QueueName>,
}

impl Removed {
    fn add(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Drop(drop), Reply::Dropped) => {
                self.tasks.insert(drop.id.clone());
            }
            (Command::Sweep(sweep), Reply::Swept { .. })
                if matches!(sweep.action, SweepAction::DropDead | SweepAction::DropFinished) =>
            {
                self.queues.insert(sweep.queue.clone());
            }
            _ => {}
        }
    }
}

impl DeadKept {
    /// One entry of a shard at a log time. `kept_ms` is the shortest time that any queue keeps its dead tasks; `has_own`
    /// says which tasks have, or may have, a retention of their own. Tells whether a task left by its age.
    pub fn entry(
        &mut self,
        (shard, time_ms): (ShardId, u64),
        (orders, replies): (&[Option<Order>], &[Reply]),
        moves: &[Move],
        kept_ms: u64,
        has_own: impl Fn(&TaskId) -> bool,
    ) -> Result<bool, Violation> {
        let (was_apart, mut aged) = (self.apart.contains(&shard), false);
        let mut removed = Removed::default();
        for (order, reply) in orders.iter().zip(replies) {
            let Some(order) = order else { continue };
            removed.add(&order.command, reply);
            if *reply == Reply::DeadKept {
                self.apart.insert(shard);
            }
        }
        for step in moves {
            if step.to == Some(TaskState::Dead) {
                self.died.insert(step.id.clone(), time_ms);
                continue;
            }
            if step.from != Some(TaskState::Dead) {
                continue;
            }
            let died_ms = self.died.remove(&step.id);
            let asked = removed.tasks.contains(&step.id) || removed.queues.contains(&step.queue);
            if step.to.is_some() || asked || !was_apart || has_own(&step.id) {
                continue;
            }
            aged = true;
            Self::judge(step, died_ms, time_ms, kept_ms)?;
        }
        Ok(aged)
    }

    fn judge(step: &Move, died_ms: Option<u64>, time_ms: u64, kept_ms: u64) -> Verdict {
        match died_ms {
            Some(died_ms) if time_ms < died_ms.saturating_add(kept_ms) => {
                let kept = time_ms.saturating_sub(died_ms);
                let what = format!("task {} was kept for {kept} ms of {kept_ms}", step.id);
                violation(NAME, what)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{DropTask, KeepDead, Namespace};

    fn step(from: Option<TaskState>, to: Option<TaskState>) -> Move {
        let (queue, id) = (QueueName::parse("q").unwrap(), TaskId::parse("t").unwrap());
        Move { queue, id, from, to }
    }

    fn order(command: Command) -> [Option<Order>; 1] {
        [Some(Order { namespace: Namespace::default(), request: None, command })]
    }

    fn apart() -> DeadKept {
        let mut check = DeadKept::default();
        let keep = order(Command::KeepDead(KeepDead { shard: 0 }));
        check.entry((0, 0), (&keep, &[Reply::DeadKept]), &[], 100, |_| false).unwrap();
        let dies = [step(Some(TaskState::Claimed), Some(TaskState::Dead))];
        check.entry((0, 5), (&[], &[]), &dies, 100, |_| false).unwrap();
        check
    }

    #[test]
    fn a_dead_task_that_goes_before_its_time_is_noticed() {
        let goes = [step(Some(TaskState::Dead), None)];
        let verdict = apart().entry((0, 104), (&[], &[]), &goes, 100, |_| false);
        assert!(verdict.is_err());
        assert_eq!(apart().entry((0, 105), (&[], &[]), &goes, 100, |_| false), Ok(true));
        assert_eq!(apart().entry((0, 6), (&[], &[]), &goes, 100, |_| true), Ok(false));
        assert_eq!(apart().entry((1, 6), (&[], &[]), &goes, 100, |_| false), Ok(false));
        let drop = order(Command::Drop(DropTask { id: TaskId::parse("t").unwrap() }));
        let dropped = [Reply::Dropped];
        assert_eq!(apart().entry((0, 6), (&drop, &dropped), &goes, 100, |_| false), Ok(false));
    }
}
