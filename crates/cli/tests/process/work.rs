//! A stream of writes whose acknowledgements are remembered.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::{NewTask, OutcomeKind};
use tokio::task::JoinHandle;

use crate::cluster::client;
use crate::wait::until;

/// The queue of all writes here.
pub const QUEUE: &str = "work";

fn task(id: &str) -> NewTask {
    NewTask { id: Some(id.to_owned()), queue: Some(QUEUE.to_owned()), ..NewTask::default() }
}

/// Writes one task; true when it was acknowledged.
pub async fn write(client: &Client, id: &str) -> bool {
    match client.enqueue_as(id, vec![task(id)]).await {
        Ok(answer) => answer.tasks[0].outcome == OutcomeKind::Created,
        Err(_) => false,
    }
}

/// Writes `count` tasks; all must be acknowledged.
pub async fn write_all(client: &Client, name: &str, count: usize) -> BTreeSet<String> {
    let mut acked = BTreeSet::new();
    for number in 0..count {
        let id = format!("{name}-{number:05}");
        assert!(write(client, &id).await, "{id} was not acknowledged");
        acked.insert(id);
    }
    acked
}

/// Writers that go on until stopped.
pub struct Stream {
    stop: Arc<AtomicBool>,
    acked: Arc<AtomicU64>,
    /// When each was acknowledged.
    times: Arc<Mutex<Vec<Instant>>>,
    writers: Vec<JoinHandle<BTreeSet<String>>>,
}

impl Stream {
    /// One writer per node, each with the others to fall back on.
    pub fn start(urls: &[String]) -> Stream {
        Stream::start_named("stream", urls)
    }

    /// The same, with a name that begins all its tasks' ids.
    pub fn start_named(name: &str, urls: &[String]) -> Stream {
        let stop = Arc::new(AtomicBool::new(false));
        let acked = Arc::new(AtomicU64::new(0));
        let times = Arc::new(Mutex::new(Vec::new()));
        let writer = |first: usize| {
            let mut urls = urls.to_vec();
            urls.rotate_left(first);
            let name = name.to_owned();
            let (stop, count, times) = (stop.clone(), acked.clone(), times.clone());
            tokio::spawn(async move {
                let client = client(&urls);
                let mut acked = BTreeSet::new();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("{name}-{first}-{number:06}");
                    if write(&client, &id).await {
                        acked.insert(id);
                        count.fetch_add(1, Ordering::Relaxed);
                        times.lock().expect("no panic").push(Instant::now());
                    }
                    tokio::time::sleep(Duration::from_millis(3)).await;
                }
                acked
            })
        };
        let writers = (0..urls.len()).map(writer).collect();
        Stream { stop, acked, times, writers }
    }

    /// Waits until so many more were acknowledged.
    pub async fn advance(&self, more: u64) {
        let goal = self.acked.load(Ordering::Relaxed) + more;
        until("writes are acknowledged", || async {
            (self.acked.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await
    }

    /// Acknowledgements per second over this time.
    pub async fn rate(&self, time: Duration) -> f64 {
        let (began, before) = (Instant::now(), self.acked.load(Ordering::Relaxed));
        tokio::time::sleep(time).await;
        (self.acked.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
    }

    /// The longest time without any acknowledgement since then, in milliseconds.
    pub fn silence_ms(&self, since: Instant) -> u128 {
        let times = self.times.lock().expect("no panic");
        let mut last = since;
        let mut longest = Duration::ZERO;
        for time in times.iter().filter(|time| **time > since) {
            longest = longest.max(time.saturating_duration_since(last));
            last = *time;
        }
        longest.as_millis()
    }

    /// Stops, and gives all that was acknowledged.
    pub async fn stop(self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = BTreeSet::new();
        for writer in self.writers {
            all.extend(writer.await.expect("a writer"));
        }
        all
    }
}

/// Checks that every acknowledged task is there exactly once, and that the queue counts no more creations than tasks.
pub async fn check_all_there(client: &Client, acked: &BTreeSet<String>) {
    let mut listed = Vec::new();
    let mut query =
        TaskQuery { queue: Some(QUEUE.to_owned()), limit: Some(500), ..TaskQuery::default() };
    loop {
        let page = client.tasks(&query).await.expect("a page");
        listed.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let distinct: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), distinct.len(), "a task is listed twice");
    let missing: Vec<&String> = acked.difference(&distinct).collect();
    assert!(missing.is_empty(), "{} of {} lost: {missing:?}", missing.len(), acked.len());
    let submitted = client.queue(QUEUE).await.expect("the queue").counts.submitted_total;
    assert_eq!(submitted, distinct.len() as u64, "a task was created twice");
}
