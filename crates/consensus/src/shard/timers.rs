//! Engine ticks, and the short timers after a leader's connection is lost.
//!
//! Promises: no campaign starts while anything is not durable (the engine would panic when it wins), while a
//! snapshot is being installed, or while the log is damaged. After `peer_gone` the leader is forgotten at once
//! (a voter that still believes in it would ignore pre-votes), only the campaign waits.

use std::ops::RangeInclusive;

use super::Shard;
use super::roles::Cause;
use crate::config::NodeId;
use crate::planted::{self, Bug};

/// Wait before the first campaign after a leader's connection is lost: spreads the followers.
const FIRST_WAIT_MS: RangeInclusive<u64> = 10..=80;
/// Wait between campaigns while they find no majority.
const RETRY_WAIT_MS: RangeInclusive<u64> = 100..=200;
/// How long retries go on before the ordinary timeout takes over.
const RETRY_PHASE_MS: u64 = 1000;

/// Short timers of one shard.
#[derive(Default)]
pub(super) struct Timers {
    /// When to campaign next; absent if the ordinary timeout is enough.
    campaign_at_ms: Option<u64>,
    /// Until when a campaign without a majority is retried.
    retry_until_ms: u64,
}

impl Timers {
    pub(super) fn stop(&mut self) {
        self.campaign_at_ms = None;
    }
}

impl Shard {
    /// A lone voter has nobody to wait for (B4-51).
    pub(super) fn start_timers(&mut self, now_ms: u64) {
        let conf = self.conf();
        if conf.voters == [self.node] && !conf.is_joint() && self.repair.is_none() {
            self.timers.campaign_at_ms = Some(now_ms);
        }
    }

    /// When `fire_timers` has something to do.
    pub(crate) fn timer_ms(&self) -> Option<u64> {
        let timers = [self.timers.campaign_at_ms, self.notice.due_ms()];
        timers.into_iter().flatten().min()
    }

    /// One engine tick.
    pub(crate) fn tick(&mut self) {
        if !self.is_leader() {
            let is_last_tick = self.raw.raft.election_elapsed + 1 >= self.timeout_ticks;
            // A node that may not campaign now stays just before its timeout and tries again next tick.
            if is_last_tick && self.raw.raft.promotable() && !self.may_campaign() {
                return;
            }
        }
        let has_campaigned = self.raw.tick() && !self.is_leader();
        self.settle(Cause::Tick);
        if has_campaigned {
            // Without a change of role the engine keeps the old timeout: two nodes could stay in step for ever.
            self.draw_timeout();
        }
        if self.is_leader() {
            self.hand_over_when_leaving();
            self.hand_over_when_stalled();
        } else {
            self.forget_stall();
        }
    }

    /// Does what is due: a notice, a campaign whose short timer ran out.
    pub(crate) fn fire_timers(&mut self, now_ms: u64) {
        self.give_notice(now_ms);
        let Some(at_ms) = self.timers.campaign_at_ms else {
            return;
        };
        if self.is_leader() || !self.raw.raft.promotable() || !self.is_sound() {
            self.timers.stop();
            return;
        }
        if now_ms < at_ms {
            return;
        }
        if !self.may_campaign() {
            self.timers.campaign_at_ms = Some(now_ms + *FIRST_WAIT_MS.start());
            return;
        }
        self.timers.campaign_at_ms = None;
        self.start_campaign(Cause::ShortTimer);
        if !self.is_leader() && now_ms < self.timers.retry_until_ms {
            self.timers.campaign_at_ms = Some(now_ms + self.rng.u64(RETRY_WAIT_MS));
        }
    }

    /// A campaign that the caller asked for.
    pub(crate) fn campaign_on_request(&mut self) {
        if self.may_campaign() {
            self.start_campaign(Cause::Request);
        } else if self.raw.raft.promotable() && self.repair.is_none() && !self.is_leader() {
            self.timers.campaign_at_ms = Some(0);
        }
    }

    /// The connection to `peer` is gone for good.
    pub(crate) fn peer_gone(&mut self, peer: NodeId, now_ms: u64) {
        self.peer_unreachable(peer);
        if peer == self.node || self.is_leader() || self.raw.raft.leader_id != peer {
            return;
        }
        let term = self.raw.raft.term;
        self.raw.raft.become_follower(term, raft::INVALID_ID);
        self.settle(Cause::PeerGone);
        self.draw_timeout();
        if self.raw.raft.promotable() {
            self.timers.campaign_at_ms = Some(now_ms + self.rng.u64(FIRST_WAIT_MS));
            self.timers.retry_until_ms = now_ms + RETRY_PHASE_MS;
        }
    }

    /// This node voted for another: a short timer must not disturb that one before it can be heard.
    pub(super) fn yield_to_candidate(&mut self, now_ms: u64) {
        if self.timers.campaign_at_ms.is_some() {
            self.timers.campaign_at_ms = Some(now_ms + self.rng.u64(RETRY_WAIT_MS));
        }
    }

    /// A message to `peer` was probably lost.
    pub(crate) fn peer_unreachable(&mut self, peer: NodeId) {
        if self.is_leader() && peer != self.node {
            self.raw.report_unreachable(peer);
            self.settle(Cause::Other);
        }
    }

    pub(crate) fn set_priority(&mut self, priority: i64) {
        self.raw.set_priority(priority);
    }

    /// Whether the engine can campaign without breaking its own assumptions.
    pub(super) fn may_campaign(&self) -> bool {
        let raft = &self.raw.raft;
        let log = &raft.raft_log;
        let is_durable = self.pending.is_empty()
            && log.unstable_entries().is_empty()
            && log.unstable_snapshot().is_none()
            && log.persisted == log.last_index();
        is_durable
            && self.is_sound()
            && self.installing.is_none()
            && raft.promotable()
            && !self.is_leader()
    }

    fn is_sound(&self) -> bool {
        self.repair.is_none() || planted::active(Bug::RepairingCampaigns)
    }

    fn start_campaign(&mut self, cause: Cause) {
        assert!(self.may_campaign(), "a campaign must be checked first");
        // An error would mean that the engine dropped the request: the ordinary timeout covers that.
        let _ = self.raw.campaign();
        self.settle(cause);
        self.draw_timeout();
    }
}
