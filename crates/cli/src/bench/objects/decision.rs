//! What it costs to decide whether a call is let in (CH-25).

use std::hint::black_box;
use std::time::{Duration, Instant};

use ikada_node::admission::{Admission, CpuReading, Lane, Rules, Source, watch};

use super::report::Figure;

/// Decisions that are timed.
const DECISIONS: u32 = 1_000_000;
/// Threads that decide at the same time.
const THREADS: u32 = 2;
/// How long the figures of a busy machine may take to be seen.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// A machine that is always busy, so that chance decides about every call.
struct Busy(u64);

impl Source for Busy {
    fn cpu(&mut self) -> Option<CpuReading> {
        self.0 += 100;
        Some(CpuReading { busy: self.0 * 88 / 100, total: self.0 })
    }

    fn memory(&mut self) -> Option<u16> {
        Some(0)
    }
}

/// The mean time of a decision about an upload, by the default rules on a busy machine.
pub(super) fn figure() -> Figure {
    let admission = std::sync::Arc::new(Admission::new(Rules::default(), 1));
    let watched = watch(&admission, Busy(0));
    let began = Instant::now();
    while admission.load().cpu == 0 && began.elapsed() < SEEN_WITHIN {
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..DECISIONS / THREADS {
                    let left = black_box(Some(Duration::from_secs(10)));
                    let _ = black_box(admission.judge(black_box(Lane::Upload), left));
                }
            });
        }
    });
    let each = began.elapsed() * THREADS / DECISIONS;
    drop(watched);
    let value = format!("{} ns", each.as_nanos());
    Figure { what: "a decision to let a call in or not".to_owned(), value }
}
