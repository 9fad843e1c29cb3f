//! The same storm for other systems: three servers of etcd or NATS JetStream on this machine, writes at a fixed rate, kill -9
//! of the leader again and again.
//!
//! They are started as their packages come, with three replicas on disk, and spoken to in their own plain protocols. Not
//! part of any promise of ikada: what they lose or double is told, and does not fail the bench.

mod etcd;
mod load;
mod nats;
mod servers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use super::failover::FailoverReport;
use super::summary::{Summary, ms};
use crate::args::FailoverArgs;
use crate::failure::Failure;
use crate::render::bar;
use crate::render::{Document, Grid};
use load::PeerLoad;
pub(super) use servers::{Servers, name as server_name};

/// Nodes of every peer: what their own guides recommend.
const NODES: usize = 3;
/// Writes return, and killed servers are whole again, within this time.
const PATIENCE: Duration = Duration::from_secs(90);
/// Load between kills.
const CALM: Duration = Duration::from_millis(500);
/// How often something is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A system to measure beside ikada.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerKind {
    /// etcd: one key per write, put over its JSON gateway. Acknowledged once a majority has it on disk.
    Etcd,
    /// NATS JetStream: a file stream with three replicas and message ids. Acknowledged from a majority's memory.
    Nats,
}

impl PeerKind {
    fn program(self) -> &'static str {
        match self {
            PeerKind::Etcd => "etcd",
            PeerKind::Nats => "nats-server",
        }
    }

    /// The package that brings it.
    fn package(self) -> &'static str {
        match self {
            PeerKind::Etcd => "etcd-server",
            PeerKind::Nats => "nats-server",
        }
    }

    /// One write, by way of one server. Sending it again under the same number is safe in both systems.
    async fn write(self, address: &str, number: u64) -> std::io::Result<()> {
        match self {
            PeerKind::Etcd => etcd::put(address, number).await,
            PeerKind::Nats => nats::publish(address, number).await,
        }
    }

    /// Which of these servers leads; none unless exactly one does and all are whole.
    async fn leader(self, addresses: &[String]) -> Option<usize> {
        match self {
            PeerKind::Etcd => etcd::leader(addresses).await,
            PeerKind::Nats => nats::leader(addresses).await,
        }
    }

    /// How often each write is there.
    async fn list(self, addresses: &[String]) -> std::io::Result<BTreeMap<u64, u64>> {
        match self {
            PeerKind::Etcd => etcd::list(&addresses[0]).await,
            PeerKind::Nats => nats::list(&addresses[0]).await,
        }
    }
}

/// What was measured of one peer.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    system: String,
    kills: u32,
    /// Kill to the first acknowledged write that was begun after it.
    gap: Summary,
    acked: usize,
    missing: u64,
    doubled: u64,
    unknown: usize,
    retried: u64,
    gaps_ms: Vec<u64>,
}

/// Kills the leader of one peer under load, as often as ikada's.
pub(super) async fn measure(kind: PeerKind, args: &FailoverArgs) -> Result<PeerReport, Failure> {
    let mut servers = Servers::start(kind)?;
    if kind == PeerKind::Nats {
        wait("JetStream takes a stream", async || nats::make_stream(servers.addresses()).await)
            .await?;
    }
    wait("the servers agree", async || kind.leader(servers.addresses()).await).await?;
    let load = PeerLoad::start(kind, servers.addresses(), args.rate);
    let bar = bar(u64::from(args.kills), &format!("kills of {}", kind.program()));
    let mut gaps_ms = Vec::new();
    for _ in 0..args.kills {
        tokio::time::sleep(CALM).await;
        let found = wait("a leader", async || kind.leader(servers.addresses()).await).await?;
        let killed = Instant::now();
        servers.kill(found)?;
        let back = wait("writes return", async || load.first_begun_after(killed)).await?;
        let gap_ms = ms(back.saturating_duration_since(killed));
        bar.set_message(format!("last gap {gap_ms} ms"));
        gaps_ms.push(gap_ms);
        servers.launch(found)?;
        wait("all servers are back", async || kind.leader(servers.addresses()).await).await?;
        bar.inc(1);
    }
    tokio::time::sleep(CALM).await;
    bar.finish_and_clear();
    let fate = load.stop().await?;
    let listed = wait("what is there", async || kind.list(servers.addresses()).await.ok()).await?;
    let missing = fate.acked.iter().filter(|number| !listed.contains_key(number)).count();
    Ok(PeerReport {
        system: servers.version().to_owned(),
        kills: args.kills,
        gap: Summary::of(gaps_ms.iter().copied()),
        acked: fate.acked.len(),
        missing: missing as u64,
        doubled: listed.values().map(|times| times.saturating_sub(1)).sum(),
        unknown: fate.unknown,
        retried: fate.retried,
        gaps_ms,
    })
}

/// Repeats a look until it gives something.
pub(super) async fn wait<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return Ok(seen);
        }
        if begun.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(Failure::failed(format!("waited in vain for {seconds} s: {what}")));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// ikada and the others, in one table.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// Ikada's own report.
    pub(super) ikada: FailoverReport,
    /// One per peer.
    pub(super) beside: Vec<PeerReport>,
}

impl Document for Compared {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let mut rows = vec![self.ikada.row()];
        rows.extend(self.beside.iter().map(|peer| {
            let mut row = vec![peer.system.clone(), peer.kills.to_string()];
            row.extend(peer.gap.cells());
            let counts = [peer.acked as u64, peer.missing, peer.doubled, peer.unknown as u64];
            row.extend(counts.iter().chain([&peer.retried]).map(u64::to_string));
            row
        }));
        let headings: &[_] = &[
            "system", "kills", "gap p50", "p99", "max", "acked", "missing", "doubled", "unknown",
            "retried",
        ];
        vec![Grid { headings, rows }]
    }

    fn names(&self) -> Vec<String> {
        self.ikada.names()
    }
}
