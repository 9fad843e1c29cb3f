//! `ikada bench queue`: what a cluster does as a task queue, phase by phase.
//!
//! Every figure is counted from acknowledged answers; a phase that lost or doubled a task fails the run. Processor time
//! and memory are the nodes' own, from the kernel's accounts, so they exist only for nodes that the bench started.

mod drain;
mod enqueue;
mod latency;
mod lifecycle;
mod memory;
mod report;
mod servers;
mod tasks;

pub(in crate::bench) use servers::memory_of;

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::ClientOptions;

use self::report::{Line, QueueReport};
use self::servers::Servers;
use crate::args::{QueueBenchArgs, QueuePhase, SharedArgs};
use crate::failure::Failure;

/// Longer than any call of a bench should take: a stall shows as a slow figure, not as an error.
const CALL_PATIENCE: Duration = Duration::from_secs(60);

/// What the phases share.
struct Bench<'a> {
    args: &'a QueueBenchArgs,
    client: Client,
    servers: Servers,
    lines: Vec<Line>,
}

/// Runs the phases that were asked for, in order.
pub(in crate::bench) async fn measure(
    shared: &SharedArgs,
    args: &QueueBenchArgs,
) -> Result<QueueReport, Failure> {
    let servers = Servers::start_or_reach(shared, args).await?;
    let options = match args.existing {
        true => shared.reach()?.1,
        false => ClientOptions::default(),
    };
    let options = ClientOptions { timeout: CALL_PATIENCE, ..options };
    let client = Client::with(servers.urls(), options)?;
    let mut bench = Bench { args, client, servers, lines: Vec::new() };
    for phase in QueuePhase::ALL {
        if args.only.is_empty() || args.only.contains(&phase) {
            bench.run(phase).await?;
        }
    }
    Ok(QueueReport::new(args, bench.servers.describe(), bench.lines))
}

impl Bench<'_> {
    async fn run(&mut self, phase: QueuePhase) -> Result<(), Failure> {
        match phase {
            QueuePhase::Enqueue => self.enqueue().await,
            QueuePhase::Lifecycle => self.lifecycle().await,
            QueuePhase::Drain => self.drain().await,
            QueuePhase::Latency => self.latency().await,
            QueuePhase::Memory => self.memory().await,
        }
    }

    /// A line with the processor time that the nodes used since a mark.
    fn note(&mut self, mut line: Line, mark: Option<f64>) {
        let used = mark.and_then(|mark| Some(self.servers.cpu_seconds()? - mark));
        line.server_cpu_s_per_100k = used.map(|used| used * 100_000.0 / line.tasks.max(1) as f64);
        eprintln!("{}", line.headline());
        self.lines.push(line);
    }
}
