//! Legs: one shard's part of a call, seen from the node that was asked.
//!
//! Promise: a leg is asked again (same request ids, so nothing happens twice) until its leader answers or its deadline
//! comes; then it resolves as *unknown* if it was ever handed to a leader, and as *unavailable* if not. A leg is never
//! resolved twice.
//!
//! Leaves out: what the leader decides (gate) and what the call makes of it (call files of the replica).

mod answer;
mod dispatch;
mod retry;

use ikada_consensus::NodeId;
use ikada_state::{Namespace, ShardId};
use slab::Slab;

pub(crate) use answer::GIVE_BACK_MS;

use crate::call::CallId;
use crate::peer::Ask;

/// On whose behalf a leg runs.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// A call; for writes and renewals the positions of this leg's items in it.
    Call(CallId, Vec<u32>),
    /// A call that writes one order, the usual one: its leg is all there is of it.
    OrderCall(CallId),
    /// Linearizable reads that share one read-index round.
    Reads(Vec<CallId>),
    /// The outbox of a shard led here.
    Outbox { source: ShardId, sequence: u64 },
    /// A claim whose caller has gone: whatever it is granted is given back.
    GiveBack(Namespace),
    /// Nobody waits for the outcome.
    Nobody,
}

/// Where a leg stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegState {
    /// No leader is known, or the last one said no.
    Waiting { again_ms: u64 },
    /// Handed to this node's own gate.
    Local,
    /// Sent to another node.
    Sent { to: NodeId, at_ms: u64 },
}

/// One shard's part of a call.
#[derive(Debug)]
pub(crate) struct Leg {
    pub shard: ShardId,
    pub owner: Owner,
    pub ask: Ask,
    pub deadline_ms: u64,
    pub state: LegState,
    /// Whether a leader may have proposed it.
    pub handed_over: bool,
    pub tries: u32,
    /// Whether it met a slot that is away, so that its shard is looked up before each try.
    pub moved: bool,
    /// Whether the last try is out: no leader has said that it did not take it.
    pub open: bool,
    /// Whether a try before the last may have been committed.
    pub doubtful: bool,
    generation: u32,
}

impl Leg {
    pub fn new(shard: ShardId, owner: Owner, ask: Ask, deadline_ms: u64) -> Self {
        let state = LegState::Waiting { again_ms: 0 };
        Leg {
            shard,
            owner,
            ask,
            deadline_ms,
            state,
            handed_over: false,
            tries: 0,
            moved: false,
            open: false,
            doubtful: false,
            generation: 0,
        }
    }

    /// It is handed to a leader.
    pub fn begin_try(&mut self, state: LegState) {
        self.doubtful |= self.open;
        (self.open, self.handed_over, self.state) = (true, true, state);
        self.tries += 1;
    }

    /// Whether a leader may have taken it in a try before the last: then no refusal of that one says that nothing happened. A
    /// try that was answered with a refusal was not taken.
    pub fn may_be_taken(&self) -> bool {
        self.doubtful
    }
}

/// All open legs. Ids carry a generation, so that a late answer never meets a newer leg in the same place.
#[derive(Debug, Default)]
pub(crate) struct Legs {
    slab: Slab<Leg>,
    generation: u32,
    /// How many of them are whole calls.
    order_calls: usize,
}

impl Legs {
    /// Begins at a place of this process's own (`seed` is drawn per process): an answer to a leg of an earlier process
    /// of this node, still on its way when the node restarted, must not meet one of ours.
    pub fn starting(seed: u64) -> Self {
        let generation = fastrand::Rng::with_seed(seed ^ 0x006c_6567).u32(..);
        Legs { slab: Slab::new(), generation, order_calls: 0 }
    }

    pub fn insert(&mut self, mut leg: Leg) -> u64 {
        self.generation = self.generation.wrapping_add(1);
        leg.generation = self.generation;
        self.order_calls += usize::from(matches!(leg.owner, Owner::OrderCall(_)));
        let key = self.slab.insert(leg);
        (u64::from(self.generation) << 32) | key as u64
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Leg> {
        let generation = (id >> 32) as u32;
        self.slab
            .get_mut((id & u64::from(u32::MAX)) as usize)
            .filter(|leg| leg.generation == generation)
    }

    /// The same leg under another id: answers to what it asked before no longer meet it.
    pub fn rename(&mut self, id: u64) -> u64 {
        let generation = self.generation.wrapping_add(1);
        let Some(leg) = self.get_mut(id) else {
            return id;
        };
        leg.generation = generation;
        self.generation = generation;
        (u64::from(generation) << 32) | (id & u64::from(u32::MAX))
    }

    pub fn remove(&mut self, id: u64) -> Option<Leg> {
        self.get_mut(id)?;
        let leg = self.slab.try_remove((id & u64::from(u32::MAX)) as usize)?;
        self.order_calls -= usize::from(matches!(leg.owner, Owner::OrderCall(_)));
        Some(leg)
    }

    /// How many calls have a leg and nothing else.
    pub fn order_calls(&self) -> usize {
        self.order_calls
    }

    /// Ids of the legs that match, in a fixed order.
    pub fn matching(&self, keep: impl Fn(&Leg) -> bool) -> Vec<u64> {
        self.slab
            .iter()
            .filter(|(_, leg)| keep(leg))
            .map(|(key, leg)| (u64::from(leg.generation) << 32) | key as u64)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_what_was_asked_before_meets_no_leg() {
        let mut legs = Legs::starting(1);
        let before = legs.insert(Leg::new(0, Owner::Nobody, Ask::ReadIndex, 1_000));
        let after = legs.rename(before);
        assert!(legs.get_mut(before).is_none());
        assert!(legs.get_mut(after).is_some_and(|leg| leg.shard == 0));
        let next = legs.insert(Leg::new(1, Owner::Nobody, Ask::ReadIndex, 1_000));
        assert!(next >> 32 != after >> 32, "each has a generation of its own");
        assert_eq!(legs.rename(before), before, "there is no such leg");
    }

    #[test]
    fn an_answer_to_an_earlier_process_meets_no_leg() {
        let leg = || Leg::new(0, Owner::Nobody, Ask::ReadIndex, 1_000);
        let earlier = Legs::starting(1).insert(leg());
        let mut legs = Legs::starting(2);
        let own = legs.insert(leg());
        assert!(legs.remove(earlier).is_none());
        assert!(legs.remove(own).is_some() && legs.remove(own).is_none());
    }
}
