//! The database is restored to an older state under running nodes (P2). Played on a healed cluster, in one of two ways.
//!
//! Every node has seen more than the older state holds: all of them must stop, and nothing may be written. Then everything is
//! put back, and they go on.
//!
//! Some have seen more, perhaps the writer alone. Each that has must stop, and do nothing against what it has seen until then. The
//! others cannot know: they may write, which is a fork, until the first that misses something has told them; then they stop too.
//! What clients are told by them meanwhile is not judged, and the run ends there. No promise is made if all that knew were away until
//! the others had put a snapshot over all that they knew: what it stands for is nowhere to be compared. That is judged by the first
//! answer that each of them gets; whoever was never away is not excused.

use std::collections::{BTreeMap, BTreeSet};

use ikada_consensus::NodeId;
use ikada_consensus::lease::{Answer, Head};
use ikada_state::ShardId;

use super::lifecycle::Death;
use super::{Event, World};
use crate::check::{Verdict, violation};
use crate::database::Tables;
use crate::marks::Mark;

/// A database that was set back: who knows more of which shard than it has.
#[derive(Debug, Default)]
pub struct Fork {
    /// With the last entry that each of them had seen.
    knew: BTreeMap<ShardId, BTreeMap<NodeId, u64>>,
    /// Whether they could not reach the database for a while.
    were_away: bool,
    /// Whether the log began behind all that one of them knew when the database answered it for the first time.
    was_buried: BTreeMap<(ShardId, NodeId), bool>,
}

impl Fork {
    /// Whether a shard lost something, and whether this node knows.
    pub fn knows(&self, shard: ShardId, node: NodeId) -> Option<bool> {
        self.knew.get(&shard).map(|knew| knew.contains_key(&node))
    }

    /// Whether a node has seen more of every shard that lost something: nothing that it does may be wrong.
    fn is_whole(&self, node: NodeId) -> bool {
        self.knew.values().all(|knew| knew.contains_key(&node))
    }

    /// The database answers a node: from this first answer on it can miss what it knew, or never will.
    fn hears(&mut self, shard: ShardId, node: NodeId, head: &Head) {
        let knew = self.knew.get(&shard).and_then(|knew| knew.get(&node));
        if let Some(index) = knew {
            self.was_buried.entry((shard, node)).or_insert(head.purged_index > *index);
        }
    }

    /// Whether all that knew came back too late to miss anything.
    fn is_buried(&self) -> bool {
        let pairs = |(shard, knew): (&ShardId, &BTreeMap<NodeId, u64>)| {
            knew.keys().map(|node| (*shard, *node)).collect::<Vec<_>>()
        };
        let mut knew = self.knew.iter().flat_map(pairs);
        self.were_away && knew.all(|pair| self.was_buried.get(&pair) == Some(&true))
    }
}

/// How long a cluster may take to write something that every node sees.
const ADVANCE_MS: u64 = 60_000;
/// How long nodes may go on after the database was set back.
const NOTICE_MS: u64 = 30_000;
/// Every disk knows by then what the cluster has written.
const NOTED_MS: u64 = 3_000;
/// How long those that know more may not reach the database: longer than any lease.
const AWAY_MS: u64 = 12_000;
/// How often the world is looked at meanwhile.
const LOOK_US: u64 = 50_000;

impl World {
    /// Sets the database back, waits for every node to stop, puts everything back, and starts them again.
    pub(super) fn set_database_back(&mut self) -> Verdict {
        self.heal()?;
        self.run_until(self.now_us() + self.leader_ms() * 1_000)?;
        if self.rng.bool() {
            return self.fork();
        }
        let Some((newest, older)) = self.older_state(true)? else { return Ok(()) };
        let are_down = self.rng.bool();
        self.note(0, "set-back", (u64::from(are_down), 0), |_| {});
        if are_down {
            // Disks are told how far the log reaches now and then.
            self.run_until(self.now_us() + NOTED_MS * 1_000)?;
        }
        let is_moved = |shard: usize| older[shard].last_index() < newest[shard].last_index();
        let is_moved: Vec<bool> = (0..newest.len()).map(is_moved).collect();
        let newest = self.tables();
        // What nobody had written to before stays as it is: not every node has seen it.
        let older = newest.iter().zip(older).zip(&is_moved);
        let older: Vec<Tables> =
            older.map(|((new, old), is_moved)| if *is_moved { old } else { new.clone() }).collect();
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for node in nodes.iter().filter(|_| are_down) {
            self.stop_process(*node, Death::Kill);
            self.schedule.after(1_000_000, Event::Start(*node));
        }
        for (shard, (new, old)) in newest.iter().zip(&older).enumerate() {
            if old.last_index() < new.last_index() {
                self.watch.epoch_fence.set_back(shard as ShardId, old.last_index());
            }
        }
        self.is_set_back = true;
        self.put_tables(older);
        if are_down {
            self.run_until(self.now_us() + 1_500_000)?;
        }
        self.all_stop()?;
        self.is_set_back = false;
        self.watch.epoch_fence.put_back();
        // The others may have been written to until the last node stopped.
        let now = self.tables().into_iter().zip(newest).zip(&is_moved);
        let now = now.map(|((now, new), is_moved)| if *is_moved { new } else { now });
        self.put_tables(now.collect());
        for node in nodes {
            self.schedule.after(1, Event::Start(node));
        }
        Ok(())
    }

    /// Sets the database back behind what only some nodes have seen; the run ends with it.
    fn fork(&mut self) -> Verdict {
        let Some((newest, older)) = self.older_state(false)? else { return Ok(()) };
        let mut fork = Fork::default();
        for (shard, (new, old)) in newest.iter().zip(&older).enumerate() {
            if old.last_index() < new.last_index() {
                let shard = shard as ShardId;
                let nodes = self.machines.keys().copied();
                let knew = nodes.filter(|node| self.has_seen_more(*node, shard, old));
                let knew = knew.map(|node| (node, self.seen_index(node, shard))).collect();
                fork.knew.insert(shard, knew);
            }
        }
        let knew: BTreeSet<NodeId> = fork.knew.values().flat_map(BTreeMap::keys).copied().collect();
        self.note(0, "set-back", (2, knew.len() as u64), |_| {});
        self.is_set_back = true;
        fork.were_away = self.rng.bool();
        let were_away = fork.were_away;
        self.fork = Some(fork);
        self.put_tables(older);
        let until_us = self.now_us() + AWAY_MS * 1_000;
        if were_away && let Some(database) = &mut self.database {
            // Others take the lease, and write in the place of what is missing.
            database.cut_until_us.extend(knew.iter().map(|node| (*node, until_us)));
        }
        self.all_stop()
    }

    /// Waits until no node runs any more.
    fn all_stop(&mut self) -> Verdict {
        let until_us = self.now_us() + NOTICE_MS * 1_000;
        while self.machines.values().any(|machine| machine.is_up()) {
            if self.now_us() >= until_us {
                if self.fork.as_ref().is_some_and(Fork::is_buried) {
                    self.mark(Mark::ForkBuried);
                    return Ok(());
                }
                let up: Vec<NodeId> =
                    self.machines.values().filter(|m| m.is_up()).map(|m| m.node).collect();
                let what = format!("nodes {up:?} go on with a database that was set back");
                return violation("P2 set_back", what);
            }
            self.run_until(self.now_us() + LOOK_US)?;
        }
        Ok(())
    }

    /// An answer of the database reaches a node.
    pub(super) fn fork_is_heard(&mut self, node: NodeId, shard: ShardId, answer: &Answer) {
        if let (Some(fork), Answer::Tail { head, .. }) = (&mut self.fork, answer) {
            fork.hears(shard, node, head);
        }
    }

    /// After a fork, what a node does that could not know is not held against it, nor what others do because of it.
    pub(super) fn excuse(&self, node: Option<NodeId>, verdict: Verdict) -> Verdict {
        let Some(fork) = &self.fork else { return verdict };
        match verdict {
            Err(found) if found.check.starts_with("P2") => Err(found),
            Err(found) if node.is_some_and(|node| fork.is_whole(node)) => Err(found),
            _ => Ok(()),
        }
    }

    /// Somebody wrote to a database that was set back. True if that is part of a fork, and no business of the ledgers.
    pub(super) fn wrote_in_fork(
        &mut self,
        node: NodeId,
        shard: ShardId,
    ) -> Result<bool, crate::check::Violation> {
        let Some(knows) = self.fork.as_ref().and_then(|fork| fork.knows(shard, node)) else {
            return Ok(false);
        };
        self.mark(Mark::LogForked);
        match knows {
            true => {
                let what = format!("shard {shard}: node {node} writes, and knows what is missing");
                violation("P2 set_back", what).map(|()| true)
            }
            false => Ok(true),
        }
    }

    fn has_seen_more(&self, node: NodeId, shard: ShardId, old: &Tables) -> bool {
        self.seen_index(node, shard) > old.last_index()
    }

    fn seen_index(&self, node: NodeId, shard: ShardId) -> u64 {
        self.view(node, shard).map_or(0, |view| view.commit)
    }

    /// The newest tables, and older ones of which every node, or some but not all, have seen more; nothing if nobody writes.
    #[allow(clippy::type_complexity)]
    fn older_state(
        &mut self,
        by_all: bool,
    ) -> Result<Option<(Vec<Tables>, Vec<Tables>)>, crate::check::Violation> {
        let until_us = self.now_us() + ADVANCE_MS * 1_000;
        let mut older = self.tables();
        while self.now_us() < until_us {
            self.run_until(self.now_us() + LOOK_US)?;
            let newest = self.tables();
            if newest.iter().zip(&older).any(|(new, old)| new.epoch != old.epoch) {
                older = newest;
                continue;
            }
            let moved: Vec<usize> = (0..newest.len())
                .filter(|shard| older[*shard].last_index() < newest[*shard].last_index())
                .collect();
            let has_seen = |node: &NodeId, shard: &usize| {
                self.has_seen_more(*node, *shard as ShardId, &older[*shard])
            };
            let all_have_seen =
                moved.iter().all(|shard| self.machines.keys().all(|node| has_seen(node, shard)));
            if by_all && !moved.is_empty() && all_have_seen {
                return Ok(Some((newest, older)));
            }
            let some_have_seen =
                moved.iter().all(|shard| self.machines.keys().any(|node| has_seen(node, shard)));
            if !by_all && !moved.is_empty() && some_have_seen {
                if !all_have_seen {
                    return Ok(Some((newest, older)));
                }
                // Too late for this time: everybody knows already.
                older = newest;
            }
        }
        Ok(None)
    }

    fn tables(&self) -> Vec<Tables> {
        self.database.as_ref().map(|database| database.tables.clone()).unwrap_or_default()
    }

    fn put_tables(&mut self, tables: Vec<Tables>) {
        if let Some(database) = &mut self.database {
            database.tables = tables;
            // Whoever restores a database stops it for that.
            database.session += 1;
        }
    }

    /// A node found out. Its words must say what happened.
    pub(super) fn halted_set_back(&mut self, node: NodeId, text: &str) -> Verdict {
        // In a fork the hashes of states may tell first.
        if !text.contains("restored to an older state") && self.fork.is_none() {
            return violation(
                "P2 set_back",
                format!("node {node} halted without saying why: {text}"),
            );
        }
        self.mark(Mark::SetBackNoticed);
        self.stop_process(node, Death::Kill);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ikada_consensus::lease::Lease;

    use super::*;

    /// Node 1 knew shard 0 up to entry 9, node 2 up to entry 7.
    fn fork(were_away: bool) -> Fork {
        let knew = BTreeMap::from([(0, BTreeMap::from([(1, 9), (2, 7)]))]);
        Fork { knew, were_away, ..Fork::default() }
    }

    fn begins_after(purged_index: u64) -> Head {
        let lease =
            Lease { holder: 3, life: 1, is_ours: false, epoch: 4, remaining_ms: 0, favoured: None };
        Head { lease, purged_index, last_index: 20, before: None, missing: None }
    }

    #[test]
    fn p_2_only_who_came_back_too_late_is_excused() {
        let mut late = fork(true);
        late.hears(0, 1, &begins_after(10));
        assert!(!late.is_buried(), "node 2 may still come");
        late.hears(0, 2, &begins_after(10));
        assert!(late.is_buried());
        let mut in_time = fork(true);
        for purged_index in [9, 10] {
            in_time.hears(0, 1, &begins_after(purged_index));
            in_time.hears(0, 2, &begins_after(purged_index));
        }
        assert!(!in_time.is_buried(), "node 1 saw entry 9 replaced before a snapshot came");
        let mut here = fork(false);
        here.hears(0, 1, &begins_after(10));
        here.hears(0, 2, &begins_after(10));
        assert!(!here.is_buried(), "whoever was there all the time has no excuse");
    }
}
