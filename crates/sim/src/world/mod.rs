//! The world: machines, wires, clocks and actors, driven by one queue of events on one thread.
//!
//! A run has two phases: safety (faults on, every check after every event) and liveness (all faults healed, bounds on
//! simulated time). It ends at the first violation. Nothing here reads a real clock or draws from anywhere but the seed.
//!
//! This file holds the parts together and routes events; what each event does is in the file named after it.

pub mod calls;
pub mod clock;
mod connections;
mod damage;
pub mod database;
mod disk;
mod found;
mod heal;
pub mod kill;
mod lifecycle;
pub mod machine;
pub mod membership;
mod nemesis;
pub mod network;
pub mod schedule;
mod set_back;
pub mod tally;
mod turn;
mod watch;
mod watch_answers;
mod watch_balance;
mod watch_commits;
mod watch_database;
mod watch_growth;
mod watch_jobs;
mod watch_level;
mod watch_operations;
mod watch_state;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fastrand::Rng;
use ikada_consensus::NodeId;
use ikada_consensus::lease::Answer as DatabaseAnswer;
use ikada_replica::call::{Answer, Call, CallId};
use ikada_replica::output::{DatabaseTold, Input, SnapshotWork};
use ikada_state::ShardId;

use crate::check::{Verdict, Violation};
use crate::marks::{Mark, Marks};
use crate::plan::Plan;
use crate::plan::faults::Kind;
use crate::trace::{Line, Trace};
use crate::workload::{Actor, Step};
use calls::Calls;
use machine::Machine;
use network::Network;
use schedule::Schedule;
use tally::Tally;
pub use watch::Watch;

/// Full scans come this often: they cost as much as thousands of events.
pub(crate) const FULL_CHECK_US: u64 = 10_000_000;

/// Something that happens at a moment.
#[derive(Debug)]
pub enum Event {
    /// A node's loop takes what has arrived.
    Turn(NodeId, u64),
    /// A node's timer is due.
    Wake(NodeId, u64),
    /// A frame arrives.
    Frame {
        /// Addressee.
        to: NodeId,
        /// Its process at the time of sending.
        generation: u64,
        /// Sender.
        from: NodeId,
        /// The bytes.
        frame: Bytes,
    },
    /// A connection's state is noticed.
    Peer {
        /// Who notices.
        node: NodeId,
        /// Its process.
        generation: u64,
        /// The peer.
        peer: NodeId,
        /// The peer's process.
        peer_generation: u64,
        /// What is noticed.
        notice: Notice,
    },
    /// A sync is done.
    Synced(NodeId, u64),
    /// A disk that was full is tried again.
    Retry(NodeId, u64),
    /// A piece of snapshot work is done.
    Snapshot(NodeId, u64, Box<SnapshotWork>),
    /// A client's call arrives.
    Call(NodeId, u64, Box<Call>),
    /// An answer arrives at its client.
    Answer(CallId, Box<Answer>),
    /// A client gives up waiting.
    Patience(CallId),
    /// A machine starts its process.
    Start(NodeId),
    /// A paused process goes on.
    Resume(NodeId, u64),
    /// A fault of this kind is due.
    Fault(Kind),
    /// A full disk has space again.
    Space(NodeId),
    /// An actor does its next step.
    Actor(usize, Step),
    /// Everything is looked at.
    FullCheck,
    /// A question reaches the database.
    Ask(Box<database::Flight>),
    /// An answer of the database, from one of its lives, reaches the process that asked.
    Told(NodeId, u64, ShardId, u64, Box<(u64, DatabaseAnswer)>),
    /// A process gives up waiting for an answer of the database.
    AskPatience(NodeId, u64, ShardId, u64),
    /// A notice of the database reaches a process.
    Notified(NodeId, u64, ShardId),
    /// A stored snapshot reaches a process that asked for it.
    Fetch(NodeId, u64, ShardId),
}

/// What a node hears of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It stands.
    Up,
    /// It broke.
    Down,
    /// Nothing was heard on it for too long.
    Silent,
    /// It broke and the peer's process is gone.
    Refused,
}

/// What a run is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Faults are on.
    Safety,
    /// Faults are gone.
    Liveness,
}

/// One simulated cluster with everything around it.
pub struct World {
    /// What the seed goes through.
    pub plan: Plan,
    /// What happens next.
    pub schedule: Schedule<Event>,
    /// Wires.
    pub network: Network,
    /// Machines by node.
    pub machines: BTreeMap<NodeId, Machine>,
    /// Faults, disks and everything else that is not the workload.
    pub rng: Rng,
    /// One line per event.
    pub trace: Trace,
    /// Rare states.
    pub marks: Marks,
    /// Checks and what they know.
    pub watch: Watch,
    /// Calls under way.
    pub calls: Calls,
    /// Counts for the report.
    pub tally: Tally,
    /// Clients, workers, readers, operators.
    pub actors: Vec<Option<Actor>>,
    /// What the run is at.
    pub phase: Phase,
    /// What clients know.
    pub clients: crate::oracle::clients::Clients,
    /// Probes of the liveness phase: when sent, when acknowledged.
    pub probes: BTreeMap<ikada_state::ShardId, (u64, Option<u64>)>,
    /// Membership changes under way.
    pub membership: membership::Membership,
    /// Nodes that nobody calls.
    pub closed_doors: BTreeSet<NodeId>,
    /// The database that holds the logs, if they are not on the nodes' disks.
    pub database: Option<crate::database::Database>,
    /// It was set back: every node must stop.
    pub is_set_back: bool,
    /// It was set back behind what only some nodes know.
    pub fork: Option<set_back::Fork>,
    /// Looks at the world after every event of every phase, and may end the run.
    pub onlooker: Option<Onlooker>,
}

/// Somebody who steps through a run.
pub type Onlooker = Box<dyn FnMut(&mut World) -> Verdict>;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The broken promise, if any.
    pub violation: Option<Violation>,
    /// Simulated time.
    pub simulated_us: u64,
    /// Hash of the trace.
    pub trace_hash: u64,
    /// Lines in the trace.
    pub trace_lines: u64,
    /// Rare states.
    pub marks: Marks,
    /// Counts.
    pub tally: Tally,
}

impl World {
    /// Runs the whole plan.
    pub fn run(&mut self) -> Outcome {
        let verdict = self.run_phases();
        self.outcome(verdict.err())
    }

    /// What the run came to, should it end here with this violation.
    pub fn outcome(&self, violation: Option<Violation>) -> Outcome {
        Outcome {
            violation,
            simulated_us: self.schedule.now_us(),
            trace_hash: self.trace.hash(),
            trace_lines: self.trace.lines(),
            marks: self.marks.clone(),
            tally: self.tally.clone(),
        }
    }

    fn run_phases(&mut self) -> Verdict {
        self.run_safety()?;
        if self.plan.database.as_ref().is_some_and(|plan| plan.is_set_back) {
            self.set_database_back()?;
            if self.fork.is_some() {
                return Ok(());
            }
        }
        self.run_liveness()
    }

    /// The safety phase: until there were enough operations, and for its time at least.
    pub fn run_safety(&mut self) -> Verdict {
        let least_us = self.plan.safety_ms * 1_000;
        let most_us = least_us * 4;
        self.run_until(least_us)?;
        while self.tally.operations < self.plan.operations && self.schedule.now_us() < most_us {
            self.run_until(self.schedule.now_us() + 1_000_000)?;
        }
        self.full_check()
    }

    /// Lets everything happen up to a moment.
    pub fn run_until(&mut self, until_us: u64) -> Verdict {
        while let Some(event) = self.schedule.next(until_us) {
            let verdict = self.handle(event);
            self.excuse(None, verdict)?;
            if let Some(mut onlooker) = self.onlooker.take() {
                onlooker(self)?;
                self.onlooker = Some(onlooker);
            }
        }
        self.schedule.advance_to(until_us);
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Verdict {
        self.tally.events += 1;
        match event {
            Event::Turn(node, generation) => self.turn(node, generation),
            Event::Wake(node, generation) => {
                self.wake(node, generation);
                Ok(())
            }
            Event::Frame { to, generation, from, frame } => {
                self.input(to, generation, Input::Frame(from, frame));
                Ok(())
            }
            Event::Peer { node, generation, peer, peer_generation, notice } => {
                self.noticed(node, generation, peer, peer_generation, notice);
                Ok(())
            }
            Event::Synced(node, generation) => self.synced(node, generation),
            Event::Retry(node, generation) => self.retry_disk(node, generation),
            Event::Snapshot(node, generation, work) => self.snapshot_work(node, generation, *work),
            Event::Call(node, generation, call) => {
                self.call_arrives(node, generation, *call);
                Ok(())
            }
            Event::Answer(call, answer) => self.answer_arrives(call, *answer),
            Event::Patience(call) => self.patience_ends(call),
            Event::Start(node) => self.start(node),
            Event::Resume(node, generation) => {
                self.resume(node, generation);
                Ok(())
            }
            Event::Fault(kind) => self.fault_due(kind),
            Event::Space(node) => {
                self.free_space(node);
                Ok(())
            }
            Event::Actor(actor, step) => self.act(actor, step),
            Event::Ask(flight) => self.ask_arrives(*flight),
            Event::Told(node, generation, shard, id, told) => {
                self.database_told(node, generation, (shard, id), *told);
                Ok(())
            }
            Event::AskPatience(node, generation, shard, id) => {
                let failed = (0, DatabaseAnswer::Failed);
                self.database_told(node, generation, (shard, id), failed);
                Ok(())
            }
            Event::Notified(node, generation, shard) => {
                self.input(node, generation, Input::Database(DatabaseTold::Changed(shard)));
                Ok(())
            }
            Event::Fetch(node, generation, shard) => {
                self.fetched(node, generation, shard);
                Ok(())
            }
            Event::FullCheck => {
                self.schedule.after(FULL_CHECK_US, Event::FullCheck);
                self.full_check()
            }
        }
    }

    /// True time.
    pub fn now_us(&self) -> u64 {
        self.schedule.now_us()
    }

    /// Adds a line to the trace.
    pub fn note(
        &mut self,
        node: NodeId,
        what: &'static str,
        numbers: (u64, u64),
        detail: impl FnOnce(&mut String),
    ) {
        let at_us = self.schedule.now_us();
        self.trace.add(Line { at_us, node, what, numbers }, detail);
    }

    /// Counts a rare state.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.hit(mark);
    }

    /// Hands a process an input, unless it is not the one meant any more.
    pub fn input(&mut self, node: NodeId, generation: u64, input: Input) {
        let turn_us_max = self.plan.knobs.turn_us_max;
        let Some(machine) = self.machines.get_mut(&node) else {
            return;
        };
        if machine.generation != generation {
            return;
        }
        let Some(process) = &mut machine.process else {
            return;
        };
        process.inbox.push(input);
        if !process.turn_due {
            process.turn_due = true;
            let delay_us = self.rng.u64(0..=turn_us_max);
            self.schedule.after(delay_us, Event::Turn(node, generation));
        }
    }
}
