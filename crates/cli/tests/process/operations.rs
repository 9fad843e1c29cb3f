//! Idempotent requests, voids, dead letters and purges with real processes that are killed in between.

use ikada_api::Client;
use ikada_api::v1::{
    ClaimRequest, CompleteItem, CompleteRequest, ItemOutcome, NewTask, Number, OutcomeKind,
    QueueSettingsBody, RequestStatus, TaskStateName,
};

use crate::cluster::{Cluster, client};
use crate::wait::until;

const QUEUE: &str = "jobs";

fn task(payload: u32) -> NewTask {
    let payload = serde_json::value::to_raw_value(&payload).expect("a number");
    NewTask { queue: Some(QUEUE.into()), payload: Some(payload), ..NewTask::default() }
}

/// Submits one task without an id under a key.
async fn submit(client: &Client, key: &str, payload: u32) -> ItemOutcome {
    client.enqueue_as(key, vec![task(payload)]).await.expect("an answer").tasks.remove(0)
}

/// Submits a task with a name, under a key that nobody knows.
async fn named(client: &Client, payload: u32) -> ItemOutcome {
    let task = NewTask { id: Some("named".into()), ..task(payload) };
    client.enqueue(vec![task]).await.expect("an answer").tasks.remove(0)
}

fn code(item: &ItemOutcome) -> &str {
    item.problem.as_ref().map_or("none", |problem| problem.code.as_ref())
}

fn wish(count_max: u32) -> ClaimRequest {
    wish_of(QUEUE, count_max)
}

fn wish_of(queue: &str, count_max: u32) -> ClaimRequest {
    let (worker, queues) = ("w".to_owned(), vec![queue.to_owned()]);
    ClaimRequest {
        holds: Vec::new(),
        worker,
        session: Number(1),
        queues,
        count_max,
        wait_ms: 0,
        labels: Default::default(),
    }
}

/// Claims and completes up to 16 tasks of a queue; tells how many.
async fn complete_some(client: &Client, queue: &str) -> usize {
    let claimed = client.claim(&wish_of(queue, 16)).await.expect("claimed").tasks;
    let done = claimed.iter().map(|task| CompleteItem {
        then: Vec::new(),
        outputs: Vec::new(),
        id: task.id.clone(),
        fence: task.fence,
        result: None,
        result_base64: None,
        result_bytes: None,
    });
    let tasks: Vec<CompleteItem> = done.collect();
    let count = tasks.len();
    if count > 0 {
        client
            .complete(&CompleteRequest { worker: "w".into(), tasks, claim: None })
            .await
            .expect("done");
    }
    count
}

/// Waits until the shard of the task `named` remembers the names of tasks that are gone. It begins once every node has told
/// what it understands, which nothing tells from outside: tasks in the same shard, of another queue, are tried.
async fn names_are_remembered(client: &Client) {
    const PROBE: &str = "probe";
    let settings = QueueSettingsBody { retention_count: Some(0), ..QueueSettingsBody::default() };
    client.set_queue(PROBE, &settings).await.expect("set");
    let numbers = std::sync::atomic::AtomicU32::new(0);
    let numbers = &numbers;
    until("names that have gone are remembered", || async move {
        let number = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = Some(format!("named:probe-{number}"));
        let probe = NewTask { queue: Some(PROBE.into()), id, ..task(0) };
        client.enqueue(vec![probe.clone()]).await.expect("an answer");
        while complete_some(client, PROBE).await > 0 {}
        let again = client.enqueue(vec![probe]).await.expect("an answer").tasks.remove(0);
        (again.outcome == OutcomeKind::Existing).then_some(())
    })
    .await;
}

fn restart_all(cluster: &mut Cluster) {
    for id in 1..=3 {
        cluster.kill(id);
    }
    for id in 1..=3 {
        cluster.launch(id);
    }
}

/// Every key gives its first reply again, and another body is refused.
async fn resend_all(client: &Client, first: &[ItemOutcome]) {
    for (number, before) in first.iter().enumerate() {
        let key = format!("key-{number}");
        let again = submit(client, &key, number as u32).await;
        assert_eq!((again.outcome, &again.id), (before.outcome, &before.id), "{key}");
        let other = submit(client, &key, 999_999).await;
        assert_eq!(code(&other), "idempotency_conflict", "{key}");
    }
}

// TQ-20, TQ-21, TQ-22
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_21_one_key_makes_one_task_through_any_node_and_after_every_fault() {
    let mut cluster = Cluster::start_with(4).await;
    let one = client(&[cluster.node(1).url.clone()]);
    let mut first = Vec::new();
    for number in 0..12 {
        first.push(submit(&one, &format!("key-{number}"), number).await);
    }
    assert!(first.iter().all(|item| item.outcome == OutcomeKind::Created));
    resend_all(&client(&[cluster.node(2).url.clone()]), &first).await;
    // Failover.
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    cluster.settle().await;
    resend_all(&cluster.client(), &first).await;
    cluster.launch(leader);
    // Restart of all.
    restart_all(&mut cluster);
    cluster.settle().await;
    resend_all(&cluster.client(), &first).await;
    // Compaction: the tasks are done and gone, and a late resend still runs nothing; under another key neither, if the
    // task had a name.
    let all = cluster.client();
    names_are_remembered(&all).await;
    assert_eq!(named(&all, 0).await.outcome, OutcomeKind::Created);
    let settings = QueueSettingsBody { retention_count: Some(0), ..QueueSettingsBody::default() };
    all.set_queue(QUEUE, &settings).await.expect("set");
    let mut left = first.len() + 1;
    while left > 0 {
        left -= complete_some(&all, QUEUE).await;
    }
    assert_eq!(all.queue(QUEUE).await.expect("queue").counts.finished, 0);
    resend_all(&all, &first).await;
    assert_eq!(named(&all, 0).await.outcome, OutcomeKind::Existing);
    restart_all(&mut cluster);
    cluster.settle().await;
    resend_all(&cluster.client(), &first).await;
    assert_eq!(named(&cluster.client(), 0).await.outcome, OutcomeKind::Existing);
    assert_eq!(code(&named(&cluster.client(), 1).await), "conflict");
    let counts = cluster.client().queue(QUEUE).await.expect("queue").counts;
    assert_eq!((counts.submitted_total, counts.done_total), (13, 13));
    cluster.copies_become_equal().await;
}

// TQ-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_20_a_voided_request_stays_voided_after_restart_and_failover() {
    let mut cluster = Cluster::start_with(4).await;
    let all = cluster.client();
    assert_eq!(submit(&all, "early", 1).await.outcome, OutcomeKind::Created);
    let status =
        async |client: &Client, key: &str| client.request(key, 0).await.expect("a request").status;
    assert_eq!(status(&all, "late").await, RequestStatus::NotYet);
    assert_eq!(all.void_request("late", 0).await.expect("void").status, RequestStatus::Voided);
    let early = all.void_request("early", 0).await.expect("void");
    assert_eq!(
        (early.status, early.outcome),
        (RequestStatus::Committed, Some(OutcomeKind::Created))
    );
    restart_all(&mut cluster);
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    cluster.settle().await;
    let all = cluster.client();
    assert_eq!(code(&submit(&all, "late", 2).await), "request_voided");
    assert_eq!(status(&all, "late").await, RequestStatus::Voided);
    assert_eq!(submit(&all, "early", 1).await.outcome, OutcomeKind::Created, "its first reply");
    assert_eq!(all.queue(QUEUE).await.expect("queue").counts.submitted_total, 1);
}

// TQ-8, TQ-19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_8_a_task_that_kills_its_workers_ends_dead_and_can_be_retried() {
    let cluster = Cluster::start().await;
    let all = cluster.client();
    let poison =
        NewTask { id: Some("poison".into()), ttl_ms: Some(100), max_attempts: Some(2), ..task(0) };
    all.enqueue(vec![poison]).await.expect("submitted");
    let dead = until("the task is given up", || async {
        // Claimed and never completed, as by a worker that dies of it.
        all.claim(&wish(1)).await.ok()?;
        let task = all.task("poison").await.ok()?;
        (task.state == TaskStateName::Dead).then_some(task)
    })
    .await;
    assert_eq!(dead.dead_reason.as_deref(), Some("claim_expired"));
    assert_eq!((dead.attempts_begun, dead.attempts.len()), (2, 2));
    assert!(dead.attempts.iter().all(|attempt| attempt.outcome == "expired"));
    let answer = all.retry_dead(QUEUE).await.expect("retried");
    assert_eq!((answer.count, answer.complete), (1, true));
    let claimed = all.claim(&wish(1)).await.expect("claimed").tasks.remove(0);
    assert_eq!((claimed.id.as_str(), claimed.attempt), ("poison", 1));
    assert!(claimed.fence.0 > dead.attempts[1].fence.0, "the fence only rises");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_goes_on_when_a_leader_dies_and_spares_what_comes_after() {
    let mut cluster = Cluster::start_with(4).await;
    let all = cluster.client();
    let tasks: Vec<NewTask> = (0..3_000).map(task).collect();
    for chunk in tasks.chunks(1_000) {
        all.enqueue(chunk.to_vec()).await.expect("submitted");
    }
    let purging = {
        let all = all.clone();
        tokio::spawn(async move { all.purge_queue(QUEUE, false).await })
    };
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    let answer = purging.await.expect("joined").expect("purged");
    assert!(answer.complete, "{answer:?}");
    assert_eq!(answer.count, 3_000);
    let counts = cluster.client().queue(QUEUE).await.expect("queue").counts;
    assert_eq!((counts.ready, counts.cancelled_total), (0, 3_000));
    submit(&cluster.client(), "after", 1).await;
    cluster.launch(leader);
    cluster.settle().await;
    assert_eq!(cluster.client().queue(QUEUE).await.expect("queue").counts.ready, 1);
    cluster.copies_become_equal().await;
}
