//! The newest decisions, for people.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions kept.
const KEPT_MAX: usize = 100;

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
}

/// What the autoscaler of this node did lately.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<VecDeque<Scaled>>>);

impl History {
    /// Adds a decision.
    pub fn add(&self, scaled: Scaled) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(scaled);
        if kept.len() > KEPT_MAX {
            kept.pop_front();
        }
    }

    /// All that are kept, the newest last.
    pub fn all(&self) -> Vec<Scaled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
