//! The workload of CH-29 and CH-30: clients that mostly download, with spikes that come at the same time for all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bytes_of;
use super::report::{Figure, ObjectsReport, Tally};
use super::speak::{End, Line};
use crate::args::ObjectsBenchArgs;
use crate::bench::progress_bar;
use crate::failure::Failure;
use crate::local::Nodes;

/// Recipes that each client uploads first.
const RECIPES: u64 = 10;
/// One call in so many is an upload.
const UPLOAD_EVERY: u64 = 200;
/// Calls per second of a client between spikes.
const BASE_RATE: u64 = 10;
/// Lowest rate within a spike.
const SPIKE_RATE: u64 = 50;
/// When spikes come, as parts of a run of 60 s.
const SPIKES: [f64; 4] = [15.0 / 60.0, 25.0 / 60.0, 45.0 / 60.0, 50.0 / 60.0];
/// How far a client may be off, ms.
const SPIKE_JITTER_MS: u64 = 2_000;
/// Calls in flight per client.
const IN_FLIGHT_MAX: usize = 200;
const UPLOAD_PATIENCE: Duration = Duration::from_secs(20);
const DOWNLOAD_PATIENCE: Duration = Duration::from_secs(30);

/// What all calls share.
struct Shared {
    hosts: Vec<String>,
    object_bytes: usize,
    idle: Vec<Mutex<Vec<Line>>>,
    uploads: Mutex<Tally>,
    downloads: Mutex<Tally>,
    /// Names of acknowledged uploads with the digest of what was written.
    written: Mutex<BTreeMap<String, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) async fn measure(
    args: &ObjectsBenchArgs,
    nodes: &Nodes,
) -> Result<ObjectsReport, Failure> {
    let hosts: Vec<String> =
        nodes.urls().iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
    let shared = Arc::new(Shared {
        idle: hosts.iter().map(|_| Mutex::default()).collect(),
        hosts,
        object_bytes: args.object_bytes,
        uploads: Mutex::default(),
        downloads: Mutex::default(),
        written: Mutex::default(),
    });
    let length = Duration::from_secs(u64::from(args.seconds));
    let bar = progress_bar(u64::from(args.seconds), "seconds");
    let clients: Vec<_> = (0..args.clients)
        .map(|client| {
            tokio::spawn(run_client(shared.clone(), u64::from(client), length, args.spike))
        })
        .collect();
    for _ in 0..args.seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    for client in clients {
        client.await.map_err(|error| Failure::failed(format!("a client ended: {error}")))?;
    }
    bar.finish_and_clear();
    let (checked, lost) = read_back(&shared).await;
    let (uploads, downloads) = (
        std::mem::take(&mut *lock(&shared.uploads)),
        std::mem::take(&mut *lock(&shared.downloads)),
    );
    let about = format!(
        "{} nodes, {} clients, {} s, objects of {} bytes",
        args.nodes, args.clients, args.seconds, args.object_bytes
    );
    let figures = vec![Figure { what: "workload".to_owned(), value: about.clone() }];
    let calls = vec![uploads.calls("upload"), downloads.calls("download")];
    Ok(ObjectsReport { about, calls, figures, checked, lost })
}

async fn run_client(shared: Arc<Shared>, client: u64, length: Duration, spike: u32) {
    let mut random = Draw(client + 1);
    let mut names = Vec::new();
    for number in 0..RECIPES {
        let name = format!("/v1/objects/recipes/c{client}-{number}");
        upload(&shared, client + number, &name).await;
        names.push(name);
    }
    let spikes: Vec<(Duration, Duration, u64)> = SPIKES
        .iter()
        .map(|part| {
            let from =
                length.mul_f64(*part) + Duration::from_millis(random.below(2 * SPIKE_JITTER_MS));
            let from = from.saturating_sub(Duration::from_millis(SPIKE_JITTER_MS));
            let long = Duration::from_millis(1_000 + random.below(2_000));
            (from, from + long, SPIKE_RATE + random.below(u64::from(spike) + 1))
        })
        .collect();
    let began = Instant::now();
    let in_flight = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    let mut due = Duration::ZERO;
    let mut count = 0;
    while due < length {
        tokio::time::sleep_until((began + due).into()).await;
        let now_spike = spikes.iter().find(|(from, to, _)| (*from..*to).contains(&due));
        let rate = now_spike.map_or(BASE_RATE, |(_, _, rate)| *rate);
        due += Duration::from_secs_f64(1.0 / rate as f64);
        count += 1;
        let brings = random.below(UPLOAD_EVERY) == 0;
        if in_flight.load(Ordering::Relaxed) >= IN_FLIGHT_MAX {
            let tally = if brings { &shared.uploads } else { &shared.downloads };
            lock(tally).held_back += 1;
            continue;
        }
        let name = match brings {
            true => format!("/v1/objects/recipes/c{client}-more-{count}"),
            false => names[random.below(RECIPES) as usize].clone(),
        };
        in_flight.fetch_add(1, Ordering::Relaxed);
        let (shared, in_flight) = (shared.clone(), in_flight.clone());
        calls.spawn(async move {
            match brings {
                true => upload(&shared, client + count, &name).await,
                false => download(&shared, client + count, &name).await,
            }
            in_flight.fetch_sub(1, Ordering::Relaxed);
        });
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
}

async fn upload(shared: &Shared, number: u64, name: &str) {
    let bytes = bytes_of(number + 1, shared.object_bytes);
    let began = Instant::now();
    let outcome = call(shared, number, "PUT", name, &bytes, UPLOAD_PATIENCE, true).await;
    lock(&shared.uploads).add(outcome.0, began.elapsed());
    if outcome.0 == End::Good {
        lock(&shared.written).insert(name.to_owned(), outcome.1);
    }
}

async fn download(shared: &Shared, number: u64, name: &str) {
    let began = Instant::now();
    let (end, _) = call(shared, number, "GET", name, &[], DOWNLOAD_PATIENCE, false).await;
    lock(&shared.downloads).add(end, began.elapsed());
}

/// One call at the node whose turn it is; gives its end and the ETag.
async fn call(
    shared: &Shared,
    number: u64,
    method: &str,
    name: &str,
    body: &[u8],
    patience: Duration,
    keep: bool,
) -> (End, String) {
    let node = number as usize % shared.hosts.len();
    let kept = lock(&shared.idle[node]).pop();
    let line = match kept {
        Some(line) => Ok(line),
        None => Line::open(&shared.hosts[node]).await,
    };
    let Ok(mut line) = line else { return (End::Failed, String::new()) };
    match line.call(method, name, body, patience, keep || method == "GET").await {
        Ok(heard) => {
            // An upload that was turned away leaves its body behind; the node closes such a connection.
            if heard.status < 400 || body.is_empty() {
                lock(&shared.idle[node]).push(line);
            }
            (heard.end(), heard.tag)
        }
        Err(_) => (End::Failed, String::new()),
    }
}

/// Reads every acknowledged upload back, from another node than it was written to, once the storm is over.
async fn read_back(shared: &Shared) -> (u64, u64) {
    let written = lock(&shared.written).clone();
    let mut lost = 0;
    for (number, (name, tag)) in written.iter().enumerate() {
        let mut good = false;
        // Shed at first perhaps: what counts is whether it is there.
        for _ in 0..60 {
            let (end, found) =
                call(shared, number as u64, "GET", name, &[], DOWNLOAD_PATIENCE, true).await;
            if end == End::Good {
                good = found == *tag;
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        lost += u64::from(!good);
    }
    (written.len() as u64, lost)
}

/// A small generator; nothing hangs on its quality.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}
