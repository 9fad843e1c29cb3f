//! One turn of a node: inputs in, outputs carried out, in the order of the contract in `ikada_replica::output`.

use ikada_consensus::{IoRecord, NodeId, Reason, Role, RoleChange};
use ikada_replica::output::{Halt, Input, Outputs};
use xxhash_rust::xxh3::xxh3_64;

use super::machine::Health;
use super::network::Fate;
use super::{Event, World};
use crate::check::{Verdict, violation};
use crate::marks::Mark;
use crate::oracle::mirror::EntryMark;

impl World {
    /// A node's timer is due.
    pub(super) fn wake(&mut self, node: NodeId, generation: u64) {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        if machine.generation != generation {
            return;
        }
        let Some(process) = &mut machine.process else {
            return;
        };
        if process.wake_us <= now_us {
            process.wake_us = u64::MAX;
            self.input(node, generation, Input::Tick);
        }
    }

    /// A node's loop takes what has arrived.
    pub(super) fn turn(&mut self, node: NodeId, generation: u64) -> Verdict {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        if machine.generation != generation || machine.is_paused(now_us) {
            return Ok(());
        }
        let now = machine.clock.read(now_us);
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        process.turn_due = false;
        let count = process.inbox.len() as u64;
        for input in process.inbox.drain(..) {
            process.replica.step(input, now);
        }
        let outputs = process.replica.poll(now);
        let digest = digest(&outputs);
        self.note(node, "turn", (count, digest), |_| {});
        self.carry_out(node, generation, outputs)
    }

    fn carry_out(&mut self, node: NodeId, generation: u64, outputs: Outputs) -> Verdict {
        let Outputs {
            io,
            frames,
            answers,
            roles,
            snapshots,
            purges,
            halt,
            stopped,
            clock_alarm: _,
            // Nobody asks for them here.
            ended: _,
            // Machines reach each other by number.
            roll: _,
            asks,
            fetches,
        } = outputs;
        if let Some(io) = io {
            self.hand_over(node, io)?;
        }
        for change in &roles {
            self.role_changed(node, change);
        }
        for (shard, start) in &purges {
            // The snapshot is durable, which is as good as the entries before it.
            if let Some(machine) = self.machines.get_mut(&node) {
                machine.mirror.compacted(*shard, *start);
            }
        }
        self.check_turn(node)?;
        self.ask_database(node, generation, asks)?;
        self.fetch_from_database(node, generation, fetches);
        for (to, frame) in frames {
            let verdict = self.check_frame(node, &frame);
            self.excuse(None, verdict)?;
            self.send(node, to, &frame);
        }
        for (call, answer) in answers {
            let verdict = self.answered(call, answer);
            self.excuse(None, verdict)?;
        }
        for work in snapshots {
            self.begin_snapshot_work(node, generation, work);
        }
        if let Some(process) = self.process_mut(node) {
            process.purges.extend(purges);
        }
        if let Some(halt) = halt {
            return self.halted(node, &halt);
        }
        if self.process_mut(node).is_some_and(|process| process.stopping) && stopped {
            self.mark(Mark::GracefulStop);
            return self.exit(node, "stopped");
        }
        self.schedule_wake(node, generation);
        self.kick_disk(node)
    }

    /// What the turn left of the node must be right.
    fn check_turn(&mut self, node: NodeId) -> Verdict {
        let verdict = self.observe(node);
        self.excuse(Some(node), verdict)?;
        let verdict = self.watch_balance(node);
        self.excuse(None, verdict)?;
        if self.plan.database.is_some() {
            let verdict = self.check_leases(node);
            self.excuse(None, verdict)?;
        }
        Ok(())
    }

    /// A batch leaves for the disk: the mirrors and the checks that need its content hear of it first.
    fn hand_over(&mut self, node: NodeId, io: ikada_consensus::Io) -> Verdict {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        let (marks, dropped) = machine.mirror.hand_over(&io.records);
        let wiped = machine.health == Health::Wiped;
        if dropped > 0 {
            self.marks.hit(Mark::ConflictTruncation);
        }
        for record in &io.records {
            let IoRecord::Append { shard, entries } = record else {
                continue;
            };
            if wiped {
                continue;
            }
            let log = self.machines.get(&node).and_then(|m| m.mirror.memory.get(shard));
            for entry in entries {
                let mark = EntryMark::new(
                    entry.index,
                    entry.term,
                    entry.kind,
                    &entry.data,
                    &entry.context,
                );
                let previous = log.and_then(|log| log.term_at(entry.index - 1)).unwrap_or(0);
                self.watch.log_matching.wrote(node, *shard, &mark, previous)?;
                self.watch.wrote(*shard, &mark, entry, now_us);
            }
        }
        if let Some(process) = self.process_mut(node) {
            process.batches.push_back((io, marks));
        }
        Ok(())
    }

    fn send(&mut self, from: NodeId, to: NodeId, frame: &bytes::Bytes) {
        self.tally.frames += 1;
        let Some(generation) = self.machines.get(&to).map(|machine| machine.generation) else {
            return;
        };
        let (first, second) = match self.network.route(from, to) {
            Fate::Lost => return,
            Fate::Once(first) => (first, None),
            Fate::Twice(first, second) => (first, Some(second)),
        };
        for delay_us in std::iter::once(first).chain(second) {
            let frame = frame.clone();
            self.schedule.after(delay_us, Event::Frame { to, generation, from, frame });
        }
    }

    fn role_changed(&mut self, node: NodeId, change: &RoleChange) {
        let (shard, term) = (u64::from(change.shard), change.term);
        self.note(node, "role", (shard, term), |text| {
            use std::fmt::Write as _;
            let _ =
                write!(text, "{:?} leader {:?}: {:?}", change.role, change.leader, change.reason);
        });
        match (change.role, change.reason) {
            (Role::Leader, Reason::ElectionWon | Reason::LeaseTaken) => {
                self.tally.elections += 1;
                self.mark(Mark::ElectionWon);
                let repairing = self.any_shard_view(|view| view.repairing);
                if repairing {
                    self.mark(Mark::VoteWithheldInRepair);
                }
                let installing = self
                    .machines
                    .values()
                    .any(|m| m.process.as_ref().is_some_and(|p| !p.receiving.is_empty()));
                if installing {
                    self.mark(Mark::ElectionDuringInstall);
                }
            }
            (Role::Candidate, _) => {
                self.watch.campaigned.insert((change.shard, term, node));
                let contested = self.watch.rivals(change.shard, term) > 1;
                self.marks.hit_if(contested, Mark::ElectionContested);
            }
            (_, Reason::QuorumLost) => self.mark(Mark::LeaderLostQuorum),
            (_, Reason::LeaderConnectionLost) => self.mark(Mark::LeaderConnectionLost),
            (_, Reason::Transferred) => self.mark(Mark::TransferDone),
            (_, Reason::DiskStalled) => self.mark(Mark::LeaderYieldedDisk),
            _ => {}
        }
    }

    fn halted(&mut self, node: NodeId, halt: &Halt) -> Verdict {
        let health = self.machines.get(&node).map(|machine| machine.health.clone());
        let text = halt.to_string();
        self.note(node, "halt", (0, 0), |line| line.push_str(&text));
        if self.is_set_back {
            return self.halted_set_back(node, &text);
        }
        match (halt, health) {
            (Halt::Wiped { .. }, Some(Health::Wiped)) => {
                self.mark(Mark::WipedRefused);
                self.bury(node, text)
            }
            // A received snapshot was damaged at rest before it was loaded: the next start finds that out.
            (Halt::BadSnapshot { .. }, Some(Health::Damaged)) => self.exit(node, "bad snapshot"),
            _ => violation("halt", format!("node {node} halted: {text}")),
        }
    }

    /// Sees to it that the node is woken when it wants to be.
    pub(super) fn schedule_wake(&mut self, node: NodeId, generation: u64) {
        let now_us = self.now_us();
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        let Some(process) = &mut machine.process else {
            return;
        };
        let at_us = machine.clock.true_us_of(process.replica.next_wake_ms(), now_us);
        // A wake at this very moment would never let time pass.
        let at_us = at_us.max(now_us + 1);
        if at_us < process.wake_us {
            process.wake_us = at_us;
            self.schedule.at(at_us, Event::Wake(node, generation));
        }
    }

    /// The running process of a node.
    pub(super) fn process_mut(&mut self, node: NodeId) -> Option<&mut super::machine::Process> {
        self.machines.get_mut(&node)?.process.as_mut()
    }

    /// Whether any shard of any running node looks like that.
    pub(super) fn any_shard_view(&self, looks: impl Fn(&crate::check::ShardView) -> bool) -> bool {
        let processes = self.machines.values().filter_map(|machine| machine.process.as_ref());
        processes.flat_map(|process| process.views.iter().flatten()).any(looks)
    }
}

/// A number that differs when the outputs do.
fn digest(outputs: &Outputs) -> u64 {
    let mut digest = outputs.io.as_ref().map_or(0, |io| io.seq ^ ((io.records.len() as u64) << 32));
    for (to, frame) in &outputs.frames {
        digest = digest.rotate_left(7) ^ xxh3_64(frame) ^ to;
    }
    for (call, _) in &outputs.answers {
        digest = digest.rotate_left(11) ^ call;
    }
    for ask in &outputs.asks {
        digest = digest.rotate_left(5) ^ ask.id;
    }
    digest.rotate_left(3) ^ outputs.snapshots.len() as u64
}
