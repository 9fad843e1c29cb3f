//! The order of everything that will happen: one queue of events by true time.
//!
//! Promises that two events at the same microsecond come out in the order in which they were put in, so that a run is
//! a function of its seed alone. Events are never removed: whoever receives one checks whether it still matters
//! (a process that has died since has another generation).
//!
//! Leaves out: what an event means (`world::mod`), clocks as nodes see them (`world::clock`).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of `E` ordered by time, then by insertion.
#[derive(Debug)]
pub struct Schedule<E> {
    heap: BinaryHeap<Item<E>>,
    sequence: u64,
    now_us: u64,
}

#[derive(Debug)]
struct Item<E> {
    at_us: u64,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Item<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Item<E> {}

impl<E> PartialOrd for Item<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Item<E> {
    // Reversed: the heap gives out its greatest item and we want the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.sequence).cmp(&(self.at_us, self.sequence))
    }
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0, now_us: 0 }
    }
}

impl<E> Schedule<E> {
    /// True time: that of the event handed out last.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Puts an event at a time; the past means now.
    pub fn at(&mut self, at_us: u64, event: E) {
        self.sequence += 1;
        self.heap.push(Item { at_us: at_us.max(self.now_us), sequence: self.sequence, event });
    }

    /// Puts an event this long after now.
    pub fn after(&mut self, delay_us: u64, event: E) {
        self.at(self.now_us + delay_us, event);
    }

    /// Takes the next event no later than `until_us` and moves time to it.
    pub fn next(&mut self, until_us: u64) -> Option<E> {
        if self.heap.peek()?.at_us > until_us {
            return None;
        }
        let item = self.heap.pop()?;
        self.now_us = item.at_us;
        Some(item.event)
    }

    /// Lets time pass without an event.
    pub fn advance_to(&mut self, at_us: u64) {
        self.now_us = self.now_us.max(at_us);
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_time_keeps_insertion_order() {
        let mut schedule = Schedule::default();
        schedule.at(20, 'c');
        schedule.at(10, 'a');
        schedule.at(10, 'b');
        assert_eq!(schedule.next(15), Some('a'));
        assert_eq!(schedule.next(15), Some('b'));
        assert_eq!(schedule.next(15), None);
        assert_eq!(schedule.next(u64::MAX), Some('c'));
        assert_eq!(schedule.now_us(), 20);
    }

    #[test]
    fn the_past_means_now() {
        let mut schedule = Schedule::default();
        schedule.at(50, 'a');
        schedule.next(u64::MAX);
        schedule.at(10, 'b');
        schedule.next(u64::MAX);
        assert_eq!(schedule.now_us(), 50);
    }
}
