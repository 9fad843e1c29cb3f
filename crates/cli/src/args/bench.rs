//! `ikada bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bench_examples as examples;
use crate::bench::{PeerKind, Rival};

/// Benches; each starts a cluster of its own on this machine and removes it afterwards, unless `queue` is told of another.
#[derive(Debug, Subcommand)]
#[command(after_help = examples::ALL)]
pub(crate) enum BenchCommand {
    /// Time cold starts: from nothing to one agreed leader per shard on every node.
    Startup(StartupArgs),
    /// Kill or stop leaders under load: how long writes wait, and that nothing acknowledged is lost.
    Failover(FailoverArgs),
    /// Measure the task queue: enqueue, whole lives, drain, latency at a fixed rate, memory of waiting tasks.
    Queue(QueueBenchArgs),
    /// Flood a node with slow, idle, rude and oversized callers: what a well-behaved one notices, and what it costs.
    Floods(FloodsArgs),
    /// Measure jobs beside the same work without a cluster: empty commands, functions, a word count, very many tasks.
    Jobs(JobsBenchArgs),
    /// Measure the store of files: many clients with spikes of downloads, or plain transfers.
    Objects(ObjectsBenchArgs),
}

/// Flags of `startup`.
#[derive(Debug, Args)]
#[command(after_help = examples::STARTUP)]
pub(crate) struct StartupArgs {
    /// How many cold starts.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    pub(crate) runs: u32,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
}

/// A phase of `queue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum QueuePhase {
    /// Enqueue alone, with 1, 64 and 1,024 calls in flight, and batched by the client.
    Enqueue,
    /// Enqueue, claim and complete at the same time.
    Lifecycle,
    /// Work off a backlog.
    Drain,
    /// Times at a fixed rate.
    Latency,
    /// A million waiting tasks.
    Memory,
}

impl QueuePhase {
    /// In the order in which they run.
    pub(crate) const ALL: [QueuePhase; 5] =
        [Self::Enqueue, Self::Lifecycle, Self::Drain, Self::Latency, Self::Memory];
}

/// Flags of `queue`.
#[derive(Debug, Args)]
#[command(after_help = examples::QUEUE)]
pub(crate) struct QueueBenchArgs {
    /// Measure the cluster of IKADA_URL or of the context instead of one of the bench's own; --url alone means this too. Its
    /// tasks stay behind there.
    #[arg(long)]
    pub(crate) existing: bool,
    /// What TLS and tokens cost: whole lives on clusters of the bench's own, without and with them in turn.
    #[arg(long, conflicts_with_all = ["existing", "only"])]
    pub(crate) secure: bool,
    /// Rounds of --secure; medians are shown.
    #[arg(long, default_value_t = 3, requires = "secure", value_parser = clap::value_parser!(u16).range(1..=50), value_name = "N")]
    pub(crate) rounds: u16,
    /// Only these phases.
    #[arg(long, value_delimiter = ',', value_name = "PHASE")]
    pub(crate) only: Vec<QueuePhase>,
    /// Tasks per phase.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000), value_name = "N")]
    pub(crate) tasks: u64,
    /// Waiting tasks of the memory phase.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2_000..=10_000_000), value_name = "N")]
    pub(crate) pending: u64,
    /// Bytes of each payload.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    pub(crate) payload_bytes: usize,
    /// Tasks per second of the latency phase.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "N")]
    pub(crate) rate: u32,
    /// Seconds of the latency phase.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600), value_name = "N")]
    pub(crate) seconds: u32,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards. One is what peers were measured with: a single replicated log.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
    /// Keep the nodes' logs in this Postgres, in a schema of the bench's own that is dropped afterwards. In the open only: it
    /// should be on this machine.
    #[arg(long, value_name = "URL", conflicts_with_all = ["existing", "secure"])]
    pub(crate) log: Option<String>,
    /// Measure these as well, one after the other, and set the figures side by side; they must be installed.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SYSTEM")]
    pub(crate) beside: Vec<Rival>,
}

/// A workload of `objects`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ObjectsWorkload {
    /// Clients that mostly download, with spikes that come for all at the same time.
    Recipes,
    /// One file at a time on an idle cluster, small cached files, one large file.
    Transfers,
    /// One small file from memory, beside nginx; needs `nginx` and `wrk`.
    Cached,
    /// Five times as many submissions as the cluster can take, while workers renew their claims.
    Overload,
}

/// Flags of `objects`.
#[derive(Debug, Args)]
#[command(after_help = examples::OBJECTS)]
pub(crate) struct ObjectsBenchArgs {
    /// What the clients do.
    #[arg(long, value_enum, default_value_t = ObjectsWorkload::Recipes)]
    pub(crate) workload: ObjectsWorkload,
    /// How many nodes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many clients.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) clients: u16,
    /// How long.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(5..=3_600), value_name = "N")]
    pub(crate) seconds: u16,
    /// Bytes of an object.
    #[arg(long, default_value_t = 1_000_000, value_name = "BYTES")]
    pub(crate) object_bytes: usize,
    /// A spike has 50 calls per second and client, and up to so many more.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000), value_name = "N")]
    pub(crate) spike: u32,
    /// MiB of the large file of `transfers`.
    #[arg(long, default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=16_384), value_name = "N")]
    pub(crate) large_mib: u32,
    /// What the nodes turn away, as `ikada server --shed` has it; their defaults, but nothing for `transfers` and `cached`.
    #[arg(long, value_name = "RULE")]
    pub(crate) shed: Vec<String>,
    /// For `overload`: touch the machine's free memory first, and give it back as the nodes grow. Where the machine is a guest whose host
    /// supplies memory at the first touch, they are measured by that otherwise.
    #[arg(long)]
    pub(crate) warm_memory: bool,
}

/// A phase of `jobs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum JobsPhase {
    /// Empty commands through two workers, beside processes started in a bare loop.
    Commands,
    /// Functions that do nothing, beside whole lives of plain tasks.
    Handlers,
    /// A word count, beside the same code in threads alone.
    Words,
    /// A job of very many tasks: memory of the nodes, and what others notice.
    Expansion,
}

impl JobsPhase {
    /// In the order in which they run.
    pub(crate) const ALL: [JobsPhase; 4] =
        [Self::Commands, Self::Handlers, Self::Words, Self::Expansion];
}

/// Flags of `jobs`.
#[derive(Debug, Args)]
#[command(after_help = examples::JOBS)]
pub(crate) struct JobsBenchArgs {
    /// Only these phases.
    #[arg(long, value_delimiter = ',', value_name = "PHASE")]
    pub(crate) only: Vec<JobsPhase>,
    /// Tasks of the phase commands.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000), value_name = "N")]
    pub(crate) commands: u64,
    /// Slots of each of the two workers of the phase commands.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256), value_name = "N")]
    pub(crate) slots: u32,
    /// Also run the phase commands through HyperQueue; PYTHON is an interpreter that has the package hyperqueue.
    #[arg(long, value_name = "PYTHON")]
    pub(crate) hyperqueue: Option<PathBuf>,
    /// Tasks of the phase handlers.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000), value_name = "N")]
    pub(crate) handlers: u64,
    /// How often the phases handlers and words, each beside what it is compared with; the report has the medians.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100), value_name = "N")]
    pub(crate) rounds: u16,
    /// MiB of the phase words.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384), value_name = "N")]
    pub(crate) mib: u32,
    /// MiB of one input of the phase words, which is one task's.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_024), value_name = "N")]
    pub(crate) input_mib: u32,
    /// Tasks of the phase expansion.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000), value_name = "N")]
    pub(crate) tasks: u64,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
}

/// A flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FloodKind {
    /// Connections that send a head byte by byte (slow loris).
    SlowHeads,
    /// Connections that say nothing.
    Idle,
    /// Connections that close as soon as they are open.
    OpenAndClose,
    /// Bodies of 1 GiB, with and without their length.
    LargeBodies,
    /// JSON that is 100,000 arrays deep.
    DeepJson,
    /// Bodies in chunks of one byte.
    TinyChunks,
    /// Connections that begin to shake hands and then say nothing; with --secure.
    Handshakes,
}

impl FloodKind {
    /// In the order in which they run.
    pub(crate) const ALL: [FloodKind; 7] = [
        Self::SlowHeads,
        Self::Idle,
        Self::OpenAndClose,
        Self::LargeBodies,
        Self::DeepJson,
        Self::TinyChunks,
        Self::Handshakes,
    ];

    /// Whether it is a flood of TLS.
    pub(crate) fn needs_tls(self) -> bool {
        self == Self::Handshakes
    }
}

/// Flags of `floods`.
#[derive(Debug, Args)]
#[command(after_help = examples::FLOODS)]
pub(crate) struct FloodsArgs {
    /// Only these.
    #[arg(long, value_delimiter = ',', value_name = "FLOOD")]
    pub(crate) only: Vec<FloodKind>,
    /// On a cluster that speaks TLS and asks for tokens, and with handshakes that stop half-way.
    #[arg(long)]
    pub(crate) secure: bool,
    /// Connections that slow and idle callers hold, as far as this process may have files open.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=50_000), value_name = "N")]
    pub(crate) connections: u32,
    /// How long each flood lasts, and the time before it with which it is compared.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(2..=600), value_name = "N")]
    pub(crate) seconds: u16,
    /// How often each flood, and the time before it; the calls of all rounds are judged together.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100), value_name = "N")]
    pub(crate) rounds: u16,
    /// How many nodes; the first one is flooded.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
}

/// Flags of `failover`.
#[derive(Debug, Args)]
#[command(after_help = examples::FAILOVER)]
pub(crate) struct FailoverArgs {
    /// Ask leaders to stop instead of killing them.
    #[arg(long, conflicts_with = "beside")]
    pub(crate) graceful: bool,
    /// How many leaders to kill, or to stop.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    pub(crate) kills: u32,
    /// Writes per second.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=20_000), value_name = "N")]
    pub(crate) rate: u32,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(3..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
    /// Keep the nodes' logs in this Postgres, in a schema of the bench's own that is dropped afterwards. In the open only: it
    /// should be on this machine.
    #[arg(long, value_name = "URL")]
    pub(crate) log: Option<String>,
    /// Then do the same to three servers of these systems, which must be installed, and put all in one table.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SYSTEM")]
    pub(crate) beside: Vec<PeerKind>,
}
