//! The same phases for other queues on the same machine, in the same run: NATS JetStream, Redis and a table in Postgres, as their packages come.
//!
//! They are spoken to in their own plain protocols by clients of the same shape as ikada's: many callers over few
//! connections, each waiting for its own answer, and consumers that ask for more while earlier tasks are being settled. Not
//! part of any promise of ikada.

mod callers;
mod messages;
mod nats;
mod postgres;
mod redis;
mod resp;
mod wire;

use std::io;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;
use tokio::task::JoinSet;

use super::lifecycle::{CONSUMERS, SUBMITTERS};
use super::report::{Line, Phase};
use super::servers::cpu_of;
use super::tasks::Tally;
use super::{IN_FLIGHT, LONE_SHARE};
use crate::args::{QueueBenchArgs, QueuePhase};
use crate::failure::Failure;

/// Tasks asked for at one time by a consumer.
const BATCH: u64 = 200;

/// A system to measure beside ikada.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rival {
    /// NATS JetStream: three servers, a work queue on disk with three replicas. Acknowledged from a majority's memory.
    Nats,
    /// Redis: one server, a stream with a consumer group, `appendfsync always`. Acknowledged from one disk, no replica.
    Redis,
    /// Postgres: the server of --log, a table, `FOR UPDATE SKIP LOCKED`, one transaction per transition.
    Postgres,
}

/// What was measured of one rival.
#[derive(Debug, Serialize)]
pub(super) struct RivalReport {
    pub(super) system: String,
    pub(super) lines: Vec<Line>,
}

/// A rival's servers, running.
enum Running {
    Nats(nats::Cluster),
    Redis(redis::Server),
    Postgres(postgres::Table),
}

impl Running {
    async fn start(rival: Rival, args: &QueueBenchArgs) -> Result<Running, Failure> {
        Ok(match rival {
            Rival::Nats => Running::Nats(nats::Cluster::start().await?),
            Rival::Redis => Running::Redis(redis::Server::start().await?),
            Rival::Postgres => Running::Postgres(postgres::Table::make(args.log.as_deref()).await?),
        })
    }

    fn system(&self) -> String {
        match self {
            Running::Nats(cluster) => cluster.version(),
            Running::Redis(server) => server.version(),
            Running::Postgres(table) => table.version(),
        }
    }

    fn cpu_seconds(&self) -> Option<f64> {
        let pids = match self {
            Running::Nats(cluster) => cluster.pids(),
            Running::Redis(server) => server.pids(),
            // Not the bench's own process.
            Running::Postgres(_) => return None,
        };
        pids.into_iter().map(cpu_of).sum()
    }

    /// An empty queue.
    async fn clear(&self) -> io::Result<()> {
        match self {
            Running::Nats(cluster) => cluster.clear().await,
            Running::Redis(server) => server.clear().await,
            Running::Postgres(table) => table.clear().await,
        }
    }

    /// Sends tasks with so many callers until all are acknowledged.
    async fn send(&self, callers: usize, total: u64, payload: &[u8]) -> io::Result<()> {
        match self {
            Running::Nats(cluster) => nats::send(cluster.leader(), callers, total, payload).await,
            Running::Redis(server) => redis::send(server.address(), callers, total, payload).await,
            Running::Postgres(table) => table.send(callers, total, payload).await,
        }
    }

    /// Takes and settles tasks until so many are settled; gives when the last was.
    async fn consume(&self, total: u64) -> io::Result<Instant> {
        let tally = Tally::new(total);
        let mut running = JoinSet::new();
        if let Running::Postgres(table) = self {
            table.consume(&tally).await?;
        }
        for consumer in 0..CONSUMERS {
            let tally = tally.clone();
            match self {
                Running::Nats(cluster) => {
                    running.spawn(nats::consume(cluster.leader().to_owned(), tally));
                }
                Running::Redis(server) => {
                    let address = server.address().to_owned();
                    running.spawn(redis::consume(address, consumer, tally));
                }
                Running::Postgres(_) => {}
            }
        }
        while let Some(ended) = running.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        tally.end().map_err(|failure| io::Error::other(failure.to_string()))
    }
}

/// Measures one rival in the phases that were asked for.
pub(super) async fn measure(rival: Rival, args: &QueueBenchArgs) -> Result<RivalReport, Failure> {
    let running = Running::start(rival, args).await?;
    let mut lines = Vec::new();
    let payload = vec![b'x'; args.payload_bytes];
    for phase in phases(args) {
        let total = match phase {
            Phase::Enqueue(1) => args.tasks / LONE_SHARE,
            _ => args.tasks,
        };
        let line = run(&running, phase, total, &payload).await;
        let line =
            line.map_err(|error| Failure::failed(format!("{}: {error}", running.system())))?;
        eprintln!("{}: {}", running.system(), line.headline());
        lines.push(line);
    }
    let system = running.system();
    if let Running::Postgres(table) = running {
        table.remove().await?;
    }
    Ok(RivalReport { system, lines })
}

/// The phases that others have too.
fn phases(args: &QueueBenchArgs) -> Vec<Phase> {
    let wanted = |phase| args.only.is_empty() || args.only.contains(&phase);
    let mut phases = Vec::new();
    if wanted(QueuePhase::Enqueue) {
        phases.extend(IN_FLIGHT.map(Phase::Enqueue));
    }
    phases.extend(wanted(QueuePhase::Lifecycle).then_some(Phase::Lifecycle));
    phases.extend(wanted(QueuePhase::Drain).then_some(Phase::Drain));
    phases
}

async fn run(running: &Running, phase: Phase, total: u64, payload: &[u8]) -> io::Result<Line> {
    running.clear().await?;
    if phase == Phase::Drain {
        running.send(IN_FLIGHT[2], total, payload).await?;
    }
    let mark = running.cpu_seconds();
    let began = Instant::now();
    let (what, ended) = match phase {
        Phase::Enqueue(in_flight) => {
            running.send(in_flight, total, payload).await?;
            (format!("enqueue, {in_flight} in flight"), Instant::now())
        }
        Phase::Lifecycle => {
            let sending = running.send(SUBMITTERS, total, payload);
            let ((), ended) = tokio::try_join!(sending, running.consume(total))?;
            (format!("lifecycle, {SUBMITTERS} in flight, {CONSUMERS} consumers"), ended)
        }
        Phase::Drain => {
            let ended = running.consume(total).await?;
            (format!("drain of a backlog, {CONSUMERS} consumers"), ended)
        }
    };
    let mut line = Line::rate(what, total, (ended - began).as_secs_f64()).of(phase);
    let used = mark.and_then(|mark| Some(running.cpu_seconds()? - mark));
    line.note_cpu(used);
    Ok(line)
}
