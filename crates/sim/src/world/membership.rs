//! Membership changes as an operator makes them: a new node joins as a learner of every shard, becomes a voter, and
//! perhaps takes the place of another, which is then switched off.
//!
//! One change at a time, asked for through any node until it is so; the cluster's own leader drives it through all
//! shards.

use ikada_consensus::NodeId;
use ikada_replica::call::Request;
use ikada_state::{ChangeMembers, Command, Member, Namespace, Order};

use super::World;
use super::clock::Clock;
use super::machine::{Health, Machine};
use crate::marks::Mark;

/// Most machines that ever exist in one run.
const MACHINES_MAX: usize = 9;

/// A change under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// This node shall be a voter of every shard.
    Join(NodeId),
    /// This node shall be no member of any shard.
    Leave(NodeId),
}

/// What the operator wants.
#[derive(Debug, Default)]
pub struct Membership {
    /// The change under way and what follows it.
    pub wishes: Vec<Wish>,
    /// Nodes that have left for good.
    pub left: Vec<NodeId>,
}

impl Membership {
    /// Whether a change is under way.
    pub fn is_changing(&self) -> bool {
        !self.wishes.is_empty()
    }
}

impl World {
    /// Begins a change, if one may begin now.
    pub fn wish_change(&mut self) {
        if self.membership.is_changing() || self.machines.len() >= MACHINES_MAX {
            return;
        }
        let Some(voters) = self.watch.config_safety.newest(0).map(|conf| conf.voters.clone())
        else {
            return;
        };
        let hurt = |node: &NodeId| {
            self.machines.get(node).is_some_and(|m| !matches!(m.health, Health::Sound))
        };
        let hurt: Vec<NodeId> = voters.iter().copied().filter(hurt).collect();
        let gone: Vec<NodeId> = hurt
            .iter()
            .copied()
            .filter(|node| self.machines.get(node).is_some_and(|m| !m.is_usable()))
            .collect();
        // A damaged node must be whole again before the voters change.
        if hurt.len() > gone.len() {
            return;
        }
        let dice = self.rng.u8(0..3);
        let leaving =
            gone.first().copied().unwrap_or_else(|| voters[self.rng.usize(0..voters.len())]);
        if dice == 0 && gone.is_empty() && voters.len() > 3 {
            self.membership.wishes.push(Wish::Leave(leaving));
            return;
        }
        let node = self.add_machine();
        self.membership.wishes.push(Wish::Join(node));
        if dice == 1 || !gone.is_empty() || voters.len() >= 5 {
            self.membership.wishes.push(Wish::Leave(leaving));
            self.mark(Mark::NodeReplaced);
        }
    }

    /// A new machine with an empty disk.
    fn add_machine(&mut self) -> NodeId {
        let node = self.machines.keys().next_back().copied().unwrap_or(0) + 1;
        let now_us = self.now_us();
        let setup = self.setup_of(node, true);
        let mono_ms = self.rng.u64(0..1_000_000);
        let clock = Clock::new(mono_ms, self.plan.knobs.wall_start_ms, 1_000);
        let machine = Machine::new(node, setup, clock);
        self.machines.insert(node, machine);
        self.schedule.at(now_us, super::Event::Start(node));
        node
    }

    /// The next request of the change under way; drops wishes that have come true.
    pub fn next_change(&mut self) -> Option<Request> {
        loop {
            let wish = *self.membership.wishes.first()?;
            if let Some(request) = self.step_towards(wish) {
                return Some(request);
            }
            self.membership.wishes.remove(0);
            if let Wish::Leave(node) = wish {
                self.membership.left.push(node);
                let _ = self.bury(node, "removed from the cluster".into());
            }
        }
    }

    /// The change after the one under way, asked for too early: it must be refused while the first one lasts, and does
    /// no harm once that has ended.
    pub fn hasty_change(&mut self) -> Option<Request> {
        let second = *self.membership.wishes.get(1)?;
        let first = self.watch.ledgers.first()?.reference()?.roster()?.change.as_ref();
        first.is_some().then(|| self.step_towards(second))?
    }

    /// What to ask for until a wish has come true; asking again is harmless.
    fn step_towards(&mut self, wish: Wish) -> Option<Request> {
        let reference = self.watch.ledgers.first().and_then(|ledger| ledger.reference());
        let members = reference.map_or(&[][..], |state| state.members());
        let roster = reference.and_then(|state| state.roster());
        let changing = roster.is_some_and(|roster| roster.change.is_some());
        let (done, order) = match wish {
            Wish::Join(node) => {
                let machine = self.machines.get(&node)?;
                let add = Some(member_of(node, machine.setup.config.incarnation));
                let known = members.iter().any(|member| member.node == node);
                let level = machine.setup.config.level;
                (known, ChangeMembers { add, remove: None, level })
            }
            Wish::Leave(node) => {
                let gone = roster.is_some_and(|roster| roster.is_removed(node));
                (gone, ChangeMembers { add: None, remove: Some(node), level: 0 })
            }
        };
        let command = Command::ChangeMembers(order);
        let order = Order { namespace: Namespace::default(), request: None, command };
        (changing || !done).then(|| Request::Write(vec![order]))
    }
}

/// A member as shard 0 records it.
pub fn member_of(node: NodeId, incarnation: u64) -> Member {
    Member {
        node,
        incarnation,
        peer_addr: format!("node-{node}:7401"),
        client_addr: format!("node-{node}:7400"),
    }
}
