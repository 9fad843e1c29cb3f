//! Taking the lease, renewing it, giving it up.
//!
//! Promises: an acquisition always has a higher epoch than anything seen before (P2); a lease counts from before its
//! question was sent (P3); whoever steps down leads again only under a new epoch, so that an index is proposed at most once per
//! epoch. A renewal that failed is no loss by itself: the lease still holds until its time is over.

use super::tail::Install;
use super::{Answer, Known, Lease, LeaseShard, Stand, Work};
use crate::config::NodeId;
use crate::errors::{NotLeader, TransferError};
use crate::outbox::Reason;
use crate::planted::{self, Bug};

/// A lease that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) epoch: u64,
    /// We act on it until then, by our clock.
    until_ms: u64,
    /// When it is renewed.
    renew_ms: u64,
}

impl Hold {
    /// When something has to be done about it.
    pub(super) fn next_ms(&self, is_asking: bool) -> u64 {
        if is_asking { self.until_ms } else { self.until_ms.min(self.renew_ms) }
    }
}

/// When what is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Trying to take the lease; never before a look at it.
    pub(super) take_ms: u64,
    /// Reading the log.
    pub(super) poll_ms: u64,
}

/// So many leases are taken by another process under our id before we say so: what a process that died had asked for may be carried
/// out late, but not again and again.
const TWIN_TAKINGS: u32 = 3;

/// What is known of another process that runs under this node's id, as with a copy of its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Twin {
    /// Highest epoch looked at; 0 before the first look.
    epoch: u64,
    takings: u32,
}

impl Twin {
    /// Looks at a lease; whether somebody else lives as this node. What was there at the first look was an earlier life.
    fn is_there(&mut self, node: NodeId, lease: &Lease) -> bool {
        let is_first = self.epoch == 0;
        if lease.epoch > self.epoch {
            self.epoch = lease.epoch;
            self.takings += u32::from(!is_first && lease.holder == node && !lease.is_ours);
        }
        self.takings >= TWIN_TAKINGS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Take,
    Renew,
    Release,
}

/// A question about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseAsk {
    pub(super) id: u64,
    purpose: Purpose,
    sent_ms: u64,
    floor: Known,
}

impl LeaseShard {
    /// Asks for what is due: to take, to renew, to release. Stops leading when the lease's time is over.
    pub(super) fn keep_lease(&mut self) {
        let now_ms = self.now_ms;
        let Some(hold) = self.hold() else {
            let may_take = self.under_way.lease.is_none() && self.install == Install::Nothing;
            if may_take && now_ms >= self.due.take_ms {
                self.due.take_ms = u64::MAX;
                let (ttl_ms, known) = (self.config.ttl_ms, self.known());
                self.ask_lease(Purpose::Take, Work::Take { ttl_ms, known });
            }
            return;
        };
        if now_ms >= hold.until_ms {
            self.step_down(Reason::LeaseRanOut);
        } else if self.under_way.lease.is_some() {
            // One at a time.
        } else if let Some(to) = self.leaving.filter(|_| self.is_drained()) {
            let to = Some(to).filter(|to| *to != 0);
            self.ask_lease(Purpose::Release, Work::Release { epoch: hold.epoch, to });
        } else if now_ms >= hold.renew_ms {
            let work = Work::Renew { epoch: hold.epoch, ttl_ms: self.config.ttl_ms };
            self.ask_lease(Purpose::Renew, work);
        }
    }

    fn ask_lease(&mut self, purpose: Purpose, work: Work) {
        let (sent_ms, floor) = (self.now_ms, self.known());
        let id = self.ask(work);
        self.under_way.lease = Some(LeaseAsk { id, purpose, sent_ms, floor });
    }

    pub(super) fn lease_answered(&mut self, answer: &Answer) {
        let Some(ask) = self.under_way.lease.take() else { return };
        let Answer::Lease(lease) = answer else {
            self.lease_failed();
            return;
        };
        if !self.learn(lease, ask.floor) {
            return;
        }
        match (ask.purpose, self.hold()) {
            (Purpose::Take, None) if lease.is_ours => {
                if lease.epoch <= ask.floor.epoch {
                    let (new, old) = (lease.epoch, ask.floor.epoch);
                    self.fault(format!("the database gave epoch {new} after epoch {old}"));
                    return;
                }
                let hold = self.hold_from(lease.epoch, ask.sent_ms);
                self.stand = Stand::CatchesUp(hold);
                if planted::active(Bug::LeaseWithoutReading) {
                    self.stand = Stand::Leads(hold);
                }
                self.due.poll_ms = self.now_ms;
                self.report(Reason::LeaseTaken);
            }
            (Purpose::Renew, Some(hold)) if is_still(lease, hold) => {
                let renewed = self.hold_from(hold.epoch, ask.sent_ms);
                match &mut self.stand {
                    Stand::CatchesUp(hold) | Stand::Leads(hold) => *hold = renewed,
                    Stand::Follows => {}
                }
            }
            // Free, and still not given to us: whether the log is the one that we know, a reading tells.
            (Purpose::Take, None) if lease.remaining_ms == 0 => self.due.poll_ms = self.now_ms,
            (Purpose::Release, Some(_)) => self.step_down(Reason::Transferred),
            (_, Some(_)) => self.step_down(Reason::LeaseLost),
            (_, None) => {}
        }
    }

    /// The lease, counted from before its question was sent.
    fn hold_from(&self, epoch: u64, sent_ms: u64) -> Hold {
        let config = &self.config;
        let is_planted = planted::active(Bug::LeaseFromAnswer);
        let sent_ms = if is_planted { self.now_ms } else { sent_ms };
        let until_ms = sent_ms + config.ttl_ms - config.margin_ms;
        Hold { epoch, until_ms, renew_ms: sent_ms + config.renew_ms }
    }

    fn lease_failed(&mut self) {
        let again_ms = self.now_ms + self.config.retry_ms;
        match &mut self.stand {
            // The next look tells when to try again.
            Stand::Follows => self.due.poll_ms = again_ms,
            Stand::CatchesUp(hold) | Stand::Leads(hold) => hold.renew_ms = again_ms,
        }
    }

    /// Takes in the lease as the database has it. False if it cannot be used: the database went back, or the answer
    /// is older than what is known by now.
    pub(super) fn learn(&mut self, lease: &Lease, floor: Known) -> bool {
        if lease.epoch < floor.epoch {
            let (now, before) = (lease.epoch, floor.epoch);
            self.set_back(&format!("the database went back from epoch {before} to {now}"));
            return false;
        }
        if lease.epoch < self.epoch_max {
            return false;
        }
        let known = self.seen.map(|(known, _)| known).filter(|known| known.epoch == lease.epoch);
        let is_other = |known: &Lease| (known.holder, known.life) != (lease.holder, lease.life);
        if let Some(known) = known.filter(is_other) {
            let (epoch, now, before) = (lease.epoch, lease.holder, known.holder);
            self.set_back(&format!(
                "epoch {epoch} was given twice: to node {before}, and to node {now} in another life"
            ));
            return false;
        }
        if self.twin.is_there(self.node, lease) {
            self.meets_twin();
            return false;
        }
        self.is_unnoted |= lease.epoch > self.epoch_max;
        self.epoch_max = lease.epoch;
        let before = self.seen.replace((*lease, self.now_ms)).map(|(before, _)| before);
        match self.hold() {
            None => {
                let planned_ms = self.try_after(lease);
                let goes_on = self.wait_goes_on(before, lease);
                let before_ms = if goes_on { self.due.take_ms } else { u64::MAX };
                self.due.take_ms = planned_ms.min(before_ms);
            }
            Some(hold) if lease.epoch > hold.epoch && !lease.is_ours => {
                self.step_down(Reason::LeaseLost);
            }
            Some(_) => {}
        }
        self.report(Reason::LeaderHeard);
        true
    }

    /// Whether the wait for our turn, once begun, is not begun anew by this look at the lease.
    fn wait_goes_on(&self, before: Option<Lease>, lease: &Lease) -> bool {
        // Longer than a ttl no lease lasts: the database's clock was moved back. A holder that lives sets the lease right
        // with its next renewal.
        let is_moved = lease.remaining_ms > self.config.ttl_ms;
        // Free, and nobody has touched it. Looks come more often than the last in line may wait: it would never have its turn.
        let same = |before: Lease| (before.epoch, before.favoured) == (lease.epoch, lease.favoured);
        let is_still_free = lease.remaining_ms == 0 && before.is_some_and(same);
        is_moved || is_still_free
    }

    /// When to try to take a lease that looks like this.
    fn try_after(&mut self, lease: &Lease) -> u64 {
        let spread_ms = self.rng.u64(0..=self.config.spread_ms);
        let is_own = lease.holder == self.node && lease.remaining_ms > 0;
        if lease.favoured == Some(self.node) || is_own {
            // Meant for us, or ours from an earlier life or an earlier epoch: nobody else may have it now.
            return self.now_ms;
        }
        let remaining_ms = lease.remaining_ms.min(self.config.ttl_ms);
        let favour_ms = if lease.favoured.is_some() { self.config.favour_ms } else { 0 };
        let behind_ms = u64::try_from(self.priority.saturating_neg()).unwrap_or(0);
        self.now_ms + remaining_ms + favour_ms + behind_ms + self.turn_ms + spread_ms
    }

    /// Leads no longer. What was proposed and is not known to be written may still be, or never will.
    pub(super) fn step_down(&mut self, reason: Reason) {
        self.stand = Stand::Follows;
        self.queue.clear();
        self.leaving = None;
        self.is_settling = false;
        self.sent_index = 0;
        self.is_unnoted = true;
        self.under_way.append = None;
        self.lose_reads();
        self.due = Due { take_ms: u64::MAX, poll_ms: self.now_ms };
        if let Some((lease, at_ms)) = self.seen.filter(|(lease, _)| lease.is_ours) {
            // Not ours any more in any sense that others could rely on.
            self.seen = Some((Lease { remaining_ms: 0, ..lease }, at_ms));
        }
        self.report(reason);
    }

    /// Gives the lease up once everything proposed is written; 0 names nobody.
    pub(crate) fn transfer(&mut self, to: NodeId) -> Result<(), TransferError> {
        self.check_leads()?;
        if to == self.node {
            return Err(TransferError::ToSelf(to));
        }
        if to != 0 && !self.conf.is_member(to) {
            return Err(TransferError::Unknown(to));
        }
        self.leaving = Some(to);
        self.keep_lease();
        Ok(())
    }

    pub(super) fn check_leads(&self) -> Result<Hold, NotLeader> {
        match self.stand {
            Stand::Leads(hold) => Ok(hold),
            _ => Err(NotLeader { leader: self.leader() }),
        }
    }

    pub(super) fn hold(&self) -> Option<Hold> {
        match self.stand {
            Stand::Follows => None,
            Stand::CatchesUp(hold) | Stand::Leads(hold) => Some(hold),
        }
    }

    fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.under_way.append.is_none()
    }
}

fn is_still(lease: &Lease, hold: Hold) -> bool {
    lease.is_ours && lease.epoch == hold.epoch
}
