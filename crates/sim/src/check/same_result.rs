//! Q9 Same result: a mutating request sent again under the same request id returns the first result, also after a
//! failover and after a restore; and every result that a client sees is the committed one.

use std::collections::BTreeMap;

use ikada_state::{Command, Lsn, Order, Reply, RequestKey, ShardId};

use super::{Verdict, violation};

const NAME: &str = "Q9 same_result";

/// Term, orders and replies of a committed entry.
pub type Entry<'a> = (u64, &'a [Option<Order>], &'a [Reply]);

/// First replies as clients saw them.
#[derive(Debug, Default)]
pub struct SameResult {
    first: BTreeMap<RequestKey, (Order, Reply)>,
}

impl SameResult {
    /// A client was told this; true when it had been told before. Transient refusals are judged afresh each time.
    pub fn told(&mut self, order: &Order, reply: &Reply) -> Result<bool, super::Violation> {
        let Some(key) = &order.request else {
            return Ok(false);
        };
        if matches!(reply, Reply::Refused { code } if code.is_transient()) {
            return Ok(false);
        }
        let Some((first_order, first)) = self.first.get(key) else {
            self.first.insert(key.clone(), (order.clone(), reply.clone()));
            return Ok(false);
        };
        if first_order != order || equal(first, reply) {
            return Ok(first_order == order);
        }
        let verdict: Verdict =
            violation(NAME, format!("request {key:?} was answered {first:?} and then {reply:?}"));
        verdict.map(|()| true)
    }

    /// An answer at a position is compared with what was committed there.
    pub fn committed(
        shard: ShardId,
        lsn: Lsn,
        order: &Order,
        reply: &Reply,
        there: Option<Entry<'_>>,
    ) -> Verdict {
        let Some((term, orders, replies)) = there else {
            return violation(
                NAME,
                format!("shard {shard}: an answer at {lsn} was given before it is committed"),
            );
        };
        let order = undrawn(order);
        let same = |(o, r): (&Option<Order>, &Reply)| {
            o.as_ref().map(undrawn).as_ref() == Some(&order) && r == reply
        };
        if term == lsn.term && orders.iter().zip(replies).any(same) {
            return Ok(());
        }
        violation(
            NAME,
            format!(
                "shard {shard}: the answer {reply:?} to {order:?} at {lsn} is not what was committed there in term \
                 {term}: {orders:?} gave {replies:?}"
            ),
        )
    }
}

/// An order without what its leader drew for it.
fn undrawn(order: &Order) -> Order {
    let mut order = order.clone();
    match &mut order.command {
        Command::Fail(fail) => fail.jitter_permille = 0,
        Command::Complete(complete) => complete.keeps_digest = None,
        Command::SubmitJob(submit) => submit.rules = None,
        _ => {}
    }
    order
}

/// Whether two replies say the same; a resend need not say again that the task was new.
fn equal(first: &Reply, second: &Reply) -> bool {
    match (first, second) {
        (Reply::Enqueued { id: a, .. }, Reply::Enqueued { id: b, .. }) => a == b,
        _ => first == second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Cancel, Namespace, RefusalCode, RequestId, TaskId};

    fn order() -> Order {
        Order {
            namespace: Namespace::default(),
            request: Some(RequestKey { id: RequestId::parse("r1").unwrap(), item: 0 }),
            command: Command::Cancel(Cancel { id: TaskId::parse("t1").unwrap() }),
        }
    }

    #[test]
    fn another_result_for_a_resend_is_noticed() {
        let mut check = SameResult::default();
        let full = Reply::refused(RefusalCode::QueueFull);
        assert!(matches!(check.told(&order(), &full), Ok(false)));
        assert!(matches!(check.told(&order(), &Reply::Cancelled), Ok(false)));
        assert!(matches!(check.told(&order(), &Reply::Cancelled), Ok(true)));
        let finished = Reply::refused(RefusalCode::TaskFinished);
        assert!(check.told(&order(), &finished).is_err());
    }

    #[test]
    fn an_answer_that_was_never_committed_is_noticed() {
        let lsn = Lsn { term: 2, index: 5 };
        let (orders, replies) = ([Some(order())], [Reply::Cancelled]);
        let there = Some((2, &orders[..], &replies[..]));
        let check = |reply: &Reply, there| SameResult::committed(0, lsn, &order(), reply, there);
        assert!(check(&Reply::Cancelled, there).is_ok());
        assert!(check(&Reply::Completed, there).is_err());
        assert!(check(&Reply::Cancelled, None).is_err());
        assert!(check(&Reply::Cancelled, Some((3, &orders[..], &replies[..]))).is_err());
    }
}
