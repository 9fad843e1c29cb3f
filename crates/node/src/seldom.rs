//! Words for the log that a stranger could cause as often as it likes.
//!
//! Promise: said once in [`PAUSE`] at most, with how often the same was left unsaid since; so a flood does not fill the
//! log, and its size can still be read there.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// One thing that is said seldom.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// Whether it is time to say it: gives how often it was left unsaid.
    pub fn turn(&self, now: Instant) -> Option<u64> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
            said.unsaid += 1;
            return None;
        }
        said.last = Some(now);
        Some(std::mem::take(&mut said.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_7_a_flood_gets_one_line_with_its_size() {
        let (seldom, began) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.turn(began), Some(0));
        for step in 1..1_000 {
            assert_eq!(seldom.turn(began + Duration::from_millis(step)), None);
        }
        assert_eq!(seldom.turn(began + PAUSE), Some(999));
        assert_eq!(seldom.turn(began + PAUSE * 2), Some(0));
    }
}
