//! `cargo xtask chaos`: a cluster of real processes under faults, with `ikada verify` as workload and judge.
//!
//! Promises: faults leave a majority able to recover, and all are healed before the judgement; only processes and
//! namespaces made here are touched; the end is one line of JSON and the word *clean* or *VIOLATED*. Leaves out: disks
//! that fail (the simulator's business) and what a verdict means (`cli/src/verify`).

mod network;
pub mod nodes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;

use network::Network;
use nodes::Nodes;

/// Nodes of the cluster.
const NODES: u64 = 3;
/// The end of a run is calm, so that the workload can finish.
const CALM: Duration = Duration::from_secs(10);

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// A node is killed and started again.
    Kill,
    /// A node, or one direction of a link, is cut off; needs root, ip and nft.
    Partition,
    /// A node stands still and goes on.
    Pause,
    /// Workers die and come back late.
    Worker,
}

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct ChaosArgs {
    /// How long.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_440))]
    minutes: u64,
    /// Kinds of faults, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "kill,pause,worker")]
    faults: Vec<Fault>,
    /// Submissions per second.
    #[arg(long, default_value_t = 50)]
    rate: u32,
    /// Repeats the choice of faults; drawn when absent.
    #[arg(long)]
    seed: Option<u64>,
    /// A binary that is built already; a release build is made when absent.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs a campaign; true if nothing was violated.
pub fn run(root: &Path, args: &ChaosArgs) -> anyhow::Result<bool> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize().context("the binary")?,
        None => build(root, "release")?,
    };
    let seed = args.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    let network = match args.faults.contains(&Fault::Partition) {
        true => Some(Network::make(NODES).context(
            "no namespaces can be made here (root, ip and nft are needed); leave `partition` out",
        )?),
        false => None,
    };
    println!("seed {seed}, faults {:?}, {} min", args.faults, args.minutes);
    let mut nodes = Nodes::start(&binary, NODES, network.as_ref())?;
    nodes.wait_until_well()?;
    let seconds = args.minutes * 60;
    let mut verify = Command::new(&binary);
    verify.args(["verify", "--output", "json", "--seconds", &seconds.to_string()]);
    verify.args(["--rate", &args.rate.to_string()]);
    verify.args(nodes.urls().iter().flat_map(|url| ["--url", url]));
    if !args.faults.contains(&Fault::Worker) {
        verify.arg("--calm-workers");
    }
    let verify = verify.stdout(std::process::Stdio::piped()).spawn().context("ikada verify")?;
    let until = Instant::now() + Duration::from_secs(seconds).saturating_sub(CALM);
    let struck = strike(&mut nodes, network.as_ref(), args, seed, until)?;
    let judged = verify.wait_with_output().context("ikada verify")?;
    let report = String::from_utf8_lossy(&judged.stdout).trim().to_owned();
    let clean = judged.status.success();
    println!(
        "{{\"seed\":{seed},\"minutes\":{},\"kills\":{},\"cuts\":{},\"pauses\":{},\"clean\":{clean},\"verify\":{}}}",
        args.minutes,
        struck.kills,
        struck.cuts,
        struck.pauses,
        if report.is_empty() { "null" } else { &report }
    );
    println!("{}", if clean { "clean" } else { "VIOLATED" });
    if !clean {
        println!("the nodes' folders are kept in {}", nodes.keep().display());
    }
    Ok(clean)
}

/// How often each fault was made.
#[derive(Default)]
struct Struck {
    kills: u64,
    cuts: u64,
    pauses: u64,
}

/// Strikes again and again, one fault at a time, each healed before the next.
fn strike(
    nodes: &mut Nodes,
    network: Option<&Network>,
    args: &ChaosArgs,
    seed: u64,
    until: Instant,
) -> anyhow::Result<Struck> {
    let mut draw = Draw(seed | 1);
    let mut struck = Struck::default();
    let kinds: Vec<Fault> =
        args.faults.iter().copied().filter(|fault| *fault != Fault::Worker).collect();
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1_000 + draw.below(4_000)));
        let Some(kind) = kinds.get(draw.below(kinds.len().max(1) as u64) as usize) else {
            continue;
        };
        let node = 1 + draw.below(NODES);
        let length = Duration::from_millis(200 + draw.below(8_000));
        match kind {
            Fault::Kill => {
                struck.kills += 1;
                nodes.kill(node)?;
                std::thread::sleep(length);
                nodes.launch(node, network)?;
            }
            Fault::Pause => {
                struck.pauses += 1;
                nodes.signal(node, "STOP")?;
                std::thread::sleep(length);
                nodes.signal(node, "CONT")?;
            }
            Fault::Partition => {
                let Some(network) = network else { continue };
                struck.cuts += 1;
                let other = 1 + (node + draw.below(NODES - 1)) % NODES;
                match draw.below(3) {
                    0 => network.isolate(node),
                    1 => network.cut_one_way(node, other),
                    _ => {
                        network.cut_one_way(node, other);
                        network.cut_one_way(other, node);
                    }
                }
                std::thread::sleep(length);
                network.heal();
            }
            Fault::Worker => {}
        }
        if !nodes.are_running()? {
            bail!("a node ended by itself; its folder is kept in {}", nodes.keep().display());
        }
    }
    Ok(struck)
}

/// Builds the binary of the working copy.
pub fn build(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let made = Command::new("cargo")
        .args(["build", "-p", "ikada-cli", "--profile", profile])
        .current_dir(root)
        .status()
        .context("cargo build")?;
    if !made.success() {
        bail!("the binary could not be built");
    }
    Ok(built(root, profile))
}

/// Where a build of the working copy leaves its binary.
pub fn built(root: &Path, profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    target.join(output_folder(profile)).join("ikada")
}

/// Cargo's folder for what a profile makes.
pub fn output_folder(profile: &str) -> &str {
    match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    }
}

/// A small generator: faults need variety, not quality.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}
