//! The line of one key in one queue: which of its tasks may be claimed now.
//!
//! The smallest limit among its tasks holds. With limit 1 only the task that was submitted first may
//! be claimed, and while it is claimed or waits for a retry nobody else; with a greater limit the
//! first ready ones, as many as the live claims leave room for. What may be claimed is *offered*:
//! it stands in the queue's ready lines; the others wait here, so that a claim never meets them.
//!
//! What is offered follows from the members alone, whatever the order in which they came, so a
//! restored shard offers the same.

use std::collections::BTreeMap;

use crate::Labels;

/// Members among which one is looked for that holds the others up.
const HOLDER_LOOK_MAX: usize = 10_000;

/// A ready task in line: its slot, and what it wants of its worker.
type Waiting = (u32, Labels);

/// Tasks of one key that are ready, claimed or waiting for a retry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyLine {
    /// All members by place of submission.
    members: BTreeMap<u64, Member>,
    /// Ready members that may not be claimed yet, by ready key.
    waiting: BTreeMap<u64, Waiting>,
    /// Ready members that stand in the queue's ready lines, by ready key.
    offered: BTreeMap<u64, Waiting>,
    claimed: usize,
    /// How many members have each limit.
    limits: BTreeMap<u16, u32>,
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// Ready, with this ready key.
    Ready(u64),
    /// Claimed or waiting for a retry, in this slot.
    Busy(u32),
}

impl Member {
    fn ready_key(self) -> Option<u64> {
        match self {
            Member::Ready(ready_key) => Some(ready_key),
            Member::Busy(_) => None,
        }
    }
}

/// A change to the queue's ready lines.
pub(crate) enum Turn {
    /// The task may be claimed now.
    Offer(u64, Waiting),
    /// The task must wait again.
    Withdraw(u64, Waiting),
}

impl KeyLine {
    /// Whether nobody is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Ready members that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the ready member with this ready key may be claimed.
    pub(crate) fn is_offered(&self, ready_key: u64) -> bool {
        self.offered.contains_key(&ready_key)
    }

    /// A ready task comes.
    pub(crate) fn add_ready(&mut self, place: u64, limit: u16, ready_key: u64, task: Waiting) {
        self.add(place, limit, Member::Ready(ready_key));
        self.waiting.insert(ready_key, task);
    }

    /// A claimed task, or one that waits for a retry, comes.
    pub(crate) fn add_busy(&mut self, place: u64, limit: u16, slot: u32, claimed: bool) {
        self.add(place, limit, Member::Busy(slot));
        self.claimed += usize::from(claimed);
    }

    fn add(&mut self, place: u64, limit: u16, member: Member) {
        self.members.insert(place, member);
        *self.limits.entry(limit).or_default() += 1;
    }

    /// A member goes; tells the offer that must be withdrawn, if it was offered.
    pub(crate) fn remove(
        &mut self,
        place: u64,
        limit: u16,
        claimed: bool,
    ) -> Option<(u64, Waiting)> {
        let member = self.members.remove(&place)?;
        if let Some(count) = self.limits.get_mut(&limit) {
            *count -= 1;
            if *count == 0 {
                self.limits.remove(&limit);
            }
        }
        self.claimed -= usize::from(claimed);
        let ready_key = member.ready_key()?;
        self.waiting.remove(&ready_key);
        self.offered.remove(&ready_key).map(|task| (ready_key, task))
    }

    /// Slot of the first member that is busy, else of the first that is offered: for its sake the others wait.
    pub(crate) fn holder(&self) -> Option<u32> {
        let busy = self.members.values().take(HOLDER_LOOK_MAX).find_map(|member| match member {
            Member::Busy(slot) => Some(*slot),
            Member::Ready(_) => None,
        });
        busy.or_else(|| self.offered.first_key_value().map(|(_, (slot, _))| *slot))
    }

    /// Brings the offers in line with the members; gives the next change until there is none.
    pub(crate) fn next_turn(&mut self) -> Option<Turn> {
        let limit = self.limits.first_key_value().map_or(0, |(limit, _)| usize::from(*limit));
        if limit == 1 {
            return self.next_strict_turn();
        }
        let room = limit.saturating_sub(self.claimed);
        let last = self.offered.last_key_value().map(|(ready_key, _)| *ready_key);
        let first = self.waiting.first_key_value().map(|(ready_key, _)| *ready_key);
        match (first, last) {
            (_, Some(last)) if self.offered.len() > room => self.withdraw(last),
            (Some(first), _) if self.offered.len() < room => self.offer(first),
            (Some(first), Some(last)) if first < last => self.withdraw(last),
            _ => None,
        }
    }

    /// Strict order: nothing but the first member, and only if nobody is busy.
    fn next_strict_turn(&mut self) -> Option<Turn> {
        let head = self.members.first_key_value().and_then(|(_, member)| member.ready_key());
        let head = head.filter(|_| self.claimed == 0);
        let wrong = self.offered.keys().copied().find(|ready_key| Some(*ready_key) != head);
        if let Some(wrong) = wrong {
            return self.withdraw(wrong);
        }
        head.filter(|_| self.offered.is_empty()).and_then(|head| self.offer(head))
    }

    fn offer(&mut self, ready_key: u64) -> Option<Turn> {
        let task = self.waiting.remove(&ready_key)?;
        self.offered.insert(ready_key, task.clone());
        Some(Turn::Offer(ready_key, task))
    }

    fn withdraw(&mut self, ready_key: u64) -> Option<Turn> {
        let task = self.offered.remove(&ready_key)?;
        self.waiting.insert(ready_key, task.clone());
        Some(Turn::Withdraw(ready_key, task))
    }
}
