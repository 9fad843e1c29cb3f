//! Q15 Operations: what a voided request asked for never happens after its void; every cancel, retry and removal of
//! waiting tasks is somebody's order; a step of a sweep acts once, so that nothing that was submitted after a purge ended
//! is touched by a late duplicate of it.
//!
//! Fed with every committed entry of one shard, in log order; shares no code with the product.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{
    Command, Order, QueueName, RefusalCode, Reply, RequestId, RequestKey, SweepAction, TaskId,
    TaskState,
};

use super::{Verdict, violation};

const NAME: &str = "Q15 operations";

/// One change of state in an entry.
#[derive(Debug, Clone)]
pub struct Move {
    /// The task's queue.
    pub queue: QueueName,
    /// The task.
    pub id: TaskId,
    /// State before.
    pub from: Option<TaskState>,
    /// State after.
    pub to: Option<TaskState>,
}

/// What one shard was asked so far.
#[derive(Debug, Default, Clone)]
pub struct Operations {
    voided: BTreeSet<RequestId>,
    /// Ruled out in the very entry in which a slot left: before it or after it.
    doubtful: BTreeSet<RequestId>,
    answered: BTreeSet<RequestKey>,
}

/// What the orders of one entry allow.
#[derive(Debug, Default)]
struct Allowed {
    cancels: BTreeMap<TaskId, u32>,
    retries: BTreeMap<TaskId, u32>,
    swept: BTreeMap<(QueueName, u8), u32>,
}

impl Operations {
    /// What this shard knows of requests goes along with a slot; `more` is what came with one.
    pub fn adopt(&mut self, more: &Operations) {
        self.voided.extend(more.voided.iter().cloned());
        self.doubtful.extend(more.doubtful.iter().cloned());
        self.answered.extend(more.answered.iter().cloned());
    }

    /// The same knowledge as of the entry in which a slot left.
    pub fn leaving(&self, orders: &[Option<Order>]) -> Operations {
        let mut known = self.clone();
        known.doubtful.extend(orders.iter().flatten().filter_map(|order| match &order.command {
            Command::Void(void) => Some(void.request.clone()),
            _ => None,
        }));
        known
    }

    /// One committed entry: orders with their replies, and the changes of state.
    pub fn entry(
        &mut self,
        orders: &[Option<Order>],
        replies: &[Reply],
        moves: &[Move],
    ) -> Verdict {
        let mut allowed = Allowed::default();
        for (order, reply) in orders.iter().zip(replies) {
            let Some(order) = order else { continue };
            let fresh = self.judge(order, reply)?;
            if fresh {
                allowed.add(&order.command, reply);
            }
        }
        moves.iter().try_for_each(|step| allowed.spend(step))
    }

    /// Judges one order by the voids so far; true when it was not answered before.
    fn judge(&mut self, order: &Order, reply: &Reply) -> Result<bool, super::Violation> {
        if let (Command::Void(void), Reply::Voided) = (&order.command, reply) {
            self.voided.insert(void.request.clone());
        }
        let Some(key) = &order.request else {
            return Ok(true);
        };
        if self.answered.contains(key) {
            return Ok(false);
        }
        // Its slot is away: nothing was done here, and the tombstone waits where the slot went.
        if *reply == Reply::refused(RefusalCode::SlotMoved) {
            return Ok(false);
        }
        let refused = *reply == Reply::refused(RefusalCode::RequestVoided);
        if refused != self.voided.contains(&key.id) && !self.doubtful.contains(&key.id) {
            let what = if refused { "refused without a void" } else { "taken after its void" };
            violation(NAME, format!("request {key:?} was {what}: {reply:?}"))?;
        }
        let open = match reply {
            Reply::Refused { code } => refused || code.is_transient(),
            Reply::Claimed { tasks } => tasks.is_empty(),
            // Idempotent by their fences, so that no key is kept.
            Reply::Completed | Reply::Failed { .. } => true,
            _ => false,
        };
        if !open {
            self.answered.insert(key.clone());
        }
        Ok(true)
    }
}

impl Allowed {
    fn add(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Cancel(cancel), Reply::Cancelled) => {
                *self.cancels.entry(cancel.id.clone()).or_default() += 1;
            }
            (Command::Retry(retry), Reply::Retried) => {
                *self.retries.entry(retry.id.clone()).or_default() += 1;
            }
            (Command::Sweep(sweep), Reply::Swept { count, .. }) => {
                let place = (sweep.queue.clone(), sweep.action as u8);
                *self.swept.entry(place).or_default() += count;
            }
            _ => {}
        }
    }

    fn spend(&mut self, step: &Move) -> Verdict {
        let ended = step.from.is_some_and(|from| from.is_terminal());
        let (single, sweeps): (_, &[SweepAction]) = match step.to {
            Some(TaskState::Cancelled) if step.from == Some(TaskState::Claimed) => {
                (self.cancels.get_mut(&step.id), &[SweepAction::CancelUnfinished])
            }
            Some(TaskState::Cancelled) => (
                self.cancels.get_mut(&step.id),
                &[SweepAction::CancelWaiting, SweepAction::CancelUnfinished],
            ),
            Some(_) if ended => (self.retries.get_mut(&step.id), &[SweepAction::RetryDead]),
            _ => return Ok(()),
        };
        if let Some(left @ 1..) = single {
            *left -= 1;
            return Ok(());
        }
        for action in sweeps {
            let place = (step.queue.clone(), *action as u8);
            if let Some(left @ 1..) = self.swept.get_mut(&place) {
                *left -= 1;
                return Ok(());
            }
        }
        violation(
            NAME,
            format!(
                "task {} moves from {:?} to {:?} without an order",
                step.id, step.from, step.to
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Cancel, Namespace, Sweep, Void};

    fn order(request: Option<&str>, command: Command) -> Option<Order> {
        let key = |id: &str| RequestKey { id: RequestId::parse(id).unwrap(), item: 0 };
        Some(Order { namespace: Namespace::default(), request: request.map(key), command })
    }

    fn step(from: TaskState, to: TaskState) -> Move {
        let (queue, id) = (QueueName::parse("q").unwrap(), TaskId::parse("t").unwrap());
        Move { queue, id, from: Some(from), to: Some(to) }
    }

    fn purge(request: &str) -> Option<Order> {
        let (queue, action) = (QueueName::parse("q").unwrap(), SweepAction::CancelWaiting);
        order(Some(request), Command::Sweep(Sweep { shard: 0, queue, action, from: 0 }))
    }

    #[test]
    fn a_request_that_happens_after_its_void_is_noticed() {
        let mut check = Operations::default();
        let request = RequestId::parse("r").unwrap();
        let void = order(None, Command::Void(Void { shard: 0, request }));
        let cancel = Command::Cancel(Cancel { id: TaskId::parse("t").unwrap() });
        let cancel = [order(Some("r"), cancel)];
        let refused = [Reply::refused(RefusalCode::RequestVoided)];
        assert!(check.entry(&cancel, &refused, &[]).is_err(), "not voided yet");
        assert!(check.entry(&[void], &[Reply::Voided], &[]).is_ok());
        assert!(check.entry(&cancel, &refused, &[]).is_ok());
        assert!(check.entry(&cancel, &[Reply::Cancelled], &[]).is_err());
    }

    #[test]
    fn a_purge_that_takes_too_much_or_acts_twice_is_noticed() {
        use TaskState::{Cancelled, Claimed, Dead, Ready};
        let swept = [Reply::Swept { count: 1, next: None }];
        let mut check = Operations::default();
        let taken = step(Claimed, Cancelled);
        assert!(check.entry(&[purge("a")], &swept, &[taken]).is_err());
        let waiting = [step(Ready, Cancelled)];
        assert!(check.entry(&[purge("b")], &swept, &waiting).is_ok());
        assert!(check.entry(&[purge("b")], &swept, &[]).is_ok(), "answered as the first time");
        assert!(check.entry(&[purge("b")], &swept, &waiting).is_err());
        assert!(check.entry(&[], &[], &[step(Dead, Ready)]).is_err(), "nobody retried it");
    }
}
