//! The workload of CH-29 and CH-30: clients that mostly download, with spikes that come at the same time for all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bytes_of;
use super::plan::{Kind, Plan, Planned, RECIPES};
use super::report::{Figure, ObjectsReport, Tally};
use super::speak::{End, Line};
use crate::args::ObjectsBenchArgs;
use crate::failure::Failure;
use crate::local::Nodes;
use crate::render::bar;

/// Calls in flight per client.
const IN_FLIGHT_MAX: usize = 200;
/// The first uploads are tried again this often.
const FIRST_TRIES_MAX: usize = 100;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
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
    ready: tokio::sync::Barrier,
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
        ready: tokio::sync::Barrier::new(usize::from(args.clients)),
    });
    let length = Duration::from_secs(u64::from(args.seconds));
    let bar = bar(u64::from(args.seconds), "seconds");
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
    let workload = Figure { what: "workload".to_owned(), value: about.clone() };
    let mut figures = vec![workload];
    figures.extend(super::decision::figures());
    let calls = vec![uploads.calls("upload"), downloads.calls("download")];
    Ok(ObjectsReport { about, calls, figures, checked, lost, missed: Vec::new() })
}

async fn run_client(shared: Arc<Shared>, client: u64, length: Duration, spike: u32) {
    let mut names = Vec::new();
    for number in 0..RECIPES {
        let name = format!("/v1/objects/recipes/c{client}-{number}");
        // All recipes are there before the first download; a try that was turned away counts as that.
        for _ in 0..FIRST_TRIES_MAX {
            if upload(&shared, turn(client, number), &name).await == End::Good {
                break;
            }
            tokio::time::sleep(FIRST_PAUSE).await;
        }
        names.push(name);
    }
    // The spikes of all come together.
    shared.ready.wait().await;
    let began = Instant::now();
    let in_flight = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for (count, Planned { due, kind }) in Plan::new(client, length, spike).enumerate() {
        tokio::time::sleep_until((began + due).into()).await;
        if in_flight.load(Ordering::Relaxed) >= IN_FLIGHT_MAX {
            let tally = if kind == Kind::Upload { &shared.uploads } else { &shared.downloads };
            lock(tally).held_back += 1;
            continue;
        }
        let name = match kind {
            Kind::Upload => format!("/v1/objects/recipes/c{client}-more-{count}"),
            Kind::Download(recipe) => names[recipe as usize].clone(),
        };
        in_flight.fetch_add(1, Ordering::Relaxed);
        let (shared, in_flight) = (shared.clone(), in_flight.clone());
        calls.spawn(async move {
            let turn = turn(client, RECIPES + count as u64);
            match kind {
                Kind::Upload => drop(upload(&shared, turn, &name).await),
                Kind::Download(_) => download(&shared, turn, &name).await,
            }
            in_flight.fetch_sub(1, Ordering::Relaxed);
        });
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
}

/// A number of its own for each call: it says which bytes, and which node.
fn turn(client: u64, count: u64) -> u64 {
    client * 1_000_003 + count
}

async fn upload(shared: &Shared, number: u64, name: &str) -> End {
    let bytes = bytes_of(number + 1, shared.object_bytes);
    let began = Instant::now();
    let outcome = call(shared, number, "PUT", name, &bytes, UPLOAD_PATIENCE, true).await;
    lock(&shared.uploads).add(outcome.0, began.elapsed());
    if outcome.0 == End::Good {
        lock(&shared.written).insert(name.to_owned(), outcome.1);
    }
    outcome.0
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
    let keep = keep || method == "GET";
    let kept = lock(&shared.idle[node]).pop();
    let mut line = match kept {
        Some(line) => Some(line),
        None => Line::open(&shared.hosts[node]).await.ok(),
    };
    // A node closes connections that were idle for a while; a call that met such a one is sent on a new one.
    for _ in 0..2 {
        let Some(mut open) = line.take() else { break };
        if let Ok(heard) = open.call(method, name, body, patience, keep).await {
            if !heard.closes {
                lock(&shared.idle[node]).push(open);
            }
            return (heard.end(), heard.tag);
        }
        line = Line::open(&shared.hosts[node]).await.ok();
    }
    (End::Failed, String::new())
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
