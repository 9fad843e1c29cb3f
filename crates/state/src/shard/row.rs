//! Rows of tasks: an ordered map from a place to a slot, made for places that nearly always come last and leave first.
//!
//! Promise: every step costs at most the logarithm of the length; joining at the end and leaving at the front cost less.
//! Leaves out: what a place means.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::PRIORITY_MAX;

/// Marks a place in the middle that was given up.
const GONE: u32 = u32::MAX;

/// An ordered row of slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Places of those that joined at the end, in order; some may be gone, but never the first.
    places: VecDeque<u64>,
    /// Their slots, or `GONE`. Apart from the places, for side by side each would be padded to sixteen bytes.
    slots: VecDeque<u32>,
    /// Those that came back to an earlier place.
    returned: BTreeMap<u64, u32>,
    /// How many of the joined are gone.
    gone: usize,
}

impl Row {
    /// Number of slots in row.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.gone + self.returned.len()
    }

    /// Whether nobody is in row.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.returned.is_empty()
    }

    /// Puts a slot at its place, which must be free.
    pub(crate) fn insert(&mut self, place: u64, slot: u32) {
        if self.places.back().is_none_or(|last| *last < place) {
            self.places.push_back(place);
            self.slots.push_back(slot);
        } else {
            self.returned.insert(place, slot);
        }
    }

    /// Takes the slot at a place out; tells whether there was one.
    pub(crate) fn remove(&mut self, place: u64) -> bool {
        if self.places.front() == Some(&place) {
            self.pop_front();
            self.drop_gone_front();
            return true;
        }
        if !self.returned.is_empty() && self.returned.remove(&place).is_some() {
            return true;
        }
        let Ok(at) = self.places.binary_search(&place) else {
            return false;
        };
        if self.slots[at] == GONE {
            return false;
        }
        self.slots[at] = GONE;
        self.gone += 1;
        if self.gone > self.places.len() / 2 {
            let mut kept = self.slots.iter().map(|slot| *slot != GONE);
            self.places.retain(|_| kept.next().unwrap_or(false));
            self.slots.retain(|slot| *slot != GONE);
            self.gone = 0;
        }
        true
    }

    fn pop_front(&mut self) {
        self.places.pop_front();
        self.slots.pop_front();
    }

    fn drop_gone_front(&mut self) {
        while self.slots.front() == Some(&GONE) {
            self.pop_front();
            self.gone -= 1;
        }
        // A line that was long once should not hold its memory for ever.
        if self.places.is_empty() && self.places.capacity() > 1 << 12 {
            (self.places, self.slots) = Default::default();
        }
    }

    /// Those that joined at the end, gone ones too.
    fn joined(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.places.iter().copied().zip(self.slots.iter().copied())
    }

    /// The first place and its slot.
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        let joined = self.joined().next();
        if self.returned.is_empty() {
            return joined;
        }
        let returned = self.returned.first_key_value().map(|(place, slot)| (*place, *slot));
        match (joined, returned) {
            (Some(joined), Some(returned)) => Some(joined.min(returned)),
            (joined, returned) => joined.or(returned),
        }
    }

    /// Places and slots from one place to another, in order. Costs the number of places between the first in row and the
    /// end, gone ones too.
    pub(crate) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let joined = self.joined().skip_while(move |(place, _)| *place < from);
        let joined = joined.take_while(move |(place, _)| *place <= to);
        let returned = self.returned.range(from..=to).map(|(place, slot)| (*place, *slot));
        merge(joined.filter(|(_, slot)| *slot != GONE), returned)
    }

    /// Places and slots in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let returned = self.returned.iter().map(|(place, slot)| (*place, *slot));
        merge(self.joined().filter(|(_, slot)| *slot != GONE), returned)
    }
}

/// Two rows as one, in order.
fn merge(
    joined: impl Iterator<Item = (u64, u32)>,
    returned: impl Iterator<Item = (u64, u32)>,
) -> impl Iterator<Item = (u64, u32)> {
    let (mut joined, mut returned) = (joined.peekable(), returned.peekable());
    std::iter::from_fn(move || match (joined.peek(), returned.peek()) {
        (Some(left), Some(right)) if right < left => returned.next(),
        (Some(_), _) => joined.next(),
        (None, _) => returned.next(),
    })
}

impl PartialEq for Row {
    /// Equal if the same slots stand in the same places, however they came there.
    fn eq(&self, other: &Row) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Row {}

/// Ranks of a ready key: its upper four bits.
const RANK_SHIFT: u32 = 60;
const RANKS: usize = PRIORITY_MAX as usize + 1;

/// Ready tasks by priority, then by place: one row per priority, so that each is joined at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyRows {
    rows: [Row; RANKS],
}

impl ReadyRows {
    /// Number of ready tasks.
    pub(crate) fn len(&self) -> usize {
        self.rows.iter().map(Row::len).sum()
    }

    /// Whether none is ready.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.iter().all(Row::is_empty)
    }

    /// Adds a task under its ready key.
    pub(crate) fn insert(&mut self, key: u64, slot: u32) {
        self.rows[rank(key)].insert(key, slot);
    }

    /// Takes the task of a ready key out.
    pub(crate) fn remove(&mut self, key: u64) -> bool {
        self.rows[rank(key)].remove(key)
    }

    /// Slots of those that come first in their priority: the oldest ready task is among them.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().filter_map(|row| row.first().map(|(_, slot)| slot))
    }

    /// Ready keys and slots from one key to another, both of one priority, in order.
    pub(crate) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.rows[rank(from)].range(from, to)
    }

    /// How many tasks come before a ready key; within its own priority no more than `count_max` are counted.
    pub(crate) fn ahead(&self, key: u64, count_max: u64) -> u64 {
        let own = rank(key);
        let before: usize = self.rows[..own].iter().map(Row::len).sum();
        let places = self.rows[own].iter().take_while(|(place, _)| *place < key);
        before as u64 + places.take(count_max as usize).count() as u64
    }

    /// The ready key and slot of the task that comes first.
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        self.rows.iter().find_map(Row::first)
    }
}

fn rank(key: u64) -> usize {
    ((key >> RANK_SHIFT) as usize).min(RANKS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_an_ordered_map() {
        let (mut row, mut model) = (Row::default(), BTreeMap::new());
        let (mut random, mut next) = (7u64, 0u64);
        for step in 0..50_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = random >> 33;
            match draw % 8 {
                0..3 => {
                    next += 1 + draw % 3;
                    row.insert(next, step);
                    model.insert(next, step);
                }
                3 => {
                    let place = draw % (next + 1);
                    if let std::collections::btree_map::Entry::Vacant(free) = model.entry(place) {
                        free.insert(step);
                        row.insert(place, step);
                    }
                }
                4 => {
                    let place = draw % (next + 1);
                    assert_eq!(row.remove(place), model.remove(&place).is_some());
                }
                _ => {
                    let first = model.pop_first();
                    assert_eq!(row.first(), first);
                    if let Some((place, _)) = first {
                        assert!(row.remove(place));
                    }
                }
            }
            assert_eq!(row.len(), model.len());
            assert_eq!(row.is_empty(), model.is_empty());
        }
        let all = |(place, slot): (&u64, &u32)| (*place, *slot);
        assert!(row.iter().eq(model.iter().map(all)));
        for (from, to) in [(0, next), (next / 2, next), (next, next), (next / 4, next / 2)] {
            assert!(row.range(from, to).eq(model.range(from..=to).map(all)), "{from} to {to}");
        }
    }

    #[test]
    fn rows_are_equal_whatever_their_past() {
        let (mut one, mut other) = (Row::default(), Row::default());
        for place in [1, 2, 3] {
            one.insert(place, place as u32);
        }
        for place in [3, 1, 9, 2] {
            other.insert(place, place as u32);
        }
        assert_ne!(one, other);
        other.remove(9);
        assert_eq!(one, other);
    }
}
