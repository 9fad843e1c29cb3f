//! Does the faults of the plan: each kind comes again and again at its own distance, as long as the safety phase lasts.

use ikada_consensus::NodeId;

use super::lifecycle::Death;
use super::machine::Health;
use super::{Event, Phase, World};
use crate::check::Verdict;
use crate::draw::{chance, log_uniform, pick};
use crate::marks::Mark;
use crate::plan::faults::Kind;

impl World {
    /// Schedules the first fault of every kind that the plan has.
    pub(super) fn unleash(&mut self) {
        for (kind, mean_ms) in self.plan.faults.kinds.clone() {
            let first_us = self.rng.u64(500_000..=mean_ms * 2_000);
            self.schedule.after(first_us, Event::Fault(kind));
        }
    }

    /// A fault is due: does it and schedules the next of its kind.
    pub(super) fn fault_due(&mut self, kind: Kind) -> Verdict {
        if self.phase != Phase::Safety {
            return Ok(());
        }
        let mean_ms =
            self.plan.faults.kinds.iter().find(|(k, _)| *k == kind).map_or(10_000, |f| f.1);
        let again_us = self.rng.u64(mean_ms * 200..=mean_ms * 1_800);
        self.schedule.after(again_us, Event::Fault(kind));
        *self.tally.faults.entry(kind.name()).or_default() += 1;
        self.note(0, "fault", (kind as u64, 0), |text| text.push_str(kind.name()));
        self.strike(kind)
    }

    fn strike(&mut self, kind: Kind) -> Verdict {
        match kind {
            Kind::Crash => self.strike_process(false),
            Kind::CrashLeader => self.strike_process(true),
            Kind::CrashAll => self.crash_all(),
            Kind::Pause => {
                let for_us =
                    log_uniform(&mut self.rng, 50, self.plan.faults.pause_ms_max.max(50)) * 1_000;
                if let Some(node) = self.some_node(true) {
                    self.pause(node, for_us);
                }
                Ok(())
            }
            Kind::CutOneWay
            | Kind::CutWire
            | Kind::Isolate
            | Kind::DeafLeader
            | Kind::Split
            | Kind::Bridge
            | Kind::Ring => {
                self.cut(kind);
                self.cut_noticed();
                Ok(())
            }
            Kind::Mend => {
                if self.network.has_cuts() {
                    self.network.mend(self.now_us());
                    self.connect_everyone();
                }
                Ok(())
            }
            Kind::DropConnection => {
                if let (Some(one), Some(other)) = (self.some_node(false), self.some_node(false))
                    && one != other
                {
                    self.drop_connection(one, other);
                }
                Ok(())
            }
            Kind::ClockJump | Kind::ClockRate => {
                self.strike_clock(kind);
                Ok(())
            }
            Kind::SlowDisk | Kind::SyncError | Kind::DiskFull => {
                self.strike_disk(kind);
                Ok(())
            }
            Kind::DatabaseDown | Kind::DatabaseStall | Kind::DatabaseCut | Kind::DatabaseClock => {
                self.strike_database(kind);
                Ok(())
            }
            Kind::FlipBit => self.flip_bit(),
            Kind::Misdirect => {
                self.misdirect();
                Ok(())
            }
            Kind::Wipe => {
                self.wipe();
                Ok(())
            }
        }
    }

    /// Ends one process, gently in one case of five, and starts it again after a while.
    fn strike_process(&mut self, leader: bool) -> Verdict {
        let node = if leader { self.some_leader() } else { self.some_node(false) };
        let Some(node) = node else { return Ok(()) };
        if chance(&mut self.rng, 200) {
            self.stop_gently(node);
            return Ok(());
        }
        let death = self.fitting_death(node);
        self.stop_process(node, death);
        let outage_us =
            log_uniform(&mut self.rng, 10, self.plan.faults.outage_ms_max.max(10)) * 1_000;
        self.schedule.after(outage_us, Event::Start(node));
        Ok(())
    }

    pub(crate) fn stop_gently(&mut self, node: NodeId) {
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        let generation = machine.generation;
        let Some(process) = &mut machine.process else {
            return;
        };
        process.stopping = true;
        self.input(node, generation, ikada_replica::output::Input::Stop);
    }

    /// Starts a stopped process again.
    pub(crate) fn start_again(&mut self, node: NodeId) {
        self.schedule.after(0, Event::Start(node));
    }

    /// Every sync of this disk takes so much longer from now on.
    pub(crate) fn slow_disk(&mut self, node: NodeId, extra_us: u64) {
        if let Some(machine) = self.machines.get_mut(&node) {
            machine.sync_extra_us = extra_us;
        }
    }

    fn crash_all(&mut self) -> Verdict {
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for node in nodes {
            let death = self.fitting_death(node);
            self.stop_process(node, death);
            let outage_us = log_uniform(&mut self.rng, 10, 5_000) * 1_000;
            self.schedule.after(outage_us, Event::Start(node));
        }
        Ok(())
    }

    fn cut(&mut self, kind: Kind) {
        let mut nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        if nodes.len() < 2 {
            return;
        }
        self.rng.shuffle(&mut nodes);
        let leader = self.some_leader();
        match kind {
            Kind::CutOneWay => self.network.cut(nodes[0], nodes[1]),
            Kind::CutWire => self.network.cut_both(nodes[0], nodes[1]),
            Kind::Isolate => {
                let alone = if self.rng.bool() { leader.unwrap_or(nodes[0]) } else { nodes[0] };
                let rest: Vec<NodeId> =
                    nodes.iter().copied().filter(|node| *node != alone).collect();
                self.network.split(&[alone], &rest);
            }
            Kind::DeafLeader => {
                let deaf = leader.unwrap_or(nodes[0]);
                for node in nodes.iter().filter(|node| **node != deaf) {
                    self.network.cut(*node, deaf);
                }
            }
            Kind::Split => {
                let at = self.rng.usize(1..nodes.len());
                let (left, right) = nodes.split_at(at);
                if leader.is_some_and(|leader| {
                    let side = if left.contains(&leader) { left } else { right };
                    side.len() * 2 <= nodes.len()
                }) {
                    self.marks.hit(Mark::PartitionMinorityLeader);
                }
                self.network.split(left, right);
            }
            Kind::Bridge => {
                let half = nodes.len() / 2;
                self.network.split(&nodes[1..=half], &nodes[half + 1..]);
            }
            Kind::Ring => {
                for one in 0..nodes.len() {
                    for other in one + 2..nodes.len() {
                        if !(one == 0 && other == nodes.len() - 1) {
                            self.network.cut_both(nodes[one], nodes[other]);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn strike_clock(&mut self, kind: Kind) {
        let now_us = self.now_us();
        let Some(node) = self.some_node(false) else {
            return;
        };
        let by_ms = log_uniform(&mut self.rng, 100, 3_600_000) as i64;
        let by_ms = if self.rng.bool() { by_ms } else { -by_ms };
        let rate_permille = *pick(&mut self.rng, &[500, 800, 950, 1_000, 1_050, 1_300, 2_000]);
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        if kind == Kind::ClockJump {
            machine.clock.jump_wall(by_ms);
            self.mark(Mark::ClockJumped);
        } else {
            machine.clock.set_rate(now_us, rate_permille);
            self.mark(Mark::ClockDrifted);
        }
        let generation = self.machines.get(&node).map_or(0, |machine| machine.generation);
        if let Some(process) = self.process_mut(node) {
            process.wake_us = u64::MAX;
        }
        self.schedule_wake(node, generation);
    }

    fn strike_database(&mut self, kind: Kind) {
        let until_us = self.now_us() + log_uniform(&mut self.rng, 100, 20_000) * 1_000;
        let by_ms = log_uniform(&mut self.rng, 100, 3_600_000) as i64;
        let by_ms = if self.rng.bool() { by_ms } else { -by_ms };
        let node = self.some_node(true);
        let Some(database) = &mut self.database else { return };
        match (kind, node) {
            (Kind::DatabaseDown, _) => {
                database.session += 1;
                database.down_until_us = until_us;
            }
            (Kind::DatabaseStall, _) => database.stalled_until_us = until_us,
            (Kind::DatabaseCut, Some(node)) => {
                database.cut_until_us.insert(node, until_us);
            }
            (Kind::DatabaseClock, _) => {
                database.jump(by_ms);
                return self.mark(Mark::DatabaseClockMoved);
            }
            _ => return,
        }
        self.mark(Mark::DatabaseStruck);
    }

    fn strike_disk(&mut self, kind: Kind) {
        let now_us = self.now_us();
        let for_us = log_uniform(&mut self.rng, 500, 20_000) * 1_000;
        let spare_bytes = self.rng.u64(0..8_192);
        let Some(node) = self.some_node(true) else {
            return;
        };
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        match kind {
            Kind::SlowDisk => machine.slow_until_us = now_us + for_us,
            Kind::SyncError => machine.disk.fail_next_sync(),
            _ => {
                let used: u64 = machine.disk.files().iter().map(|(_, length)| length).sum();
                machine.disk.set_capacity(Some(used + spare_bytes));
                self.marks.hit(Mark::DiskFilled);
                self.schedule.after(for_us, Event::Space(node));
            }
        }
    }

    /// A full disk has space again.
    pub(super) fn free_space(&mut self, node: NodeId) {
        if let Some(machine) = self.machines.get(&node) {
            machine.disk.set_capacity(None);
        }
    }

    /// A running machine; half of the time the leader of some shard if `leader_first`.
    pub(super) fn some_node(&mut self, leader_first: bool) -> Option<NodeId> {
        if leader_first && self.rng.bool() {
            return self.some_leader();
        }
        let up: Vec<NodeId> =
            self.machines.values().filter(|m| m.is_up()).map(|machine| machine.node).collect();
        (!up.is_empty()).then(|| *pick(&mut self.rng, &up))
    }

    /// The newest leader of some shard.
    pub(super) fn some_leader(&mut self) -> Option<NodeId> {
        let shard = self.rng.u16(0..self.shard_count());
        let leaders = self.watch.leaders.get(&shard)?;
        let newest = leaders.iter().max_by_key(|(_, term)| **term).map(|(node, _)| *node);
        newest.filter(|node| self.machines.get(node).is_some_and(|machine| machine.is_up()))
    }

    /// A node loses its disk and starts again, under its old id, with an empty one.
    fn wipe(&mut self) {
        let Some(node) = self.damageable() else {
            return;
        };
        self.stop_process(node, Death::Kill);
        let incarnation = self.rng.u64(1 << 32..u64::MAX);
        let shards = self.shard_count();
        let now_us = self.now_us();
        if self.rng.bool() {
            // Deaf at first, so that it speaks before it can be told.
            let peers: Vec<NodeId> = self.machines.keys().copied().collect();
            for peer in peers {
                self.network.cut(peer, node);
            }
        }
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        machine.disk = ikada_store::SimDisk::new();
        machine.health = Health::Wiped;
        machine.wiped_us = now_us;
        machine.setup.config.incarnation = incarnation;
        machine.wiped_at = (0..shards).map(|shard| (shard, 1)).collect();
        self.watch.no_silent_loss.forget(node);
        let outage_us = self.rng.u64(10_000..3_000_000);
        self.schedule.after(outage_us, Event::Start(node));
    }
}
