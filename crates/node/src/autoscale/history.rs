//! The newest decisions, for people and for the next leader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::Wish;

/// Decisions kept.
const KEPT_MAX: usize = 100;
/// Bytes kept of a reason, or of an error.
const WORDS_BYTES_MAX: usize = 1_000;

/// One decision that changed something, or failed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaled {
    /// When, wall clock.
    pub at_ms: u64,
    /// Workers that were alive.
    pub from: u32,
    /// Workers wanted.
    pub to: u32,
    /// Why.
    pub reason: String,
    /// What went wrong, if anything did.
    pub error: Option<String>,
    /// Workers are being drained; the platform hears the number when they are gone.
    pub pending: bool,
    /// The node that decided.
    pub node: Option<String>,
}

/// What the autoscaler of this node knows of itself and of those before it.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<VecDeque<Scaled>>>);

impl History {
    /// Adds a decision.
    pub fn add(&self, mut scaled: Scaled) {
        cut(&mut scaled.reason);
        scaled.error.iter_mut().for_each(cut);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(scaled);
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
    }

    /// Begins with what others have decided.
    pub fn begin(&self, decisions: Vec<Scaled>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = decisions.len().saturating_sub(KEPT_MAX);
        *kept = decisions.into_iter().skip(excess).collect();
    }

    /// All that are kept, the newest last.
    pub fn all(&self) -> Vec<Scaled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// A lower number that nobody has told the platform yet.
    pub fn unfinished(&self) -> Option<Wish> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = kept.back()?;
        let open = last.pending || (last.error.is_some() && last.to <= last.from);
        let reason = format!("{}; told by the next leader", last.reason);
        open.then_some(Wish { desired: last.to, current: last.from, reason })
    }
}

fn cut(words: &mut String) {
    let mut end = words.len().min(WORDS_BYTES_MAX);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(from: u32, to: u32) -> Scaled {
        let (reason, error) = ("fewer".repeat(1_000), None);
        Scaled { at_ms: 1, from, to, reason, error, pending: false, node: None }
    }

    #[test]
    fn b4_23_the_next_leader_finds_a_lower_number_that_nobody_was_told() {
        let history = History::default();
        assert_eq!(history.unfinished(), None);
        history.add(Scaled { pending: true, ..scaled(3, 1) });
        let next = History::default();
        next.begin(history.all());
        let wish = next.unfinished().expect("a lower number");
        assert_eq!((wish.desired, wish.current), (1, 3));
        assert!(wish.reason.ends_with("told by the next leader"));
        assert!(wish.reason.len() < 2 * WORDS_BYTES_MAX);
        next.add(scaled(1, 1));
        assert_eq!(next.unfinished(), None, "it was told");
        next.add(Scaled { error: Some("no".into()), ..scaled(1, 4) });
        assert_eq!(next.unfinished(), None, "a higher one is decided anew");
        (0..300).for_each(|to| next.add(scaled(1, to)));
        assert_eq!(next.all().len(), KEPT_MAX);
    }
}
