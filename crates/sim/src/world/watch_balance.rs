//! Follows the balancer: whom it chooses while faults go on, and that it comes to an end when they are over (V7).

use ikada_consensus::NodeId;
use ikada_replica::DISK_STILL_MS;

use super::World;
use crate::check::calm_balance::{self, Target};
use crate::check::{Verdict, Violation};
use crate::marks::Mark;

/// A node whose disk stands still has had this long to say so, several times, on wires that lose frames.
const SAID_US: u64 = 5_000_000;
/// It was heard that lately, so its word came through as well.
const HEARD_MS: u64 = 1_000;
/// How long a move may take.
const MOVE_MS: u64 = 2_000;
/// A shard has no leader for a moment when one is moved; it is looked at again that often.
const LOOK_US: u64 = 50_000;

impl World {
    /// Looks at a new choice of a node's balancer.
    pub(super) fn watch_balance(&mut self, node: NodeId) -> Verdict {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else { return Ok(()) };
        let now = machine.clock.read(now_us);
        let Some(process) = &mut machine.process else { return Ok(()) };
        let roster = process.replica.shard(0).and_then(|state| state.roster());
        let cordons = roster.map_or(&[][..], |roster| &roster.cordoned);
        // A turn decides first and applies then: only what held before and after it was known to the balancer.
        let known = |node: NodeId| cordons.contains(&node) && process.cordons_seen.contains(&node);
        let chosen =
            process.replica.newest_move().filter(|chosen| process.move_seen != Some(*chosen));
        let cordoned = chosen.is_some_and(|chosen| known(chosen.to));
        if process.cordons_seen != cordons {
            process.cordons_seen = cordons.to_vec();
        }
        let Some(chosen) = chosen else { return Ok(()) };
        process.move_seen = Some(chosen);
        let peers = process.replica.status(now).peers;
        let heard = peers.iter().find(|peer| peer.node == chosen.to);
        let heard = heard.and_then(|peer| peer.heard_ms_ago).is_some_and(|ago| ago < HEARD_MS);
        self.mark(Mark::LeaderBalanced);
        let target = Target { cordoned, still: heard && self.stands_still(chosen.to) };
        calm_balance::check_target(chosen.shard, chosen.to, target)
    }

    /// Whether a disk stands still for so long that all connected nodes must know.
    fn stands_still(&self, node: NodeId) -> bool {
        let Some(machine) = self.machines.get(&node) else { return false };
        let long_ago = |since_us: u64| since_us + DISK_STILL_MS * 1_000 + SAID_US <= self.now_us();
        let syncing = machine.process.as_ref().filter(|process| process.syncing.is_some());
        // Until the wires were mended nobody may have heard it.
        syncing.is_some_and(|process| long_ago(process.syncing_since_us))
            && long_ago(machine.paused_until_us)
            && long_ago(self.network.mended_us)
    }

    /// The leader of every shard. A move may be under way at this very moment; it ends soon.
    pub(super) fn find_leaders(&mut self) -> Result<Vec<(NodeId, u64)>, Violation> {
        let until_us = self.now_us() + MOVE_MS * 1_000;
        loop {
            match self.check_leaders() {
                Err(_) if self.plan.knobs.balance_quiet_ms > 0 && self.now_us() < until_us => {
                    self.run_until(self.now_us() + LOOK_US)?;
                }
                found => return found,
            }
        }
    }

    /// The balancer of a cluster at rest does what is left to do, and no more. `before` is how many elections were won
    /// when the rest began.
    pub(super) fn settle_balance(&mut self, before: u64) -> Verdict {
        let quiet_ms = self.plan.knobs.balance_quiet_ms;
        if quiet_ms == 0 {
            return Ok(());
        }
        let shards = self.shard_count();
        let rounds = u64::from(shards) + 2;
        self.run_until(self.now_us() + rounds * (quiet_ms + MOVE_MS) * 1_000)?;
        let moves = self.tally.elections - before;
        self.marks.hit_if(moves > 0, Mark::BalancedAtRest);
        calm_balance::check_moves(moves, shards)?;
        let leaders = self.find_leaders()?;
        let Some(may_lead) = self.may_lead() else { return Ok(()) };
        let led = |node: NodeId| leaders.iter().filter(|(leader, _)| *leader == node).count();
        let led: Vec<_> = may_lead.into_iter().map(|node| (node, led(node))).collect();
        calm_balance::check_spread(&led)
    }

    /// Nodes that may lead, if the balancer may work: every member is up.
    fn may_lead(&self) -> Option<Vec<NodeId>> {
        let state = self.watch.ledgers.first().and_then(|ledger| ledger.reference())?;
        let up = |node: NodeId| self.machines.get(&node).is_some_and(|machine| machine.is_up());
        if !state.members().iter().all(|member| up(member.node)) {
            return None;
        }
        let conf = self.watch.config_safety.newest(0)?;
        let cordoned = |node: &NodeId| state.roster().is_some_and(|it| it.is_cordoned(*node));
        Some(conf.voters.iter().copied().filter(|node| !cordoned(node)).collect())
    }
}
