//! Plain transfers: how long a megabyte takes on an idle cluster, how many small cached files pass, and what a large
//! one costs in memory. How a large one does in parts is in `parted.rs`.

use std::time::{Duration, Instant};

use super::bytes_of;
use super::report::{Figure, ObjectsReport, rank};
use super::speak::Line;
use crate::args::ObjectsBenchArgs;
use crate::bench::queue::memory_of;
use crate::failure::Failure;
use crate::local::Nodes;
use crate::render::bar;

/// Uploads and downloads of one megabyte.
const ROUNDS: usize = 200;
/// Bytes of the cached file.
const CACHED_BYTES: usize = 64 << 10;
/// Connections that fetch it.
const CONNECTIONS: usize = 16;
const CACHED_FOR: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(600);
/// How often memory is read during the large download.
pub(super) const MEMORY_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn measure(
    args: &ObjectsBenchArgs,
    nodes: &Nodes,
) -> Result<ObjectsReport, Failure> {
    let urls = nodes.urls();
    let host = urls[0].trim_start_matches("http://").to_owned();
    let failed = |error: std::io::Error| Failure::failed(format!("node 1: {error}"));
    let mut line = Line::open(&host).await.map_err(failed)?;
    let mut figures = Vec::new();
    let mut note = |what: &str, value: String| {
        eprintln!("{what}: {value}");
        figures.push(Figure { what: what.to_owned(), value });
    };
    let (up, down) = megabytes(&mut line, args.object_bytes).await.map_err(failed)?;
    for (what, times) in [("upload", up), ("download", down)] {
        let what = format!("{what} of {} bytes, idle", args.object_bytes);
        let (p50, p99) = (rank(&times, 50), rank(&times, 99));
        note(&what, format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
    }
    let rate = cached(&host).await.map_err(failed)?;
    let megabytes = rate * CACHED_BYTES as f64 / 1e6;
    note("download of 64 KiB, cached, 16 connections", format!("{rate:.0}/s, {megabytes:.0} MB/s"));
    let before = largest(&nodes.pids());
    let (took, peak) =
        large(&mut line, args.large_mib, || largest(&nodes.pids())).await.map_err(failed)?;
    for (what, time) in ["upload", "download"].into_iter().zip(took) {
        let what = format!("{what} of {} MiB", args.large_mib);
        let rate = args.large_mib as f64 * 1.048_576 / time.as_secs_f64();
        note(&what, format!("{:.1} s, {rate:.0} MB/s", time.as_secs_f64()));
    }
    let extra = peak.saturating_sub(before) as f64 / f64::from(1 << 20);
    note("most extra memory of a node meanwhile", format!("{extra:.0} MiB"));
    let about = format!("{} nodes", args.nodes);
    Ok(ObjectsReport {
        about,
        calls: Vec::new(),
        figures,
        checked: ROUNDS as u64,
        lost: 0,
        missed: Vec::new(),
    })
}

/// The memory of the node that has most.
pub(super) fn largest(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| memory_of(*pid)).max().unwrap_or(0)
}

async fn megabytes(
    line: &mut Line,
    bytes: usize,
) -> std::io::Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let bar = bar(ROUNDS as u64, "uploads and downloads");
    for round in 0..ROUNDS {
        bar.inc(1);
        let (name, body) =
            (format!("/v1/objects/bench/m{round}"), bytes_of(round as u64 + 1, bytes));
        let began = Instant::now();
        let heard = line.call("PUT", &name, &body, PATIENCE, true).await?;
        up.push(began.elapsed());
        let began = Instant::now();
        let back = line.call("GET", &name, &[], PATIENCE, true).await?;
        down.push(began.elapsed());
        if heard.status != 201 || back.body != body {
            return Err(std::io::Error::other(format!("{name} did not come back as written")));
        }
    }
    bar.finish_and_clear();
    up.sort_unstable();
    down.sort_unstable();
    Ok((up, down))
}

/// Downloads per second of one small file.
async fn cached(host: &str) -> std::io::Result<f64> {
    let name = "/v1/objects/bench/small";
    let mut line = Line::open(host).await?;
    line.call("PUT", name, &bytes_of(7, CACHED_BYTES), PATIENCE, true).await?;
    let began = Instant::now();
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut line = Line::open(host).await?;
        readers.spawn(async move {
            let mut count = 0_u64;
            while began.elapsed() < CACHED_FOR {
                let path = "/v1/objects/bench/small?consistency=stale";
                let heard = line.call("GET", path, &[], PATIENCE, false).await;
                count += u64::from(heard.is_ok_and(|heard| heard.length == CACHED_BYTES));
            }
            count
        });
    }
    let mut all = 0;
    while let Some(count) = readers.join_next().await {
        all += count.unwrap_or(0);
    }
    Ok(all as f64 / began.elapsed().as_secs_f64())
}

/// Sends and fetches a large object, and gives the times with the most memory that was seen.
async fn large(
    line: &mut Line,
    mib: u32,
    memory: impl Fn() -> u64,
) -> std::io::Result<([Duration; 2], u64)> {
    let (name, mut peak) = ("/v1/objects/bench/large", 0);
    let began = Instant::now();
    let watch = |peak: &mut u64| *peak = memory().max(*peak);
    let heard = line.put_stream(name, mib, || watch(&mut peak)).await?;
    let up = began.elapsed();
    let began = Instant::now();
    let fetching = line.call("GET", name, &[], PATIENCE, false);
    tokio::pin!(fetching);
    let back = loop {
        tokio::select! {
            back = &mut fetching => break back?,
            () = tokio::time::sleep(MEMORY_EVERY) => watch(&mut peak),
        }
    };
    let down = began.elapsed();
    watch(&mut peak);
    match heard == 201 && back.length == mib as usize * (1 << 20) {
        true => Ok(([up, down], peak)),
        false => Err(std::io::Error::other("the large object did not come back as written")),
    }
}
