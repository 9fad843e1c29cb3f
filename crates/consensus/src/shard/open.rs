//! Opens a shard from what disk holds.
//!
//! Promises: whatever was recovered, the engine is built without panicking, or the shard is refused with the
//! reason. A commit index outside the log is clamped: it is a hint, and the log is the truth.

use std::collections::VecDeque;

use raft::eraftpb::HardState;
use raft::{NO_LIMIT, RawNode, ReadOnlyOption};

use super::{Shard, ballots, notice, reads, relieve, repair, roles, timers};
use crate::config::{Config, Recovered, ShardId};
use crate::entry::Entry;
use crate::errors::OpenError;
use crate::log::MemoryLog;
use crate::outbox::{Reason, RoleChange};

impl Shard {
    pub(crate) fn open(
        config: &Config,
        shard: ShardId,
        mut recovered: Recovered,
        now_ms: u64,
    ) -> Result<Self, OpenError> {
        // The engine cannot refuse a pre-vote in term 0.
        recovered.term = recovered.term.max(1).max(recovered.start.term);
        check(shard, &recovered)?;
        let repair = repair::Repair::needed(&recovered);
        let opened_term = recovered.term;
        let start = recovered.start;
        let conf = recovered.conf.clone();
        let raw = build(config, shard, recovered)?;
        // Nodes and shards must not draw the same timeouts from one seed.
        let mixed = config.node.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        let seed = config.seed ^ mixed ^ u64::from(shard).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut opened = Shard {
            id: shard,
            node: config.node,
            keep_bytes: config.keep_bytes,
            raw,
            rng: fastrand::Rng::with_seed(seed),
            timeout_ticks: config.election_ticks,
            seen: roles::View::default(),
            pending: VecDeque::new(),
            emitted: start.index,
            applied: start.index,
            reads: reads::Reads::default(),
            repair,
            timers: timers::Timers::default(),
            notice: notice::Notice::default(),
            ballots: ballots::Ballots::default(),
            stall: relieve::Stall::default(),
            installing: None,
            confs: vec![(start.index, conf)],
            opened_term,
            changed_early: 0,
            released: Vec::new(),
            roles: Vec::new(),
            faults: Vec::new(),
            is_dirty: true,
        };
        opened.report_start();
        opened.start_timers(now_ms);
        Ok(opened)
    }

    fn report_start(&mut self) {
        self.draw_timeout();
        self.seen = self.view();
        self.roles.push(RoleChange {
            shard: self.id,
            term: self.seen.term,
            role: self.seen.role,
            leader: None,
            vote: self.vote(),
            reason: Reason::Started,
            pre_votes: None,
            votes: None,
        });
    }
}

fn check(shard: ShardId, recovered: &Recovered) -> Result<(), OpenError> {
    if !recovered.conf.is_empty() || recovered.start.index > 0 {
        recovered.conf.check().map_err(|rule| OpenError::Conf(shard, rule))?;
        if recovered.start.index == 0 {
            return Err(OpenError::StartAtZero(shard));
        }
    }
    let mut term = recovered.start.term;
    for (expected, entry) in (recovered.start.index + 1..).zip(&recovered.entries) {
        if entry.index != expected {
            return Err(OpenError::Gap { shard, expected, found: entry.index });
        }
        let is_ordered = entry.term >= term && entry.term <= recovered.term;
        if !is_ordered {
            return Err(OpenError::TermOrder { shard, index: entry.index, term: entry.term });
        }
        term = entry.term;
    }
    Ok(())
}

fn build(
    config: &Config,
    shard: ShardId,
    recovered: Recovered,
) -> Result<RawNode<MemoryLog>, OpenError> {
    let start = recovered.start;
    let hard = HardState {
        term: recovered.term,
        vote: recovered.vote,
        commit: recovered.commit.clamp(start.index, recovered.last_index()),
        ..Default::default()
    };
    let entries = recovered.entries.into_iter().map(Entry::into_engine).collect();
    let log = MemoryLog::new(start, recovered.conf, hard, entries);
    let engine = raft::Config {
        id: config.node,
        election_tick: config.election_ticks,
        heartbeat_tick: config.heartbeat_ticks,
        applied: start.index,
        max_size_per_msg: config.max_entries_bytes_per_message,
        max_inflight_msgs: config.max_inflight,
        // Pre-vote alone stalls in bridge partitions; check-quorum alone lets a returning node disrupt.
        check_quorum: true,
        pre_vote: true,
        read_only_option: ReadOnlyOption::Safe,
        // `notice` tells it.
        skip_bcast_commit: true,
        batch_append: false,
        priority: config.priority,
        max_uncommitted_size: NO_LIMIT,
        max_committed_size_per_ready: NO_LIMIT,
        ..raft::Config::default()
    };
    let logger = slog::Logger::root(slog::Discard, slog::o!());
    RawNode::new(&engine, log, &logger).map_err(|error| OpenError::Engine(shard, error.to_string()))
}
