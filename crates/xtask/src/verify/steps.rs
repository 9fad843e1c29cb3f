//! The steps of `verify`, cheapest first, and the commands they run.
//!
//! Promises: every command is printed before it runs, so that one step can be repeated by hand. Steps share nothing but the
//! workspace. Leaves out: installing tools (`.ci/run` does that); a missing tool is named with the command that installs it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::{Outcome, advisories};
use crate::{mixed, tidy, tree};

/// The pinned version of cargo-deny; `.ci/run` installs the same.
pub const CARGO_DENY_VERSION: &str = "0.20.2";

/// One check.
pub struct Step {
    /// As in `--only`.
    pub name: &'static str,
    /// What it runs or checks, in one line.
    pub what: &'static str,
    /// Runs it in the workspace at this path.
    pub run: fn(&Path) -> anyhow::Result<Outcome>,
}

/// All steps in the order they run.
pub const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "cargo fmt --all --check",
        run: |root| cargo(root, &["fmt", "--all", "--check"]),
    },
    Step {
        name: "tidy",
        what: "the house rules (cargo xtask tidy)",
        run: |root| {
            Ok(match tidy::run(root)? {
                true => Outcome::Passed,
                false => {
                    Outcome::Failed("house rules are broken; see the findings above".to_owned())
                }
            })
        },
    },
    Step {
        name: "deny",
        what: "licences, banned crates and sources (cargo deny)",
        run: |root| deny(root, &["bans", "licenses", "sources"], false),
    },
    Step {
        name: "advisories",
        what: "known vulnerabilities in dependencies (cargo deny)",
        run: check_advisories,
    },
    Step {
        name: "fuzz-lock",
        what: "fuzz/Cargo.lock fits the crates that are fuzzed",
        run: check_fuzz_lock,
    },
    Step {
        name: "clippy",
        what: "cargo clippy --workspace --all-targets, warnings are errors",
        run: |root| {
            let arguments =
                ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
            cargo(root, &arguments)
        },
    },
    Step {
        name: "clippy-planted",
        what: "the same for the simulator with planted defects compiled in",
        run: clippy_planted,
    },
    Step {
        name: "doc",
        what: "cargo doc --no-deps, warnings are errors",
        run: |root| {
            let arguments = ["doc", "--locked", "--workspace", "--no-deps"];
            execute(command(root, &arguments).env("RUSTDOCFLAGS", "-D warnings"))
        },
    },
    Step {
        name: "test",
        what: "cargo nextest run --workspace (cargo test where nextest is missing)",
        run: test,
    },
    Step {
        name: "doctest",
        what: "cargo test --workspace --doc",
        run: |root| cargo(root, &["test", "--locked", "--workspace", "--doc"]),
    },
    Step {
        name: "sim-seeds",
        what: "300 fixed seeds of the simulator, release build",
        run: |root| {
            let arguments =
                ["run", "--locked", "--release", "-p", "ikada-sim", "--", "run", "--seeds", "300"];
            cargo(root, &arguments)
        },
    },
    Step {
        name: "sim-postgres",
        what: "100 fixed seeds with logs in a simulated Postgres, release build",
        run: |root| {
            const PACKAGE: [&str; 6] = ["run", "--locked", "--release", "-p", "ikada-sim", "--"];
            let asked = "run --postgres --seeds 100".split(' ');
            let arguments: Vec<&str> = PACKAGE.into_iter().chain(asked).collect();
            cargo(root, &arguments)
        },
    },
    Step {
        name: "sim-meta",
        what: "the same seed gives the same trace, byte for byte, release build",
        run: |root| cargo(root, &["run", "--locked", "--release", "-p", "ikada-sim", "--", "meta"]),
    },
    Step {
        name: "mixed",
        what: "the newest tag and this version in one cluster, if the tag was built before",
        run: |root| {
            Ok(match mixed::run_short(root)? {
                Ok(true) => Outcome::Passed,
                Ok(false) => Outcome::Failed("both versions do not run together".to_owned()),
                Err(reason) => Outcome::Skipped(reason),
            })
        },
    },
];

fn check_advisories(root: &Path) -> anyhow::Result<Outcome> {
    if let Some(outcome) = deny_is_missing(root) {
        return Ok(outcome);
    }
    match advisories::prepare(root)? {
        advisories::Database::Local => deny(root, &["advisories"], true),
        advisories::Database::Fetched => deny(root, &["advisories"], false),
        advisories::Database::Absent(reason) => Ok(without_advisories(reason, is_ci())),
    }
}

/// A gate that nobody passes through is none: where changes are judged, a missing database is a failure.
fn without_advisories(reason: String, is_ci: bool) -> Outcome {
    eprintln!("THE DEPENDENCIES WERE NOT CHECKED FOR KNOWN VULNERABILITIES");
    if is_ci { Outcome::Failed(reason) } else { Outcome::Skipped(reason) }
}

/// Whether this is a machine that judges changes, by the variable that all of them set.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// The fuzz programs are a workspace of their own, which no other step reads: a stale lock would be rewritten by the next
/// `cargo xtask fuzz`.
fn check_fuzz_lock(root: &Path) -> anyhow::Result<Outcome> {
    let arguments =
        "metadata --locked --offline --format-version 1 --manifest-path fuzz/Cargo.toml";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    eprintln!("cargo {}", arguments.join(" "));
    let answer = command(root, &arguments).stdout(Stdio::null()).output();
    let answer = answer.context("cargo could not be started")?;
    let told = String::from_utf8_lossy(&answer.stderr);
    Ok(judge_fuzz_lock(answer.status.success(), &told))
}

fn judge_fuzz_lock(is_well: bool, told: &str) -> Outcome {
    if is_well {
        return Outcome::Passed;
    }
    if told.contains("--locked") {
        let advice =
            "fuzz/Cargo.lock is stale: `cargo metadata --manifest-path fuzz/Cargo.toml` renews it";
        return Outcome::Failed(advice.to_owned());
    }
    let why = told.lines().next().unwrap_or_default();
    Outcome::Skipped(format!("its dependencies are not on this machine: {why}"))
}

fn deny(root: &Path, checks: &[&str], offline: bool) -> anyhow::Result<Outcome> {
    if let Some(outcome) = deny_is_missing(root) {
        return Ok(outcome);
    }
    let mut arguments = vec!["deny", "--workspace", "--all-features", "--locked"];
    if offline {
        arguments.push("--offline");
    }
    arguments.extend(["check", "--hide-inclusion-graph"]);
    arguments.extend(checks);
    cargo(root, &arguments)
}

/// Installs cargo-deny where it is missing, so that this one command is all the set-up there is.
fn deny_is_missing(root: &Path) -> Option<Outcome> {
    if has(root, &["deny", "--version"]) {
        return None;
    }
    eprintln!("cargo-deny is missing; installing it once (a few minutes)");
    let install = ["install", "cargo-deny", "--version", CARGO_DENY_VERSION, "--locked"];
    match cargo(root, &install) {
        Ok(Outcome::Passed) => None,
        _ => {
            Some(Outcome::Failed(format!("cargo-deny is missing: run cargo {}", install.join(" "))))
        }
    }
}

fn clippy_planted(root: &Path) -> anyhow::Result<Outcome> {
    if !sim_has_planted(root)? {
        return Ok(Outcome::Skipped("ikada-sim has no feature `planted`".to_owned()));
    }
    let arguments = [
        "clippy",
        "--locked",
        "-p",
        "ikada-sim",
        "--all-targets",
        "--features",
        "planted",
        "--",
        "-D",
        "warnings",
    ];
    cargo(root, &arguments)
}

fn test(root: &Path) -> anyhow::Result<Outcome> {
    if has(root, &["nextest", "--version"]) {
        return cargo(root, &["nextest", "run", "--locked", "--workspace"]);
    }
    eprintln!("cargo-nextest is missing, falling back to cargo test");
    cargo(root, &["test", "--locked", "--workspace", "--lib", "--bins", "--tests"])
}

fn sim_has_planted(root: &Path) -> anyhow::Result<bool> {
    let metadata = tree::metadata(root)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let sim = packages.find(|package| package["name"] == "ikada-sim");
    Ok(sim.is_some_and(|package| package["features"]["planted"].is_array()))
}

/// Whether a cargo subcommand is installed.
fn has(root: &Path, arguments: &[&str]) -> bool {
    let status = command(root, arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // Set by the cargo that started us; some build scripts watch it and would rebuild for nothing.
    command.args(arguments).current_dir(root).env_remove("CARGO_MANIFEST_DIR").stdin(Stdio::null());
    command
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<Outcome> {
    execute(&mut command(root, arguments))
}

fn execute(command: &mut Command) -> anyhow::Result<Outcome> {
    let words: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = format!("cargo {}", words.join(" "));
    eprintln!("{line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    Ok(if status.success() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("`{line}` ended with {status}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_16_a_missing_database_of_advisories_fails_where_changes_are_judged() {
        let reason = || "no copy".to_owned();
        assert_eq!(without_advisories(reason(), true), Outcome::Failed(reason()));
        assert_eq!(without_advisories(reason(), false), Outcome::Skipped(reason()));
    }

    #[test]
    fn x_16_a_stale_lock_of_the_fuzz_programs_is_told_from_missing_crates() {
        let stale =
            "error: cannot update the lock file because --locked was passed to prevent this";
        assert!(matches!(judge_fuzz_lock(false, stale), Outcome::Failed(_)));
        let absent = "error: no matching package named `libfuzzer-sys` found";
        assert!(matches!(judge_fuzz_lock(false, absent), Outcome::Skipped(_)));
        assert_eq!(judge_fuzz_lock(true, ""), Outcome::Passed);
    }

    #[test]
    fn ci_installs_the_version_we_name() {
        let script = include_str!("../../../../.ci/run");
        assert!(script.contains(&format!("cargo_deny_version={CARGO_DENY_VERSION}\n")));
    }

    #[test]
    fn x_16_the_gate_looks_at_advisories_licences_and_sources() {
        for step in ["tidy", "deny", "advisories", "clippy"] {
            assert!(STEPS.iter().any(|known| known.name == step), "{step}");
        }
        let rules: toml::Table = include_str!("../../../../deny.toml").parse().expect("TOML");
        let word = |part: &str, key: &str| rules[part][key].as_str().map(str::to_owned);
        assert_eq!(word("advisories", "yanked").as_deref(), Some("deny"));
        assert_eq!(word("advisories", "unsound").as_deref(), Some("all"));
        assert_eq!(word("sources", "unknown-registry").as_deref(), Some("deny"));
        assert_eq!(word("sources", "unknown-git").as_deref(), Some("deny"));
        assert!(rules["licenses"]["allow"].as_array().is_some_and(|allowed| !allowed.is_empty()));
        assert!(rules["licenses"].get("deny").is_none(), "what is not allowed is denied");
    }

    #[test]
    fn x_16_every_build_of_the_gate_is_locked() {
        let source = include_str!("steps.rs");
        let source: String = source.split_whitespace().collect();
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        for verb in ["clippy", "doc", "nextest", "test", "run", "deny"] {
            let mut uses = 0;
            for part in source.split(&format!("[\"{verb}\",")).skip(1) {
                let arguments = part.split(']').next().unwrap_or_default();
                let asks = arguments.contains("--version");
                assert!(asks || arguments.contains("--locked"), "{verb} {arguments}");
                uses += 1;
            }
            assert!(uses > 0, "{verb} is not looked at");
        }
    }
}
