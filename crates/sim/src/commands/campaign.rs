//! Runs one seed, whatever happens inside, and many seeds on several threads: one world per thread, in any order, with
//! results that do not depend on the order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use crate::check::Violation;
use crate::plan::Plan;
use crate::plan::database::Mischief;
use crate::world::{Outcome, World};

/// A planted defect of one of the product's crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Of the state machine.
    State(ikada_state::planted::Bug),
    /// Of consensus.
    Consensus(ikada_consensus::planted::Bug),
    /// Of the replica.
    Replica(ikada_replica::planted::Bug),
    /// Of the store.
    Store(ikada_store::planted::Bug),
    /// Of the statements in a database, as the simulated one has them.
    Database(Mischief),
}

/// A seed that has run.
#[derive(Debug)]
pub struct Finished {
    /// Which.
    pub seed: u64,
    /// What it came to.
    pub outcome: Outcome,
    /// Its trace, if it was wanted.
    pub text: Option<String>,
}

/// The plan of a seed, with logs on the nodes' disks or in a database.
pub fn draw_plan(seed: u64, operations: u64, in_postgres: bool) -> Plan {
    if in_postgres { Plan::draw_leased(seed, operations) } else { Plan::draw(seed, operations) }
}

/// Runs one plan; a panic inside the product counts as a violation.
pub fn run_plan(plan: Plan, with_text: bool) -> Finished {
    quiet_panics();
    let seed = plan.seed;
    let mut world = World::new(plan, with_text);
    let outcome = match catch_unwind(AssertUnwindSafe(|| world.run())) {
        Ok(outcome) => outcome,
        Err(cause) => {
            let what = LAST_PANIC.with(|last| last.borrow_mut().take());
            let what = what.unwrap_or_else(|| format!("{:?}", cause.type_id()));
            world.outcome(Some(Violation { check: "panic", what }))
        }
    };
    let text = world.trace.text().map(str::to_owned);
    Finished { seed, outcome, text }
}

thread_local! {
    static LAST_PANIC: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Panics of worlds are kept as text instead of being printed.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string().replace('\n', " ");
            LAST_PANIC.with(|last| *last.borrow_mut() = Some(text));
        }));
    });
}

/// How many threads to use.
pub fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// Runs `work` for every number below `count` on several threads until it says stop.
pub fn spread<T: Send>(
    count: u64,
    threads: usize,
    work: impl Fn(u64) -> (T, bool) + Sync,
) -> Vec<T> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let (result, last) = work(number);
                    if last {
                        stop.store(true, Ordering::Relaxed);
                    }
                    let mut results = results.lock().unwrap_or_else(|e| e.into_inner());
                    results.push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The command that shows what happened in a seed.
pub fn replay_command(seed: u64, operations: u64, in_postgres: bool) -> String {
    let mode = if in_postgres { " --postgres" } else { "" };
    format!(
        "cargo run --release -p ikada-sim -- replay --seed {seed} --ops {operations}{mode} --until-violation"
    )
}
