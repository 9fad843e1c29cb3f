//! Who is let in when not all can be served (CH-16 to CH-25, F-32).
//!
//! Promise: a call is admitted or shed in about a microsecond, before its body is read, from figures that a thread of its
//! own takes twice a second; nothing is ever measured inside a call. Whoever is shed is told why and when to come back.
//! Results and renewals are never shed by load; work that is under way comes before new work. What cannot be measured
//! counts as the worst case. The decision itself (`decide.rs`) is a pure function.
//!
//! Leaves out: HTTP (`http`), and bounds inside the replica.

mod decide;
mod lane;
mod measure;
mod rooms;
mod rules;
mod sample;
mod service_time;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use decide::{Ask, Load, Reason, decide};
pub use lane::Lane;
pub use measure::{CpuReading, Machine, Source};
pub use rooms::{Queue, Rooms, RoomsFull};
pub use rules::{BadRule, LaneRule, Rules, Step};
pub use sample::watch;

use sample::Minute;
use service_time::ServiceTime;

/// Decides for one node, and counts what it decided.
#[derive(Debug)]
pub struct Admission {
    rules: Rules,
    /// CPU and memory in use, hundredths of a percent, packed so that both are read at once.
    load: AtomicU64,
    /// Whether what keeps the CPU busy is not this node.
    bystands: AtomicBool,
    service: [ServiceTime; Lane::ALL.len()],
    admitted: [AtomicU64; Lane::ALL.len()],
    shed: [[AtomicU64; Reason::ALL.len()]; Lane::ALL.len()],
    minute: Minute,
    draws: AtomicU64,
    seed: u64,
}

/// A node's load as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadFacts {
    /// CPU in use, hundredths of a percent.
    pub cpu: u16,
    /// Memory in use, hundredths of a percent.
    pub memory: u16,
    /// Calls admitted during the last minute.
    pub admitted_last_minute: u64,
    /// Calls shed during the last minute.
    pub shed_last_minute: u64,
}

impl Admission {
    /// Nothing is measured yet, and the node counts as idle until it is.
    pub fn new(rules: Rules, seed: u64) -> Admission {
        let service = Lane::ALL.map(ServiceTime::of);
        let (admitted, shed) = (Default::default(), Default::default());
        let (load, draws, minute) = (AtomicU64::new(0), AtomicU64::new(0), Minute::default());
        let bystands = AtomicBool::new(false);
        Admission { rules, load, bystands, service, admitted, shed, minute, draws, seed }
    }

    /// Admits everything that has room; for tests of other things.
    pub fn open() -> Arc<Admission> {
        Arc::new(Admission::new(Rules::off(), 0))
    }

    /// Decides about one call that can wait so long.
    pub fn judge(&self, lane: Lane, left: Option<Duration>) -> Result<(), Reason> {
        let rule = self.rules.of(lane);
        if rule.is_free() {
            self.admitted[lane.index()].fetch_add(1, Relaxed);
            return Ok(());
        }
        let left_us = left.map(|left| left.as_micros() as u64);
        let ask = Ask { left_us, expected_us: self.service[lane.index()].expected_us() };
        let mut load = self.load();
        if self.bystands.load(Relaxed) {
            load.cpu = 0;
        }
        let verdict = decide(rule, load, ask, || self.draw());
        match verdict {
            Ok(()) => drop(self.admitted[lane.index()].fetch_add(1, Relaxed)),
            Err(reason) => self.count_shed(lane, reason),
        }
        verdict
    }

    /// Counts a call that was shed elsewhere.
    pub fn count_shed(&self, lane: Lane, reason: Reason) {
        self.shed[lane.index()][reason.index()].fetch_add(1, Relaxed);
    }

    /// Takes in how long a call of a lane took.
    pub fn took(&self, lane: Lane, time: Duration) {
        self.service[lane.index()].add(time.as_micros() as u64);
    }

    /// The newest figures.
    pub fn load(&self) -> Load {
        let packed = self.load.load(Relaxed);
        Load { cpu: (packed >> 16) as u16, memory: packed as u16 }
    }

    fn set_load(&self, load: Load) {
        self.load.store(u64::from(load.cpu) << 16 | u64::from(load.memory), Relaxed);
    }

    /// How long a call of a lane takes, as far as is known.
    pub fn expected(&self, lane: Lane) -> Duration {
        Duration::from_micros(self.service[lane.index()].expected_us())
    }

    /// Calls of a lane that were admitted.
    pub fn admitted(&self, lane: Lane) -> u64 {
        self.admitted[lane.index()].load(Relaxed)
    }

    /// Calls of a lane that were shed for a reason.
    pub fn shed(&self, lane: Lane, reason: Reason) -> u64 {
        self.shed[lane.index()][reason.index()].load(Relaxed)
    }

    /// Load and shedding in short.
    pub fn facts(&self) -> LoadFacts {
        let Load { cpu, memory } = self.load();
        let (admitted, shed) = self.totals();
        let (admitted_last_minute, shed_last_minute) = self.minute.since(admitted, shed);
        LoadFacts { cpu, memory, admitted_last_minute, shed_last_minute }
    }

    fn totals(&self) -> (u64, u64) {
        let admitted = self.admitted.iter().map(|count| count.load(Relaxed)).sum();
        let shed = self.shed.iter().flatten().map(|count| count.load(Relaxed)).sum();
        (admitted, shed)
    }

    /// A number below 10,000. Nothing secret hangs on it.
    fn draw(&self) -> u16 {
        let count = self.draws.fetch_add(1, Relaxed);
        fastrand::Rng::with_seed(self.seed.wrapping_add(count)).u16(..decide::WHOLE)
    }
}

#[cfg(test)]
mod admission_test;
