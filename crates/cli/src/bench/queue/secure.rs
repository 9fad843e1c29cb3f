//! What TLS and tokens cost: whole lives on a cluster in the open, behind TLS and tokens, and with every change in the
//! audit log as well.
//!
//! Each measurement has a fresh cluster. The kinds take turns within a round and the first place moves on from round to
//! round, so that a machine that is slow for a while is slow for all of them; medians are compared.

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use serde::Serialize;

use super::report::Line;
use super::servers::Servers;
use super::{Bench, CALL_PATIENCE};
use crate::args::QueueBenchArgs;
use crate::failure::Failure;
use crate::local::Guard;
use crate::render::{Document, Grid};

/// What is compared; the first is what the others are held against.
const KINDS: [(&str, Guard); 3] = [
    ("in the open", Guard::Open),
    ("TLS and tokens", Guard::Secure { audit_all: false }),
    ("TLS, tokens, every change audited", Guard::Secure { audit_all: true }),
];
/// TLS and tokens should cost at most this share of the throughput.
const COST_MAX: f64 = 0.15;

/// Median figures of one kind of cluster and one way of enqueueing.
#[derive(Debug, Serialize)]
struct Cost {
    cluster: &'static str,
    what: String,
    tasks_per_s: f64,
    /// Of all nodes together.
    server_cpu_s_per_100k: Option<f64>,
    /// Throughput beside that of the cluster in the open.
    ratio: f64,
    /// Each round's, in order.
    rounds: Vec<f64>,
}

/// All figures.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct SecureReport {
    nodes: u16,
    shards: u16,
    tasks: u64,
    payload_bytes: usize,
    rounds: u16,
    /// The ratio that is aimed at for TLS and tokens.
    ratio_aim: f64,
    costs: Vec<Cost>,
}

/// Runs all rounds.
pub(in crate::bench) async fn compare(args: &QueueBenchArgs) -> Result<SecureReport, Failure> {
    let mut lines: [Vec<Vec<Line>>; KINDS.len()] = Default::default();
    for round in 0..usize::from(args.rounds) {
        for turn in 0..KINDS.len() {
            let kind = (round + turn) % KINDS.len();
            let (name, guard) = KINDS[kind];
            eprintln!("round {}, {name}", round + 1);
            lines[kind].push(lives(args, guard).await?);
        }
    }
    Ok(SecureReport {
        nodes: args.nodes,
        shards: args.shards,
        tasks: args.tasks,
        payload_bytes: args.payload_bytes,
        rounds: args.rounds,
        ratio_aim: 1.0 - COST_MAX,
        costs: costs(&lines),
    })
}

/// The lifecycle phase on a fresh cluster.
async fn lives(args: &QueueBenchArgs, guard: Guard) -> Result<Vec<Line>, Failure> {
    let servers = Servers::start(args, guard).await?;
    let options = ClientOptions { timeout: CALL_PATIENCE, ..servers.options()? };
    let client = Client::with(servers.urls(), options)?;
    let mut bench = Bench { args, client, servers, lines: Vec::new() };
    bench.lifecycle().await?;
    Ok(bench.lines)
}

/// Medians of `lines[kind][round][way]`, way by way.
fn costs(lines: &[Vec<Vec<Line>>; KINDS.len()]) -> Vec<Cost> {
    let ways = lines[0].first().map_or(0, Vec::len);
    let mut costs: Vec<Cost> = Vec::new();
    for way in 0..ways {
        let open = costs.len();
        for (rounds, (cluster, _)) in lines.iter().zip(KINDS) {
            let of_way = || rounds.iter().filter_map(|lines| lines.get(way));
            let rates: Vec<f64> = of_way().filter_map(|line| line.tasks_per_s).collect();
            let tasks_per_s = median(rates.clone()).unwrap_or_default();
            let cpu = of_way().filter_map(|line| line.server_cpu_s_per_100k).collect();
            let base = costs.get(open).map_or(tasks_per_s, |cost| cost.tasks_per_s);
            costs.push(Cost {
                cluster,
                what: of_way().next().map_or_else(String::new, |line| line.what.clone()),
                tasks_per_s,
                server_cpu_s_per_100k: median(cpu),
                ratio: tasks_per_s / base.max(f64::EPSILON),
                rounds: rates,
            });
        }
    }
    costs
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

impl Document for SecureReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings =
            &["phase", "cluster", "tasks, median", "server CPU per 100k", "ratio", "aim"];
        let row = |cost: &Cost| {
            let cpu = cost.server_cpu_s_per_100k;
            let aimed = cost.cluster == KINDS[1].0;
            vec![
                cost.what.clone(),
                cost.cluster.to_owned(),
                format!("{:.0}/s", cost.tasks_per_s),
                cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2} s")),
                format!("{:.2}", cost.ratio),
                if aimed { format!("{:.2}", self.ratio_aim) } else { String::new() },
            ]
        };
        vec![Grid { headings, rows: self.costs.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.costs.iter().map(|cost| format!("{:.2}", cost.ratio)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_medians_within_one_way() {
        let line = |rate: u64| Line::rate("way".into(), rate, 1.0);
        let rounds = |rates: [[u64; 2]; 3]| {
            Vec::from(rates.map(|[single, batched]| vec![line(single), line(batched)]))
        };
        let lines = [
            rounds([[100, 1_000], [50, 900], [400, 1_100]]),
            rounds([[90, 700], [1, 800], [95, 10_000]]),
            rounds([[80, 500], [80, 500], [80, 500]]),
        ];
        let ratios: Vec<f64> = costs(&lines).iter().map(|cost| cost.ratio).collect();
        assert_eq!(ratios, [1.0, 0.9, 0.8, 1.0, 0.8, 0.5]);
        assert_eq!((median(vec![1.0, 3.0]), median(Vec::new())), (Some(2.0), None));
    }
}
