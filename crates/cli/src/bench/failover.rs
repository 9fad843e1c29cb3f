//! What a killed or stopped leader costs: how long writes wait, and that nothing acknowledged is lost or doubled (F-1, F-28).

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use serde::Serialize;

use super::database::Schema;
use super::load::Load;
use super::summary::{Summary, ms};
use super::verify::{self, Counted};
use crate::args::FailoverArgs;
use crate::failure::Failure;
use crate::local::{LedShard, Nodes, Shape, compare_copies};
use crate::render::bar;
use crate::render::{Document, Grid};

/// Nodes must agree, and shards be writable again, within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Load before the first kill and between kills, so that connections and leaders are warm.
const CALM: Duration = Duration::from_millis(500);
/// How finely the return of writes is watched; the times themselves come from the answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One kill, or one stop.
#[derive(Debug, Clone, Serialize)]
struct Kill {
    /// Which one, from 1.
    kill: u32,
    /// The node that went.
    node: u64,
    /// What it led.
    shards: Vec<u16>,
    /// Until every one of them had acknowledged a write under a new leader.
    gap_ms: u64,
    /// The longest time without any acknowledged write, on whatever shard, until then.
    silence_ms: u64,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(super) struct FailoverReport {
    rate: u32,
    kills: u32,
    /// Whether leaders were asked to stop instead.
    graceful: bool,
    /// Kill to writable again, on the shards that lost their leader.
    gap: Summary,
    /// Longest time without any acknowledged write per kill.
    silence: Summary,
    /// What was found at the end.
    counted: Counted,
    /// Sendings beyond the first, all under the same keys.
    retried: u64,
    /// Whether all nodes held the same state at the end.
    copies_equal: bool,
    /// Each kill, in order.
    per_kill: Vec<Kill>,
}

/// Kills or stops leaders of shard 0 under load.
pub(super) async fn measure(args: &FailoverArgs) -> Result<FailoverReport, Failure> {
    let shape = Shape { name: "bench", nodes: args.nodes, shards: args.shards };
    let mut nodes = Nodes::prepare(shape)?;
    let schema = Schema::create_if(args.log.as_deref()).await?;
    nodes.log_in(schema.as_ref().map(Schema::url));
    nodes.start_missing()?;
    nodes.settle(PATIENCE).await?;
    let load = Load::start(&nodes.urls(), args.rate)?;
    let bar = bar(u64::from(args.kills), if args.graceful { "stops" } else { "kills" });
    let mut per_kill = Vec::new();
    for kill in 1..=args.kills {
        tokio::time::sleep(CALM).await;
        let struck = strike(&mut nodes, &load, kill, args.graceful).await?;
        bar.set_message(format!("last gap {} ms", struck.gap_ms));
        per_kill.push(struck);
        nodes.start_missing()?;
        nodes.settle(PATIENCE).await?;
        load.spread(&nodes.urls())?;
        bar.inc(1);
    }
    tokio::time::sleep(CALM).await;
    bar.finish_and_clear();
    let (fate, begun, tries) = load.stop().await?;
    if let Some((number, why)) = fate.refused.first() {
        eprintln!("write {number} was refused: {why}");
    }
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let counted = verify::count(&Client::with(nodes.urls(), options)?, &fate).await?;
    let copies_equal = compare_copies(&nodes.urls()).await?;
    let report = FailoverReport {
        rate: args.rate,
        kills: args.kills,
        graceful: args.graceful,
        gap: Summary::of(per_kill.iter().map(|kill| kill.gap_ms)),
        silence: Summary::of(per_kill.iter().map(|kill| kill.silence_ms)),
        counted,
        retried: tries.saturating_sub(begun),
        copies_equal,
        per_kill,
    };
    if report.verdict().is_err() {
        eprintln!("{}", nodes.keep_logs());
    }
    nodes.stop().await;
    Schema::remove_if(schema).await?;
    Ok(report)
}

/// Ends the leader of shard 0 and waits until all that it led is writable again.
async fn strike(
    nodes: &mut Nodes,
    load: &Load,
    kill: u32,
    graceful: bool,
) -> Result<Kill, Failure> {
    let agreed = nodes.settle(PATIENCE).await?;
    let node = agreed.shards.iter().find(|shard| shard.shard == 0).map(|shard| shard.leader);
    let node = node.ok_or_else(|| Failure::failed("shard 0 has no leader"))?;
    let led = agreed.led_by(node);
    let killed = Instant::now();
    let leaving = match graceful {
        true => Some(nodes.dismiss(node)?),
        false => nodes.kill(node).map(|()| None)?,
    };
    let back = loop {
        let firsts: Option<Vec<Instant>> =
            led.iter().map(|shard| load.first_in_later_term(shard.shard, shard.term)).collect();
        if let Some(last) = firsts.and_then(|firsts| firsts.into_iter().max()) {
            break last;
        }
        nodes.check_alive()?;
        if killed.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            let detail = format!(
                "end {kill}: the shards of node {node} took no writes again within {seconds} s"
            );
            return Err(Failure::failed_next(detail, nodes.keep_logs()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    if let Some(leaving) = leaving {
        leaving.ended(PATIENCE).await?;
    }
    nodes.settle(PATIENCE).await?;
    Ok(Kill {
        kill,
        node,
        shards: led.iter().map(|shard: &LedShard| shard.shard).collect(),
        gap_ms: ms(back.saturating_duration_since(killed)),
        silence_ms: ms(load.silence(killed, back)),
    })
}

impl FailoverReport {
    /// The figures in one row, to stand beside those of other systems.
    pub(super) fn row(&self) -> Vec<String> {
        let name = format!("ikada {}", env!("CARGO_PKG_VERSION"));
        let mut row = vec![name, self.kills.to_string()];
        row.extend(self.gap.cells());
        let counted = &self.counted;
        let counts = [
            counted.acked as u64,
            counted.missing,
            counted.duplicated,
            counted.unknown as u64,
            self.retried,
        ];
        row.extend(counts.iter().map(u64::to_string));
        row
    }

    /// Whether every promise was kept.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let mut problems = self.counted.problems();
        if !self.copies_equal {
            problems.push("the nodes' copies differ".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::failed(problems.join("; "))) }
    }
}

impl Document for FailoverReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let kills = self.per_kill.iter().map(|kill| {
            let shards: Vec<String> = kill.shards.iter().map(u16::to_string).collect();
            vec![
                kill.kill.to_string(),
                kill.node.to_string(),
                shards.join(","),
                format!("{} ms", kill.gap_ms),
                format!("{} ms", kill.silence_ms),
            ]
        });
        let gap = match self.graceful {
            true => "asked to stop to writable again",
            false => "kill -9 to writable again",
        };
        let times = [(gap, self.gap), ("longest silence", self.silence)];
        let times = times.map(|(what, summary)| {
            let mut row = vec![what.to_owned(), summary.count.to_string()];
            row.extend(summary.cells());
            row
        });
        let counted = &self.counted;
        let counts = vec![
            counted.acked.to_string(),
            counted.missing.to_string(),
            counted.duplicated.to_string(),
            counted.unknown.to_string(),
            self.retried.to_string(),
            if self.copies_equal { "equal" } else { "NOT EQUAL" }.to_owned(),
        ];
        vec![
            Grid {
                headings: &["end", "node", "led shards", "gap", "silence"],
                rows: kills.collect(),
            },
            Grid { headings: &["write gap", "ends", "p50", "p99", "max"], rows: times.into() },
            Grid {
                headings: &["acked", "missing", "duplicated", "unknown", "retried", "copies"],
                rows: vec![counts],
            },
        ]
    }

    fn names(&self) -> Vec<String> {
        self.per_kill.iter().map(|kill| kill.gap_ms.to_string()).collect()
    }
}
