//! The database is restored to an older state under running nodes: all of them must stop, and nothing may be written (P2).
//!
//! Played on a healed cluster, when every node has seen more than the older state holds: a node that was away since before
//! cannot know that anything is missing, and no promise is made for it.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::lifecycle::Death;
use super::{Event, World};
use crate::check::{Verdict, violation};
use crate::database::Tables;
use crate::marks::Mark;

/// How long a cluster may take to write something that every node sees.
const ADVANCE_MS: u64 = 60_000;
/// How long nodes may go on after the database was set back.
const NOTICE_MS: u64 = 30_000;
/// Every disk knows by then what the cluster has written.
const NOTED_MS: u64 = 3_000;
/// How often the world is looked at meanwhile.
const LOOK_US: u64 = 50_000;

impl World {
    /// Sets the database back, waits for every node to stop, puts everything back, and starts them again.
    pub(super) fn set_database_back(&mut self) -> Verdict {
        self.heal()?;
        self.run_until(self.now_us() + self.leader_ms() * 1_000)?;
        let Some((newest, older)) = self.older_state()? else { return Ok(()) };
        let are_down = self.rng.bool();
        self.note(0, "set-back", (u64::from(are_down), 0), |_| {});
        // Every node reads what there is, and disks are told how far the log reaches now and then. What no other node has
        // seen, nobody but its writer can miss.
        self.run_until(self.now_us() + NOTED_MS * 1_000)?;
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
        let until_us = self.now_us() + NOTICE_MS * 1_000;
        while self.machines.values().any(|machine| machine.is_up()) {
            if self.now_us() >= until_us {
                let up: Vec<NodeId> =
                    self.machines.values().filter(|m| m.is_up()).map(|m| m.node).collect();
                let what = format!("nodes {up:?} go on with a database that was set back");
                return violation("P2 set_back", what);
            }
            self.run_until(self.now_us() + LOOK_US)?;
        }
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

    /// The newest tables, and older ones of which every node has seen more; nothing if nobody writes.
    #[allow(clippy::type_complexity)]
    fn older_state(
        &mut self,
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
                let commit = self.view(*node, *shard as ShardId).map_or(0, |view| view.commit);
                commit > older[*shard].last_index()
            };
            let all_have_seen =
                moved.iter().all(|shard| self.machines.keys().all(|node| has_seen(node, shard)));
            if !moved.is_empty() && all_have_seen {
                return Ok(Some((newest, older)));
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
        if !text.contains("restored to an older state") {
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
