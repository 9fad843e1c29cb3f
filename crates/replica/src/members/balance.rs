//! Spreads leaders over the nodes, slowly: one move, then quiet again.
//!
//! Promise: nothing moves while anything is unsettled (a role changed lately, a member is away or its disk stands still,
//! a change is under way), nor for a difference of one. So a cluster comes to rest, and neither a flapping link nor a
//! failing disk makes leaders wander.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;

/// How long a move is tried.
const MOVE_MS: u64 = 1_000;

/// What the balancer remembers.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    /// When a role or leader last changed, or a move was begun.
    pub moved_ms: u64,
    newest: Option<Move>,
}

/// A move that the balancer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Which shard.
    pub shard: ShardId,
    /// Who shall lead it.
    pub to: NodeId,
    /// When, by the clock of the node that decided it.
    pub at_ms: u64,
}

/// The next move for shards with these leaders among nodes that may lead: which shard, to whom.
pub(crate) fn next_move(leaders: &[NodeId], may_lead: &[NodeId]) -> Option<(ShardId, NodeId)> {
    let mut led: BTreeMap<NodeId, usize> = may_lead.iter().map(|node| (*node, 0)).collect();
    for leader in leaders {
        if let Some(count) = led.get_mut(leader) {
            *count += 1;
        }
    }
    let (least, fewest) = led.iter().min_by_key(|(node, count)| (**count, **node))?;
    let shard_of = |node: NodeId| leaders.iter().rposition(|leader| *leader == node);
    let misplaced = leaders.iter().rposition(|leader| !led.contains_key(leader));
    let crowded = led.iter().max_by_key(|(node, count)| (**count, std::cmp::Reverse(**node)));
    let crowded = crowded.filter(|(_, most)| **most >= fewest + 2);
    let shard = misplaced.or_else(|| crowded.and_then(|(node, _)| shard_of(*node)))?;
    Some((shard as ShardId, *least))
}

impl Replica {
    /// The newest move that this node's balancer began, for checks.
    pub fn newest_move(&self) -> Option<Move> {
        self.tending.balance.newest
    }

    pub(super) fn balance_leaders(&mut self, now: Now) {
        let quiet_ms = self.config.balance_quiet_ms;
        if self.members().iter().any(|member| self.has_still_disk(member.node)) {
            self.tending.balance.moved_ms = now.mono_ms;
        }
        let is_quiet = now.mono_ms.saturating_sub(self.tending.balance.moved_ms) >= quiet_ms;
        let changing = self.roster().is_some_and(|roster| roster.change.is_some());
        let whole = self.members().iter().all(|member| self.is_up(member.node));
        if quiet_ms == 0 || !is_quiet || changing || !whole || self.stopping_since_ms.is_some() {
            return;
        }
        let leaders: Option<Vec<NodeId>> =
            (0..self.seats.len()).map(|shard| self.consensus.leader(shard as ShardId)).collect();
        let voters = self.consensus.conf(0).voters;
        let willing: Vec<NodeId> =
            voters.into_iter().filter(|node| !self.is_shunned(*node)).collect();
        let highest = willing.iter().map(|node| self.recorded_priority(*node)).max();
        let is_preferred = |node: &NodeId| Some(self.recorded_priority(*node)) == highest;
        let may_lead: Vec<NodeId> = willing.into_iter().filter(is_preferred).collect();
        let Some((shard, to)) = leaders.and_then(|leaders| next_move(&leaders, &may_lead)) else {
            return;
        };
        self.tending.balance.moved_ms = now.mono_ms;
        self.tending.balance.newest = Some(Move { shard, to, at_ms: now.mono_ms });
        let ask = Ask::Transfer { to: Some(to) };
        self.open_leg(Leg::new(shard, Owner::Nobody, ask, now.mono_ms + MOVE_MS), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // MQ-31: leaders are spread, and a spread that is even stays.
    #[test]
    fn mq_31_moves_end_when_leaders_are_spread() {
        let mut leaders = vec![1; 16];
        let mut moves = 0;
        while let Some((shard, to)) = next_move(&leaders, &[1, 2, 3]) {
            leaders[usize::from(shard)] = to;
            moves += 1;
        }
        let led = |node| leaders.iter().filter(|leader| **leader == node).count();
        assert_eq!((led(1), led(2), led(3), moves), (6, 5, 5, 10));
        assert_eq!(next_move(&[1, 1, 2, 3], &[1, 2, 3]), None, "a difference of one is no reason");
        assert_eq!(next_move(&[1, 1, 2, 2], &[]), None);
    }

    #[test]
    fn leaders_leave_nodes_that_shall_not_lead() {
        assert_eq!(next_move(&[1, 3, 2], &[1, 2]), Some((1, 1)));
        assert_eq!(next_move(&[1, 2], &[2]), Some((0, 2)));
    }
}
