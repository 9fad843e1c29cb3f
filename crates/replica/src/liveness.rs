//! Which claims are alive, as their shard's leader sees it.
//!
//! Promise: a claim is offered for expiry only after this leader's monotonic clock saw a whole ttl since the grant,
//! the last renewal, or the moment it became leader, whichever is latest (Q6); a leader that slept through it all
//! gives everyone a fresh ttl, so that no stall ends in mass expiry. Renewals cost no log entry (TQ-13). A task's
//! timeout is judged by the same clock, from the grant or the moment this node became leader, and no renewal moves it.
//!
//! It also knows which claims their workers have confirmed by a renewal, and since when an unconfirmed one is missing
//! from its worker's lists; see `gate/roll_call.rs`. A new leader has seen no confirmation yet. Those not confirmed are
//! listed by session, so that a roll call looks at the claims of its own session alone; a claim leaves the list with
//! its confirmation or its end, so that the list is never longer than the live claims.
//!
//! It keeps the newest word of each claim's worker about how far it is, too (TQ-19): it came with a renewal, costs no log
//! entry, and goes with the claim. A new leader has it again from the next renewal on.
//!
//! Leaves out: the decision. Expiry is a command; its fence check in apply decides whether it counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use ikada_state::{ExpireCause, Fence, Progress, SessionId};

/// How long after an expiry was proposed it is proposed again, should the first be lost.
const REPROPOSE_MS: u64 = 1_000;
/// A gap between two looks at the clock longer than this means the process slept: every claim starts afresh.
pub const STALL_MS: u64 = 1_000;
/// How long an unconfirmed claim may be missing from its worker's lists: an answer on its way arrives sooner.
pub const MISSING_MS: u64 = 2_000;

/// Most claims whose progress is kept; of more, those that come first have theirs shown.
const PROGRESS_MAX: usize = 65_536;

#[derive(Debug, Clone, Copy)]
struct Live {
    fence: Fence,
    session: SessionId,
    ttl_ms: u64,
    deadline_ms: u64,
    /// End of the whole attempt, renewed or not.
    limit_ms: u64,
    /// Its end was offered and may be in the log already: too late for a renewal.
    ending: bool,
    /// Its worker has named it in a renewal.
    confirmed: bool,
    /// When a list of its session first lacked it; 0 if none did.
    missing_ms: u64,
}

/// The live claims of one shard; empty on nodes that do not lead it.
#[derive(Debug, Default)]
pub struct Liveness {
    /// By the task's slot in the state.
    claims: Vec<Option<Live>>,
    /// (when to look again, slot, fence); entries whose claim is gone or renewed are passed over lazily.
    due: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// Live claims that were not confirmed: session and slot.
    unconfirmed: BTreeSet<(SessionId, u32)>,
    /// How far attempts are, by the task's slot.
    progress: BTreeMap<u32, (Fence, Progress)>,
    looked_ms: u64,
}

impl Liveness {
    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Liveness::default();
    }

    /// A claim was granted, or is found alive by a new leader.
    /// `timeout_ms` bounds the whole attempt; 0 does not.
    pub fn grant(
        &mut self,
        slot: u32,
        fence: Fence,
        session: SessionId,
        ttl_ms: u64,
        timeout_ms: u64,
        now_ms: u64,
    ) {
        let deadline_ms = now_ms + ttl_ms;
        let limit_ms = if timeout_ms == 0 { u64::MAX } else { now_ms + timeout_ms };
        let index = slot as usize;
        if self.claims.len() <= index {
            self.claims.resize(index + 1, None);
        }
        let live = Live {
            fence,
            session,
            ttl_ms,
            deadline_ms,
            limit_ms,
            ending: false,
            confirmed: false,
            missing_ms: 0,
        };
        if let Some(before) = self.claims[index].replace(live) {
            self.unconfirmed.remove(&(before.session, slot));
        }
        self.progress.remove(&slot);
        self.due.push(Reverse((deadline_ms.min(limit_ms), slot, fence.0)));
        self.unconfirmed.insert((session, slot));
    }

    fn live(&self, slot: u32, fence: Fence) -> Option<&Live> {
        let live = self.claims.get(slot as usize)?.as_ref()?;
        (live.fence == fence).then_some(live)
    }

    /// Whether the claim is alive here and its worker has named it in a renewal.
    pub fn is_confirmed(&self, slot: u32, fence: Fence) -> bool {
        self.live(slot, fence).is_some_and(|live| live.confirmed)
    }

    /// Live claims of a session (of whichever worker) that were not confirmed, by slot.
    pub fn unconfirmed(&self, session: SessionId) -> Vec<(u32, Fence)> {
        let of_session = self.unconfirmed.range((session, 0)..=(session, u32::MAX));
        let fence = |slot: u32| Some(self.claims.get(slot as usize)?.as_ref()?.fence);
        of_session.filter_map(|(_, slot)| Some((*slot, fence(*slot)?))).collect()
    }

    /// A list of the claim's session lacks it: true when that is so for long, and its end should be proposed.
    pub fn is_long_missing(&mut self, slot: u32, fence: Fence, now_ms: u64) -> bool {
        let Some(Some(live)) = self.claims.get_mut(slot as usize) else {
            return false;
        };
        if live.fence != fence || live.confirmed {
            return false;
        }
        if live.missing_ms == 0 {
            live.missing_ms = now_ms.max(1);
            return false;
        }
        let is_long = now_ms.saturating_sub(live.missing_ms) >= MISSING_MS;
        if is_long {
            live.ending = true;
            // Should the proposal be lost, the next one is due after the same time.
            live.missing_ms = now_ms.max(1);
        }
        is_long
    }

    /// The claim has ended.
    pub fn release(&mut self, slot: u32, fence: Fence) {
        if let Some(place) = self.claims.get_mut(slot as usize)
            && let Some(live) = place.take_if(|live| live.fence == fence)
        {
            self.unconfirmed.remove(&(live.session, slot));
            self.progress.remove(&slot);
        }
    }

    /// Keeps how far an attempt is, if its claim is alive and there is room.
    pub fn note_progress(&mut self, slot: u32, fence: Fence, progress: Progress) {
        let has_room = self.progress.len() < PROGRESS_MAX || self.progress.contains_key(&slot);
        if has_room && self.live(slot, fence).is_some() {
            self.progress.insert(slot, (fence, progress));
        }
    }

    /// How far an attempt is, by the newest word of its worker.
    pub fn progress(&self, slot: u32, fence: Fence) -> Option<&Progress> {
        self.progress.get(&slot).filter(|(of, _)| *of == fence).map(|(_, progress)| progress)
    }

    /// The worker lives: its claim gets a whole ttl again, or what its timeout leaves. `None` when no such claim is
    /// alive here, or its end is under way: a renewal that was confirmed must never be overruled (Q6).
    pub fn renew(&mut self, slot: u32, fence: Fence, now_ms: u64) -> Option<u64> {
        let live = self.claims.get_mut(slot as usize)?.as_mut()?;
        if live.fence != fence || live.ending || live.limit_ms <= now_ms {
            return None;
        }
        if !live.confirmed {
            live.confirmed = true;
            self.unconfirmed.remove(&(live.session, slot));
        }
        live.deadline_ms = now_ms + live.ttl_ms;
        Some(live.ttl_ms.min(live.limit_ms - now_ms))
    }

    /// Claims whose ttl or timeout has run out, and which of the two, at most `count_max`; each is offered again
    /// later, should its expiry be lost.
    pub fn expired(&mut self, now_ms: u64, count_max: usize) -> Vec<(u32, Fence, ExpireCause)> {
        if now_ms.saturating_sub(self.looked_ms) > STALL_MS && self.looked_ms > 0 {
            self.start_afresh(now_ms);
        }
        self.looked_ms = now_ms;
        let mut out = Vec::new();
        while let Some(Reverse((at, slot, fence))) = self.due.peek().copied() {
            if at > now_ms || out.len() >= count_max {
                break;
            }
            self.due.pop();
            let Some(Some(live)) = self.claims.get_mut(slot as usize) else {
                continue;
            };
            if live.fence.0 != fence {
                continue;
            }
            let cause = match (live.limit_ms <= now_ms, live.deadline_ms <= now_ms) {
                (true, _) => ExpireCause::TimedOut,
                (false, true) => ExpireCause::Silent,
                (false, false) => {
                    self.due.push(Reverse((live.deadline_ms.min(live.limit_ms), slot, fence)));
                    continue;
                }
            };
            live.ending = true;
            out.push((slot, live.fence, cause));
            self.due.push(Reverse((now_ms + REPROPOSE_MS, slot, fence)));
        }
        out
    }

    fn start_afresh(&mut self, now_ms: u64) {
        for live in self.claims.iter_mut().flatten().filter(|live| !live.ending) {
            live.deadline_ms = now_ms + live.ttl_ms;
            // A worker that finished meanwhile gets the time to say so.
            live.limit_ms = live.limit_ms.max(live.deadline_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: ExpireCause = ExpireCause::Silent;

    #[test]
    fn renewals_do_not_move_the_timeout() {
        let mut live = Liveness::default();
        live.grant(3, Fence(1), SessionId(1), 1_000, 2_500, 0);
        for now_ms in [500, 1_000, 1_500] {
            assert_eq!(live.renew(3, Fence(1), now_ms), Some(1_000));
            assert_eq!(live.expired(now_ms, 10), vec![]);
        }
        assert_eq!(live.renew(3, Fence(1), 2_000), Some(500), "what the timeout leaves");
        assert_eq!(live.expired(2_499, 10), vec![]);
        assert_eq!(live.expired(2_500, 10), vec![(3, Fence(1), ExpireCause::TimedOut)]);
        assert_eq!(live.renew(3, Fence(1), 2_500), None);
        live.grant(4, Fence(2), SessionId(1), 1_000, 600, 3_000);
        assert_eq!(live.expired(3_500, 10), vec![(3, Fence(1), ExpireCause::TimedOut)]);
        assert_eq!(live.expired(3_600, 10), vec![(4, Fence(2), ExpireCause::TimedOut)]);
    }

    // TQ-12
    #[test]
    fn tq_12_a_claim_survives_sweeps_within_its_ttl_and_not_beyond() {
        // TQ-12: a 30 s claim survives 29 s of sweeps and not 31 s.
        let mut live = Liveness::default();
        live.grant(7, Fence(1), SessionId(1), 30_000, 0, 0);
        for second in 1..=29 {
            assert!(live.expired(second * 1_000, 10).is_empty());
        }
        assert_eq!(live.expired(30_000, 10), vec![(7, Fence(1), SILENT)]);
        assert_eq!(live.expired(30_900, 10), vec![]);
        assert_eq!(live.expired(31_000, 10), vec![(7, Fence(1), SILENT)]);
        live.release(7, Fence(1));
        live.grant(7, Fence(2), SessionId(1), 1_000, 0, 31_000);
        assert_eq!(live.expired(31_900, 10), vec![]);
        assert_eq!(live.expired(32_000, 10), vec![(7, Fence(2), SILENT)]);
        // Offered once, then again only after a while.
        assert_eq!(live.expired(32_100, 10), vec![]);
        assert_eq!(live.expired(33_000, 10), vec![(7, Fence(2), SILENT)]);
    }

    #[test]
    fn renewal_and_release_are_honoured() {
        let mut live = Liveness::default();
        live.grant(0, Fence(5), SessionId(1), 1_000, 0, 0);
        assert_eq!(live.renew(0, Fence(5), 900), Some(1_000));
        assert_eq!(live.renew(0, Fence(4), 900), None);
        assert_eq!(live.expired(1_000, 10), vec![]);
        assert_eq!(live.expired(1_900, 10), vec![(0, Fence(5), SILENT)]);
        assert_eq!(live.renew(0, Fence(5), 1_950), None, "its expiry is under way");
        live.release(0, Fence(5));
        assert_eq!(live.expired(2_900, 10), vec![]);
    }

    #[test]
    fn a_leader_that_slept_gives_everyone_a_fresh_ttl() {
        // F-10: no mass expiry on wake.
        let mut live = Liveness::default();
        for slot in 0..100 {
            live.grant(slot, Fence(u64::from(slot) + 1), SessionId(1), 2_000, 0, 0);
        }
        live.expired(500, 1_000);
        assert_eq!(live.expired(20_500, 1_000), vec![]);
        assert_eq!(live.expired(21_400, 1_000), vec![]);
        live.expired(22_000, 1_000);
        assert_eq!(live.expired(22_600, 1_000).len(), 100);
    }

    #[test]
    fn only_what_stays_missing_and_was_never_confirmed_is_returned() {
        let mut live = Liveness::default();
        live.grant(0, Fence(1), SessionId(7), 30_000, 0, 0);
        live.grant(1, Fence(2), SessionId(7), 30_000, 0, 0);
        live.grant(2, Fence(3), SessionId(8), 30_000, 0, 0);
        assert_eq!(live.unconfirmed(SessionId(7)), vec![(0, Fence(1)), (1, Fence(2))]);
        assert!(!live.is_long_missing(0, Fence(1), 0), "an answer may be on its way");
        assert!(!live.is_long_missing(0, Fence(1), MISSING_MS - 1));
        assert_eq!(live.renew(1, Fence(2), 100), Some(30_000));
        assert!(live.is_confirmed(1, Fence(2)));
        assert_eq!(live.unconfirmed(SessionId(7)), vec![(0, Fence(1))]);
        assert!(!live.is_long_missing(1, Fence(2), 60_000), "it was confirmed once");
        assert!(live.is_long_missing(0, Fence(1), MISSING_MS + 1));
        assert_eq!(live.renew(0, Fence(1), MISSING_MS + 2), None, "its end is under way");
        live.release(0, Fence(1));
        assert_eq!(live.unconfirmed(SessionId(7)), vec![]);
    }

    #[test]
    fn tq_19_progress_is_kept_with_its_claim_and_bounded() {
        let mut live = Liveness::default();
        let half = Progress::new(500, "half");
        live.note_progress(3, Fence(1), half.clone());
        assert_eq!(live.progress(3, Fence(1)), None, "no such claim");
        live.grant(3, Fence(1), SessionId(1), 30_000, 0, 0);
        live.note_progress(3, Fence(2), half.clone());
        assert_eq!(live.progress(3, Fence(2)), None, "another attempt's fence");
        live.note_progress(3, Fence(1), half.clone());
        assert_eq!(live.progress(3, Fence(1)), Some(&half));
        live.grant(3, Fence(4), SessionId(1), 30_000, 0, 0);
        assert_eq!(live.progress(3, Fence(4)), None, "the next attempt begins anew");
        live.note_progress(3, Fence(4), half.clone());
        live.release(3, Fence(4));
        assert_eq!(live.progress.len(), 0);
        for slot in 0..PROGRESS_MAX as u32 + 10 {
            live.grant(slot, Fence(9), SessionId(1), 30_000, 0, 0);
            live.note_progress(slot, Fence(9), half.clone());
        }
        assert_eq!(live.progress.len(), PROGRESS_MAX);
    }

    // TQ-13: what a roll call looks at does not grow with what the shard has seen, nor with the claims of others.
    #[test]
    fn tq_13_claims_leave_the_list_of_unconfirmed_ones_when_they_are_confirmed_or_end() {
        let mut live = Liveness::default();
        // A high place: a shard that once had many claims at a time.
        live.grant(100_000, Fence(1), SessionId(1), 30_000, 0, 0);
        for number in 2..1_000 {
            live.grant(3, Fence(number), SessionId(number), 30_000, 0, 0);
            live.release(3, Fence(number));
            live.grant(4, Fence(number), SessionId(2), 30_000, 0, 0);
            live.renew(4, Fence(number), 1);
            // Not released: the next claim of the same place takes over.
            live.grant(5, Fence(number), SessionId(number), 30_000, 0, 0);
        }
        assert_eq!(live.unconfirmed.len(), 2);
        assert_eq!(live.unconfirmed(SessionId(1)), vec![(100_000, Fence(1))]);
        assert_eq!(live.unconfirmed(SessionId(2)), vec![]);
        assert_eq!(live.unconfirmed(SessionId(998)), vec![]);
        assert_eq!(live.unconfirmed(SessionId(999)), vec![(5, Fence(999))]);
        live.release(5, Fence(998));
        assert_eq!(live.unconfirmed.len(), 2, "another attempt's end");
        live.release(5, Fence(999));
        assert_eq!(live.unconfirmed.len(), 1);
    }
}
