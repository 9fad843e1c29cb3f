//! Whole runs with logs in the simulated Postgres: everything holds, and what is planted is found (P1 to P4).

use crate::commands::{Finished, draw_plan, run_plan};
use crate::marks::{Mark, Marks};
use crate::plan::Plan;
use crate::plan::database::Mischief;
use crate::world::World;

/// Client operations of a seed here; campaigns make more.
const OPERATIONS: u64 = 120;

fn run(plan: Plan) -> Finished {
    run_plan(plan, false)
}

/// How many seeds; `IKADA_LEASE_SEEDS` for more.
fn seeds() -> u64 {
    std::env::var("IKADA_LEASE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

#[test]
fn f_39_p_1_to_p_3_hold_whatever_happens_to_the_database() -> Result<(), String> {
    let mut marks = Marks::default();
    for seed in 1..=seeds() {
        let finished = run(draw_plan(seed, OPERATIONS, true));
        if let Some(violation) = finished.outcome.violation {
            return Err(format!("seed {seed}: {violation}"));
        }
        marks.add(&finished.outcome.marks);
    }
    let wanted = [
        Mark::LeaseTakenOver,
        Mark::AppendConflict,
        Mark::DatabaseStruck,
        Mark::DatabaseClockMoved,
        Mark::SetBackNoticed,
        Mark::LogForked,
    ];
    match wanted.iter().find(|mark| marks.count(**mark) == 0) {
        Some(mark) => Err(format!("never seen: {}", mark.words())),
        None => Ok(()),
    }
}

/// Looks for a violation of this kind with a defect in the database. Panics say nothing here: runs keep them as text.
fn is_found(mischief: Mischief, wanted: &str) -> Result<(), String> {
    for seed in 1..=60 {
        let mut plan = draw_plan(seed, OPERATIONS, true);
        if let Some(database) = &mut plan.database {
            database.mischief = Some(mischief);
            // Only a log that was set back shows it.
            database.is_set_back |= mischief == Mischief::EndUnchecked;
        }
        match run(plan).outcome.violation {
            Some(found) if found.check.starts_with(wanted) => return Ok(()),
            Some(found) => return Err(format!("seed {seed}: {found}")),
            None => {}
        }
    }
    Err(format!("{mischief:?} is not found"))
}

#[test]
fn p_1_an_append_without_its_epoch_checked_is_found() -> Result<(), String> {
    is_found(Mischief::AppendUnchecked, "P1")
}

#[test]
fn p_2_an_epoch_that_does_not_grow_is_found() -> Result<(), String> {
    is_found(Mischief::EpochKept, "P2")
}

#[test]
fn p_2_writing_after_a_restore_is_found() -> Result<(), String> {
    is_found(Mischief::EndUnchecked, "P2")
}

#[test]
fn p_4_another_clock_in_the_database_gives_the_same_run() {
    for seed in [3, 4] {
        let trace = |clock_start_ms: u64| {
            let mut plan = draw_plan(seed, OPERATIONS, true);
            plan.database.as_mut().expect("a database").clock_start_ms = clock_start_ms;
            run(plan).outcome.trace_hash
        };
        assert_eq!(trace(1_000_000_000_000), trace(2_000_000_000_000), "seed {seed}");
    }
}

#[test]
fn ls_7_a_killed_holder_of_a_calm_cluster_is_followed_within_its_ttl_and_a_second() {
    let mut world = World::new(Plan::calm_leased(5, 3, 1, 0), false);
    let killed = world.kill_leaders(20).expect("no violation");
    for kill in killed {
        assert!(kill.gap_us < 6_000_000, "{kill:?}");
        assert_eq!(kill.terms, 1, "{kill:?}");
    }
}
