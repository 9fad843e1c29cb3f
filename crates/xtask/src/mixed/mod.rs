//! `cargo xtask mixed`: two versions in one cluster, rolled forward and back under the workload of `ikada verify`.
//!
//! Promises: the other version is built in a worktree and a target folder of its own below `target/mixed`, of which only the
//! binary stays; the working copy is not touched. Every node is asked to stop, never killed, as an operator would do it. The
//! way back is tried while one node still runs the other version, as the cluster's level may rise afterwards; at the end all
//! run this one. The end is *clean* (no
//! loss, no duplicates, equal copies), *REFUSED* with the node's own words where the versions say that they do not fit,
//! or *VIOLATED*. Leaves out: what a verdict means (`cli/src/verify`), and other faults (`chaos`).

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::chaos::nodes::Nodes;
use build::Version;

/// What is built by default.
const PROFILE: &str = "release";
/// Submissions per second by default.
const RATE: u32 = 50;
/// Nodes of the cluster.
const NODES: u64 = 3;
/// Work between two restarts.
const BETWEEN: Duration = Duration::from_secs(4);
/// A node that was asked to stop has this long.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// The workload goes on for at least so long after the last restart.
const CALM_SECONDS: u64 = 15;
/// What nodes say when they refuse to go on with what another version wrote or sent.
const REFUSALS: [&str; 6] = [
    "this program knows",
    "this program understands",
    "is not known",
    "newer version",
    "speaks protocol",
    "differs from the majority's",
];

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct MixedArgs {
    /// The other version: a tag, branch or commit; the newest tag when absent.
    #[arg(long, value_name = "REV")]
    from: Option<String>,
    /// How often to go forward and back before all go forward.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100), value_name = "N")]
    rounds: u64,
    /// Submissions per second.
    #[arg(long, default_value_t = RATE, value_name = "N")]
    rate: u32,
    /// A binary of the other version that is built already, instead of --from.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    other: Option<PathBuf>,
    /// A binary of this version that is built already; it is built when absent.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Cargo's profile for whatever is built.
    #[arg(long, default_value = PROFILE, value_name = "NAME")]
    profile: String,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Clean,
    Refused(String),
    Violated,
}

/// Runs both versions together; true unless something was violated.
pub fn run(root: &Path, args: &MixedArgs) -> anyhow::Result<bool> {
    let other = match &args.other {
        Some(other) => other.canonicalize().context("the other binary")?,
        None => {
            let version = Version::find(root, args.from.as_deref())?
                .context("nothing is tagged yet: name the other version with --from REV")?;
            println!("the other version is {}", version.name);
            version.build(root, &args.profile)?
        }
    };
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize().context("the binary")?,
        None => crate::chaos::build(root, &args.profile)?,
    };
    Ok(play(&binary, &other, args.rounds, args.rate)? != Ending::Violated)
}

/// The short form for `verify`: the newest tag, if its binary was built before, and the binary that the tests have just
/// built, since a release build of its own would take longer than all the rest.
pub fn run_short(root: &Path) -> anyhow::Result<Result<bool, String>> {
    let Some(version) = Version::find(root, None)? else {
        return Ok(Err("nothing is tagged yet".to_owned()));
    };
    let other = version.binary(root, PROFILE);
    if !other.exists() {
        let name = version.name;
        return Ok(Err(format!("{name} is not built; `cargo xtask mixed` builds and keeps it")));
    }
    let binary = crate::chaos::built(root, "test");
    if !binary.exists() {
        return Ok(Err(format!("{} is not there; the tests build it", binary.display())));
    }
    Ok(Ok(play(&binary, &other, 1, RATE)? == Ending::Clean))
}

/// Plays both versions against each other.
fn play(binary: &Path, other: &Path, rounds: u64, rate: u32) -> anyhow::Result<Ending> {
    let mut nodes = Nodes::start(other, NODES, None)?;
    nodes.wait_until_well()?;
    let restarts = rounds * 2 * (NODES - 1) + NODES;
    let seconds = restarts * (BETWEEN.as_secs() + 4) + CALM_SECONDS;
    let mut verify = Command::new(binary);
    verify.args(["verify", "--output", "json", "--seconds", &seconds.to_string()]);
    verify.args(["--rate", &rate.to_string()]);
    verify.args(nodes.urls().iter().flat_map(|url| ["--url", url]));
    let mut verify = verify.stdout(Stdio::piped()).spawn().context("ikada verify")?;
    let rolled = roll(&mut nodes, rounds, binary, other);
    if rolled.is_err() {
        let _ = verify.kill();
    }
    let judged = verify.wait_with_output().context("ikada verify")?;
    if let Err(error) = &rolled {
        println!("{error:#}");
    }
    let ending = match (rolled.is_ok() && judged.status.success(), refusal(&nodes)?) {
        (true, _) => Ending::Clean,
        (false, Some(words)) => Ending::Refused(words),
        (false, None) => Ending::Violated,
    };
    let report = String::from_utf8_lossy(&judged.stdout).trim().to_owned();
    println!("{}", if report.is_empty() { "null" } else { &report });
    match &ending {
        Ending::Clean => println!("clean: {restarts} restarts, forward and back, and all forward"),
        Ending::Refused(words) => println!("REFUSED: these versions do not run together: {words}"),
        Ending::Violated => println!("VIOLATED"),
    }
    if ending != Ending::Clean {
        println!("the nodes' folders are kept in {}", nodes.keep().display());
    }
    Ok(ending)
}

/// All nodes but one get the new version, then the other again; in the end all get the new one.
fn roll(nodes: &mut Nodes, rounds: u64, binary: &Path, other: &Path) -> anyhow::Result<()> {
    for _ in 0..rounds {
        restart(nodes, NODES - 1, binary, "forward")?;
        restart(nodes, NODES - 1, other, "back")?;
    }
    restart(nodes, NODES, binary, "forward")?;
    std::thread::sleep(BETWEEN);
    if !nodes.are_running()? {
        bail!("a node ended by itself");
    }
    Ok(())
}

/// The first nodes get a version, one after the other.
fn restart(nodes: &mut Nodes, count: u64, version: &Path, what: &str) -> anyhow::Result<()> {
    for id in 1..=count {
        std::thread::sleep(BETWEEN);
        if !nodes.are_running()? {
            bail!("a node ended by itself");
        }
        nodes.stop(id, STOP_PATIENCE)?;
        nodes.use_binary(id, version);
        nodes.launch(id, None)?;
        nodes.wait_until_well()?;
        println!("{what}: node {id} runs {}", version.display());
    }
    Ok(())
}

/// The first words of a node that refused.
fn refusal(nodes: &Nodes) -> anyhow::Result<Option<String>> {
    for id in 1..=NODES {
        let log = nodes.log(id)?;
        if let Some(line) = refusal_in(&log) {
            return Ok(Some(format!("node {id}: {line}")));
        }
    }
    Ok(None)
}

fn refusal_in(log: &str) -> Option<&str> {
    log.lines().find(|line| REFUSALS.iter().any(|words| line.contains(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_other_words() {
        assert_eq!(refusal_in("INFO role\nINFO stopping\n"), None);
        let log = "INFO role\nError: snapshot has format 3, this program knows 2\n";
        assert_eq!(refusal_in(log), Some("Error: snapshot has format 3, this program knows 2"));
    }
}
