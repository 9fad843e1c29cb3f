//! Looks at a node after each of its turns: what changed is shown to the checks R1 to R11.
//!
//! Only what changed is looked at, so that a quiet turn costs almost nothing.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ikada_consensus::{BOOTSTRAP, Conf, Entry, Message, MessageKind, NodeId, Role};
use ikada_replica::peer::{self, FrameError, PeerMessage};
use ikada_state::{Fence, Lsn, Order, Reply, SessionId, ShardId, TaskId, WorkerId};

use super::World;
use super::machine::{Health, Machine};
use crate::check::cancel::Cancels;
use crate::check::config_safety::ConfigSafety;
use crate::check::dead_kept::DeadKept;
use crate::check::election_safety::ElectionSafety;
use crate::check::epoch_fence::EpochFence;
use crate::check::idempotent_submit::IdempotentSubmit;
use crate::check::lease_order::LeaseOrder;
use crate::check::linearizable_reads::Acknowledged;
use crate::check::log_matching::LogMatching;
use crate::check::monotonic::Monotonic;
use crate::check::no_silent_loss::NoSilentLoss;
use crate::check::operations::Operations;
use crate::check::persist_before_speak::{self, Promise};
use crate::check::same_result::SameResult;
use crate::check::schedule_instants::ScheduleInstants;
use crate::check::settings_version::SettingsVersion;
use crate::check::terminal_once::TerminalOnce;
use crate::check::winner_outputs::WinnerOutputs;
use crate::check::{
    ShardView, Verdict, Violation, committed_forever, leader_completeness, quorum_evidence,
    state_machine_safety,
};
use crate::marks::Mark;
use crate::oracle::jobs::Jobs;
use crate::oracle::ledger::ShardLedger;
use crate::oracle::mirror::EntryMark;
use crate::oracle::model::Model;
use crate::oracle::rules::{Rules, Travelling};

/// No frame is under way for longer than this.
const WIPE_ECHO_US: u64 = 5_500_000;

/// Orders of a committed entry and their replies.
pub type Answered = (Vec<Option<Order>>, Vec<Reply>);

/// A renewal that a worker was told of.
#[derive(Debug, Clone, Copy)]
pub struct Renewed {
    /// When it was sent.
    pub sent_us: u64,
    /// When the answer left the node that was asked.
    pub told_us: u64,
}

/// The checks with a memory, and what the others ask for.
#[derive(Debug, Default)]
pub struct Watch {
    /// R1.
    pub election_safety: ElectionSafety,
    /// R2.
    pub log_matching: LogMatching,
    /// P1, P2.
    pub epoch_fence: EpochFence,
    /// R7.
    pub monotonic: Monotonic,
    /// R9.
    pub config_safety: ConfigSafety,
    /// R11.
    pub no_silent_loss: NoSilentLoss,
    /// What was committed, per shard.
    pub ledgers: Vec<ShardLedger>,
    /// What tasks should be like.
    pub model: Model,
    /// Q2, per shard.
    pub terminal_once: Vec<TerminalOnce>,
    /// Q15, per shard.
    pub operations: Vec<Operations>,
    /// Q13.
    pub dead_kept: DeadKept,
    /// Q8.
    pub submits: IdempotentSubmit,
    /// Tasks between two shards.
    pub travelling: BTreeMap<TaskId, Travelling>,
    /// What is known of requests, for each slot between two shards.
    pub leaving: BTreeMap<u16, Operations>,
    /// What tasks asked for and where they stand, per shard.
    pub rules: Vec<Rules>,
    /// Q9.
    pub same_result: SameResult,
    /// Versions of queue settings, per shard.
    pub settings: SettingsVersion,
    /// Q12.
    pub schedules: ScheduleInstants,
    /// Leases.
    pub leases: LeaseOrder,
    /// What jobs should be like.
    pub jobs: Jobs,
    /// A4.
    pub outputs: WinnerOutputs,
    /// Workers that were removed.
    pub gone: BTreeSet<(WorkerId, SessionId)>,
    /// Q10.
    pub cancels: Cancels,
    /// R10.
    pub acknowledged: Acknowledged,
    /// Orders and replies of every committed entry.
    pub replies: BTreeMap<(ShardId, u64), Answered>,
    /// When each entry was first written.
    pub written_us: BTreeMap<(ShardId, u64, u64), u64>,
    /// When each index was committed.
    pub committed_us: BTreeMap<(ShardId, u64), u64>,
    /// Since when each term has had its leader.
    pub led_us: BTreeMap<(ShardId, u64), u64>,
    /// Who believes to lead each shard now.
    pub leaders: BTreeMap<ShardId, BTreeMap<NodeId, u64>>,
    /// Intervals in which more than one node believed to lead, per shard; the last may be open.
    pub disputed_us: BTreeMap<ShardId, Vec<(u64, Option<u64>)>>,
    /// Renewals by claim.
    pub renewals: BTreeMap<(TaskId, Fence), Vec<Renewed>>,
    /// Who campaigned in which term.
    pub campaigned: BTreeSet<(ShardId, u64, NodeId)>,
    /// Term and index at which a request was first answered.
    pub first_seen: BTreeMap<Option<ikada_state::RequestKey>, (u64, u64)>,
    /// The newest committed entry of each shard.
    pub last_entry: BTreeMap<ShardId, Bytes>,
    /// Shards that were restored from a snapshot by some node, with the index of the first such snapshot.
    pub restored: BTreeMap<ShardId, u64>,
}

impl Watch {
    /// A watch over shards that begin like this.
    pub fn new(genesis: Vec<ikada_state::Shard>, conf: &Conf) -> Self {
        let mut watch = Self::default();
        for (position, state) in genesis.into_iter().enumerate() {
            watch.add_shard(position as ShardId, state, conf);
        }
        watch
    }

    /// Another shard, which begins like this.
    pub fn add_shard(&mut self, shard: ShardId, state: ikada_state::Shard, conf: &Conf) {
        self.config_safety.begin(shard, ikada_consensus::BOOTSTRAP.index, conf.clone());
        self.ledgers.push(ShardLedger::new(state));
        self.terminal_once.push(TerminalOnce::default());
        self.operations.push(Operations::default());
        self.rules.push(Rules::default());
    }

    /// A node wrote an entry.
    pub fn wrote(&mut self, shard: ShardId, mark: &EntryMark, entry: &Entry, now_us: u64) {
        if let Some(ledger) = self.ledgers.get_mut(usize::from(shard)) {
            ledger.wrote(mark, entry.kind, &entry.data);
        }
        self.written_us.entry((shard, mark.index, mark.term)).or_insert(now_us);
    }

    /// How many nodes campaigned in a term.
    pub fn rivals(&self, shard: ShardId, term: u64) -> usize {
        let of_term = (shard, term, NodeId::MIN)..=(shard, term, NodeId::MAX);
        self.campaigned.range(of_term).count()
    }
}

impl World {
    /// Looks at a node after its turn.
    pub(super) fn observe(&mut self, node: NodeId) -> Verdict {
        let wiped = self.machines.get(&node).is_some_and(|m| m.health == Health::Wiped);
        for shard in 0..self.shard_count() {
            let Some(machine) = self.machines.get_mut(&node) else {
                return Ok(());
            };
            let Some(view) = view_of(machine, shard) else {
                continue;
            };
            let Some(process) = &mut machine.process else {
                return Ok(());
            };
            let seen = &mut process.views[usize::from(shard)];
            if *seen == Some(view) {
                continue;
            }
            let before = seen.replace(view);
            if wiped {
                let limit = self.machines.get(&node).and_then(|m| m.wiped_at.get(&shard)).copied();
                ConfigSafety::wiped(&view, limit.unwrap_or(0))?;
                continue;
            }
            if self.plan.database.is_some() {
                self.observe_leased(&view, before.as_ref())?;
                continue;
            }
            self.observe_shard(&view, before.as_ref())?;
        }
        Ok(())
    }

    /// A shard on a node as the node has it in memory.
    pub fn view(&self, node: NodeId, shard: ShardId) -> Option<ShardView> {
        view_of(self.machines.get(&node)?, shard)
    }

    fn observe_shard(&mut self, view: &ShardView, before: Option<&ShardView>) -> Verdict {
        let shard = view.shard;
        self.watch.election_safety.observe(view)?;
        self.note_leaders(view);
        self.observe_commits(view)?;
        let Some(machine) = self.machines.get(&view.node) else {
            return Ok(());
        };
        let Some(log) = machine.mirror.memory.get(&shard) else {
            return Ok(());
        };
        let ledger = &self.watch.ledgers[usize::from(shard)];
        if let Some(before) = before {
            quorum_evidence::check_term(view, before, log.term_at(view.commit))?;
        }
        let since = before.map_or(0, |before| before.commit);
        committed_forever::check(view, log, ledger, since)?;
        if before.is_none_or(|before| before.role != Role::Leader) {
            leader_completeness::check(view, log, ledger)?;
        }
        // While a snapshot is being loaded the state is older than the log says; it is compared when it is there.
        // A node that joins has no state before its first snapshot.
        let loading = view.applied.index < view.start_index.max(1);
        if !loading {
            state_machine_safety::check(view, ledger)?;
            self.watch.monotonic.observe(view)?;
        }
        if let Some(durable) = machine.mirror.durable.get(&shard) {
            persist_before_speak::check_applied(view, durable)?;
        }
        let commit_term = log.term_at(view.commit);
        if self.watch.no_silent_loss.observe(view, commit_term)? {
            self.marks.hit(Mark::RepairDone);
        }
        self.observe_conf(view)
    }

    pub(super) fn note_leaders(&mut self, view: &ShardView) {
        let now_us = self.now_us();
        if view.role == Role::Leader {
            self.watch.led_us.entry((view.shard, view.term)).or_insert(now_us);
            self.note_leader(view.shard, view.node, Some(view.term));
        } else {
            self.note_leader(view.shard, view.node, None);
        }
    }

    /// A node leads a shard in a term, or not any more.
    pub(super) fn note_leader(&mut self, shard: ShardId, node: NodeId, term: Option<u64>) {
        let now_us = self.now_us();
        let leaders = self.watch.leaders.entry(shard).or_default();
        match term {
            Some(term) => leaders.insert(node, term),
            None => leaders.remove(&node),
        };
        let several = leaders.len() > 1;
        let disputed = self.watch.disputed_us.entry(shard).or_default();
        let open = disputed.last().is_some_and(|(_, end)| end.is_none());
        if several && !open {
            disputed.push((now_us, None));
            self.marks.hit(Mark::TwoLeadersAtOnce);
        } else if !several && let Some((_, end)) = disputed.last_mut() {
            end.get_or_insert(now_us);
        }
    }

    /// The node's configuration: where it comes from, and whether a leader may have proposed it.
    fn observe_conf(&mut self, view: &ShardView) -> Verdict {
        let shard = view.shard;
        let Some(machine) = self.machines.get_mut(&view.node) else {
            return Ok(());
        };
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        let Some(log) = machine.mirror.memory.get(&shard) else {
            return Ok(());
        };
        if view.role == Role::Leader {
            let own = log.iter().rev().take_while(|e| e.index > view.commit).find(|e| e.change);
            if let Some(mark) = own.filter(|mark| mark.term == view.term) {
                ConfigSafety::proposed(view, log, mark)?;
            }
        }
        let conf = process.replica.consensus().conf(shard);
        if conf.is_empty() {
            return Ok(());
        }
        let ledger = &self.watch.ledgers[usize::from(shard)];
        let changed = |index| ledger.committed(index).is_some_and(|mark| mark.change);
        self.watch.config_safety.observe(view, &conf, changed)?;
        let before = std::mem::replace(&mut process.confs[usize::from(shard)], conf.clone());
        if before.is_empty() || before == conf {
            return Ok(());
        }
        for (seen, mark) in [
            (conf.is_joint() && !before.is_joint(), Mark::JointEntered),
            (before.is_joint() && !conf.is_joint(), Mark::JointLeft),
            (before.learners.iter().any(|node| conf.voters.contains(node)), Mark::LearnerPromoted),
            (before.members().iter().any(|node| !conf.is_member(*node)), Mark::NodeRemoved),
        ] {
            if seen {
                self.marks.hit(mark);
            }
        }
        Ok(())
    }

    /// A frame is about to leave: what it promises must be on disk.
    pub(super) fn check_frame(&mut self, node: NodeId, frame: &Bytes) -> Verdict {
        let Some(machine) = self.machines.get(&node) else {
            return Ok(());
        };
        if machine.health == Health::Wiped {
            return Ok(());
        }
        let unreadable = |error: FrameError| Violation {
            check: "frame",
            what: format!("node {node} wrote a frame that nobody can read: {error}"),
        };
        let (_, messages) = peer::open(frame.clone()).map_err(unreadable)?;
        // Whoever gets the frame reads the rest of it.
        for message in messages.of_engine() {
            let PeerMessage::Raft(message) = message.map_err(unreadable)? else {
                continue;
            };
            self.check_addressee(node, &message)?;
            let Some(promise) = Promise::of(&message) else {
                continue;
            };
            let shard = message.shard();
            if let Promise::Vote { candidate, .. } = promise {
                self.watch.no_silent_loss.voted(node, shard, candidate)?;
            }
            if let Some(durable) = machine.mirror.durable.get(&shard) {
                persist_before_speak::check(node, shard, promise, durable)?;
            }
        }
        Ok(())
    }

    /// A wiped node gets no answer to what it asks under its old id.
    fn check_addressee(&self, node: NodeId, message: &Message) -> Verdict {
        let answers =
            matches!(message.kind(), MessageKind::VoteAnswer | MessageKind::PreVoteAnswer);
        let Some(machine) = self.machines.get(&message.to()).filter(|_| answers) else {
            return Ok(());
        };
        // Questions from before the wipe may still have been under way for a while.
        let fresh = self.now_us() > machine.wiped_us + WIPE_ECHO_US;
        let wiped = machine.health == Health::Wiped && fresh;
        ConfigSafety::answered(node, message.to(), wiped)
    }

    /// The position that a node has applied.
    pub fn applied(&self, node: NodeId, shard: ShardId) -> Option<Lsn> {
        let process = self.machines.get(&node)?.process.as_ref()?;
        Some(process.replica.shard(shard)?.applied())
    }
}

fn view_of(machine: &Machine, shard: ShardId) -> Option<ShardView> {
    let process = machine.process.as_ref()?;
    let standing = process.replica.consensus().standing(shard)?;
    let state = process.replica.shard(shard)?;
    let log = machine.mirror.memory.get(&shard);
    let mut applied = state.applied();
    let start_index = log.map_or(0, |log| log.start.index);
    if applied.index == 0 && start_index == BOOTSTRAP.index {
        // The first state has no position of its own; it stands where every log begins.
        applied = Lsn { term: BOOTSTRAP.term, index: BOOTSTRAP.index };
    }
    let before = process.views[usize::from(shard)];
    // Hashing the header costs more than all the rest; it changes only when something was applied.
    let hash = match before {
        Some(before) if before.applied == applied => before.hash,
        _ => state.hash(),
    };
    Some(ShardView {
        node: machine.node,
        generation: machine.generation,
        shard,
        term: standing.term,
        vote: standing.vote.unwrap_or(0),
        role: standing.role,
        leader: standing.leader,
        commit: standing.commit,
        last_index: standing.last_index,
        start_index,
        applied,
        hash,
        repairing: standing.is_repairing,
    })
}
