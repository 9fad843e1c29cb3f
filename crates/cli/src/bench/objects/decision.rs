//! What it costs to decide whether a call is let in (CH-25).

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ikada_node::admission::{Admission, CpuReading, Lane, Rooms, Rules, Source, watch};

use super::report::Figure;

/// Decisions that are timed.
const DECISIONS: u32 = 1_000_000;
/// Threads that decide at the same time.
const THREADS: u32 = 2;
/// How long the figures of a busy machine may take to be seen.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// Calls under way, and places, while a line stands.
const UNDER_WAY: usize = 8;
const PLACES: usize = 64;
/// What a call takes that stands in the line.
const SLOW: Duration = Duration::from_secs(2);
/// How often one is answered.
const ANSWERED_EVERY: Duration = Duration::from_millis(5);
/// Time left of a call: no decision is made by it.
const LEFT: Duration = Duration::from_secs(10);

/// A machine with so many percent of its CPU in use.
struct Busy {
    percent: u64,
    total: u64,
}

impl Source for Busy {
    fn cpu(&mut self) -> Option<CpuReading> {
        self.total += 100;
        Some(CpuReading { busy: self.total * self.percent / 100, total: self.total })
    }

    fn memory(&mut self) -> Option<u16> {
        Some(0)
    }
}

/// The mean times of two decisions by the default rules.
pub(super) fn figures() -> Vec<Figure> {
    let figure = |what: &str, each: Option<Duration>| {
        let value = match each {
            Some(each) => format!("{} ns", each.as_nanos()),
            None => "not measured: the state to decide in did not come about".to_owned(),
        };
        Figure { what: what.to_owned(), value }
    };
    vec![
        figure("a decision about an upload, by chance", by_chance()),
        figure("a decision about a submission while a line stands", in_line()),
    ]
}

/// An upload at a busy CPU: chance decides about every call.
fn by_chance() -> Option<Duration> {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let rooms = Rooms::new(PLACES, PLACES, PLACES);
    let watched = watch(&admission, Busy { percent: 88, total: 0 });
    let seen = wait_until(|| admission.load().cpu > 0);
    let each = timed(|| drop(black_box(admission.enter(&rooms, Lane::Upload, Some(LEFT)))));
    drop(watched);
    seen.then_some(each)
}

/// A submission that the rules let in, and that the line turns away: no decision has more steps. Calls of the line are
/// answered meanwhile, slowly, so that it goes on to stand.
fn in_line() -> Option<Duration> {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let rooms = Rooms::new(PLACES, PLACES, PLACES);
    // Its look now and then is part of what a node does.
    let watched = watch(&admission, Busy { percent: 50, total: 0 });
    let _held: Vec<_> = (0..UNDER_WAY).map_while(|_| rooms.enter(Lane::Submit).ok()).collect();
    let over = AtomicBool::new(false);
    let each = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                admission.took(Lane::Submit, SLOW);
                admission.waited(Lane::Submit, SLOW, false);
                std::thread::sleep(ANSWERED_EVERY);
            }
        });
        let stands = || admission.is_in_line(Lane::Submit, UNDER_WAY);
        let stood = wait_until(stands);
        let decide = || drop(black_box(admission.enter(&rooms, Lane::Submit, Some(LEFT))));
        let each = timed(decide);
        let stands = stood && stands();
        over.store(true, Ordering::Relaxed);
        stands.then_some(each)
    });
    drop(watched);
    each
}

fn wait_until(holds: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() >= SEEN_WITHIN {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The mean time of something that threads do at once.
fn timed(decide: impl Fn() + Sync) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..DECISIONS / THREADS).for_each(|_| decide()));
        }
    });
    began.elapsed() * THREADS / DECISIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH-25: a decision is timed in the state that it is said to be timed in.
    #[test]
    fn ch_25_the_decision_while_a_line_stands_is_made_by_the_line() {
        let figures = figures();
        assert!(figures.iter().all(|figure| figure.value.ends_with(" ns")), "{figures:?}");
    }
}
