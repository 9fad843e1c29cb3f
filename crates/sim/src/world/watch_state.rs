//! Looks at everything now and then: whole states (Q1, Q5, Q7, Q13, Q14), and whether disks hold what they should.

use ikada_state::ShardId;

use super::World;
use super::machine::Health;
use crate::check::{Verdict, accounting, apply_is_pure, attempts, bounded, one_holder, predicate};
use crate::node::boot;

impl World {
    /// Full scans over the reference states; of the dear looks, one: at a state, a node and a disk drawn each time.
    pub fn full_check(&mut self) -> Verdict {
        for shard in 0..self.shard_count() {
            self.check_reference(shard)?;
        }
        let shard = self.rng.u16(0..self.shard_count());
        self.check_pure(shard)?;
        self.review_health();
        self.check_some_node()?;
        self.check_some_disk()
    }

    fn check_reference(&mut self, shard: ShardId) -> Verdict {
        let ledger = &self.watch.ledgers[usize::from(shard)];
        let Some(state) = ledger.reference() else {
            return Ok(());
        };
        accounting::check(state)?;
        one_holder::check(state)?;
        attempts::check(state)?;
        bounded::check(state)?;
        self.check_jobs_of(state)?;
        predicate("Q3 token_order", ikada_state::invariants::fence_bounds(state))
    }

    /// Two copies of a state do the same with the newest entry and with broken ones.
    fn check_pure(&mut self, shard: ShardId) -> Verdict {
        let Some(state) = self.watch.ledgers[usize::from(shard)].reference() else {
            return Ok(());
        };
        let entry = self.watch.last_entry.get(&shard).cloned().unwrap_or_default();
        apply_is_pure::check(state, &entry, &mut self.rng)
    }

    /// The state of one running node, which may have been restored: its indexes and hash must be right.
    fn check_some_node(&mut self) -> Verdict {
        let running: Vec<_> = self.machines.values().filter(|m| m.is_up()).collect();
        if running.is_empty() {
            return Ok(());
        }
        let machine = running[self.rng.usize(0..running.len())];
        let Some(process) = &machine.process else {
            return Ok(());
        };
        for shard in 0..self.shard_count() {
            let Some(state) = process.replica.shard(shard) else {
                continue;
            };
            predicate("R4 state_machine_safety", ikada_state::invariants::indexes_match(state))?;
            predicate("R4 state_machine_safety", ikada_state::invariants::hash_matches(state))?;
        }
        Ok(())
    }

    /// A copy of one node's disk loses power: the node must start from it and find what is durable.
    fn check_some_disk(&mut self) -> Verdict {
        let now_us = self.now_us();
        let sound: Vec<_> = self
            .machines
            .values()
            .filter(|m| m.is_up() && m.health == Health::Sound && !m.fragile)
            .collect();
        if sound.is_empty() {
            return Ok(());
        }
        let machine = sound[self.rng.usize(0..sound.len())];
        let disk = machine.disk.fork();
        disk.crash(&mut self.rng.fork());
        disk.set_capacity(None);
        let booted = match boot::boot(&disk, &machine.setup, machine.clock.read(now_us)) {
            Ok(booted) => booted,
            Err(error) => {
                return crate::check::violation(
                    "R7 monotonic",
                    format!(
                        "node {} could not start after a power loss now: {error}",
                        machine.node
                    ),
                );
            }
        };
        for (position, recovered) in booted.found.iter().enumerate() {
            let shard = position as ShardId;
            let Some(durable) = machine.mirror.durable.get(&shard) else {
                continue;
            };
            let mut log = super::lifecycle::mirror_of(recovered);
            if self.plan.database.is_some() {
                // As after a start: a later note may be found.
                log.vote = durable.vote;
            }
            let settled = machine.mirror.settled_index(shard);
            crate::check::monotonic::Monotonic::restarted(
                machine.node,
                shard,
                durable,
                &log,
                settled,
            )?;
        }
        Ok(())
    }
}
