//! `cargo xtask scenarios`: the named scenarios of calm leadership, in the simulator and with real processes, in one table.
//!
//! Promises: the simulator plays its scripts from one seed; the same scenarios run as tests with real processes, one at a
//! time, so that none disturbs another. What cannot run here (network namespaces need root, slow disks a tracer) is shown
//! as skipped. Leaves out: what counts as well; the scripts and the tests judge.

mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use table::{Outcome, Row};

/// Scenarios as tests with real processes.
const TESTS: &[(&str, &str)] = &[
    ("MQ-17", "partition::mq_17_a_node_that_comes_back_changes_no_leader"),
    ("F-6a", "partition::mq_18_a_cut_between_leader_and_one_follower_changes_no_leader"),
    ("F-5", "partition::f_5_the_others_go_on_whenever_a_leader_is_cut_off_in_silence"),
    ("F-6b", "partition::f_6b_when_all_see_only_one_node_that_one_leads"),
    ("F-6c", "partition::f_6c_two_nodes_with_one_link_each_do_not_disturb_the_leader"),
    ("F-6d", "partition::f_6d_only_a_stale_node_reaches_a_majority_and_nothing_is_acknowledged"),
    ("F-6e", "partition::f_6e_a_leader_that_hears_nothing_steps_down"),
    ("F-6f", "partition::f_6f_a_flapping_link_inflates_no_terms"),
    (
        "F-9",
        "pause::f_9_a_leader_that_wakes_reads_nothing_stale_acknowledges_nothing_and_expires_nothing",
    ),
    ("F-10 slow", "slow_disk::f_10_a_leader_with_a_slow_disk_stays"),
    ("F-10 hang", "slow_disk::f_10_a_leader_whose_disk_hangs_yields_and_expires_nothing"),
    ("F-11", "slow_disk::f_11_a_follower_with_a_slow_disk_is_not_felt"),
    ("F-25", "crowd::f_25_many_workers_come_back_after_a_failover_without_a_second_election"),
    ("F-28", "rolling::f_28_a_rolling_restart_under_load_loses_nothing"),
    ("F-39 restart", "postgres::ls_14_a_database_that_restarts_loses_nothing"),
    (
        "F-39 stall",
        "postgres_faults::ls_14_f_39_a_database_that_stalls_has_no_leader_and_loses_nothing",
    ),
    ("F-39 pause", "postgres::ls_9_a_holder_paused_past_its_lease_writes_nothing_afterwards"),
    (
        "F-39 late append",
        "postgres_faults::ls_9_f_39_an_append_that_arrives_after_its_lease_was_taken_is_refused_by_the_database",
    ),
    (
        "F-39 clock",
        "postgres_faults::ls_8_f_39_a_database_clock_that_is_moved_costs_no_entry_and_no_hour",
    ),
    ("F-39 pooler", "postgres_faults::f_39_a_pooler_in_transaction_mode_is_good_enough"),
    ("F-39 read-only", "postgres_faults::ls_14_a_database_that_becomes_read_only_is_waited_for"),
    ("F-39 full", "postgres_faults::ls_14_a_database_that_is_full_is_waited_for"),
    (
        "F-39 older dump",
        "postgres_faults::p_2_f_39_nodes_halt_before_a_restored_dump_also_after_a_restart",
    ),
    ("LS-17 kills", "schedules::ls_17_each_instant_is_kept_once_through_leader_kills"),
    ("TQ-16 kills", "claims::tq_16_idle_workers_get_work_of_all_shards_after_each_killed_leader"),
    (
        "B4-26 kills",
        "jobs::b4_9_b4_26_b4_57_workers_and_leaders_killed_through_a_job_leave_its_result_right",
    ),
    (
        "LS-16 drain",
        "postgres_shards::ls_16_ls_19_due_tasks_are_drained_by_all_nodes_and_a_hundred_workers_without_duplicates",
    ),
    (
        "LS-16 balance",
        "postgres_shards::ls_16_a_node_that_comes_back_leads_a_share_without_anybodys_doing",
    ),
];
/// What happens where the simulator has no script.
const PROCESSES_ONLY: &[(&str, &str)] = &[
    ("F-25", "500 workers come back after the leader was killed"),
    ("LS-17 kills", "the leader is killed again and again while a schedule fires every second"),
    ("TQ-16 kills", "the leader is killed again and again while workers wait for work"),
    ("F-39 restart", "the database that holds the logs is killed and started again, twice"),
    ("F-39 stall", "it stands still with all its connections"),
    ("F-39 pause", "the holder of a lease is paused past its ttl and goes on"),
    ("F-39 late append", "an append arrives after its lease was taken"),
    ("F-39 clock", "its clock is moved by an hour, forward and back, and a holder dies"),
    ("F-39 pooler", "all goes through a pooler in transaction mode, and a holder dies"),
    ("F-39 read-only", "it takes no writes for a while"),
    ("F-39 full", "it has no room for a while"),
    ("F-39 older dump", "it is restored to an older dump, then to the newest"),
    ("B4-26 kills", "workers and a leader are killed in the middle of a job of 200 texts"),
    ("LS-16 balance", "a node that comes back is given shards by itself (--long only)"),
    ("LS-16 drain", "three nodes and 120 workers drain what is due"),
];
/// What `--long` asks of the tests: the sizes of F-39, LS-16, LS-17 and B4-26. They take hours together.
const LONG: [(&str, &str); 7] = [
    ("IKADA_TEST_STALL_S", "30"),
    ("IKADA_TEST_ROUNDS", "200"),
    ("IKADA_TEST_DRAIN", "1000000"),
    ("IKADA_TEST_BALANCE", "1"),
    ("IKADA_SCHEDULE_KILLS", "100"),
    ("IKADA_IDLE_KILLS", "100"),
    ("IKADA_JOB_KILLS", "20"),
];

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct ScenarioArgs {
    /// Only those whose name contains this, e.g. F-6.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The seed of the simulator's scripts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give the tests with logs in a database their whole size: stalls of 30 s, 200 rounds, a million tasks; and
    /// kill the leader 100 times under a schedule and under idle workers.
    #[arg(long)]
    long: bool,
    /// Print one line of JSON per row instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs all; true if none failed.
pub fn run(root: &Path, args: &ScenarioArgs) -> anyhow::Result<bool> {
    let is_wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only));
    let has_no_script = |name: &str| PROCESSES_ONLY.iter().any(|(known, _)| *known == name);
    let mut wanted = TESTS.iter().filter(|(name, _)| is_wanted(name));
    let mut rows: Vec<Row> = match wanted.all(|(name, _)| has_no_script(name)) {
        true => Vec::new(),
        false => simulate(root, args.seed)?,
    };
    rows.retain(|row| is_wanted(&row.name));
    let mut texts: BTreeMap<String, String> =
        rows.iter().map(|row| (row.name.clone(), row.what.clone())).collect();
    texts.extend(PROCESSES_ONLY.iter().map(|(name, what)| ((*name).into(), (*what).into())));
    let folder = root.join("target").join("scenarios");
    std::fs::create_dir_all(&folder).context("target/scenarios")?;
    test(root, &["--no-run"], None, false)?;
    for (name, path) in TESTS.iter().filter(|(name, _)| is_wanted(name)) {
        eprintln!("{name}: {path}");
        let report = folder.join("report.json");
        let _ = std::fs::remove_file(&report);
        let is_well = test(root, &["-E", &format!("test(={path})")], Some(&report), args.long)?;
        let line = std::fs::read_to_string(&report).ok();
        let told = line.map(|line| serde_json::from_str(&line)).transpose().context("a report")?;
        let what = texts.get(*name).cloned().unwrap_or_default();
        rows.push(of_test(name, what, is_well, told.as_ref()));
    }
    rows.sort_by_key(|row| TESTS.iter().position(|(name, _)| *name == row.name));
    if args.json {
        rows.iter().for_each(|row| println!("{}", row.json()));
    } else {
        println!("{}", table::table(&rows));
    }
    Ok(rows.iter().all(|row| row.outcome != Outcome::Failed))
}

/// The simulator's scripts.
fn simulate(root: &Path, seed: u64) -> anyhow::Result<Vec<Row>> {
    let output = Command::new("cargo")
        .args(["run", "--locked", "--release", "-p", "ikada-sim", "--", "scenarios", "--json"])
        .args(["--seed", &seed.to_string()])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo run -p ikada-sim")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Row> = text.lines().map(of_script).collect::<anyhow::Result<_>>()?;
    if rows.is_empty() {
        bail!("the simulator told nothing");
    }
    Ok(rows)
}

fn of_script(line: &str) -> anyhow::Result<Row> {
    let told: Value = serde_json::from_str(line).context("a line of the simulator")?;
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    let outcome = if told["ok"] == true { Outcome::Passed } else { Outcome::Failed };
    let row = Row::new(text("scenario"), text("what"), "simulator", outcome);
    Ok(Row { why: text("violation"), ..row.with(&told) })
}

/// A test that told nothing could not run here.
fn of_test(name: &str, what: String, is_well: bool, told: Option<&Value>) -> Row {
    let outcome = match (is_well, told) {
        (false, _) => Outcome::Failed,
        (true, None) => Outcome::Skipped,
        (true, Some(_)) => Outcome::Passed,
    };
    let row = Row::new(name.to_owned(), what, "processes", outcome);
    told.map_or(row.clone(), |told| row.with(told))
}

/// Runs tests of real processes; true if they passed.
fn test(root: &Path, args: &[&str], report: Option<&Path>, long: bool) -> anyhow::Result<bool> {
    let mut command = Command::new("cargo");
    command.args(["nextest", "run", "--locked", "-p", "ikada-cli", "--test", "process"]).args(args);
    command.current_dir(root).stdout(std::process::Stdio::null());
    if long {
        command.args(["--profile", "long"]).envs(LONG);
    }
    if let Some(report) = report {
        command.env("IKADA_SCENARIO_REPORT", report);
    }
    Ok(command.status().context("cargo nextest")?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_tests_become_rows() {
        let line = r#"{"scenario":"F-5","what":"w","ok":false,"violation":"v","changes":3,"changes_max":2,"seconds":9}"#;
        let row = of_script(line).expect("a row");
        assert_eq!((row.outcome, row.changes, row.why.as_str()), (Outcome::Failed, Some(3), "v"));
        let told = serde_json::json!({"changes": 0, "throughput_percent": 97, "seconds": 12});
        let row = of_test("F-6a", String::new(), true, Some(&told));
        assert_eq!((row.outcome, row.throughput_percent), (Outcome::Passed, Some(97)));
        assert_eq!(of_test("F-6a", String::new(), true, None).outcome, Outcome::Skipped);
        assert_eq!(of_test("F-6a", String::new(), false, None).outcome, Outcome::Failed);
        assert!(of_script("nonsense").is_err());
    }
}
