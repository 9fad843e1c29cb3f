//! Leases, as the node that was asked looks after them: a wish waits until the state of this node shows that its turn has
//! come, and proves its life to the leader meanwhile; a watch waits for another holder.
//!
//! The grant itself is always the leader's word, so that its time to live counts from then on.

use ikada_state::{AcquireLease, Command, Fence, Namespace, Order, Reply};

use crate::call::{Answer, CallId, LeaseCall, LeaseWatch, Outcome, RenewOutcome, View};
use crate::leg::{Leg, Owner};
use crate::origin::only_outcome;
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::{Ask, RenewTold, Told};
use crate::replica::Replica;

/// A wish that waits proves its life this often at least; a shorter ttl asks for more.
const PROVE_MS: u64 = 2_000;

/// A wish for a lease.
#[derive(Debug)]
pub(crate) struct OpenLease {
    pub namespace: Namespace,
    pub wish: AcquireLease,
    /// When to answer with the place in line.
    pub patience_ms: u64,
    /// Whether the leader is being asked right now.
    pub asking: bool,
    /// When to ask again of its own accord.
    pub again_ms: u64,
    /// The newest answer, while it waits.
    pub last: Option<Outcome>,
}

impl Replica {
    pub(crate) fn open_lease(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        lease: LeaseCall,
        now: Now,
    ) {
        let LeaseCall { namespace, mut wish, wait_ms } = lease;
        if let Some(task) = &mut wish.task {
            task.shard = self.shard_of_key(&namespace, task.id.routing_key());
        }
        let patience_ms = now.mono_ms + wait_ms;
        let (asking, again_ms, last) = (false, 0, None);
        let open = OpenLease { namespace, wish, patience_ms, asking, again_ms, last };
        let deadline_ms = deadline_ms.max(patience_ms);
        self.calls.insert(call, OpenCall { deadline_ms, kind: OpenKind::Lease(Box::new(open)) });
        self.lease_calls.push(call);
        self.ask_lease(call, now);
    }

    fn ask_lease(&mut self, call: CallId, now: Now) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let deadline_ms = open.deadline_ms;
        let OpenKind::Lease(lease) = &mut open.kind else {
            return;
        };
        if lease.asking {
            return;
        }
        lease.asking = true;
        lease.again_ms = now.mono_ms + PROVE_MS.min(u64::from(lease.wish.ttl_ms) / 3);
        let (namespace, wish) = (lease.namespace.clone(), lease.wish.clone());
        let order = Order { namespace, request: None, command: Command::AcquireLease(wish) };
        let shard = self.shard_of(&order);
        let owner = Owner::Call(call, Vec::new());
        self.open_leg(Leg::new(shard, owner, Ask::Lease(order), deadline_ms), now);
    }

    pub(crate) fn lease_told(&mut self, call: CallId, leg: &Leg, told: Told, now: Now) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let OpenKind::Lease(lease) = &mut open.kind else {
            return;
        };
        lease.asking = false;
        let outcome = only_outcome(leg, told);
        let waits = matches!(&outcome, Outcome::Reply { reply: Reply::LeaseWaiting { .. }, .. });
        if waits && lease.patience_ms > now.mono_ms {
            lease.last = Some(outcome);
        } else {
            self.answer(call, Answer::Written(vec![outcome]));
        }
    }

    pub(crate) fn open_renew_lease(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        (key, holder, fence): (ikada_state::LeaseKey, ikada_state::HolderName, Fence),
        now: Now,
    ) {
        self.calls.insert(call, OpenCall { deadline_ms, kind: OpenKind::Admin });
        let shard = self.shard_of_key(&key.0, key.1.as_str());
        let owner = Owner::Call(call, Vec::new());
        let ask = Ask::RenewLease { key, holder, fence };
        self.open_leg(Leg::new(shard, owner, ask, deadline_ms), now);
    }

    pub(crate) fn renew_lease_told(&mut self, call: CallId, told: &Told) {
        let outcome = match told {
            Told::Renewed(told) => match told.first() {
                Some(RenewTold::Renewed(ttl_ms)) => RenewOutcome::Renewed { ttl_ms: *ttl_ms },
                Some(RenewTold::Refused(code)) => RenewOutcome::Refused(*code),
                None => RenewOutcome::Unknown,
            },
            _ => RenewOutcome::Unknown,
        };
        self.answer(call, Answer::Renewed(vec![outcome]));
    }

    /// Waits until this node's state shows another holder than the caller has seen.
    pub(crate) fn open_watch(&mut self, call: CallId, watch: LeaseWatch, now: Now) {
        let deadline_ms = now.mono_ms + watch.wait_ms;
        self.calls.insert(call, OpenCall { deadline_ms, kind: OpenKind::Watch(Box::new(watch)) });
        self.lease_calls.push(call);
        self.tend_lease_call(call, now);
    }

    /// What this node's state says of a watched lease.
    pub(crate) fn watched(&self, watch: &LeaseWatch) -> Answer {
        let shard = self.shard_of_key(&watch.key.0, watch.key.1.as_str());
        let seat = self.seats.get(usize::from(shard));
        let lease = seat.and_then(|seat| seat.state.lease(&watch.key)).cloned();
        let lsns = seat.map(|seat| (seat.shard, seat.state.applied())).into_iter().collect();
        Answer::View { view: View::Lease(lease), lsns, age_ms: 0 }
    }

    /// Looks after all that waits for leases, if any has changed in this node's state or time has passed.
    pub(crate) fn tend_leases(&mut self, ticked: bool, now: Now) {
        if self.lease_calls.is_empty() {
            return;
        }
        let changes = self.seats.iter().map(|seat| seat.state.lease_changes());
        let changes = changes.fold(0, u64::wrapping_add);
        if !ticked && changes == self.lease_changes_seen {
            return;
        }
        self.lease_changes_seen = changes;
        let mut calls = std::mem::take(&mut self.lease_calls);
        calls.retain(|call| self.calls.contains_key(call));
        for call in &calls {
            self.tend_lease_call(*call, now);
        }
        calls.append(&mut self.lease_calls);
        self.lease_calls = calls;
    }

    fn tend_lease_call(&mut self, call: CallId, now: Now) {
        let Some(open) = self.calls.get(&call) else {
            return;
        };
        match &open.kind {
            OpenKind::Watch(watch) => {
                let shard = self.shard_of_key(&watch.key.0, watch.key.1.as_str());
                let Some(seat) = self.seats.get(usize::from(shard)) else {
                    return;
                };
                if seat.state.is_key_away(&watch.key.0, watch.key.1.as_str()) {
                    return;
                }
                let fence = seat.state.lease(&watch.key).map(|lease| lease.holding.fence);
                if fence != watch.seen {
                    let answer = self.watched(watch);
                    self.answer(call, answer);
                }
            }
            OpenKind::Lease(lease) if lease.asking => {}
            OpenKind::Lease(lease) if lease.patience_ms <= now.mono_ms => {
                if let Some(last) = lease.last.clone() {
                    self.answer(call, Answer::Written(vec![last]));
                }
            }
            OpenKind::Lease(lease) => {
                let key = (lease.namespace.clone(), lease.wish.name.clone());
                let shard = self.shard_of_key(&key.0, key.1.as_str());
                let seat = self.seats.get(usize::from(shard));
                let known = seat.and_then(|seat| seat.state.lease(&key));
                let waits = known.is_some_and(|l| l.place_of(&lease.wish.holder).is_some());
                if !waits || lease.again_ms <= now.mono_ms {
                    self.ask_lease(call, now);
                }
            }
            _ => {}
        }
    }
}
