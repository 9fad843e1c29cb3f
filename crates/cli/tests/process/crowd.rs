//! Many workers whose leader dies under them: they come back, and the newcomers' rush costs nobody the lead (F-25).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{ClaimRequest, NewTask, Number};

use crate::cluster::{Cluster, client};
use crate::holder;
use crate::scenario::Scenario;
use crate::wait::until;

/// So many workers, each with connections of its own.
const WORKERS: usize = 500;
/// Tasks in one submission.
const BATCH: usize = 100;
const QUEUE: &str = "crowd";

/// What all workers share.
#[derive(Default)]
struct Crowd {
    /// Each worker takes one task per phase.
    phase: AtomicU64,
    /// Who got which task, by phase.
    taken: Mutex<BTreeMap<u64, BTreeMap<usize, String>>>,
}

impl Crowd {
    fn taken(&self, phase: u64) -> BTreeMap<usize, String> {
        self.taken.lock().expect("no panic").get(&phase).cloned().unwrap_or_default()
    }
}

/// One worker, for as long as the test runs: claims by long polls, one task per phase.
async fn work(crowd: Arc<Crowd>, client: Client, number: usize) {
    let name = format!("worker-{number}");
    let mut done = 0;
    loop {
        let phase = crowd.phase.load(Ordering::Relaxed);
        if done == phase {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        let wish = ClaimRequest {
            holds: Vec::new(),
            worker: name.clone(),
            session: Number(1),
            queues: vec![QUEUE.to_owned()],
            count_max: 1,
            wait_ms: 20_000,
            labels: BTreeMap::new(),
        };
        let Ok(answer) = client.claim(&wish).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(task) = answer.tasks.into_iter().next() else { continue };
        let report = holder::done(&name, &task);
        until("a completion is settled", || async {
            let answer = client.complete(&report).await.ok()?;
            answer.tasks[0].outcome.is_settled().then_some(())
        })
        .await;
        crowd.taken.lock().expect("no panic").entry(phase).or_default().insert(number, task.id);
        done = phase;
    }
}

/// One task per worker, and a wait until each has done one.
async fn serve_all(crowd: &Crowd, client: &Client, phase: u64) {
    for batch in 0..WORKERS / BATCH {
        let task = |number: usize| NewTask {
            id: Some(format!("{phase}-{batch}-{number}")),
            queue: Some(QUEUE.to_owned()),
            // An answer that dies with a connection must not make the test wait long.
            ttl_ms: Some(5_000),
            max_attempts: Some(50),
            ..NewTask::default()
        };
        let (key, tasks) = (format!("{phase}-{batch}"), (0..BATCH).map(task));
        let tasks: Vec<NewTask> = tasks.collect();
        until("tasks are made", || async { client.enqueue_as(&key, tasks.clone()).await.ok() })
            .await;
    }
    until("every worker has done a task", || async {
        (crowd.taken(phase).len() == WORKERS).then_some(())
    })
    .await;
    let distinct: BTreeSet<String> = crowd.taken(phase).into_values().collect();
    assert_eq!(distinct.len(), WORKERS, "a task was done by two workers");
}

// F-25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_25_many_workers_come_back_after_a_failover_without_a_second_election() {
    let mut cluster = Cluster::start_with(1).await;
    let crowd = Arc::new(Crowd::default());
    let urls = cluster.urls();
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let mut urls = urls.clone();
            urls.rotate_left(number % 3);
            tokio::spawn(work(crowd.clone(), client(&urls), number))
        })
        .collect();
    crowd.phase.store(1, Ordering::Relaxed);
    serve_all(&crowd, &cluster.client(), 1).await;
    // All wait for work again when the leader dies.
    crowd.phase.store(2, Ordering::Relaxed);
    let scenario = Scenario::begin("F-25", &cluster).await;
    let (old, _) = cluster.reign().await;
    cluster.kill(old);
    let new = cluster.reign().await;
    serve_all(&crowd, &cluster.client(), 2).await;
    assert_eq!(cluster.reign().await, new, "one election, not two");
    // And with the old one back.
    crowd.phase.store(3, Ordering::Relaxed);
    cluster.launch(old);
    serve_all(&crowd, &cluster.client(), 3).await;
    assert_eq!(cluster.reign().await, new, "one election, not two");
    for worker in workers {
        worker.abort();
    }
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}
