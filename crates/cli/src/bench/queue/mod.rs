//! `ikada bench queue`: what a cluster does as a task queue, phase by phase.
//!
//! Every figure is counted from acknowledged answers; a phase that lost or doubled a task fails the run. Processor time
//! and memory are the nodes' own, from the kernel's accounts, so they exist only for nodes that the bench started.

mod drain;
mod enqueue;
mod floor;
mod latency;
mod lifecycle;
mod memory;
mod report;
mod rivals;
mod secure;
mod servers;
mod tasks;

pub(in crate::bench) use lifecycle::{CONSUMERS, SUBMITTERS};
pub(crate) use rivals::Rival;
pub(in crate::bench) use secure::compare;
pub(in crate::bench) use servers::{is_existing, memory_of, resident_of};
pub(in crate::bench) use tasks::{consume, task};

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::ClientOptions;

use self::report::{Line, QueueReport};
use self::servers::Servers;
use crate::args::{QueueBenchArgs, QueuePhase, SharedArgs};
use crate::failure::Failure;
use crate::render::spinner;

/// Longer than any call of a bench should take: a stall shows as a slow figure, not as an error.
const CALL_PATIENCE: Duration = Duration::from_secs(60);

/// Calls in flight of the enqueue phase.
const IN_FLIGHT: [usize; 3] = [1, 64, 1_024];
/// A lone caller waits for every answer: it gets a share of the tasks only.
const LONE_SHARE: u64 = 50;

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
    let options = match servers.is_own() {
        true => servers.options()?,
        false => shared.reach()?.1,
    };
    let options = ClientOptions { timeout: CALL_PATIENCE, ..options };
    let client = Client::with(servers.urls(), options)?;
    let mut bench = Bench { args, client, servers, lines: Vec::new() };
    for phase in QueuePhase::ALL {
        if args.only.is_empty() || args.only.contains(&phase) {
            bench.run(phase).await?;
        }
    }
    let Bench { servers, lines, .. } = bench;
    let about = servers.describe();
    // Its processes are out of the way before others are measured.
    servers.end().await?;
    let mut beside = Vec::new();
    for rival in &args.beside {
        beside.push(rivals::measure(*rival, args).await?);
    }
    Ok(QueueReport::new(args, about, lines, beside))
}

impl Bench<'_> {
    async fn run(&mut self, phase: QueuePhase) -> Result<(), Failure> {
        let turning = spinner(format!("measuring: {phase:?}").to_lowercase());
        let measured = match phase {
            QueuePhase::Enqueue => self.enqueue().await,
            QueuePhase::Lifecycle => self.lifecycle().await,
            QueuePhase::Drain => self.drain().await,
            QueuePhase::Latency => self.latency().await,
            QueuePhase::Memory => self.memory().await,
        };
        turning.finish_and_clear();
        measured
    }

    /// A line with the processor time that the nodes used since a mark.
    fn note(&mut self, mut line: Line, mark: Option<f64>) {
        let used = mark.and_then(|mark| Some(self.servers.cpu_seconds()? - mark));
        line.note_cpu(used);
        eprintln!("{}", line.headline());
        self.lines.push(line);
    }
}
