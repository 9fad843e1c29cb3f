//! How long tasks take, measured from the outside: tasks in work on average, divided by tasks that end per time
//! (Little's law). No clock of a worker is trusted, and nothing has to be reported.

use std::collections::VecDeque;

/// Samples over which is measured.
const SAMPLES_MAX: usize = 24;

/// One look at all queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// When, in ms.
    pub at_ms: u64,
    /// Tasks that workers hold.
    pub claimed: u64,
    /// Attempts that have ended, ever: done or failed.
    pub ended: u64,
}

/// The newest looks.
#[derive(Debug, Default)]
pub struct Looks(VecDeque<Look>);

impl Looks {
    /// Adds a look.
    pub fn add(&mut self, look: Look) {
        if self.0.back().is_some_and(|before| before.ended > look.ended) {
            // Counters went back: another leader has not caught up, or the cluster was restored.
            self.0.clear();
        }
        self.0.push_back(look);
        if self.0.len() > SAMPLES_MAX {
            self.0.pop_front();
        }
    }

    /// Time per task in ms; 0 while nothing can be said.
    pub fn service_ms(&self) -> u64 {
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else {
            return 0;
        };
        let (passed_ms, ended) = (last.at_ms - first.at_ms, last.ended - first.ended);
        let held: u64 = self.0.iter().map(|look| look.claimed).sum();
        let Some(per_task) = passed_ms
            .checked_mul(held)
            .and_then(|sum| sum.checked_div(ended.checked_mul(self.0.len() as u64)?))
        else {
            return 0;
        };
        // Tasks that are over before anybody looks are not free.
        per_task.max(u64::from(ended > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_per_task_follows_from_work_in_progress_and_rate() {
        let mut looks = Looks::default();
        assert_eq!(looks.service_ms(), 0);
        for second in 0..11 {
            // Four slots, two tasks per second: two seconds each.
            looks.add(Look { at_ms: second * 1_000, claimed: 4, ended: second * 2 });
        }
        assert_eq!(looks.service_ms(), 2_000);
        looks.add(Look { at_ms: 11_000, claimed: 4, ended: 0 });
        assert_eq!(looks.service_ms(), 0, "counters that go back begin anew");
    }

    #[test]
    fn idle_clusters_and_instant_tasks_give_sane_figures() {
        let mut looks = Looks::default();
        for second in 0..200 {
            looks.add(Look { at_ms: second * 1_000, claimed: 0, ended: 5 });
        }
        assert_eq!(looks.service_ms(), 0);
        looks.add(Look { at_ms: 300_000, claimed: 0, ended: 900 });
        assert_eq!(looks.service_ms(), 1);
    }
}
