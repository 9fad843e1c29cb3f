//! Who is a member, and the changes to that.
//!
//! Promises: a [`Conf`] that passes [`Conf::check`] can be loaded by the engine without failing; encodings are
//! ours, bounded and total. Leaves out: when a change may be proposed (see `shard/change.rs`).

use raft::eraftpb::{
    ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, ConfState,
};

use crate::config::NodeId;
use crate::wire::{self, DecodeError, Reader};

/// Members of one kind that a configuration may list.
const MEMBERS_MAX: usize = 1024;

/// A membership; joint while `voters_outgoing` is not empty. Lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    /// Voters, or the incoming half of a joint membership.
    pub voters: Vec<NodeId>,
    /// Members that follow without a vote.
    pub learners: Vec<NodeId>,
    /// The outgoing half of a joint membership; empty otherwise.
    pub voters_outgoing: Vec<NodeId>,
    /// Outgoing voters that become learners when the joint phase ends.
    pub learners_next: Vec<NodeId>,
    /// Whether the engine leaves the joint phase on its own; never set by this crate.
    pub auto_leave: bool,
}

/// What is known of a shard that is not open.
pub(crate) static NO_CONF: Conf = Conf {
    voters: Vec::new(),
    learners: Vec::new(),
    voters_outgoing: Vec::new(),
    learners_next: Vec::new(),
    auto_leave: false,
};

/// A wanted change of membership: all of it happens, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Nodes to add as voters, or learners to promote.
    pub add_voters: Vec<NodeId>,
    /// Nodes to add as learners, or voters to demote.
    pub add_learners: Vec<NodeId>,
    /// Members to remove.
    pub remove: Vec<NodeId>,
}

/// What the `context` of a change entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStep {
    /// Enter the joint phase of this change.
    Enter(Change),
    /// Leave the joint phase.
    Leave,
}

impl Conf {
    /// A plain membership of voters.
    pub fn of_voters(voters: impl IntoIterator<Item = NodeId>) -> Self {
        let mut conf = Conf { voters: voters.into_iter().collect(), ..Conf::default() };
        conf.sort();
        conf
    }

    /// Whether two majorities are needed at present.
    pub fn is_joint(&self) -> bool {
        !self.voters_outgoing.is_empty()
    }

    /// Whether nobody is a member, as on a node that has yet to receive its first snapshot.
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty() && self.learners.is_empty() && self.voters_outgoing.is_empty()
    }

    /// Whether `node` has a vote, in either half.
    pub fn is_voter(&self, node: NodeId) -> bool {
        self.voters.contains(&node) || self.voters_outgoing.contains(&node)
    }

    /// Whether `node` is a member of any kind.
    pub fn is_member(&self, node: NodeId) -> bool {
        self.is_voter(node) || self.learners.contains(&node)
    }

    /// All members, sorted, each once.
    pub fn members(&self) -> Vec<NodeId> {
        let lists = [&self.voters, &self.voters_outgoing, &self.learners];
        let mut members: Vec<NodeId> = lists.into_iter().flatten().copied().collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for list in [&self.voters, &self.learners, &self.voters_outgoing, &self.learners_next] {
            wire::put_list(out, list);
        }
        out.push(u8::from(self.auto_leave));
    }

    /// Reads an encoding and checks it; an empty membership is allowed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let conf = Conf::read(&mut reader)?;
        reader.finish()?;
        Ok(conf)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut conf = Conf {
            voters: reader.list(MEMBERS_MAX, "voters")?,
            learners: reader.list(MEMBERS_MAX, "learners")?,
            voters_outgoing: reader.list(MEMBERS_MAX, "outgoing voters")?,
            learners_next: reader.list(MEMBERS_MAX, "next learners")?,
            auto_leave: reader.flag("leave flag")?,
        };
        conf.sort();
        match conf.is_empty() && conf.learners_next.is_empty() && !conf.auto_leave {
            true => Ok(conf),
            false => conf.check().map(|()| conf).map_err(DecodeError::Invalid),
        }
    }

    /// Names the rule that this membership breaks, if any.
    pub fn check(&self) -> Result<(), &'static str> {
        let lists = [&self.voters, &self.learners, &self.voters_outgoing, &self.learners_next];
        if lists.iter().any(|list| list.contains(&0)) {
            return Err("membership with node 0");
        }
        if lists.iter().any(|list| list.windows(2).any(|pair| pair[0] >= pair[1])) {
            return Err("membership with a repeated or unsorted node");
        }
        if self.voters.is_empty() {
            return Err("membership without voters");
        }
        if self.learners.iter().any(|node| self.is_voter(*node)) {
            return Err("membership with a node that is voter and learner");
        }
        let is_next =
            |node: &NodeId| self.voters_outgoing.contains(node) && !self.voters.contains(node);
        if !self.learners_next.iter().all(is_next) {
            return Err("membership with a next learner that is no outgoing voter");
        }
        if self.auto_leave && !self.is_joint() {
            return Err("membership that leaves a joint phase without one");
        }
        Ok(())
    }

    fn sort(&mut self) {
        let Conf { voters, learners, voters_outgoing, learners_next, .. } = self;
        for list in [voters, learners, voters_outgoing, learners_next] {
            list.sort_unstable();
        }
    }

    pub(crate) fn from_engine(state: &ConfState) -> Self {
        let mut conf = Conf {
            voters: state.get_voters().to_vec(),
            learners: state.get_learners().to_vec(),
            voters_outgoing: state.get_voters_outgoing().to_vec(),
            learners_next: state.get_learners_next().to_vec(),
            auto_leave: state.auto_leave,
        };
        conf.sort();
        conf
    }

    pub(crate) fn to_engine(&self) -> ConfState {
        let mut state = ConfState::default();
        state.set_voters(self.voters.clone());
        state.set_learners(self.learners.clone());
        state.set_voters_outgoing(self.voters_outgoing.clone());
        state.set_learners_next(self.learners_next.clone());
        state.auto_leave = self.auto_leave;
        state
    }
}

impl Change {
    /// The voters after the joint phase of this change.
    pub(crate) fn voters_after(&self, conf: &Conf) -> Vec<NodeId> {
        let gone = |node: &NodeId| self.remove.contains(node) || self.add_learners.contains(node);
        let stay = conf.voters.iter().filter(|node| !gone(node));
        let mut voters: Vec<NodeId> = stay.chain(&self.add_voters).copied().collect();
        voters.sort_unstable();
        voters.dedup();
        voters
    }

    /// Every node named, sorted; a node named twice appears twice.
    pub(crate) fn named(&self) -> Vec<NodeId> {
        let lists = [&self.add_voters, &self.add_learners, &self.remove];
        let mut named: Vec<NodeId> = lists.into_iter().flatten().copied().collect();
        named.sort_unstable();
        named
    }
}

impl ChangeStep {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ChangeStep::Leave => out.push(0),
            ChangeStep::Enter(change) => {
                out.push(1);
                for list in [&change.add_voters, &change.add_learners, &change.remove] {
                    wire::put_list(out, list);
                }
            }
        }
    }

    /// Reads an encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let step = match reader.byte()? {
            0 => ChangeStep::Leave,
            1 => ChangeStep::Enter(Change {
                add_voters: reader.list(MEMBERS_MAX, "added voters")?,
                add_learners: reader.list(MEMBERS_MAX, "added learners")?,
                remove: reader.list(MEMBERS_MAX, "removed nodes")?,
            }),
            _ => return Err(DecodeError::Invalid("kind of change")),
        };
        reader.finish()?;
        Ok(step)
    }

    pub(crate) fn to_engine(&self) -> ConfChangeV2 {
        let mut all = ConfChangeV2::default();
        let ChangeStep::Enter(change) = self else {
            return all;
        };
        all.set_transition(ConfChangeTransition::Explicit);
        let kinds = [
            (&change.add_voters, ConfChangeType::AddNode),
            (&change.add_learners, ConfChangeType::AddLearnerNode),
            (&change.remove, ConfChangeType::RemoveNode),
        ];
        let mut singles = Vec::new();
        for (nodes, kind) in kinds {
            for node in nodes {
                let node_id = *node;
                let change_type = kind;
                singles.push(ConfChangeSingle { change_type, node_id, ..Default::default() });
            }
        }
        all.set_changes(singles.into());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_survive_their_encoding() {
        let conf = Conf {
            voters: vec![1, 2, 4],
            learners: vec![7],
            voters_outgoing: vec![1, 2, 3],
            learners_next: vec![3],
            auto_leave: false,
        };
        let mut bytes = Vec::new();
        conf.encode(&mut bytes);
        assert_eq!(Conf::decode(&bytes), Ok(conf));
        let mut empty = Vec::new();
        Conf::default().encode(&mut empty);
        assert_eq!(Conf::decode(&empty), Ok(Conf::default()));
    }

    #[test]
    fn memberships_that_the_engine_would_refuse_are_refused() {
        let good = Conf::of_voters([1, 2, 3]);
        assert_eq!(good.check(), Ok(()));
        let bad = [
            Conf { voters: vec![], learners: vec![1], ..Conf::default() },
            Conf { voters: vec![0, 1], ..Conf::default() },
            Conf { voters: vec![1, 1], ..Conf::default() },
            Conf { learners: vec![2], ..good.clone() },
            Conf { learners_next: vec![2], ..good.clone() },
            Conf { auto_leave: true, ..good.clone() },
            Conf { voters_outgoing: vec![1, 4], learners_next: vec![1], ..good },
        ];
        for conf in bad {
            assert!(conf.check().is_err(), "{conf:?} must be refused");
            let mut bytes = Vec::new();
            conf.encode(&mut bytes);
            assert!(Conf::decode(&bytes).is_err());
        }
    }

    #[test]
    fn steps_survive_their_encoding() {
        let enter = ChangeStep::Enter(Change {
            add_voters: vec![4],
            add_learners: vec![5, 6],
            remove: vec![1],
        });
        for step in [enter, ChangeStep::Leave] {
            let mut bytes = Vec::new();
            step.encode(&mut bytes);
            assert_eq!(ChangeStep::decode(&bytes), Ok(step));
        }
        assert!(ChangeStep::decode(&[2]).is_err());
        assert!(ChangeStep::decode(&[0, 0]).is_err());
        assert!(ChangeStep::decode(&[]).is_err());
    }
}
