//! The worker's loop against a small cluster of one thread: slots, drains, lost claims, panics, silence.

mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cluster::Cluster;
use ikada_api::v1::{NewTask, RawBytes};
use ikada_worker::{Claimed, TaskError, TaskResult, Worker};
use serde_json::json;
use tokio::sync::Semaphore;

/// Longer than any test may take, so that a hang becomes a failure.
const LIMIT: Duration = Duration::from_secs(30);

fn worker(cluster: &Cluster) -> Worker {
    Worker::new(cluster.client()).name("w1").poll(Duration::from_millis(50))
}

/// Works until the condition holds.
async fn work(
    worker: Worker,
    cluster: &Cluster,
    done: impl Fn(&Cluster) -> bool,
) -> ikada_worker::Tally {
    let run = worker.run_until(async {
        while !done(cluster) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    tokio::time::timeout(LIMIT, run).await.expect("the worker is stuck").expect("a good worker")
}

/// Notes when it is dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// TQ-15: what a handler wants done next is part of its completion; told to end, the worker finishes what it holds.
#[tokio::test]
async fn tq_15_a_handler_adds_follow_ups_and_run_ends_in_order_when_told() {
    let cluster = Cluster::start(1, 30_000).await;
    let worker = worker(&cluster).handle("q", async |_: Claimed| {
        // Told in the middle of the task, when the loop is known to listen.
        let own = std::process::id().to_string();
        let told = std::process::Command::new("kill").args(["-TERM", &own]).status()?;
        assert!(told.success());
        tokio::time::sleep(Duration::from_millis(50)).await;
        let next = NewTask { queue: Some("next".to_owned()), ..NewTask::default() };
        Ok::<_, TaskError>(TaskResult::from(json!("done")).then(next.clone()).then(next))
    });
    let tally = tokio::time::timeout(LIMIT, worker.run()).await.expect("stuck").unwrap();
    assert_eq!((tally.begun, tally.completed), (1, 1));
    let state = cluster.state();
    let queues: Vec<Option<&str>> =
        state.completed["t0"].then.iter().map(|task| task.queue.as_deref()).collect();
    assert_eq!(queues, [Some("next"), Some("next")]);
}

// TQ-15
#[tokio::test]
async fn never_more_claims_than_slots_and_every_task_is_run() {
    let cluster = Cluster::start(20, 30_000).await;
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, top) = (running.clone(), most.clone());
    let worker = worker(&cluster).slots(3).handle("q", move |task: Claimed| {
        let (now, top) = (now.clone(), top.clone());
        async move {
            top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!({ "number": task.json::<u64>()?, "fence": task.fence, "try": task.attempt }))
        }
    });
    let tally = work(worker, &cluster, |cluster| cluster.state().completed.len() == 20).await;
    assert_eq!((tally.begun, tally.completed, tally.failed, tally.lost), (20, 20, 0, 0));
    assert_eq!(most.load(Ordering::SeqCst), 3, "all slots are used, and no more");
    let state = cluster.state();
    assert!(state.held_most <= 3, "{} claims at once", state.held_most);
    for (id, item) in &state.completed {
        let number: u64 = id[1..].parse().unwrap();
        let fence = 100 + number;
        let result = json!({ "number": number, "fence": fence, "try": 1 }).to_string();
        assert_eq!(item.result_bytes, Some(RawBytes(result.into_bytes())));
    }
}

#[tokio::test]
async fn a_lost_claim_cancels_its_handler_and_frees_the_slot() {
    let cluster = Cluster::start(2, 60).await;
    cluster.state().lost.insert("t0".to_owned());
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let worker = worker(&cluster).slots(1).handle("q", move |task: Claimed| {
        let guard = Guard(flag.clone());
        async move {
            if task.id == "t0" {
                let _guard = guard;
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let tally = work(worker, &cluster, |cluster| cluster.state().completed.len() == 1).await;
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!((tally.begun, tally.completed, tally.failed, tally.lost), (2, 1, 0, 1));
    let state = cluster.state();
    assert!(state.completed.contains_key("t1"));
    assert!(state.failed.is_empty(), "a lost claim is not ours to report on");
}

#[tokio::test]
async fn a_claim_is_renewed_with_its_session_while_the_handler_runs() {
    let cluster = Cluster::start(1, 30).await;
    let gate = Arc::new(Semaphore::new(0));
    let waits = gate.clone();
    let worker = worker(&cluster).handle("q", move |_: Claimed| {
        let waits = waits.clone();
        async move {
            waits.acquire().await?.forget();
            Ok(())
        }
    });
    let open = |cluster: &Cluster| {
        if cluster.state().renewed >= 3 {
            gate.add_permits(1);
        }
        !cluster.state().completed.is_empty()
    };
    work(worker, &cluster, open).await;
    assert_eq!(cluster.state().sessions.len(), 1, "claims and renewals name the same run");
}

#[tokio::test]
async fn panics_and_errors_are_failed_attempts() {
    let cluster = Cluster::start(4, 30_000).await;
    let worker = worker(&cluster).slots(4).handle("q", |task: Claimed| async move {
        match task.json::<u64>()? {
            0 => panic!("out of {}", "paper"),
            1 => Err(TaskError::give_up("no such person")),
            2 => Err(TaskError::new("busy").retry_after(Duration::from_secs(7))),
            _ => Ok(vec![0xff, 0x00]),
        }
    });
    let over = |cluster: &Cluster| {
        let state = cluster.state();
        state.failed.len() + state.completed.len() == 4
    };
    let tally = work(worker, &cluster, over).await;
    assert_eq!((tally.completed, tally.failed), (1, 3));
    let state = cluster.state();
    assert_eq!(state.failed["t0"].error, "the handler panicked: out of paper");
    assert!(state.failed["t0"].retry);
    assert_eq!(state.failed["t1"].error, "no such person");
    assert!(!state.failed["t1"].retry);
    assert_eq!(state.failed["t2"].delay_ms, Some(7_000));
    assert_eq!(state.completed["t3"].result_bytes, Some(RawBytes(vec![0xff, 0x00])));
}

#[tokio::test]
async fn a_drain_finishes_what_it_can_and_gives_back_the_rest() {
    let cluster = Cluster::start(5, 30_000).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let begun = Arc::new(Semaphore::new(0));
    let begins = begun.clone();
    let worker = worker(&cluster).slots(2).drain_timeout(Duration::from_millis(200)).handle(
        "q",
        move |task: Claimed| {
            let (guard, begins) = (Guard(flag.clone()), begins.clone());
            async move {
                begins.add_permits(1);
                if task.id == "t0" {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(())
            }
        },
    );
    let run = worker.run_until(async {
        begun.acquire_many(2).await.unwrap().forget();
    });
    let tally = tokio::time::timeout(LIMIT, run).await.expect("stuck").unwrap();
    assert!(dropped.load(Ordering::SeqCst));
    let state = cluster.state();
    assert_eq!(state.failed.keys().collect::<Vec<_>>(), ["t0"]);
    let back = &state.failed["t0"];
    assert_eq!((back.retry, back.delay_ms), (true, Some(0)));
    assert!(state.completed.contains_key("t1"), "what was nearly done is done");
    assert_eq!(tally.completed as usize, state.completed.len());
    assert_eq!(state.held, 0, "nothing is left to expire");
    assert!(!state.waiting.is_empty(), "and nothing new was begun");
}

// Requirement 13 of the firsts: a worker outlives leaders.
#[tokio::test]
async fn silence_and_refusals_in_between_are_waited_out() {
    let cluster = Cluster::start(10, 30_000).await;
    cluster.state().trouble = 25;
    let worker = worker(&cluster).slots(4).handle("q", |_: Claimed| async { Ok(()) });
    let tally = work(worker, &cluster, |cluster| cluster.state().completed.len() == 10).await;
    assert_eq!((tally.completed, tally.lost), (10, 0));
    assert_eq!(cluster.state().trouble, 0);
}

// TQ-15: whoever is full claims with what it reports, and that never makes more claims than slots. Nodes of an older version refuse
// such a report whole; it is made again without the claim at once, and no further one has any.
#[tokio::test]
async fn claims_go_with_reports_where_nodes_take_them() {
    for is_older in [false, true] {
        let cluster = Cluster::start(20, 30_000).await;
        cluster.state().is_older = is_older;
        let worker = worker(&cluster).slots(2).handle("q", |_: Claimed| async { Ok(()) });
        let tally = work(worker, &cluster, |cluster| cluster.state().completed.len() == 20).await;
        assert_eq!((tally.begun, tally.completed, tally.failed, tally.lost), (20, 20, 0, 0));
        let state = cluster.state();
        assert!(state.held_most <= 2, "{} claims at once", state.held_most);
        match is_older {
            true => assert_eq!(state.claims_behind, 1, "one node in a row that refuses is enough"),
            false => assert!(state.claims_behind > 1, "{}", state.claims_behind),
        }
    }
}

#[tokio::test]
async fn a_worker_in_the_background_is_asked_to_leave() {
    let cluster = Cluster::start(3, 30_000).await;
    let mut handle = worker(&cluster).handle("q", |_: Claimed| async { Ok(()) }).start().unwrap();
    while handle.tally().completed < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    handle.drain();
    handle.drain();
    assert_eq!(tokio::time::timeout(LIMIT, handle.wait()).await.expect("stuck").completed, 3);
}
