//! `ikada bench floods`: callers that are slow, idle, rude or far too large, and what a well-behaved one notices (X7).
//!
//! One flood after the other against the first node of a cluster of the bench's own: the well-behaved caller before and
//! during it, the memory that the node takes more, what it refused, and whether all nodes live. The flood runs in a thread
//! of its own, bounded in rate, number and time, that yields to the node where they want the same processor. With `--secure` the cluster speaks TLS and asks for
//! tokens: the well-behaved caller has one, and the floods come from strangers.

mod attack;
mod friend;
mod held;
mod report;
mod rude;
mod way;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(in crate::bench) use report::FloodsReport;

use self::attack::{Attack, Attacked};
use self::friend::{Friend, Heard};
use self::report::Flood;
use self::way::Way;
use super::queue::resident_of;
use crate::args::{FloodKind, FloodsArgs};
use crate::failure::Failure;
use crate::local::{Guard, Nodes, Shape};
use crate::render::bar;

/// How long the nodes may take to agree on leaders.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How often the node's memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A pause after each flood, so that the next one meets a quiet node: as long as a slow head may take.
const PAUSE: Duration = Duration::from_secs(11);
/// How long the node may take to tell its counters.
const COUNTERS_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the floods that were asked for, in order.
pub(in crate::bench) async fn measure(args: &FloodsArgs) -> Result<FloodsReport, Failure> {
    if !args.secure && args.only.iter().any(|kind| kind.needs_tls()) {
        return Err(Failure::usage("nobody shakes hands without TLS; add --secure".to_owned()));
    }
    let mut nodes = Nodes::prepare(Shape { name: "bench", nodes: args.nodes, shards: 1 })?;
    if args.secure {
        nodes.guard(Guard::Secure { audit_all: true });
    }
    nodes.start_guarded(START_PATIENCE).await?;
    nodes.agree(START_PATIENCE).await?;
    let way = Way::to_first(&nodes)?;
    let mut floods = Vec::new();
    let is_wanted = |kind: &FloodKind| {
        (args.only.is_empty() || args.only.contains(kind)) && (args.secure || !kind.needs_tls())
    };
    let wanted: Vec<FloodKind> = FloodKind::ALL.into_iter().filter(is_wanted).collect();
    let bar = bar(wanted.len() as u64, "floods");
    for kind in wanted {
        bar.tick();
        let flood = one(args, &mut nodes, &way, kind).await?;
        bar.suspend(|| eprintln!("{}", flood.headline()));
        bar.inc(1);
        let crashed = flood.crashes > 0;
        floods.push(flood);
        if crashed {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    bar.finish_and_clear();
    let FloodsArgs { nodes, seconds, rounds, secure, .. } = *args;
    Ok(FloodsReport { nodes, seconds, rounds, secure, floods })
}

/// One flood, after as long a time without, as often as asked for: the calls of all rounds are judged together, so that one
/// bad moment of the disk is not the answer.
async fn one(
    args: &FloodsArgs,
    nodes: &mut Nodes,
    way: &Way,
    kind: FloodKind,
) -> Result<Flood, Failure> {
    let mut all = round(args, nodes, way, kind).await?;
    for _ in 1..args.rounds {
        if all.crashes > 0 {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        all.add(round(args, nodes, way, kind).await?);
    }
    Ok(all.sum())
}

/// What one or more rounds of a flood brought.
struct Rounds {
    before: Heard,
    during: Heard,
    attacked: Attacked,
    strangers_closed: u64,
    connections_refused: u64,
    memory_grown: u64,
    crashes: u32,
}

impl Rounds {
    fn add(&mut self, more: Rounds) {
        self.before.add(more.before);
        self.during.add(more.during);
        self.attacked.sent += more.attacked.sent;
        self.attacked.turned_away += more.attacked.turned_away;
        self.strangers_closed += more.strangers_closed;
        self.connections_refused += more.connections_refused;
        self.memory_grown = self.memory_grown.max(more.memory_grown);
        self.crashes += more.crashes;
    }

    fn sum(self) -> Flood {
        let Rounds { before, during, attacked, .. } = &self;
        Flood {
            what: attacked.what.clone(),
            rate: attacked.rate.clone(),
            sent: attacked.sent,
            turned_away: attacked.turned_away,
            strangers_closed: self.strangers_closed,
            connections_refused: self.connections_refused,
            kept: [before.kept.p99_us(), during.kept.p99_us()],
            fresh: [before.fresh.p99_us(), during.fresh.p99_us()],
            calls: count(during),
            calls_failed: during.failed,
            memory_grown: self.memory_grown,
            crashes: self.crashes,
        }
    }
}

async fn round(
    args: &FloodsArgs,
    nodes: &mut Nodes,
    way: &Way,
    kind: FloodKind,
) -> Result<Rounds, Failure> {
    let length = Duration::from_secs(u64::from(args.seconds));
    let before = Friend::new(way).call_for(length).await;
    let counted = counters(way).await.unwrap_or_default();
    let pid = nodes.pids().first().copied().unwrap_or_default();
    let resting = resident_of(pid).unwrap_or_default();
    let watching = Watch::start(pid);
    let attack = Attack::begin(kind, way, args.connections, length)?;
    let during = Friend::new(way).call_for(length).await;
    let attacked = attack.end()?;
    let peak = watching.stop().await;
    let crashes = u32::from(nodes.check_alive().is_err());
    let now = counters(way).await.unwrap_or_default();
    let more = |name: &str| {
        let of = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
        of(&now).saturating_sub(of(&counted))
    };
    Ok(Rounds {
        before,
        during,
        attacked,
        strangers_closed: more("ikada_http_strangers_closed_total"),
        connections_refused: more("ikada_http_connections_refused_total"),
        memory_grown: peak.saturating_sub(resting),
        crashes,
    })
}

fn count(heard: &Heard) -> usize {
    heard.kept.count() + heard.fresh.count()
}

/// The largest memory of a process since the start.
struct Watch {
    over: Arc<AtomicBool>,
    peak: tokio::task::JoinHandle<u64>,
}

impl Watch {
    fn start(pid: u32) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let peak = tokio::spawn(async move {
            let mut peak = 0;
            while !told.load(Ordering::Relaxed) {
                peak = peak.max(resident_of(pid).unwrap_or_default());
                tokio::time::sleep(LOOK_EVERY).await;
            }
            peak
        });
        Watch { over, peak }
    }

    async fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.peak.await.unwrap_or_default()
    }
}

/// The node's own counters.
async fn counters(way: &Way) -> Option<BTreeMap<String, u64>> {
    let mut line = way.line().await.ok()?;
    let heard = line.call("GET", "/metrics", b"", COUNTERS_PATIENCE, true).await.ok()?;
    let text = String::from_utf8_lossy(&heard.body).into_owned();
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Some(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::friend::Times;
    use super::*;

    fn round(us: u64, failed: u64, memory_grown: u64, crashes: u32) -> Rounds {
        let heard =
            |failed| Heard { kept: Times::of(vec![us]), fresh: Times::of(vec![us]), failed };
        let attacked =
            Attacked { what: String::new(), rate: String::new(), sent: 10, turned_away: 4 };
        Rounds {
            before: heard(0),
            during: heard(failed),
            attacked,
            strangers_closed: 2,
            connections_refused: 1,
            memory_grown,
            crashes,
        }
    }

    // X7: what went wrong in any round is in the sum.
    #[test]
    fn x_7_rounds_are_judged_together() {
        let mut all = round(5, 1, 300, 0);
        all.add(round(9, 2, 200, 1));
        let sum = all.sum();
        assert_eq!((sum.calls, sum.calls_failed, sum.crashes), (4, 3, 1));
        assert_eq!((sum.sent, sum.turned_away), (20, 8));
        assert_eq!((sum.strangers_closed, sum.connections_refused), (4, 2));
        assert_eq!((sum.memory_grown, sum.kept), (300, [Some(9), Some(9)]));
    }
}
