//! `cargo xtask verify`: everything a change must pass, in one read-only run.
//!
//! Promises: no tracked file is edited (every cargo call is `--locked`); a failed step does not hide the later ones; the
//! run ends with one table and one exit code. A step that this machine cannot run is shown as skipped with the reason,
//! never as passed. Leaves out: benchmarks and tests against a running cluster.

mod advisories;
mod report;
mod steps;

use std::path::Path;
use std::time::Instant;

use anyhow::bail;

use report::Row;
use steps::{STEPS, Step};

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and found nothing.
    Passed,
    /// It ran and found something, or should have run and could not.
    Failed(String),
    /// It could not run here; says why and what to do about it.
    Skipped(String),
}

/// Prints the steps.
pub fn list() {
    let width = STEPS.iter().map(|step| step.name.len()).max().unwrap_or_default();
    for step in STEPS {
        println!("{:width$}  {}", step.name, step.what);
    }
}

/// Runs all steps, or those named in `only`, and says whether none failed.
pub fn run(root: &Path, only: &[String]) -> anyhow::Result<bool> {
    let chosen = choose(only)?;
    let mut rows = Vec::new();
    for step in chosen {
        eprintln!("\n== {}: {}", step.name, step.what);
        let started = Instant::now();
        let outcome =
            (step.run)(root).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        if let Outcome::Failed(reason) | Outcome::Skipped(reason) = &outcome {
            eprintln!("{}: {reason}", step.name);
        }
        rows.push(Row { name: step.name, outcome, elapsed: started.elapsed() });
    }
    println!("\n{}", report::table(&rows));
    Ok(rows.iter().all(|row| !matches!(row.outcome, Outcome::Failed(_))))
}

/// The named steps in the order of the list; all of them when none is named.
fn choose(only: &[String]) -> anyhow::Result<Vec<&'static Step>> {
    let known = |name: &String| STEPS.iter().any(|step| step.name == name.as_str());
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("no step named `{unknown}`; the steps are {}", names.join(", "));
    }
    let is_chosen = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        Ok(choose(&only)?.into_iter().map(|step| step.name).collect())
    }

    #[test]
    fn order_is_the_lists_and_unknown_names_are_refused() {
        assert_eq!(names(&["tidy", "fmt"]).unwrap(), ["fmt", "tidy"]);
        assert_eq!(names(&[]).unwrap().len(), STEPS.len());
        assert!(names(&["tests"]).unwrap_err().to_string().contains("no step named `tests`"));
    }

    #[test]
    fn step_names_are_unique() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(STEPS[at + 1..].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }
}
