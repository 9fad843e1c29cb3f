//! Damage at rest, placed so that a correct cluster can always repair it: at most a minority of the voters is hurt at
//! any time, and a hurt machine's next stop keeps what proves the damage.

use ikada_consensus::NodeId;
use ikada_state::ShardId;
use ikada_store::Disk as _;

use super::lifecycle::Death;
use super::machine::{Health, Machine};
use super::{Event, Phase, World};
use crate::check::{ShardView, Verdict};
use crate::draw::{chance, pick};
use crate::marks::Mark;

/// Of 1000 flipped bits so many wait for a vote.
const AIMED_PERMILLE: u32 = 300;

/// So far before the end of the log an aimed bit lies: the mark that follows a sync, and the last records of its batch.
const AIMED_BYTES: u64 = 400;

impl World {
    /// A machine that may be hurt now without making repair impossible.
    pub(super) fn damageable(&mut self) -> Option<NodeId> {
        let sound = self.damageable_nodes();
        (!sound.is_empty()).then(|| *pick(&mut self.rng, &sound))
    }

    /// All machines of which any one may be hurt now.
    fn damageable_nodes(&self) -> Vec<NodeId> {
        if self.membership.is_changing() {
            return Vec::new();
        }
        let mut least_voters = usize::MAX;
        for shard in 0..self.shard_count() {
            match self.watch.config_safety.newest(shard) {
                Some(conf) if !conf.is_joint() => {
                    least_voters = least_voters.min(conf.voters.len());
                }
                _ => return Vec::new(),
            }
        }
        let voters = |machine: &&Machine| self.watch.config_safety.is_voter(machine.node);
        let hurt =
            self.machines.values().filter(voters).filter(|m| m.health != Health::Sound).count();
        if hurt + 1 > least_voters.saturating_sub(1) / 2 {
            return Vec::new();
        }
        self.machines
            .values()
            .filter(voters)
            .filter(|machine| machine.is_up() && machine.health == Health::Sound)
            .map(|machine| machine.node)
            .collect()
    }

    /// Flips a bit of some file; most of the time the machine is started again so that it is found.
    pub(super) fn flip_bit(&mut self) -> Verdict {
        let Some(node) = self.damageable() else {
            return Ok(());
        };
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        if chance(&mut self.rng, AIMED_PERMILLE) {
            machine.aimed = true;
            return Ok(());
        }
        let files = machine.disk.files();
        let kinds = ["wal/", "wal/", "wal/", "snap/", "snap/", "votes"];
        let kind = *pick(&mut self.rng, &kinds);
        let found: Vec<_> =
            files.iter().filter(|(name, len)| name.starts_with(kind) && *len > 0).collect();
        if found.is_empty() {
            return Ok(());
        }
        let (name, length) = *pick(&mut self.rng, &found);
        // Preallocated space is mostly empty: the used beginning is where damage hurts.
        let within = if self.rng.bool() { *length } else { (*length).min(4_096) };
        let (offset, bit) = (self.rng.u64(0..within), self.rng.u8(0..8));
        let name = name.clone();
        if self.flip(node, &name, offset, bit) && chance(&mut self.rng, 700) {
            self.restart_hurt(node);
        }
        Ok(())
    }

    /// A sync has just covered a vote. If damage waits for that, it hits the end of the log, where the vote's record
    /// lies, and the process dies before anything later could say the same again.
    pub(super) fn vote_synced(&mut self, node: NodeId) {
        let aimed = self.machines.get(&node).is_some_and(|machine| machine.aimed);
        if !aimed || self.phase != Phase::Safety || !self.damageable_nodes().contains(&node) {
            return;
        }
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        machine.aimed = false;
        let newest = machine.disk.files().into_iter().rfind(|(name, _)| name.starts_with("wal/"));
        let Some((name, bytes)) =
            newest.and_then(|(name, _)| machine.disk.read(&name).ok().map(|bytes| (name, bytes)))
        else {
            return;
        };
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        let (offset, bit) =
            (self.rng.u64(end.saturating_sub(AIMED_BYTES)..end.max(1)), self.rng.u8(0..8));
        if self.flip(node, &name, offset, bit) {
            self.marks.hit(Mark::VoteDamaged);
            self.restart_hurt(node);
        }
    }

    fn flip(&mut self, node: NodeId, name: &str, offset: u64, bit: u8) -> bool {
        let Some(machine) = self.machines.get_mut(&node) else {
            return false;
        };
        if machine.disk.flip_bit(name, offset, bit).is_err() {
            return false;
        }
        machine.health = Health::Damaged;
        machine.fragile = true;
        self.note(node, "flip", (offset, u64::from(bit)), |text| text.push_str(name));
        true
    }

    fn restart_hurt(&mut self, node: NodeId) {
        self.stop_process(node, Death::Kill);
        let outage_us = self.rng.u64(10_000..3_000_000);
        self.schedule.after(outage_us, Event::Start(node));
    }

    /// The next write of a machine lands somewhere else in its file.
    pub(super) fn misdirect(&mut self) {
        let Some(node) = self.damageable() else {
            return;
        };
        let offset = self.rng.u64(0..16_384);
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        machine.disk.misdirect_next_write(offset);
        machine.health = Health::Damaged;
        machine.fragile = true;
    }

    /// Damaged machines that have started again and hold everything committed are sound again.
    pub(super) fn review_health(&mut self) {
        let shards = self.shard_count();
        let ledgers = &self.watch.ledgers;
        let owes = &self.watch.no_silent_loss;
        for machine in self.machines.values_mut() {
            if machine.health != Health::Damaged || machine.fragile || !machine.is_up() {
                continue;
            }
            let views = machine.process.iter().flat_map(|process| process.views.iter().flatten());
            let whole = |view: &ShardView| !view.repairing && !owes.owes(view.node, view.shard);
            let holds = |shard: ShardId| {
                let ledger = &ledgers[usize::from(shard)];
                let last = ledger.committed(ledger.committed_index());
                let durable = machine.mirror.durable.get(&shard);
                last.is_none_or(|mark| durable.is_some_and(|log| log.covers(&mark)))
            };
            if views.clone().count() == usize::from(shards)
                && views.clone().all(whole)
                && (0..shards).all(holds)
            {
                machine.health = Health::Sound;
                machine.mirror.past.clear();
            }
        }
    }
}
