//! Processes come and go: start, crash, exit, pause.

use std::collections::BTreeMap;

use ikada_consensus::{NodeId, Recovered};

use super::machine::{Health, Process};
use super::{Event, World};
use crate::check::monotonic::Monotonic;
use crate::check::{Verdict, violation};
use crate::marks::Mark;
use crate::node::boot::{self, BootError, Booted};
use crate::oracle::mirror::{EntryMark, ShardMirror};

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The machine loses power: un-synced writes are lost or torn.
    Power,
    /// Only the process dies: what it wrote is in the machine's memory.
    Kill,
}

impl World {
    /// A machine starts its process.
    pub(super) fn start(&mut self, node: NodeId) -> Verdict {
        let now_us = self.now_us();
        if self.machines.get(&node).is_some_and(|machine| !machine.is_up()) {
            self.upgrade(node);
        }
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        if machine.is_up() || matches!(machine.health, Health::Gone(_)) {
            return Ok(());
        }
        let now = machine.clock.read(now_us);
        machine.setup.config.consensus.seed = self.plan.seed ^ (machine.generation << 20) ^ node;
        match boot::boot(&machine.disk, &machine.setup, now) {
            Ok(booted) => self.started(node, booted),
            Err(error) => self.start_failed(node, &error),
        }
    }

    fn started(&mut self, node: NodeId, booted: Booted) -> Verdict {
        let Booted { replica, log, snapshots, found, findings } = booted;
        self.compare_found(node, &found)?;
        for (seen, mark) in [
            (findings.torn_bytes > 0, Mark::TornTailCut),
            (findings.damaged, Mark::DamageFound),
            (findings.quarantined > 0, Mark::Quarantined),
            (findings.from_snapshot, Mark::RestoredFromSnapshot),
        ] {
            if seen {
                self.mark(mark);
            }
        }
        let shards = usize::from(self.shard_count());
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        machine.fragile = false;
        machine.process = Some(Process {
            replica,
            log,
            snapshots,
            receiving: Default::default(),
            inbox: Vec::new(),
            turn_due: false,
            wake_us: u64::MAX,
            batches: Default::default(),
            purges: Vec::new(),
            purged: None,
            syncing: None,
            syncing_since_us: 0,
            is_low: false,
            retry_due: false,
            move_seen: None,
            cordons_seen: Vec::new(),
            saving: 0,
            installed: BTreeMap::new(),
            views: vec![None; shards],
            confs: vec![Default::default(); shards],
            connected: BTreeMap::new(),
            stopping: false,
            asked: BTreeMap::new(),
            held_until_ms: BTreeMap::new(),
        });
        let generation = machine.generation;
        self.note(node, "start", (generation, findings.torn_bytes), |text| {
            use std::fmt::Write as _;
            let _ = write!(text, "{findings:?}");
        });
        self.connect_all(node);
        self.input(node, generation, ikada_replica::output::Input::Tick);
        Ok(())
    }

    /// What the node found is compared with what the world knows was durable; then it is what is known.
    fn compare_found(&mut self, node: NodeId, found: &[Recovered]) -> Verdict {
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        let mut shards = BTreeMap::new();
        for (position, recovered) in found.iter().enumerate() {
            let shard = position as u16;
            let mut log = mirror_of(recovered);
            if let Some(durable) = machine.mirror.durable.get(&shard) {
                if self.plan.database.is_some() {
                    // Nobody votes there: that place says which entry was noted, and a note that was not synced may be found.
                    log.vote = durable.vote;
                }
                match machine.health {
                    Health::Sound => {
                        let settled = machine.mirror.settled_index(shard);
                        Monotonic::restarted(node, shard, durable, &log, settled)?;
                    }
                    Health::Damaged => {
                        Monotonic::restarted_vote(node, shard, durable, &log)?;
                        let had = machine.mirror.told_index(shard);
                        self.watch.no_silent_loss.restarted(
                            node,
                            shard,
                            had,
                            log.last_index(),
                            log.term,
                        );
                    }
                    Health::Wiped | Health::Gone(_) => {}
                }
            }
            self.watch.log_matching.restarted(node, shard, recovered.term);
            self.watch.restored.insert(shard, recovered.start.index);
            shards.insert(shard, log);
        }
        let damaged = machine.health != Health::Sound;
        machine.mirror.found(shards, damaged);
        Ok(())
    }

    fn start_failed(&mut self, node: NodeId, error: &BootError) -> Verdict {
        let text = error.to_string();
        self.note(node, "refuse", (0, 0), |line| line.push_str(&text));
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        // A full or failing disk may be better later; the half-open process is gone meanwhile.
        if is_transient(error) {
            machine.disk.kill();
            self.schedule.after(1_000_000, Event::Start(node));
            return Ok(());
        }
        violation("start", format!("node {node} ({:?}) cannot start: {text}", machine.health))
    }

    /// A machine will not run again.
    pub(super) fn bury(&mut self, node: NodeId, why: String) -> Verdict {
        self.stop_process(node, Death::Kill);
        self.watch.no_silent_loss.forget(node);
        if let Some(machine) = self.machines.get_mut(&node) {
            machine.health = Health::Gone(why);
        }
        Ok(())
    }

    /// A process ends by itself and is started again by its supervisor.
    pub(super) fn exit(&mut self, node: NodeId, why: &'static str) -> Verdict {
        self.note(node, "exit", (0, 0), |text| text.push_str(why));
        let death = self.fitting_death(node);
        self.stop_process(node, death);
        let again_us = self.rng.u64(100_000..2_000_000);
        self.schedule.after(again_us, Event::Start(node));
        Ok(())
    }

    /// A machine that was hurt keeps what proves the damage; others may lose power.
    pub(super) fn fitting_death(&mut self, node: NodeId) -> Death {
        let fragile = self.machines.get(&node).is_some_and(|machine| machine.fragile);
        if fragile || self.rng.bool() { Death::Kill } else { Death::Power }
    }

    /// Ends a process, whatever it was doing.
    pub(super) fn stop_process(&mut self, node: NodeId, death: Death) {
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        let Some(process) = machine.process.take() else {
            return;
        };
        let generation = machine.generation;
        machine.generation += 1;
        machine.paused_until_us = 0;
        let installing = !process.receiving.is_empty();
        let joint_leader = process
            .views
            .iter()
            .flatten()
            .zip(&process.confs)
            .any(|(view, conf)| view.role == ikada_consensus::Role::Leader && conf.is_joint());
        let uncommitted = process.views.iter().flatten().any(|view| {
            view.role == ikada_consensus::Role::Leader && view.last_index > view.commit
        });
        let pending = machine.mirror.has_pending();
        for (seen, mark) in [
            (installing, Mark::SnapshotInstallCrash),
            (process.saving > 0, Mark::SnapshotSaveCrash),
            (joint_leader, Mark::JointCrash),
            (uncommitted, Mark::LeaderCrashUncommitted),
            (pending && death == Death::Power, Mark::CrashLostWrites),
        ] {
            if seen {
                self.marks.hit(mark);
            }
        }
        drop(process);
        match death {
            Death::Power => machine.disk.crash(&mut self.rng),
            Death::Kill => machine.disk.kill(),
        }
        machine.disk.forget_faults();
        self.note(node, "stop", (generation, death as u64), |_| {});
        for shard in 0..self.shard_count() {
            self.note_leader(shard, node, None);
        }
        self.calls_lost(node, generation);
        self.disconnect_all(node);
        if self.machines.values().all(|machine| !machine.is_up()) {
            self.mark(Mark::CrashAllAtOnce);
        }
    }

    /// Stands a process still for a while.
    pub(crate) fn pause(&mut self, node: NodeId, for_us: u64) {
        let until_us = self.now_us() + for_us;
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        if !machine.is_up() {
            return;
        }
        machine.paused_until_us = until_us;
        let (generation, leads) = (machine.generation, machine.leads_any());
        if leads {
            self.mark(Mark::PausedLeader);
        }
        self.schedule.at(until_us, Event::Resume(node, generation));
    }

    /// A paused process goes on.
    pub(super) fn resume(&mut self, node: NodeId, generation: u64) {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        if machine.generation != generation || machine.is_paused(now_us) {
            return;
        }
        if let Some(process) = &mut machine.process {
            process.turn_due = true;
            self.schedule.after(0, Event::Turn(node, generation));
        }
    }
}

/// What a node found on its disk, as the world keeps it.
pub(super) fn mirror_of(recovered: &Recovered) -> ShardMirror {
    let entries = recovered
        .entries
        .iter()
        .map(|e| EntryMark::new(e.index, e.term, e.kind, &e.data, &e.context))
        .collect();
    ShardMirror::found(recovered.start, recovered.term, recovered.vote, entries)
}

fn is_transient(error: &BootError) -> bool {
    use ikada_store::{Fault, OpenError, SnapshotError};
    matches!(
        error,
        BootError::Open(OpenError::Io { .. } | OpenError::Fault(_))
            | BootError::Log(Fault::Io { .. } | Fault::DiskFull { .. } | Fault::Closed)
            | BootError::Snapshot(SnapshotError::Io { .. })
            | BootError::Identity(ikada_store::IdentityError::Io(_))
    )
}
