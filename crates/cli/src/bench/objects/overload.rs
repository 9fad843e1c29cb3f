//! F-32: five times as many calls as the cluster can serve, and what becomes of them.
//!
//! First how fast a call is on an idle cluster, then how many lists of tasks it takes in when it is kept busy, then five
//! times that, open loop: calls are sent when they are due, whether or not earlier ones were answered. Workers renew
//! their claims all the while, and a few callers bring and fetch objects. Then how long it takes until calls are as fast as before, and once more how many lists the
//! cluster takes: the tasks stay, and snapshots of more of them cost more, so that the capacity is the mean of both.
//!
//! The senders run at a lower priority than the nodes, since all share one machine. What they wait for each other is measured
//! beside it (`floor.rs`) and taken off before times are judged, of those on the idle cluster as of those under load; the
//! report shows both as they were seen, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ikada_api::Client;

use super::elections::Elections;
use super::floor::{Floor, Time, Times};
use super::mix::{Beside, Mix};
use super::renew::Renewals;
use super::report::{Calls, Figure, ObjectsReport, Tally};
use super::speak::{End, Line};
use super::warm::Warm;
use crate::args::ObjectsBenchArgs;
use crate::bench::queue::memory_of;
use crate::failure::Failure;
use crate::local::Nodes;
use crate::render::bar;

/// How much more is offered than can be served.
const TIMES: f64 = 5.0;
/// Tasks of one call: so many that taking them in costs more than sending them.
const TASKS: usize = 250;
const PAYLOAD_BYTES: usize = 100;
/// Calls under way per node while its capacity is measured.
const BUSY_LINES: usize = 16;
const BUSY_FOR: Duration = Duration::from_secs(10);
/// Whoever is turned away then comes back after this time: asking again at once would cost the node more than the call.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Calls under way per node at most; one address may have 2,048 connections.
const IN_FLIGHT_MAX: usize = 1_500;
/// Calls per second on the idle cluster.
const IDLE_RATE: f64 = 50.0;
const IDLE_FOR: Duration = Duration::from_secs(5);
/// How long a caller waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// Back to normal when calls are no slower than so many times the idle ones.
const BACK_TIMES: f64 = 2.0;
const BACK_WITHIN: Duration = Duration::from_secs(10);
const BACK_WINDOW: Duration = Duration::from_secs(1);
const BACK_WINDOWS_MAX: u32 = 60;
/// How far behind the nodes the senders stand.
const NICE: &str = "5";
/// Accepted calls may take so many times what they take on the idle cluster.
const SLOWER_MAX: f64 = 5.0;
/// Whoever is turned away is told so within this time, ms.
const SHED_P99_MS_MAX: f64 = 50.0;
/// What a node may hold of one task that it keeps, with its indexes and its log: twenty times its payload.
const TASK_BYTES_MAX: u64 = 2 << 10;
/// What a node may hold besides: bodies on their way, the cache of objects, a snapshot on its way to the disk.
const ROOM_BYTES_MAX: u64 = 768 << 20;
const MEMORY_EVERY: Duration = Duration::from_secs(1);

/// What all senders share.
struct Shared {
    hosts: Vec<String>,
    idle: Vec<Mutex<Vec<Line>>>,
    in_flight: Vec<AtomicU64>,
    body: Vec<u8>,
    tally: Mutex<Tally>,
    /// Calls that ended well.
    good: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls of one phase, how long calls were sent, and how many ended well within that time.
struct Phase {
    calls: Calls,
    seconds: f64,
    good: u64,
}

impl Phase {
    fn good_rate(&self) -> f64 {
        self.good as f64 / self.seconds
    }
}

pub(super) async fn measure(
    args: &ObjectsBenchArgs,
    nodes: &Nodes,
) -> Result<ObjectsReport, Failure> {
    let urls = nodes.urls();
    let hosts: Vec<String> =
        urls.iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
    let payload = "x".repeat(PAYLOAD_BYTES);
    let task = serde_json::json!({ "queue": "load", "payload": payload });
    let body = serde_json::json!({ "tasks": vec![task; TASKS] }).to_string().into_bytes();
    let shared = Arc::new(Shared {
        idle: hosts.iter().map(|_| Mutex::default()).collect(),
        in_flight: hosts.iter().map(|_| AtomicU64::new(0)).collect(),
        hosts,
        body,
        tally: Mutex::default(),
        good: AtomicU64::new(0),
    });
    let client = Client::new(&urls).map_err(|error| Failure::failed(error.to_string()))?;
    let warm = if args.warm_memory { Some(warm().await?) } else { None };
    step_back();
    let mix = Mix::start(&shared.hosts).await?;
    let memory = Memory::start(nodes.pids());
    let floor = Floor::start().await.map_err(|error| Failure::failed(error.to_string()))?;
    let idle = paced(&shared, "idle", IDLE_RATE, IDLE_FOR).await;
    let idle_floor_ms = floor.take_p99_ms();
    let busy = busy(&shared).await;
    eprintln!("capacity: {:.0} calls/s of {TASKS} tasks", busy.good_rate());
    let elections = Elections::from_now(&urls).await?;
    let renewals = Renewals::start(&client, &urls).await?;
    let length = Duration::from_secs(u64::from(args.seconds));
    drop(mix.take());
    floor.take_p99_ms();
    let loaded = paced(&shared, "five times", busy.good_rate() * TIMES, length).await;
    let floors_ms = (idle_floor_ms, floor.take_p99_ms());
    drop(floor);
    let beside = mix.take();
    let (base, peak) = memory.stop();
    let (renewed, renewals_failed) = renewals.stop().await;
    let back = back_to_normal(&shared, idle.calls.p99_ms).await;
    let elections = elections.count().await?;
    let afterwards = self::busy(&shared).await;
    let (checked, lost) = mix.stop().await;
    let kept = (idle.calls.good + busy.calls.good + loaded.calls.good) * TASKS as u64;
    let memory = (peak, base + kept * TASK_BYTES_MAX + ROOM_BYTES_MAX);
    let renewals = (renewed, renewals_failed);
    let read_back = (checked, lost);
    let warm_bytes = warm.map(|warm| warm.bytes());
    let found = Found {
        warm_bytes,
        idle,
        busy,
        loaded,
        beside,
        afterwards,
        renewals,
        elections,
        back,
        memory,
        read_back,
        floors_ms,
    };
    Ok(found.report(args))
}

/// Reads what the nodes hold while they are busy.
struct Memory {
    /// The largest node at the beginning, and the largest ever.
    seen: Arc<Mutex<(u64, u64)>>,
    watching: tokio::task::JoinHandle<()>,
}

impl Memory {
    fn start(pids: Vec<u32>) -> Memory {
        let largest = move || pids.iter().filter_map(|pid| memory_of(*pid)).max().unwrap_or(0);
        let base = largest();
        let seen = Arc::new(Mutex::new((base, base)));
        let noted = seen.clone();
        let watching = tokio::spawn(async move {
            loop {
                tokio::time::sleep(MEMORY_EVERY).await;
                let now = largest();
                let mut seen = lock(&noted);
                seen.1 = seen.1.max(now);
            }
        });
        Memory { seen, watching }
    }

    fn stop(self) -> (u64, u64) {
        self.watching.abort();
        *lock(&self.seen)
    }
}

/// The machine's free memory, taken before the nodes grow.
async fn warm() -> Result<Warm, Failure> {
    let taken = tokio::task::spawn_blocking(Warm::take).await;
    let failed = |error: String| Failure::failed(format!("--warm-memory: {error}"));
    taken.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

/// Everything that a run found.
struct Found {
    /// What was taken of the machine's memory beforehand, if that was wanted.
    warm_bytes: Option<u64>,
    idle: Phase,
    busy: Phase,
    loaded: Phase,
    /// Objects meanwhile.
    beside: Beside,
    /// As busy as before the load.
    afterwards: Phase,
    /// Renewals that came through, and those that did not.
    renewals: (u64, u64),
    elections: u64,
    back: Option<Duration>,
    /// Most bytes that a node held, and how many it may hold.
    memory: (u64, u64),
    /// Acknowledged uploads that were read back, and those of them that were lost.
    read_back: (u64, u64),
    /// What callers waited for each other on the idle cluster and under load: 99th percentiles.
    floors_ms: (f64, f64),
}

impl Found {
    fn capacity(&self) -> f64 {
        (self.busy.good_rate() + self.afterwards.good_rate()) / 2.0
    }

    fn goodput(&self) -> f64 {
        self.loaded.good_rate() * 100.0 / self.capacity().max(f64::MIN_POSITIVE)
    }

    /// How much of the capacity was used, in percent, by what was taken in before and by what was taken in afterwards.
    fn goodputs(&self) -> [f64; 2] {
        let of = |phase: &Phase| {
            self.loaded.good_rate() * 100.0 / phase.good_rate().max(f64::MIN_POSITIVE)
        };
        [of(&self.busy), of(&self.afterwards)]
    }

    /// 99th percentiles of accepted calls on the idle cluster and under load, and of those turned away.
    fn times(&self) -> Times {
        let (idle_floor, floor) = self.floors_ms;
        Times {
            idle: Time::new(self.idle.calls.p99_ms, idle_floor),
            accepted: Time::new(self.loaded.calls.p99_ms, floor),
            shed: Time::new(self.loaded.calls.shed_p99_ms, floor),
        }
    }

    fn renewed(&self) -> f64 {
        let (renewed, failed) = self.renewals;
        renewed as f64 * 100.0 / (renewed + failed).max(1) as f64
    }

    /// Promises that were not kept.
    fn missed(&self) -> Vec<String> {
        let beside = self.beside.uploads.failed + self.beside.downloads.failed;
        let times = self.times();
        let promises = [
            (self.goodput() >= 80.0, "less than 80 % of the capacity was used"),
            (
                times.slower().1 <= SLOWER_MAX,
                "accepted calls were more than five times slower than idle",
            ),
            (times.shed.own_ms <= SHED_P99_MS_MAX, "calls were turned away after 50 ms"),
            (self.renewed() >= 99.9, "less than 99.9 % of the renewals came through"),
            (self.elections == 0, "there was an election"),
            (beside == 0, "calls about objects failed instead of being turned away"),
            (self.memory.0 <= self.memory.1, "a node held more memory than what it keeps explains"),
            (self.back.is_some_and(|back| back <= BACK_WITHIN), "calls were slow afterwards"),
        ];
        let missed = promises.into_iter().filter(|(held, _)| !held);
        missed.map(|(_, what)| what.to_owned()).collect()
    }

    fn report(self, args: &ObjectsBenchArgs) -> ObjectsReport {
        let missed = self.missed();
        let (before, after) = (self.busy.good_rate(), self.afterwards.good_rate());
        let sent = self.loaded.calls.good + self.loaded.calls.shed + self.loaded.calls.failed;
        let offered = (sent + self.loaded.calls.held_back) as f64 / self.loaded.seconds;
        let asked = self.renewals.0 + self.renewals.1;
        let back = match self.back {
            Some(back) => format!("{:.1} s", back.as_secs_f64()),
            None => format!("not within {BACK_WINDOWS_MAX} s"),
        };
        let (peak, most) = (self.memory.0 >> 20, self.memory.1 >> 20);
        let line = |what: &str, value: String| Figure { what: what.to_owned(), value };
        let times = self.times();
        let (seen, judged) = times.slower();
        let slower = format!("{seen:.1} times; {judged:.1} without the callers' own delay");
        let [by_before, by_after] = self.goodputs();
        let goodput = format!(
            "{:.0} % of the mean of both; {by_before:.0} % of before, {by_after:.0} % of afterwards",
            self.goodput()
        );
        let (idle_floor, floor) = self.floors_ms;
        let own = format!("p99 {idle_floor:.1} ms idle, {floor:.1} ms under load");
        let mut figures = vec![
            line("capacity before", format!("{before:.0} calls/s of {TASKS} tasks")),
            line("capacity afterwards", format!("{after:.0} calls/s")),
            line("offered", format!("{offered:.0} calls/s for {:.0} s", self.loaded.seconds)),
            line("goodput", goodput),
            line("p99 of accepted calls, idle", times.idle.show()),
            line("p99 of accepted calls, under load", times.accepted.show()),
            line("p99 of accepted calls against idle", slower),
            line("p99 of calls that were turned away", times.shed.show()),
            line("callers' own delay (an echo among them)", own),
            line("renewals", format!("{:.2} % of {asked} came through", self.renewed())),
            line("elections", self.elections.to_string()),
            line("back to normal after", back),
            line("largest node", format!("{peak} MiB; {most} MiB are explained")),
        ];
        let taken = self.warm_bytes.map(|bytes| format!("{} MiB", bytes >> 20));
        figures.extend(taken.map(|taken| line("free memory that was touched beforehand", taken)));
        figures.extend(super::decision::figures());
        let about = format!("{} nodes, five times their capacity", args.nodes);
        let (uploads, downloads) = (self.beside.uploads, self.beside.downloads);
        let phases = [self.idle, self.busy, self.loaded, self.afterwards];
        let phases = phases.into_iter().map(|phase| phase.calls);
        let calls = phases.chain([uploads, downloads]).collect();
        let (checked, lost) = self.read_back;
        ObjectsReport { about, calls, figures, checked, lost, missed }
    }
}

/// Lets the nodes go first. Where there is no `renice`, all are equal.
fn step_back() {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return };
    let threads = threads.flatten().map(|thread| thread.file_name());
    let _ = std::process::Command::new("renice")
        .args(["-n", NICE, "-p"])
        .args(threads)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
}

/// As many calls as the cluster takes, a bounded number at a time.
async fn busy(shared: &Arc<Shared>) -> Phase {
    let began = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    let mut senders = tokio::task::JoinSet::new();
    for node in 0..shared.hosts.len() {
        for _ in 0..BUSY_LINES {
            let (shared, stop) = (shared.clone(), stop.clone());
            senders.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    if send(&shared, node).await == End::Shed {
                        tokio::time::sleep(BUSY_PAUSE).await;
                    }
                }
            });
        }
    }
    tokio::time::sleep(BUSY_FOR).await;
    stop.store(true, Ordering::Relaxed);
    end(shared, "capacity", began, senders).await
}

/// So many calls per second, sent when they are due.
async fn paced(shared: &Arc<Shared>, kind: &str, rate: f64, length: Duration) -> Phase {
    let began = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    let mut count = 0_u64;
    let bar = bar((rate * length.as_secs_f64()) as u64, "calls");
    loop {
        let passed = began.elapsed();
        if passed >= length {
            break;
        }
        bar.set_position(count);
        // All that is due by now: a late wake-up makes no call vanish.
        let due = (passed.as_secs_f64() * rate) as u64 + 1;
        while count < due {
            let node = count as usize % shared.hosts.len();
            count += 1;
            if shared.in_flight[node].load(Ordering::Relaxed) >= IN_FLIGHT_MAX as u64 {
                lock(&shared.tally).held_back += 1;
                continue;
            }
            let shared = shared.clone();
            shared.in_flight[node].fetch_add(1, Ordering::Relaxed);
            senders.spawn(async move {
                send(&shared, node).await;
                shared.in_flight[node].fetch_sub(1, Ordering::Relaxed);
            });
        }
        while senders.try_join_next().is_some() {}
        let next = Duration::from_secs_f64(count as f64 / rate);
        tokio::time::sleep(next.saturating_sub(began.elapsed())).await;
    }
    bar.finish_and_clear();
    end(shared, kind, began, senders).await
}

/// Ends a phase. What is still under way is waited for and counted, but is no part of the rate.
async fn end(
    shared: &Shared,
    kind: &str,
    began: Instant,
    mut senders: tokio::task::JoinSet<()>,
) -> Phase {
    let (seconds, good) = (began.elapsed().as_secs_f64(), shared.good.load(Ordering::Relaxed));
    while senders.join_next().await.is_some() {}
    shared.good.store(0, Ordering::Relaxed);
    let calls = std::mem::take(&mut *lock(&shared.tally)).calls(kind);
    Phase { calls, seconds, good }
}

/// One call, counted once.
async fn send(shared: &Shared, node: usize) -> End {
    let began = Instant::now();
    let kept = lock(&shared.idle[node]).pop();
    let mut heard = match kept {
        Some(line) => ask(shared, node, line).await,
        None => None,
    };
    // A kept connection may have been closed since.
    if heard.is_none()
        && let Ok(line) = Line::open(&shared.hosts[node]).await
    {
        heard = ask(shared, node, line).await;
    }
    let end = heard.unwrap_or(End::Failed);
    shared.good.fetch_add(u64::from(end == End::Good), Ordering::Relaxed);
    lock(&shared.tally).add(end, began.elapsed());
    end
}

async fn ask(shared: &Shared, node: usize, mut line: Line) -> Option<End> {
    let heard = line.call("POST", "/v1/tasks", &shared.body, PATIENCE, true).await.ok()?;
    if !heard.closes {
        lock(&shared.idle[node]).push(line);
    }
    Some(heard.end())
}

/// How long it takes until calls are about as fast as they were on the idle cluster.
async fn back_to_normal(shared: &Arc<Shared>, idle_p99_ms: f64) -> Option<Duration> {
    let began = Instant::now();
    for _ in 0..BACK_WINDOWS_MAX {
        let from = began.elapsed();
        let window = paced(shared, "after", IDLE_RATE, BACK_WINDOW).await.calls;
        if window.shed + window.failed == 0 && window.p99_ms <= BACK_TIMES * idle_p99_ms {
            return Some(from);
        }
    }
    None
}
