//! Workers with the loop of `ikada-worker`: through the death of a leader, and as the guide shows it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Enqueuer, TaskQuery};
use ikada_api::v1::{NewTask, OutcomeKind, TaskStateName};
use ikada_worker::{Claimed, Handle, Tally, Worker};
use serde_json::json;

use crate::cluster::{Cluster, client};
use crate::wait::until;

/// The guide's example, run here so that it stays true.
#[allow(dead_code, reason = "its main is for people")]
#[path = "../../../worker/examples/mail.rs"]
mod mail;

const TASKS: u64 = 2_000;
const QUEUE: &str = "squares";

/// Which attempts ran, by task.
type Runs = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

fn start(urls: &[String], number: usize, runs: Runs) -> Handle {
    let mut urls = urls.to_vec();
    urls.rotate_left(number);
    // Short, so that a call to the dead leader does not use up a claim's life.
    let client = Client::new(&urls).expect("urls").with_timeout(Duration::from_secs(5));
    Worker::new(client)
        .name(format!("w{number}"))
        .slots(16)
        .poll(Duration::from_secs(1))
        .handle(QUEUE, move |task: Claimed| {
            let runs = runs.clone();
            async move {
                let number: u64 = task.json()?;
                runs.lock()?.entry(task.id).or_default().push(task.fence);
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(json!(number * number))
            }
        })
        .start()
        .expect("a good worker")
}

async fn submit_all(client: &Client) {
    let enqueuer = Enqueuer::new(client.clone());
    let mut callers = Vec::new();
    for number in 0..TASKS {
        let task = NewTask {
            id: Some(format!("square-{number}")),
            queue: Some(QUEUE.to_owned()),
            payload: serde_json::value::to_raw_value(&number).ok(),
            // An attempt that dies with the leader's answer must not make the test wait long.
            ttl_ms: Some(5_000),
            max_attempts: Some(50),
            ..NewTask::default()
        };
        let enqueuer = enqueuer.clone();
        callers.push(tokio::spawn(async move { enqueuer.enqueue(task).await }));
    }
    for caller in callers {
        let outcome = caller.await.expect("no panic").expect("taken");
        assert_eq!(outcome.outcome, OutcomeKind::Created);
    }
}

// F-1, TQ-15, TQ-18, TQ-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_complete_every_task_once_although_the_leader_dies() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client();
    submit_all(&client).await;
    let runs = Runs::default();
    let urls = cluster.urls();
    let mut workers: Vec<Handle> =
        (0..2).map(|number| start(&urls, number, runs.clone())).collect();
    let completed =
        |workers: &[Handle]| -> u64 { workers.iter().map(|worker| worker.tally().completed).sum() };
    until("a third is done", || async { (completed(&workers) > TASKS / 3).then_some(()) }).await;
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    assert!(completed(&workers) < TASKS, "the leader dies in the middle");
    let done_query = TaskQuery {
        queue: Some(QUEUE.to_owned()),
        state: Some(TaskStateName::Done),
        limit: Some(1_000),
        ..TaskQuery::default()
    };
    until("all tasks are done", || async {
        (client.queue(QUEUE).await.ok()?.counts.done_total == TASKS).then_some(())
    })
    .await;
    cluster.launch(leader);
    workers.iter_mut().for_each(Handle::drain);
    let mut total = Tally::default();
    for worker in workers {
        let tally = worker.wait().await;
        total.completed += tally.completed;
        total.failed += tally.failed;
    }
    assert_eq!((total.completed, total.failed), (TASKS, 0), "each completion was told once");
    check_results(&client, done_query, &runs).await;
    cluster.settle().await;
    cluster.copies_become_equal().await;
}

/// Every task is done with the right result; the attempt that counts is the newest that ran.
async fn check_results(client: &Client, mut query: TaskQuery, runs: &Runs) {
    let mut seen = BTreeMap::new();
    loop {
        let page = client.tasks(&query).await.expect("a page");
        for task in page.tasks {
            let number: u64 = task.id["square-".len()..].parse().expect("a number");
            let result = task.result().expect("bytes");
            assert_eq!(result, (number * number).to_string().into_bytes());
            assert!(seen.insert(task.id.clone(), ()).is_none(), "{} twice", task.id);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len() as u64, TASKS);
    let runs = runs.lock().expect("no panic");
    assert_eq!(runs.len() as u64, TASKS);
    for (id, fences) in runs.iter() {
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "{id} ran with {fences:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_to_the_client_works_as_written() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    let client = client(&cluster.urls());
    let ids = mail::submit(&client, &["ann", "nobody"]).await.expect("submitted");
    mail::work(&client, &ids).await.expect("worked");
    mail::show(&client, &ids).await.expect("shown");
    for (id, (person, attempts)) in ids.iter().zip([("ann", 1), ("nobody", 2)]) {
        let task = client.task(id).await.expect("a task");
        assert_eq!((task.state, task.attempts_begun), (TaskStateName::Done, attempts));
        let result: serde_json::Value =
            serde_json::from_slice(&task.result().expect("bytes")).expect("json");
        assert_eq!(result["sent_to"], person);
    }
}
