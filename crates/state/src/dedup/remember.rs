//! How orders are checked against the windows, and how the windows forget.

use super::{
    ClaimEntry, GrantMark, Grants, Outcome, RecordedRequest, Ring, RingEntry, SettledEntry,
    SubmitEntry, VOIDS_MAX, VoidEntry,
};
use crate::hash::{Lookup, StateHash};
use crate::ids::request_hash;
use crate::shard::Shard;
use crate::{Namespace, RefusalCode, RequestKey};

/// A window while it is being changed: the stored list, its lookup table and the state hash.
pub(crate) struct Window<'a, T> {
    pub(crate) ring: &'a mut Ring<T>,
    pub(crate) lookup: &'a mut Lookup,
    pub(crate) hash: &'a mut StateHash,
    /// Sum of the entries' weights.
    pub(crate) weight: &'a mut u64,
}

impl<T: RingEntry> Window<'_, T> {
    fn remember(&mut self, entry: T, count_max: u32, weight_max: u64) {
        let weight = entry.weight();
        if count_max == 0 || weight > weight_max {
            return;
        }
        while self.ring.len() >= count_max as usize || *self.weight + weight > weight_max {
            self.forget_oldest();
        }
        *self.weight += weight;
        let key = entry.key();
        self.hash.add(entry.digest(self.ring.next_number()));
        let number = self.ring.push(entry);
        self.lookup.insert(key[0], number as u32);
    }

    fn forget_oldest(&mut self) {
        if let Some((number, entry)) = self.ring.pop() {
            *self.weight -= entry.weight();
            self.lookup.remove(entry.key()[0], number as u32);
            self.hash.remove(entry.digest(number));
        }
    }

    fn forget_aged(&mut self, before_ms: u64, steps_max: u32) {
        for _ in 0..steps_max {
            match self.ring.front() {
                Some(entry) if entry.time_ms() < before_ms => self.forget_oldest(),
                _ => return,
            }
        }
    }
}

/// Finds the entry of a key. The table holds the low half of each number; the full number lies
/// within one window length of the oldest.
pub(crate) fn find_entry<'a, T: RingEntry>(
    ring: &'a Ring<T>,
    lookup: &Lookup,
    key: [u64; 2],
) -> Option<&'a T> {
    let number_of = |low: u32| ring.head() + u64::from(low.wrapping_sub(ring.head() as u32));
    let is_it = |low| ring.get(number_of(low)).is_some_and(|entry| entry.key() == key);
    let low = lookup.find(key[0], is_it)?;
    ring.get(number_of(low))
}

impl Shard {
    fn submit_window(&mut self) -> Window<'_, SubmitEntry> {
        Window {
            ring: &mut self.core.submits,
            lookup: &mut self.index.submits,
            hash: &mut self.core.hash,
            weight: &mut self.index.submit_weight,
        }
    }

    fn claim_window(&mut self) -> Window<'_, ClaimEntry> {
        Window {
            ring: &mut self.core.claims,
            lookup: &mut self.index.claims,
            hash: &mut self.core.hash,
            weight: &mut self.index.claim_weight,
        }
    }

    /// The first outcome of a submission, if it is remembered; refused if its body was another.
    pub(crate) fn recall_submit(
        &self,
        key: [u64; 2],
        body_hash: u64,
    ) -> Option<Result<Outcome, RefusalCode>> {
        let entry = find_entry(&self.core.submits, &self.index.submits, key)?;
        match entry.body_hash == body_hash {
            true => Some(Ok(entry.outcome)),
            false => Some(Err(RefusalCode::IdempotencyConflict)),
        }
    }

    /// Remembers the outcome of a submission.
    pub(crate) fn remember_submit(
        &mut self,
        key: [u64; 2],
        body_hash: u64,
        outcome: Outcome,
        slot: Option<u16>,
    ) {
        let (time_ms, count_max) = (self.core.time_ms, self.core.limits.submit_window_max);
        let entry = SubmitEntry::new(key, body_hash, time_ms, outcome, slot);
        if let Some(by_slot) = &mut self.index.by_slot {
            by_slot.note_submit(slot, self.core.submits.next_number());
        }
        self.submit_window().remember(entry, count_max, u64::MAX);
    }

    /// Remembers a submission that was made where its slot was before.
    pub(crate) fn adopt_submit(&mut self, entry: SubmitEntry) {
        if find_entry(&self.core.submits, &self.index.submits, entry.key).is_some() {
            return;
        }
        if let Some(by_slot) = &mut self.index.by_slot {
            by_slot.note_submit(entry.slot(), self.core.submits.next_number());
        }
        let count_max = self.core.limits.submit_window_max;
        self.submit_window().remember(entry, count_max, u64::MAX);
    }

    /// The grants of a claim, if it is remembered; refused if its body was another.
    pub(crate) fn recall_claim(
        &self,
        key: [u64; 2],
        body_hash: u64,
    ) -> Option<Result<Grants, RefusalCode>> {
        let entry = find_entry(&self.core.claims, &self.index.claims, key)?;
        match entry.body_hash == body_hash {
            true => Some(Ok(entry.grants.clone())),
            false => Some(Err(RefusalCode::IdempotencyConflict)),
        }
    }

    /// Remembers the grants of a claim.
    pub(crate) fn remember_claim(&mut self, key: [u64; 2], body_hash: u64, grants: Vec<GrantMark>) {
        let (time_ms, count_max) = (self.core.time_ms, self.core.limits.claim_window_max);
        let weight_max = self.core.limits.claim_marks_max;
        let entry = ClaimEntry { key, body_hash, time_ms, grants: grants.into() };
        self.claim_window().remember(entry, count_max, weight_max);
    }

    /// Forgets requests older than their window, in bounded steps.
    pub(crate) fn forget_requests(&mut self) {
        let (time_ms, limits) = (self.core.time_ms, &self.core.limits);
        let steps_max = limits.forget_per_entry_max;
        let submits_before = time_ms.saturating_sub(limits.submit_window_ms);
        let claims_before = time_ms.saturating_sub(limits.claim_window_ms);
        self.submit_window().forget_aged(submits_before, steps_max);
        self.claim_window().forget_aged(claims_before, steps_max);
        self.void_window().forget_aged(submits_before, steps_max);
        self.settled_window().forget_aged(claims_before, steps_max);
    }

    fn void_window(&mut self) -> Window<'_, VoidEntry> {
        Window {
            ring: &mut self.core.voids,
            lookup: &mut self.index.voids,
            hash: &mut self.core.hash,
            weight: &mut self.index.void_weight,
        }
    }

    fn settled_window(&mut self) -> Window<'_, SettledEntry> {
        Window {
            ring: &mut self.core.settled,
            lookup: &mut self.index.settled,
            hash: &mut self.core.hash,
            weight: &mut self.index.settled_weight,
        }
    }

    /// Keeps a report that settled a task; the caller has checked that it is not there.
    pub(crate) fn keep_settled(&mut self, entry: SettledEntry) {
        let count_max = self.core.limits.claim_window_max;
        self.settled_window().remember(entry, count_max, u64::MAX);
    }

    /// Keeps a tombstone; the caller has checked that there is room.
    pub(crate) fn remember_void(&mut self, entry: VoidEntry) {
        self.void_window().remember(entry, VOIDS_MAX as u32, u64::MAX);
    }

    /// The tombstone of a key.
    pub(crate) fn find_void(&self, key: [u64; 2]) -> Option<&VoidEntry> {
        find_entry(&self.core.voids, &self.index.voids, key)
    }

    /// Whether a claim under this key was granted something and is remembered.
    pub fn is_claim_remembered(&self, namespace: &Namespace, key: &RequestKey) -> bool {
        let key = request_hash(namespace, key);
        find_entry(&self.core.claims, &self.index.claims, key).is_some()
    }

    /// What became of a request of the submit window; none if it is unknown or forgotten.
    pub fn request(&self, namespace: &Namespace, key: &RequestKey) -> Option<RecordedRequest> {
        let key = request_hash(namespace, key);
        let entry = find_entry(&self.core.submits, &self.index.submits, key)?;
        Some(RecordedRequest { time_ms: entry.time_ms(), outcome: entry.outcome })
    }
}
