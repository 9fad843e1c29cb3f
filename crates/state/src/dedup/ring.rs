//! A first-in-first-out list in copy-on-write pages: cheap to clone for a snapshot, and every entry
//! is found by its number, which only rises.

use std::collections::VecDeque;
use std::sync::Arc;

/// Entries per page: small enough to copy at leisure, large enough that a clone is short.
const PAGE_ENTRIES: u64 = 128;

/// What a window remembers.
pub(crate) trait RingEntry: Clone {
    /// Hash of the request's name.
    fn key(&self) -> [u64; 2];
    /// Log time at which it was remembered.
    fn time_ms(&self) -> u64;
    /// Its share of the state hash at its number.
    fn digest(&self, number: u64) -> u64;
    /// What it counts against a bound other than the number of entries.
    fn weight(&self) -> u64 {
        0
    }
}

/// The list. Invariant: the first page holds entry `head`, the last page is never empty.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    pages: VecDeque<Arc<Vec<T>>>,
    /// Number of the oldest entry.
    head: u64,
    /// Number the next entry will get.
    tail: u64,
}

impl<T: RingEntry> Ring<T> {
    /// An empty list whose first entry will get this number.
    pub(crate) fn starting_at(number: u64) -> Self {
        Self { pages: VecDeque::new(), head: number, tail: number }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Number the next entry will get.
    pub(crate) fn next_number(&self) -> u64 {
        self.tail
    }

    /// Number of the oldest entry.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Appends an entry and tells its number.
    pub(crate) fn push(&mut self, entry: T) -> u64 {
        let number = self.tail;
        let starts_page = number.is_multiple_of(PAGE_ENTRIES) || self.pages.is_empty();
        if starts_page {
            self.pages.push_back(Arc::new(Vec::with_capacity(PAGE_ENTRIES as usize)));
        }
        if let Some(page) = self.pages.back_mut() {
            Arc::make_mut(page).push(entry);
        }
        self.tail += 1;
        number
    }

    /// The entry of a number, if it is still there.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        if number < self.head || number >= self.tail {
            return None;
        }
        let page = number / PAGE_ENTRIES - self.head / PAGE_ENTRIES;
        let page = self.pages.get(page as usize)?;
        // The first page may have begun in the middle; its entries are counted from the back.
        let last_in_page = (number / PAGE_ENTRIES + 1) * PAGE_ENTRIES;
        let end = last_in_page.min(self.tail);
        let from_end = (end - number) as usize;
        page.get(page.len().checked_sub(from_end)?)
    }

    /// The oldest entry.
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(self.head)
    }

    /// Removes the oldest entry.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let entry = self.front()?.clone();
        let number = self.head;
        self.head += 1;
        if self.head.is_multiple_of(PAGE_ENTRIES) || self.head == self.tail {
            self.pages.pop_front();
        }
        Some((number, entry))
    }

    /// Entries with their numbers, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (self.head..self.tail).filter_map(|number| Some((number, self.get(number)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RingEntry for u64 {
        fn key(&self) -> [u64; 2] {
            [*self, 0]
        }
        fn time_ms(&self) -> u64 {
            *self
        }
        fn digest(&self, number: u64) -> u64 {
            number
        }
    }

    #[test]
    fn entries_keep_their_numbers() {
        for start in [0, 1, 127, 128, 300] {
            let mut ring = Ring::starting_at(start);
            for round in 0..2000u64 {
                assert_eq!(ring.push(start + round), start + round);
                if round % 3 == 2 || round > 1500 {
                    let (number, entry) = ring.pop().unwrap();
                    assert_eq!(number, entry);
                }
                for number in [ring.head(), start + round, (ring.head() + start + round) / 2] {
                    if number >= ring.head() && number < start + round + 1 {
                        let found = ring.get(number).copied();
                        assert!(found == Some(number) || ring.len() == 0);
                    }
                }
            }
            while ring.pop().is_some() {}
            assert_eq!(ring.len(), 0);
            let next = ring.push(start + 2000);
            assert_eq!(ring.get(next), Some(&(start + 2000)));
        }
    }

    #[test]
    fn a_clone_does_not_see_later_changes() {
        let mut ring = Ring::starting_at(5);
        for number in 5..400 {
            ring.push(number);
        }
        let frozen = ring.clone();
        ring.push(400);
        ring.pop();
        assert_eq!(frozen.len(), 395);
        assert!(frozen.iter().all(|(number, entry)| number == *entry));
    }
}
