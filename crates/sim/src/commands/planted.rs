//! `planted`: every deliberate defect of the product's crates must be found (S-4).

#[cfg(feature = "planted")]
use std::time::Instant;

use anyhow::Result;

use crate::args::Planted;

/// Does the command.
#[cfg(not(feature = "planted"))]
pub fn perform(_args: &Planted) -> Result<bool> {
    anyhow::bail!("planted defects are not compiled in: add `--features planted`")
}

/// Does the command.
#[cfg(feature = "planted")]
pub fn perform(args: &Planted) -> Result<bool> {
    use super::campaign;
    let all: Vec<super::Defect> = every_defect()
        .into_iter()
        .filter(|defect| {
            let name = format!("{defect:?}");
            args.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
        })
        .collect();
    let found = campaign::spread(all.len() as u64, campaign::threads(args.jobs), |number| {
        let defect = all[number as usize];
        let hunt = hunt(defect, args);
        println!("{}", row(defect, &hunt));
        (hunt.seed.is_some(), false)
    });
    let missed = found.iter().filter(|found| !**found).count();
    println!("{} of {} planted defects found", found.len() - missed, found.len());
    Ok(missed == 0)
}

#[cfg(feature = "planted")]
struct Hunt {
    seed: Option<u64>,
    seeds: u64,
    violation: String,
    seconds: f64,
}

#[cfg(feature = "planted")]
fn hunt(defect: super::Defect, args: &Planted) -> Hunt {
    let began = Instant::now();
    set(Some(defect));
    let mut hunt = Hunt { seed: None, seeds: 0, violation: String::new(), seconds: 0.0 };
    for seed in args.from..args.from + args.seeds {
        hunt.seeds += 1;
        let finished = super::run_plan(plan_for(defect, seed, args.ops), false);
        if let Some(violation) = finished.outcome.violation {
            hunt.seed = Some(seed);
            hunt.violation = violation.to_string();
            break;
        }
    }
    set(None);
    hunt.seconds = began.elapsed().as_secs_f64();
    hunt
}

/// Defects of leases show only where there are some.
#[cfg(feature = "planted")]
fn plan_for(defect: super::Defect, seed: u64, operations: u64) -> crate::plan::Plan {
    use super::Defect;
    let is_leased = match defect {
        Defect::Database(_) => true,
        Defect::Consensus(bug) => ikada_consensus::planted::LEASED.contains(&bug),
        _ => false,
    };
    let mut plan = super::draw_plan(seed, operations, is_leased);
    if let (Some(database), Defect::Database(mischief)) = (&mut plan.database, defect) {
        database.mischief = Some(mischief);
    }
    plan
}

#[cfg(feature = "planted")]
fn row(defect: super::Defect, hunt: &Hunt) -> String {
    let name = format!("{defect:?}");
    let Hunt { seed, seeds, violation, seconds } = hunt;
    match seed {
        Some(seed) => format!(
            "{name:<38} seed {seed:>5} after {seeds:>5} seeds {seconds:>7.1} s  {violation}"
        ),
        None => format!("{name:<38} NOT FOUND in {seeds} seeds {seconds:.1} s"),
    }
}

/// Plants one defect in this thread, or none.
#[cfg(feature = "planted")]
fn set(defect: Option<super::Defect>) {
    use super::Defect;
    let (mut state, mut consensus, mut replica, mut store) = (None, None, None, None);
    match defect {
        Some(Defect::State(bug)) => state = Some(bug),
        Some(Defect::Consensus(bug)) => consensus = Some(bug),
        Some(Defect::Replica(bug)) => replica = Some(bug),
        Some(Defect::Store(bug)) => store = Some(bug),
        Some(Defect::Database(_)) | None => {}
    }
    ikada_state::planted::set(state);
    ikada_consensus::planted::set(consensus);
    ikada_replica::planted::set(replica);
    ikada_store::planted::set(store);
}

#[cfg(feature = "planted")]
fn every_defect() -> Vec<super::Defect> {
    use super::Defect;
    use crate::plan::database::Mischief;
    let mut all: Vec<Defect> = Vec::new();
    all.extend(ikada_consensus::planted::ALL.iter().map(|bug| Defect::Consensus(*bug)));
    all.extend(ikada_consensus::planted::LEASED.iter().map(|bug| Defect::Consensus(*bug)));
    all.extend(Mischief::ALL.iter().map(|bug| Defect::Database(*bug)));
    all.extend(ikada_store::planted::ALL.iter().map(|bug| Defect::Store(*bug)));
    all.extend(ikada_replica::planted::Bug::ALL.iter().map(|bug| Defect::Replica(*bug)));
    all.extend(ikada_state::planted::Bug::ALL.iter().map(|bug| Defect::State(*bug)));
    all
}
