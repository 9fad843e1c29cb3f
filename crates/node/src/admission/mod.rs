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
pub use rooms::{Queue, Rooms, RoomsFull, Seat};
pub use rules::{BadRule, LaneRule, Rules, Step};
pub use sample::watch;

use rules::PILED_UP_US;
use sample::Minute;
use service_time::ServiceTime;

/// From this use of CPU on, hundredths of a percent, lanes may be crowded.
const CROWD_CPU: u16 = 9_000;

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
    /// Calls that were answered, and those of them since the last look but one.
    settled: [AtomicU64; Lane::ALL.len()],
    settled_lately: [AtomicU64; Lane::ALL.len()],
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
        let (settled, settled_lately) = (Default::default(), Default::default());
        let (load, draws, minute) = (AtomicU64::new(0), AtomicU64::new(0), Minute::default());
        let bystands = AtomicBool::new(false);
        Admission {
            rules,
            load,
            bystands,
            service,
            admitted,
            shed,
            settled,
            settled_lately,
            minute,
            draws,
            seed,
        }
    }

    /// Admits everything that has room; for tests of other things.
    pub fn open() -> Arc<Admission> {
        Arc::new(Admission::new(Rules::off(), 0))
    }

    /// Decides about one call that can wait so long.
    pub fn judge(&self, lane: Lane, left: Option<Duration>) -> Result<(), Reason> {
        let verdict = self.weigh(lane, left);
        match verdict {
            Ok(()) => drop(self.admitted[lane.index()].fetch_add(1, Relaxed)),
            Err(reason) => drop(self.shed[lane.index()][reason.index()].fetch_add(1, Relaxed)),
        }
        verdict
    }

    /// Decides once more about a call that was admitted and then had to wait: the load may have changed, and time has
    /// passed (CH-23).
    pub fn judge_again(&self, lane: Lane, left: Option<Duration>) -> Result<(), Reason> {
        self.weigh(lane, left).inspect_err(|reason| self.turn_away(lane, *reason))
    }

    /// Decides about a download that was admitted, and whose bytes are not in memory (CH-22).
    pub fn judge_miss(&self) -> Result<(), Reason> {
        let share = self.rules.miss_share(self.cpu_of_ours());
        if share == 0 || self.draw() >= share {
            return Ok(());
        }
        self.turn_away(Lane::Download, Reason::Miss);
        Err(Reason::Miss)
    }

    /// Whether a busy node has as many calls of a lane under way as it answers within the wait, and enough to keep it busy:
    /// one more would only wait (F-32). While calls are faster than the wait, more are answered than are under way, so
    /// that the bound rises with what the node can do.
    pub fn is_crowded(&self, lane: Lane, under_way: usize) -> bool {
        let rule = self.rules.of(lane);
        if !rule.bounded {
            return false;
        }
        let busy = self.cpu_of_ours() >= CROWD_CPU;
        let slow = self.service[lane.index()].expected_us() >= PILED_UP_US;
        let lately = self.settled_lately[lane.index()].load(Relaxed);
        let look_ms = sample::SAMPLE_EVERY.as_millis() as u64;
        (busy || slow) && under_way as u64 >= self.rules.under_way_max(lately, look_ms)
    }

    /// Counts calls that were answered.
    pub fn settle(&self, lane: Lane, count: u64) {
        self.settled[lane.index()].fetch_add(count, Relaxed);
    }

    /// CPU in use; none of it if that is not this node's doing.
    fn cpu_of_ours(&self) -> u16 {
        if self.bystands.load(Relaxed) { 0 } else { self.load().cpu }
    }

    fn weigh(&self, lane: Lane, left: Option<Duration>) -> Result<(), Reason> {
        let rule = self.rules.of(lane);
        if rule.is_free() {
            return Ok(());
        }
        let left_us = left.map(|left| left.as_micros() as u64);
        let ask = Ask { left_us, expected_us: self.service[lane.index()].expected_us() };
        let load = Load { cpu: self.cpu_of_ours(), memory: self.load().memory };
        decide(rule, load, ask, || self.draw())
    }

    /// Counts a call as shed that had been counted as admitted.
    pub fn turn_away(&self, lane: Lane, reason: Reason) {
        self.admitted[lane.index()].fetch_sub(1, Relaxed);
        self.shed[lane.index()][reason.index()].fetch_add(1, Relaxed);
    }

    /// Forgets that a call was admitted which is about to be judged a second time.
    pub fn uncount(&self, lane: Lane) {
        self.admitted[lane.index()].fetch_sub(1, Relaxed);
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
