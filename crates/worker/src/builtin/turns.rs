//! Turns: no more programs count at one time than the machine has cores, however many slots the worker has.
//!
//! Slots beyond the cores keep the cores busy while outputs are stored and tasks are fetched. If their programs counted all at the same time,
//! the system would change between them every few milliseconds, each time with a cold cache, and all would end together, with
//! nothing left to do beside the storing.
//!
//! Promises: a program that waits for its input has no turn; who has had `TURN_BYTES` goes behind those who wait, so that none waits
//! for the end of another's work. Leaves out: what a program makes of its counts at its very end, which needs no turn; and programs of other
//! processes, which the system places.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one turn while others wait: a quarter of a second of counting.
const TURN_BYTES: usize = 64 << 20;

/// The turns of one worker.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Semaphore>);

impl Turns {
    /// As many at one time as there are cores.
    pub(super) fn new() -> Turns {
        Turns::of(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn of(count: usize) -> Turns {
        Turns(Arc::new(Semaphore::new(count)))
    }

    /// For one program, which has no turn yet; its thread waits with the help of this runtime.
    pub(super) fn program(&self, runtime: Handle) -> Turn {
        Turn { turns: self.clone(), runtime, held: None, bytes: 0 }
    }
}

/// A program's side. Dropped, its turn is over.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    runtime: Handle,
    held: Option<OwnedSemaphorePermit>,
    /// What it has had of this turn.
    bytes: usize,
}

impl Turn {
    /// Waits for a turn, unless it has one. Blocks the thread.
    pub(super) fn take(&mut self) {
        if self.held.is_some() {
            return;
        }
        let turns = self.turns.0.clone();
        self.held = match turns.clone().try_acquire_owned() {
            Ok(turn) => Some(turn),
            // The turns are never closed.
            Err(_) => self.runtime.block_on(turns.acquire_owned()).ok(),
        };
        self.bytes = 0;
    }

    /// Has nothing to do for now.
    pub(super) fn pause(&mut self) {
        self.held = None;
    }

    /// So much was done; others may be next.
    pub(super) fn did(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= TURN_BYTES {
            self.pause();
            self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    // B4-4: slots are not cores; yet no more count at one time than there are cores, and all come to their end.
    #[tokio::test]
    async fn b4_4_no_more_programs_count_at_one_time_than_there_are_turns() {
        let (turns, now, most) = (Turns::of(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let all = Arc::new((now, most));
        let programs: Vec<_> = (0..8)
            .map(|_| {
                let (mut turn, all) = (turns.program(Handle::current()), all.clone());
                tokio::task::spawn_blocking(move || {
                    for _ in 0..50 {
                        turn.take();
                        let now = all.0.fetch_add(1, Ordering::SeqCst) + 1;
                        all.1.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        all.0.fetch_sub(1, Ordering::SeqCst);
                        turn.pause();
                    }
                })
            })
            .collect();
        for program in programs {
            program.await.unwrap();
        }
        assert!((1..=2).contains(&all.1.load(Ordering::SeqCst)), "{all:?}");
        // As many as there are turns have one at the same time.
        let mut two = [turns.program(Handle::current()), turns.program(Handle::current())];
        two.iter_mut().for_each(Turn::take);
        assert_eq!(turns.0.available_permits(), 0);
    }

    // One with very much to do and one with little, and a single turn: the latter is done in the middle of the former.
    #[tokio::test]
    async fn b4_4_long_work_makes_way_for_those_who_wait() {
        let turns = Turns::of(1);
        let (mut long, mut short) =
            (turns.program(Handle::current()), turns.program(Handle::current()));
        let (done, was_done) = mpsc::channel();
        long.take();
        let waiting = tokio::task::spawn_blocking(move || {
            short.take();
            done.send(()).unwrap();
        });
        let working = tokio::task::spawn_blocking(move || {
            let mut parts = 0_u64;
            // It never ends by itself: without a way for the other this would be for ever, and the test's time would be over.
            while was_done.try_recv().is_err() {
                long.did(TURN_BYTES / 4);
                parts += 1;
            }
            parts
        });
        waiting.await.unwrap();
        assert!(working.await.unwrap() >= 1);
    }
}
