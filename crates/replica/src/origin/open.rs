//! Taking a call in, and letting it go.

use ikada_consensus::NodeId;

use crate::call::{Answer, Call, CallId, Outcome, RenewOutcome, Request, Routing, Unavailable};
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;

impl Replica {
    /// Takes a call in.
    pub(crate) fn open_call(&mut self, call: Call, now: Now) {
        let Call { id, timeout_ms, routing, request } = call;
        if self.stopping_since_ms.is_some() {
            return self.answer(id, Answer::Unavailable(Unavailable::Stopping));
        }
        if self.calls_waiting() >= self.config.calls_max {
            let what = "calls waiting on this node";
            return self.answer(id, Answer::Unavailable(Unavailable::Overloaded { what }));
        }
        if routing == Routing::Redirect
            && let Some(node) = self.redirect_target(&request)
        {
            return self.answer(id, Answer::Redirect(node));
        }
        let deadline_ms = now.mono_ms + timeout_ms;
        match request {
            Request::Write(orders) => self.open_write(id, deadline_ms, orders, now),
            Request::Claim(wish) => self.open_claim(id, deadline_ms, wish, now),
            Request::Renew(renewal) => self.open_renew(id, deadline_ms, renewal, now),
            Request::Read(query, consistency) => {
                self.open_read(id, deadline_ms, query, consistency, now);
            }
            Request::Lease(lease) => self.open_lease(id, deadline_ms, lease, now),
            Request::RenewLease { key, holder, fence } => {
                self.open_renew_lease(id, deadline_ms, (key, holder, fence), now);
            }
            Request::WatchLease(watch) => self.open_watch(id, watch, now),
            Request::Beat { namespace, worker, busy, leaving } => {
                let ask = Ask::Beat { namespace, worker, busy, leaving };
                self.open_admin(id, deadline_ms, 0, ask, now);
            }
            Request::Workers => self.open_admin(id, deadline_ms, 0, Ask::Workers, now),
            Request::Explain(namespace, task) => {
                self.open_explain(id, deadline_ms, namespace, task, now);
            }
            Request::Grow { shards, request } => {
                self.open_grow(id, deadline_ms, shards, request, now);
            }
            Request::Transfer { shard, to } => self.open_transfer(id, deadline_ms, shard, to, now),
            Request::Change { shard, change } => {
                self.open_change(id, deadline_ms, shard, &change, now);
            }
        }
    }

    /// Where a caller that asked to be redirected should go: the one other node that leads everything it touches.
    fn redirect_target(&self, request: &Request) -> Option<NodeId> {
        let shards: Vec<_> = match request {
            Request::Write(orders) => orders.iter().map(|order| self.shard_of(order)).collect(),
            Request::Read(query, crate::call::Consistency::Linearizable) => {
                self.shards_of_query(query)
            }
            Request::Transfer { shard, .. } | Request::Change { shard, .. } => vec![*shard],
            Request::Explain(namespace, task) => vec![self.shard_of_task(namespace, task)],
            Request::Grow { .. } | Request::Workers => vec![0],
            Request::Claim(_)
            | Request::Renew(_)
            | Request::Read(..)
            | Request::Lease(_)
            | Request::RenewLease { .. }
            | Request::Beat { .. }
            | Request::WatchLease(_) => return None,
        };
        let first = self.consensus.leader(*shards.first()?)?;
        let all_there = shards.iter().all(|shard| self.consensus.leader(*shard) == Some(first));
        (all_there && first != self.config.node).then_some(first)
    }

    /// How many calls have no answer yet.
    pub(crate) fn calls_waiting(&self) -> usize {
        self.calls.len() + self.legs.order_calls()
    }

    /// Hands an answer out and forgets the call.
    pub(crate) fn answer(&mut self, call: CallId, answer: Answer) {
        self.calls.remove(&call);
        let answer = self.explained(answer);
        self.outputs.answers.push((call, answer));
    }

    /// The caller has gone. A call of one order goes on: its answer will find nobody.
    pub(crate) fn call_gone(&mut self, call: CallId, now: Now) {
        if self.calls.remove(&call).is_some() {
            self.forget_call_legs(call, now);
        }
    }

    /// Calls whose time is up get what is known.
    pub(crate) fn tend_calls(&mut self, now: Now) {
        let due: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, open)| open.deadline_ms <= now.mono_ms)
            .map(|(call, _)| *call)
            .collect();
        for call in due {
            let Some(open) = self.calls.remove(&call) else {
                continue;
            };
            self.forget_call_legs(call, now);
            let answer = self.overdue(open);
            self.answer(call, answer);
        }
    }

    /// The answer of a call whose legs did not all come back in time. Legs resolve at the same deadline, so this is
    /// what remains: reads and claims, and items whose fate is open.
    fn overdue(&self, open: OpenCall) -> Answer {
        match open.kind {
            OpenKind::Write { outcomes, .. } => Answer::Written(
                outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unknown)).collect(),
            ),
            OpenKind::Renew { outcomes, .. } => Answer::Renewed(
                outcomes
                    .into_iter()
                    .map(|outcome| outcome.unwrap_or(RenewOutcome::Unknown))
                    .collect(),
            ),
            OpenKind::Claim(_) => Answer::Claimed(Vec::new()),
            OpenKind::Lease(lease) => Answer::Written(vec![lease.last.unwrap_or(Outcome::Unknown)]),
            OpenKind::Watch(watch) => self.watched(&watch),
            OpenKind::Read(read) => {
                let shard = read.needs.keys().next().copied().unwrap_or(0);
                Answer::Unavailable(Unavailable::NoLeader { shard })
            }
            OpenKind::Admin => Answer::Unavailable(Unavailable::NoLeader { shard: 0 }),
        }
    }
}
