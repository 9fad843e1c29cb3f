//! What is written in other languages, tried over real processes: the dashboard in a real browser, the Python package.
//!
//! Both have tests of their own, which start their own nodes; here they are given the binary and judged by their exit. Where the other
//! language's tools are missing, they are skipped by name: `.ci/run` installs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fresh::{ikada, without_settings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn answers(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Runs a command that must end well; shows what it said if it does not.
fn run(command: &mut Command) {
    let output = command.current_dir(root()).stdin(Stdio::null()).output().expect("it starts");
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{told}", output.status);
    eprintln!("{said}{told}");
}

/// X14 and the promises of docs/dashboard.md. Pictures are kept in `target/dashboard`.
#[test]
fn x_14_the_dashboard_works_in_a_browser() {
    let Some(missing) = ["node", "chromium"].into_iter().find(|program| !answers(program)) else {
        let pictures = root().join("target/dashboard");
        let mut command = without_settings(Command::new("node"));
        run(command.arg("dashboard/tests/run.mjs").arg(ikada().get_program()).arg(pictures));
        return;
    };
    eprintln!("SKIPPED: {missing} is not installed; install it to try the dashboard");
}

#[test]
fn the_python_package_works() {
    if !answers("python3") {
        eprintln!("SKIPPED: python3 is not installed; install it to try the Python package");
        return;
    }
    let mut command = without_settings(Command::new("python3"));
    command.args(["-m", "unittest", "discover", "-s", "sdk/python/tests", "-t", "sdk/python"]);
    run(command.env("IKADA_PROGRAM", ikada().get_program()).env("PYTHONDONTWRITEBYTECODE", "1"));
}
