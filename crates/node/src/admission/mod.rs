//! Who is let in when not all can be served (CH-16 to CH-25, F-32).
//!
//! Promise: a call is admitted or shed in about a microsecond, before its body is read, from figures that a thread of its
//! own takes twice a second; nothing is ever measured inside a call. Whoever is shed is told why and when to come back.
//! Results and renewals are never shed by load; work that is under way comes before new work. What cannot be measured
//! counts as the worst case. The decision itself (`decide.rs`) is a pure function.
//!
//! Leaves out: HTTP (`http`), and bounds inside the replica.

mod decide;
mod enter;
mod lane;
mod measure;
mod rooms;
mod rules;
mod sample;
mod service_time;
mod standing;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use decide::{Ask, Load, Reason, decide};
pub use lane::Lane;
pub use measure::{CpuReading, Machine, Source};
pub use rooms::{Queue, Rooms, RoomsFull, Seat};
pub use rules::{BadRule, LaneRule, Rules, Step};
pub use sample::watch;

use rules::PILED_UP_US;
use sample::Minute;
use service_time::ServiceTime;
use standing::{BOUND_MIN, Standing};

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
    /// The line of each lane that is kept short.
    standing: [Mutex<Standing>; Lane::ALL.len()],
    /// Whether it is bounded now: most calls ask for no more than that.
    stands: [AtomicBool; Lane::ALL.len()],
    started: Instant,
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
            standing: Default::default(),
            stands: Default::default(),
            started: Instant::now(),
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
        let lately = self.settled_lately[lane.index()].load(Relaxed);
        let look_ms = sample::SAMPLE_EVERY.as_millis() as u64;
        self.is_strained(lane) && under_way as u64 >= self.rules.under_way_max(lately, look_ms)
    }

    /// Whether a strained node turns a call away because those before it stand in line (F-32). While submissions do, few
    /// lists are let in.
    pub fn is_in_line(&self, lane: Lane, under_way: usize) -> bool {
        if !self.rules.keeps_short(lane) {
            return false;
        }
        let under_way = under_way as u64;
        let stands = |lane: Lane| {
            self.stands[lane.index()].load(Relaxed)
                && self.in_line(lane, |line, now, strained| line.stands(now, strained))
        };
        if lane > Lane::Submit && under_way >= BOUND_MIN && stands(Lane::Submit) {
            return true;
        }
        stands(lane)
            && !self.in_line(lane, |line, now, strained| line.admits(now, strained, under_way))
    }

    /// Takes in how long a call took from its admission to its answer, and whether it met no other in its lane.
    pub fn waited(&self, lane: Lane, time: Duration, alone: bool) {
        if self.rules.keeps_short(lane) {
            let time_us = time.as_micros() as u64;
            self.in_line(lane, |line, now, strained| line.took(now, strained, time_us, alone));
        }
    }

    /// Works on the line of a lane.
    fn in_line<T>(&self, lane: Lane, work: impl FnOnce(&mut Standing, u64, bool) -> T) -> T {
        let now_us = self.started.elapsed().as_micros() as u64;
        let strained = self.is_strained(lane);
        let mut line = self.standing[lane.index()].lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut line, now_us, strained);
        self.stands[lane.index()].store(line.bound().is_some(), Relaxed);
        result
    }

    /// As if calls of a lane had stood in line for an interval.
    #[cfg(test)]
    pub(crate) fn put_in_line(&self, lane: Lane) {
        let first_us = self.started.elapsed().as_micros() as u64 + 1;
        let mut line = Standing::default();
        for now_us in [first_us, first_us + standing::INTERVAL_US] {
            line.took(now_us, true, PILED_UP_US, false);
        }
        self.in_line(lane, |held, _, _| *held = line);
    }

    /// Whether the CPU is busy with this node's work, or calls of a lane have become slow.
    fn is_strained(&self, lane: Lane) -> bool {
        let slow = self.service[lane.index()].expected_us() >= PILED_UP_US;
        slow || self.cpu_of_ours() >= CROWD_CPU
    }

    /// Counts calls that were answered.
    pub fn settle(&self, lane: Lane, count: u64) {
        self.settled[lane.index()].fetch_add(count, Relaxed);
        if count > 0 && self.rules.keeps_short(lane) {
            self.in_line(lane, |line, now, strained| line.answered(now, strained, count));
        }
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
