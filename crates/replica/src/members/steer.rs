//! Follows the wishes about this node: a cordoned or leaving node gives its leaderships away and stands back in
//! elections, a priority is handed to the engine.

use ikada_consensus::NodeId;
use ikada_state::{Command, Namespace, Order, PRIORITY_MAX, ShardId, SteerMember};

use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;

/// Priority of a node that shall not lead: below all others, but it still leads if nobody else can.
const SHUNNED_PRIORITY: i64 = -2 * PRIORITY_MAX;
/// How often a node tries to have its own setting recorded.
const NOTE_EVERY_MS: u64 = 5_000;

impl Replica {
    /// Whether the node shall not lead: cordoned, or on its way out.
    pub(crate) fn is_shunned(&self, node: NodeId) -> bool {
        self.roster().is_some_and(|roster| {
            roster.is_cordoned(node) || roster.change.and_then(|change| change.remove) == Some(node)
        })
    }

    /// The priority of a member as recorded; 0 if none is.
    pub(super) fn recorded_priority(&self, node: NodeId) -> i64 {
        self.roster().and_then(|roster| roster.priority(node)).unwrap_or(0)
    }

    /// Hands this node's priority to the engine when it has changed.
    pub(super) fn follow_priority(&mut self) {
        let node = self.config.node;
        let recorded = self.roster().and_then(|roster| roster.priority(node));
        let wanted = match self.is_shunned(node) {
            true => SHUNNED_PRIORITY,
            false => recorded.unwrap_or(self.config.consensus.priority),
        };
        if self.tending.priority != Some(wanted) {
            self.tending.priority = Some(wanted);
            for position in 0..self.seats.len() {
                self.consensus.set_priority(position as ShardId, wanted);
            }
        }
    }

    /// The least silence before an election: as recorded, or as this node was started.
    pub(crate) fn wanted_election_ms(&self) -> u64 {
        let own = &self.config.consensus;
        let recorded = self.roster().and_then(|roster| roster.election_ms);
        recorded.map_or(own.tick_ms * own.election_ticks as u64, u64::from)
    }

    /// Hands the wait before elections to the engine when it has changed.
    pub(super) fn follow_elections(&mut self) {
        let wanted_ms = self.wanted_election_ms();
        if self.tending.election_ms != wanted_ms {
            self.tending.election_ms = wanted_ms;
            self.consensus.set_election_ms(wanted_ms);
        }
    }

    /// A priority given by the node's own settings is recorded once, so that everybody knows it and it can be changed
    /// at run time.
    pub(super) fn note_priority(&mut self, now: Now) {
        let (node, priority) = (self.config.node, self.config.consensus.priority);
        let known = self.members().iter().any(|member| member.node == node);
        let recorded = self.roster().is_some_and(|roster| roster.priority(node).is_some());
        if priority == 0 || recorded || !known || now.mono_ms < self.tending.noted_ms {
            return;
        }
        self.tending.noted_ms = now.mono_ms + NOTE_EVERY_MS;
        let priority = Some(priority.clamp(-PRIORITY_MAX, PRIORITY_MAX));
        let command = Command::SteerMember(SteerMember { node, cordoned: None, priority });
        let order = Order { namespace: Namespace::default(), request: None, command };
        let deadline_ms = now.mono_ms + NOTE_EVERY_MS;
        self.open_leg(Leg::new(0, Owner::Nobody, Ask::Write(vec![order]), deadline_ms), now);
    }

    /// A node that shall not lead hands over to the best voter that may.
    pub(super) fn give_leaderships_away(&mut self) {
        if !self.is_shunned(self.config.node) {
            return;
        }
        for position in 0..self.seats.len() {
            let shard = position as ShardId;
            if self.best_successor(shard).is_some_and(|to| !self.is_shunned(to)) {
                self.give_lead_away(shard);
            }
        }
    }
}
