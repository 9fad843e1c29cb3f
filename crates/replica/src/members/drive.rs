//! Drives the change under way, in all shards side by side: learner first, voter once caught up, in one joint step
//! with the removal that it pays for. A newcomer is a learner everywhere before it votes in shard 0, and votes there before
//! it votes elsewhere.
//!
//! Every look derives the next step of each shard from its membership alone. A step that is refused, lost or
//! overtaken is simply found missing by the next look.

use ikada_consensus::{Change, Conf};
use ikada_state::{Command, MemberChange, Namespace, Order, SettleChange, ShardId};

use super::TEND_EVERY_MS;
use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;
use crate::seat::Asker;

/// What one shard needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Nothing: it has followed the change.
    Done,
    /// Nothing yet: its joint phase is about to end by itself, or another shard comes first.
    Wait,
    /// This change of its membership.
    Change(Change),
}

/// The next step of a shard with this membership.
fn next_step(conf: &Conf, change: MemberChange) -> Step {
    if conf.is_joint() {
        return Step::Wait;
    }
    let remove: Vec<u64> = change.remove.into_iter().filter(|node| conf.is_member(*node)).collect();
    match change.add {
        Some(node) if !conf.is_member(node) => {
            Step::Change(Change { add_learners: vec![node], ..Change::default() })
        }
        Some(node) if !conf.voters.contains(&node) => {
            Step::Change(Change { add_voters: vec![node], remove, ..Change::default() })
        }
        _ if !remove.is_empty() => Step::Change(Change { remove, ..Change::default() }),
        _ => Step::Done,
    }
}

/// The next steps of all shards, given their memberships, in order. A newcomer that votes in shard 0 may lead it, and drive
/// this very change: it must hear of all other shards by then. A newcomer without shard 0 does not know the members: it
/// could not tell a node whose disk was wiped, and would count its vote (R9).
fn next_steps(confs: &[Conf], change: MemberChange) -> Vec<Step> {
    let may_vote = |position: usize, node: &u64| match position {
        0 => confs.iter().all(|conf| conf.is_member(*node)),
        _ => confs[0].voters.contains(node),
    };
    let in_order = |(position, conf): (usize, &Conf)| match next_step(conf, change) {
        Step::Change(step) if !step.add_voters.iter().all(|node| may_vote(position, node)) => {
            Step::Wait
        }
        step => step,
    };
    confs.iter().enumerate().map(in_order).collect()
}

impl Replica {
    pub(super) fn drive_change(&mut self, now: Now) {
        let Some(change) = self.roster().and_then(|roster| roster.change) else {
            return;
        };
        // Whoever leaves gives its leaderships away; the next leader drives.
        if change.remove == Some(self.config.node) {
            return;
        }
        // A shard that was added and is not open here cannot be judged.
        if self.seats.len() < usize::from(self.seats[0].state.shards()) {
            return;
        }
        let confs: Vec<Conf> =
            (0..self.seats.len()).map(|shard| self.consensus.conf(shard as ShardId)).collect();
        let steps = next_steps(&confs, change);
        let done = steps.iter().all(|step| *step == Step::Done);
        for (shard, step) in (0..).zip(steps) {
            if let Step::Change(step) = step
                && self.keeps_majority(shard, &step)
            {
                self.ask_change(shard, step, now);
            }
        }
        if done {
            let command = Command::SettleChange(SettleChange { number: change.number });
            let order = Order { namespace: Namespace::default(), request: None, command };
            self.enqueue_orders(0, Asker::Nobody, std::slice::from_ref(&order));
        }
    }

    /// Whether enough of the voters after this step are connected to end its joint phase.
    fn keeps_majority(&self, shard: ShardId, step: &Change) -> bool {
        let conf = self.consensus.conf(shard);
        let stay = conf.voters.iter().filter(|node| !step.remove.contains(node));
        let voters: Vec<u64> = stay.chain(&step.add_voters).copied().collect();
        let up = voters.iter().filter(|node| self.is_up(**node)).count();
        up > voters.len() / 2
    }

    fn ask_change(&mut self, shard: ShardId, step: Change, now: Now) {
        let Change { add_voters, add_learners, remove } = step;
        let ask = Ask::Change { add_voters, add_learners, remove };
        let deadline_ms = now.mono_ms + TEND_EVERY_MS;
        self.open_leg(Leg::new(shard, Owner::Nobody, ask, deadline_ms), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(add: Option<u64>, remove: Option<u64>) -> MemberChange {
        MemberChange { number: 1, add, remove, since_ms: 0 }
    }

    // R9: a learner first, then one joint step, then nothing.
    #[test]
    fn a_replacement_takes_two_steps() {
        let wish = change(Some(4), Some(2));
        let mut conf = Conf::of_voters([1, 2, 3]);
        let learner = Change { add_learners: vec![4], ..Change::default() };
        assert_eq!(next_step(&conf, wish), Step::Change(learner));
        conf.learners = vec![4];
        let swap = Change { add_voters: vec![4], remove: vec![2], ..Change::default() };
        assert_eq!(next_step(&conf, wish), Step::Change(swap));
        let joint = Conf { voters_outgoing: vec![1, 2, 3], ..Conf::of_voters([1, 3, 4]) };
        assert_eq!(next_step(&joint, wish), Step::Wait);
        assert_eq!(next_step(&Conf::of_voters([1, 3, 4]), wish), Step::Done);
        // An old node that somebody else removed meanwhile is not removed twice.
        assert_eq!(next_step(&Conf::of_voters([1, 2, 3, 4]), wish), {
            Step::Change(Change { remove: vec![2], ..Change::default() })
        });
    }

    // R9: who cannot tell a wiped disk has no vote.
    #[test]
    fn a_newcomer_votes_in_the_first_shard_before_others() {
        let learner = Step::Change(Change { add_learners: vec![4], ..Change::default() });
        let swap =
            Step::Change(Change { add_voters: vec![4], remove: vec![2], ..Change::default() });
        let out = Conf::of_voters([1, 2, 3]);
        let learns = Conf { learners: vec![4], ..Conf::of_voters([1, 2, 3]) };
        let votes = Conf::of_voters([1, 3, 4]);
        let steps = |first: &Conf, second: &Conf| {
            next_steps(&[first.clone(), second.clone()], change(Some(4), Some(2)))
        };
        assert_eq!(steps(&out, &out), [learner.clone(), learner.clone()]);
        // It may lead shard 0 next, and could not go on without having heard of shard 1.
        assert_eq!(steps(&learns, &out), [Step::Wait, learner]);
        assert_eq!(steps(&learns, &learns), [swap.clone(), Step::Wait]);
        assert_eq!(steps(&votes, &learns), [Step::Done, swap]);
        assert_eq!(steps(&votes, &votes), [Step::Done, Step::Done]);
    }

    #[test]
    fn an_addition_that_is_called_off_leaves_no_learner() {
        let mut conf = Conf::of_voters([1, 2, 3]);
        assert_eq!(next_step(&conf, change(None, Some(4))), Step::Done);
        conf.learners = vec![4];
        let remove = Change { remove: vec![4], ..Change::default() };
        assert_eq!(next_step(&conf, change(None, Some(4))), Step::Change(remove));
    }
}
