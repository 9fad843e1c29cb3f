//! Completions that bring follow-ups, in line for the quota of their namespace.
//!
//! Promise: a completion is put off for `PATIENCE` at most, from when this node first put it off, however many others ask: its
//! attempt may have a timeout, which no renewal moves. Sent again after it was let in, it needs no turn of its own. If
//! there are more than the line has places for, they are let in rather than lost.
//!
//! Left out: what is left of an attempt. One whose timeout leaves it less than `PATIENCE` may still end first.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use ikada_api::state::{Fence, TaskId};

/// A completion is put off no longer than this.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Who was put off this long ago and has not been let in may lose its place: its worker is gone.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Most completions in line.
const WAITING_MAX: usize = 4_096;
/// Most completions that are known to have been let in; the oldest are forgotten first.
const ADMITTED_MAX: usize = 4_096;

/// A completion, however often it is sent.
type Completion = (TaskId, Fence);

/// Who waits in one namespace, and who was let in lately.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// When the next completion that brings more than it ends may come, beyond the quota.
    pub(super) turn: Option<Instant>,
    /// When each was first put off.
    waiting: HashMap<Completion, Instant>,
    /// How many tasks each was let in with.
    admitted: HashMap<Completion, u64>,
    /// The same, the oldest first.
    oldest: VecDeque<Completion>,
}

impl Line {
    /// Whether it was let in already with so many tasks: at most one of all its copies counts.
    pub(super) fn has_admitted(&self, completion: &Completion, count: u64) -> bool {
        self.admitted.get(completion).is_some_and(|before| count <= *before)
    }

    /// Whether it was put off for as long as it may be.
    pub(super) fn has_waited(&self, completion: &Completion, now: Instant) -> bool {
        let first = self.waiting.get(completion);
        first.is_some_and(|first| now.saturating_duration_since(*first) >= PATIENCE)
    }

    /// Gives it a place, or keeps the one it has, and tells how long it waits at most; none if there is no place left.
    pub(super) fn put_off(&mut self, completion: &Completion, now: Instant) -> Option<Duration> {
        if let Some(first) = self.waiting.get(completion) {
            return Some(PATIENCE.saturating_sub(now.saturating_duration_since(*first)));
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.retain(|_, first| now.saturating_duration_since(*first) < KEPT_FOR);
        }
        if self.waiting.len() >= WAITING_MAX {
            return None;
        }
        self.waiting.insert(completion.clone(), now);
        Some(PATIENCE)
    }

    /// It is let in with so many tasks.
    pub(super) fn admit(&mut self, completion: Completion, count: u64) {
        self.waiting.remove(&completion);
        if self.admitted.insert(completion.clone(), count).is_some() {
            return;
        }
        self.oldest.push_back(completion);
        if self.oldest.len() > ADMITTED_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.admitted.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(fence: usize) -> Completion {
        (TaskId::parse("t").unwrap(), Fence(fence as u64))
    }

    #[test]
    fn x_7_a_completion_keeps_its_place_until_it_is_let_in() {
        let (mut line, now) = (Line::default(), Instant::now());
        let one = completion(1);
        assert!(!line.has_waited(&one, now + KEPT_FOR), "it was never put off");
        assert_eq!(line.put_off(&one, now), Some(PATIENCE));
        let later = now + Duration::from_secs(2);
        assert_eq!(line.put_off(&one, later), Some(PATIENCE - Duration::from_secs(2)));
        assert!(!line.has_waited(&one, later) && line.has_waited(&one, now + PATIENCE));
        assert!(!line.has_waited(&completion(2), now + PATIENCE), "each attempt for itself");
        line.admit(one.clone(), 3);
        assert!(line.waiting.is_empty());
        assert!(line.has_admitted(&one, 3) && line.has_admitted(&one, 1));
        assert!(!line.has_admitted(&one, 4), "with more it is another one");
    }

    #[test]
    fn x_7_the_line_is_bounded_and_who_has_no_place_does_not_wait() {
        let (mut line, now) = (Line::default(), Instant::now());
        for fence in 0..WAITING_MAX {
            assert!(line.put_off(&completion(fence), now).is_some());
        }
        let more = completion(WAITING_MAX);
        assert_eq!(line.put_off(&more, now), None);
        assert!(line.put_off(&completion(0), now).is_some(), "who has a place keeps it");
        assert!(line.put_off(&more, now + KEPT_FOR).is_some(), "those that left make room");
        assert_eq!(line.waiting.len(), 1);
        for fence in 0..=ADMITTED_MAX {
            line.admit(completion(fence), 1);
        }
        assert_eq!((line.admitted.len(), line.oldest.len()), (ADMITTED_MAX, ADMITTED_MAX));
        assert!(!line.has_admitted(&completion(0), 1), "the oldest is forgotten");
        assert!(line.has_admitted(&completion(ADMITTED_MAX), 1));
    }
}
