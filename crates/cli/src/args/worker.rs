//! `ikada worker`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ikada_api::s3::StorePlace;
use ikada_worker::exec::{GroupRule, is_store, local_path};
use ikada_worker::sandbox::{Isolation, Limits};

use super::task::read_label;

const EXAMPLES: &str = "\
Examples:
  ikada worker --queue default                            runs what is built in and modules, no commands
  ikada worker --slots 8 --queue images --queue video --label gpu=a100
  ikada worker --queue default --allow-command python3 --allow-command '{file}'
  ikada worker --queue default --isolation best           where the kernel lacks a part of the sandbox

Commands run only where they are allowed by name: a worker is remote code execution by design. Programs get a user,
processes, network and files of their own; see docs/guides/programs.md. SIGTERM drains: running tasks are finished first.";

/// How much isolation programs get.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IsolationArg {
    /// All of it; where the kernel lacks a part, the worker does not start.
    Full,
    /// Whatever the kernel has.
    Best,
    /// Limits only: programs can do what the worker's user can do.
    None,
}

impl From<IsolationArg> for Isolation {
    fn from(argument: IsolationArg) -> Isolation {
        match argument {
            IsolationArg::Full => Isolation::Full,
            IsolationArg::Best => Isolation::Best,
            IsolationArg::None => Isolation::None,
        }
    }
}

/// Whether control groups bound a program as a whole.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum GroupsArg {
    /// Where the machine gives them to this worker.
    Best,
    /// Always; where the machine gives none, the worker does not start.
    Require,
    /// Never.
    Off,
}

impl From<GroupsArg> for GroupRule {
    fn from(argument: GroupsArg) -> GroupRule {
        match argument {
            GroupsArg::Best => GroupRule::Best,
            GroupsArg::Require => GroupRule::Require,
            GroupsArg::Off => GroupRule::Off,
        }
    }
}

/// Flags of `worker`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// A queue to take tasks from; may be given several times.
    #[arg(
        long,
        short,
        env = "IKADA_WORKER_QUEUE",
        value_delimiter = ',',
        default_value = "default"
    )]
    pub(crate) queue: Vec<String>,
    /// How many tasks run at one time.
    #[arg(long, env = "IKADA_WORKER_SLOTS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) slots: u32,
    /// Its name, as shown with each attempt; drawn when absent.
    #[arg(long, env = "IKADA_WORKER_NAME")]
    pub(crate) name: Option<String>,
    /// What it has; tasks that want other labels are not handed to it. May be given several times.
    #[arg(long = "label", env = "IKADA_WORKER_LABEL", value_delimiter = ',', value_name = "NAME=VALUE", value_parser = read_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// A command that tasks may run: a name, a path, `{file}` for files of programs, or `*`. May be given several times.
    #[arg(long, env = "IKADA_ALLOW_COMMAND", value_delimiter = ',', value_name = "PROGRAM")]
    pub(crate) allow_command: Vec<String>,
    /// An address below which inputs may lie, as in file:///data or s3://texts/2026. May be given several times.
    #[arg(long, env = "IKADA_ALLOW_URL", value_delimiter = ',', value_name = "PREFIX", value_parser = read_prefix)]
    pub(crate) allow_url: Vec<String>,
    /// An address below which outputs may go, as in s3://results. It allows no reading. May be given several times.
    #[arg(long, env = "IKADA_ALLOW_OUTPUT_URL", value_delimiter = ',', value_name = "PREFIX", value_parser = read_prefix)]
    pub(crate) allow_output_url: Vec<String>,
    /// The data folder of a node on this machine: pieces of objects are read from its disk, each checked by its digest, and
    /// come over the connection only where they are not there.
    #[arg(long, env = "IKADA_NEAR", value_name = "FOLDER")]
    pub(crate) near: Option<PathBuf>,
    /// A folder that commands may read and run programs from, beside the system's own. May be given several times.
    #[arg(long, env = "IKADA_ALLOW_READ", value_delimiter = ',', value_name = "FOLDER")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Let commands use this machine's network.
    #[arg(long, env = "IKADA_ALLOW_NETWORK")]
    pub(crate) allow_network: bool,
    /// Where attempts have their folders and programs are kept [default: ikada-work in the folder for temporary files].
    #[arg(long, env = "IKADA_WORK_DIR", value_name = "FOLDER")]
    pub(crate) work_dir: Option<PathBuf>,
    /// How much isolation programs get.
    #[arg(long, env = "IKADA_ISOLATION", value_enum, default_value = "full")]
    pub(crate) isolation: IsolationArg,
    /// Whether control groups bound memory and processes of a program as a whole.
    #[arg(long, env = "IKADA_CONTROL_GROUPS", value_enum, default_value = "best")]
    pub(crate) control_groups: GroupsArg,
    /// Memory that one program may use: each of its processes, and with control groups all together.
    #[arg(long, env = "IKADA_MEMORY_MIB", default_value_t = 1_024, value_name = "MIB")]
    pub(crate) memory_mib: u64,
    /// Processes and threads of one program.
    #[arg(long, env = "IKADA_PROCESSES", default_value_t = 256)]
    pub(crate) processes: u64,
    /// Longest run of one program, in seconds; a task may ask for less.
    #[arg(long, env = "IKADA_TIME_LIMIT_S", default_value_t = 3_600, value_name = "SECONDS")]
    pub(crate) time_limit_s: u64,
    /// Steps that one WebAssembly module may take, where a byte of a bulk operation is one, too
    /// [default: as many as its time allows].
    #[arg(long, env = "IKADA_MODULE_STEPS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) module_steps: Option<u64>,
    /// Time that a program has to end after it is told to, in ms; then it is ended.
    #[arg(long, env = "IKADA_GRACE_MS", default_value_t = 5_000)]
    pub(crate) grace_ms: u64,
    /// How long running tasks may go on once the worker is told to leave, in seconds.
    #[arg(long, env = "IKADA_DRAIN_S", default_value_t = 30, value_name = "SECONDS")]
    pub(crate) drain_s: u64,
    /// Leave when standard input closes, so that a worker ends with whoever started it.
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

/// An address that can be allowed; others would be allowed in vain.
fn read_prefix(text: &str) -> Result<String, String> {
    let climbs = text.split('/').any(|part| part == "..");
    // The bucket must be one; whose store is asked is the worker's own setting, never part of an address.
    let below = format!("{}/x", text.trim_end_matches('/'));
    let is_bucket = is_store(text) && matches!(StorePlace::parse(&below), Some(Ok(_)));
    let known = local_path(text).is_some() || is_bucket;
    match known && !climbs {
        true => Ok(text.to_owned()),
        false => {
            let rule = "workers open addresses that begin with file:///, s3://BUCKET, gs://BUCKET or az://CONTAINER only, without ..";
            Err(rule.to_owned())
        }
    }
}

impl WorkerArgs {
    /// How much one program may use.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_mib.saturating_mul(1 << 20),
            processes: self.processes,
            wall_ms: self.time_limit_s.saturating_mul(1_000),
            module_steps: self.module_steps.unwrap_or(u64::MAX),
            grace_ms: self.grace_ms,
            ..Limits::default()
        }
    }
}
