//! The leader's door: each question to a shard's leader becomes a decision.
//!
//! Promise: a decision is made from the question and the shard's state alone; a node that does not lead says so and
//! proposes nothing. Validation that needs no state has happened at the edge; what needs the committed state happens
//! in apply, which decides.

mod change;
mod claim;
mod explain;
mod grow;
mod lease;
mod renew;
mod roll_call;
mod transfer;
mod worker;
pub(crate) mod write;

use ikada_consensus::NotLeader;
use ikada_state::{ChangeMembers, Command, Order, ShardId};

use crate::jitter;
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;
use crate::seat::Asker;

/// What the leader does with a question.
pub(crate) enum Decision<'a> {
    /// Put these orders into the log; the asker hears when they are applied.
    Propose(&'a [Order]),
    /// The same with what the leader added to the order.
    Amended(Box<Order>),
    /// Answer at once.
    Reply(Told),
    /// Answer with this, or else with the index of the read, when a quorum has confirmed that this node still leads.
    Confirm(Option<Told>),
}

/// Whether a question is answered by what the leader knows, and not by an entry or a quorum.
fn is_from_memory(ask: &Ask) -> bool {
    matches!(
        ask,
        Ask::Renew { .. }
            | Ask::Lease(_)
            | Ask::RenewLease { .. }
            | Ask::Beat { .. }
            | Ask::Workers
            | Ask::Explain { .. }
    )
}

impl Replica {
    /// Decides a question. `None` means the answer comes later.
    pub(crate) fn gate(
        &mut self,
        shard: ShardId,
        asker: Asker,
        ask: &Ask,
        now: Now,
    ) -> Option<Told> {
        let Some(seat) = self.seats.get(usize::from(shard)) else {
            return Some(Told::NotLeader { leader: None });
        };
        if !seat.leads() {
            return Some(Told::NotLeader { leader: self.consensus.leader(shard) });
        }
        if is_from_memory(ask) && !seat.is_whole() {
            return Some(Told::NotLeader { leader: None });
        }
        if let Some(told) = self.refuse_newer(ask) {
            return Some(told);
        }
        let decision = match ask {
            Ask::Write(orders) => self.decide_write(shard, orders),
            Ask::Claim(order) => self.decide_claim(shard, asker, order, now),
            Ask::Renew { namespace, worker, claims, session, map_version, progress } => {
                // A list made by an older map may lack claims whose slots have moved here since.
                let is_whole = *map_version >= seat.state.map_version_needed();
                if let Some(session) = session.filter(|_| is_whole) {
                    self.call_roll(shard, namespace, worker, session, claims, now);
                }
                let progress = progress.as_deref().unwrap_or_default();
                self.decide_renew(shard, namespace, worker, claims, progress, now)
            }
            Ask::Beat { namespace, worker, busy, leaving } => {
                let told = (*busy, *leaving);
                return self.decide_beat(shard, asker, (namespace, worker), told, now);
            }
            Ask::Workers => self.decide_workers(shard, now),
            Ask::Lease(order) => self.decide_lease(shard, order, now),
            Ask::RenewLease { key, holder, fence } => {
                self.decide_renew_lease(shard, key, holder, *fence, now)
            }
            Ask::ReadIndex => Decision::Confirm(None),
            Ask::Explain { namespace, id } => self.decide_explain(shard, namespace, id, now),
            Ask::Grow { shards, request } => {
                return self.decide_grow(shard, asker, *shards, request.clone());
            }
            Ask::Transfer { to } => self.decide_transfer(shard, *to),
            Ask::Change { add_voters, add_learners, remove } => {
                self.decide_change(shard, add_voters, add_learners, remove)
            }
        };
        match decision {
            Decision::Reply(told) => Some(told),
            Decision::Propose(orders) => {
                let orders = jitter::spread(&self.seats[usize::from(shard)].state, orders);
                self.enqueue_orders(shard, asker, &orders);
                None
            }
            Decision::Amended(order) => {
                self.enqueue_orders(shard, asker, std::slice::from_ref(&order));
                None
            }
            Decision::Confirm(told) => self.confirm_lead(shard, asker, told),
        }
    }

    /// Gathers orders for the shard's next entry.
    pub(crate) fn enqueue_orders(&mut self, shard: ShardId, asker: Asker, orders: &[Order]) {
        let (bytes_max, orders_max) = (self.config.batch_bytes_max, self.config.batch_orders_max);
        let seat = &mut self.seats[usize::from(shard)];
        seat.interest.foresee(orders);
        let adds = |order: &Order| match &order.command {
            Command::ChangeMembers(ChangeMembers { add, .. }) => add.is_some(),
            _ => false,
        };
        if orders.iter().any(adds) {
            seat.adds_until = u64::MAX;
        }
        seat.pending.push(asker, orders, bytes_max, orders_max);
    }

    fn confirm_lead(&mut self, shard: ShardId, asker: Asker, told: Option<Told>) -> Option<Told> {
        self.read_count += 1;
        let id = self.read_count;
        match self.consensus.read(shard, id) {
            Ok(()) => {
                self.seats[usize::from(shard)].reads.insert(id, (asker, told));
                None
            }
            Err(NotLeader { leader }) => Some(Told::NotLeader { leader }),
        }
    }

    /// Tells an asker, wherever it is.
    pub(crate) fn tell(&mut self, asker: Asker, told: Told, now: Now) {
        match asker {
            Asker::Local(leg) => self.leg_told(leg, told, now),
            Asker::Remote(node, leg) => {
                self.send(node, &crate::peer::PeerMessage::Told { leg, told });
            }
            Asker::Nobody => {}
        }
    }
}
