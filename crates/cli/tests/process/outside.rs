//! What is written in other languages, tried over real processes: the dashboard in a real browser, the Python package.
//!
//! Both have tests of their own, which start their own nodes; here they are given the binary and judged by their exit. Where the other
//! language's tools are missing, they are skipped by name, but not in CI: `.ci/run` installs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cluster::test_database;
use crate::fresh::{ikada, without_settings};
use crate::missing::{is_ci, judge_missing};
use crate::server::Server;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn answers(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Whether a tool that this needs is missing: skipped by name here, but a failure in CI, where `.ci/run` installs all.
fn is_missing(programs: &[&str], what: &str) -> bool {
    let missing = programs.iter().find(|program| !answers(program));
    judge_missing(missing.copied(), what, is_ci())
}

/// Runs a command that must end well; shows what it said if it does not.
fn run(command: &mut Command) {
    let output = command.current_dir(root()).stdin(Stdio::null()).output().expect("it starts");
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{told}", output.status);
    eprintln!("{said}{told}");
}

/// More clusters than any of these suites starts.
const CLUSTERS_MAX: u32 = 40;

/// Where these suites shall keep their logs, if the tests keep them in a database: each cluster has a schema of its own there.
fn give_database(command: &mut Command) -> Option<Server> {
    let database = test_database()?;
    database.sql(&format!(
        "DO $$ BEGIN FOR number IN 1..{CLUSTERS_MAX} LOOP EXECUTE 'CREATE SCHEMA cluster_' || number; END LOOP; END $$"
    ));
    command.env("IKADA_TEST_LOG_URL", database.url());
    Some(database)
}

/// X14 and the promises of docs/dashboard.md. Pictures are kept in `target/dashboard`.
#[test]
fn x_14_the_dashboard_works_in_a_browser() {
    if is_missing(&["node", "chromium"], "the dashboard") {
        return;
    }
    let pictures = root().join("target/dashboard");
    let mut command = without_settings(Command::new("node"));
    let database = give_database(&mut command);
    run(command.arg("dashboard/tests/run.mjs").arg(ikada().get_program()).arg(pictures));
    drop(database);
}

/// The tool that judges rules for Prometheus: of this machine, or where `.ci/run` unpacks it.
fn promtool() -> String {
    let unpacked = root().join("target/prometheus/usr/bin/promtool");
    if !answers("promtool") && unpacked.exists() {
        return unpacked.display().to_string();
    }
    "promtool".to_owned()
}

/// TQ-24: every alert fires where it should, and none where all is well. That every alert has a case is judged without promtool, too.
#[test]
fn tq_24_the_rules_for_prometheus_fire_where_they_should() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).expect("a file");
    let (rules, cases) =
        (read("docs/prometheus/ikada.rules.yml"), read("docs/prometheus/ikada.rules.test.yml"));
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 20, "{alerts:?}");
    for alert in alerts {
        let is_tried = cases.contains(&format!("alertname=\"{alert}\""))
            || cases.contains(&format!("alertname: {alert}\n"));
        assert!(is_tried, "{alert} has no case");
    }
    let promtool = promtool();
    if is_missing(&[&promtool], "the rules for Prometheus") {
        return;
    }
    run(Command::new(&promtool).args(["check", "rules", "docs/prometheus/ikada.rules.yml"]));
    run(Command::new(&promtool).args(["test", "rules", "docs/prometheus/ikada.rules.test.yml"]));
}

#[test]
fn the_python_package_works() {
    if is_missing(&["python3"], "the Python package") {
        return;
    }
    let mut command = without_settings(Command::new("python3"));
    command.args(["-m", "unittest", "discover", "-s", "sdk/python/tests", "-t", "sdk/python"]);
    let database = give_database(&mut command);
    run(command.env("IKADA_PROGRAM", ikada().get_program()).env("PYTHONDONTWRITEBYTECODE", "1"));
    drop(database);
}
