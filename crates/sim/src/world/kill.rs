//! Kills leaders of a calm cluster on purpose and measures how long it takes to find others (MQ-15).

use ikada_consensus::Role;

use super::lifecycle::Death;
use super::{Event, World};
use crate::check::Violation;

/// What one kill led to.
#[derive(Debug, Clone, Copy)]
pub struct Killed {
    /// From the kill to the next leader.
    pub gap_us: u64,
    /// Terms that it took; 1 means that the first election settled it.
    pub terms: u64,
}

impl World {
    /// Kills the leader of shard 0 so many times.
    pub fn kill_leaders(&mut self, count: usize) -> Result<Vec<Killed>, Violation> {
        let mut killed = Vec::new();
        self.run_until(8_000_000)?;
        while killed.len() < count {
            let Some((node, term)) = self.leader_of_first() else {
                self.run_until(self.now_us() + 10_000)?;
                continue;
            };
            let began_us = self.now_us();
            self.stop_process(node, Death::Kill);
            self.schedule.after(4_000_000, Event::Start(node));
            let next = loop {
                self.run_until(self.now_us() + 1_000)?;
                if let Some((_, next)) = self.leader_of_first() {
                    break next;
                }
            };
            killed.push(Killed { gap_us: self.now_us() - began_us, terms: next - term });
            let rest_us = self.rng.u64(6_000_000..8_000_000);
            self.run_until(self.now_us() + rest_us)?;
        }
        Ok(killed)
    }

    fn leader_of_first(&self) -> Option<(u64, u64)> {
        let leads = |node: &u64| {
            self.view(*node, 0).filter(|view| view.role == Role::Leader).map(|v| (*node, v.term))
        };
        self.machines.keys().filter_map(leads).max_by_key(|(_, term)| *term)
    }
}
