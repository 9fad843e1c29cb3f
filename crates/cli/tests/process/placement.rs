//! Which worker gets what, over real processes: few tasks are spread, and go where their program is (B4-36); a large job comes
//! into being although its leader dies.

use std::collections::{BTreeMap, BTreeSet};

use ikada_api::Client;
use ikada_api::v1::{ClaimRequest, CompleteRequest, NewJob, NewTask, Task, TaskStateName};
use serde_json::json;

use crate::cluster::Cluster;
use crate::programs::{WorkerProcess, push};
use crate::wait::until;

/// Tasks of the large job: several windows.
const LARGE: u32 = 25_000;

async fn submit(client: &Client, tasks: serde_json::Value) {
    let tasks: Vec<NewTask> = serde_json::from_value(tasks).expect("tasks");
    for item in client.enqueue(tasks).await.expect("taken").tasks {
        assert_eq!(item.problem, None);
    }
}

async fn done(client: &Client, id: &str) -> Task {
    until("the task is done", || async {
        client.task(id).await.ok().filter(|task| task.state == TaskStateName::Done)
    })
    .await
}

/// How many tasks of a job each worker ran, once all are done.
async fn ran_by(client: &Client, id: &str) -> BTreeMap<String, u32> {
    until("the job is done", || async {
        client.job(id).await.ok().filter(|job| job.status == "done")
    })
    .await;
    let mut ran = BTreeMap::new();
    for task in client.job_tasks(id, None, None).await.expect("tasks").tasks {
        let attempt = client.task(&task.id).await.expect("a task").attempts.pop();
        *ran.entry(attempt.expect("an attempt").worker).or_default() += 1;
    }
    ran
}

async fn alive(client: &Client, count: u64) {
    until("the workers are known", || async {
        client.cluster().await.ok()?.workers.filter(|workers| workers.alive == count)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_36_two_workers_get_some_of_few_tasks_each_and_one_alone_gets_all() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    cluster.level_is_raised().await;
    push(&client, "nap", "sleep 2; echo 1 > $IKADA_RESULT").await;
    let first = WorkerProcess::start(&cluster, &folder, "a", &["--slots", "8"]);
    let second = WorkerProcess::start(&cluster, &folder, "b", &["--slots", "8"]);
    alive(&client, 2).await;
    // After these two seconds both have asked more than once.
    for name in ["a", "b"] {
        let warm = json!({"id": format!("warm-{name}"), "program": "nap"});
        submit(&client, json!([warm])).await;
    }
    for name in ["a", "b"] {
        done(&client, &format!("warm-{name}")).await;
    }
    let job: NewJob = serde_json::from_value(json!({
        "id": "few", "map": {"program": "nap", "range": {"to": 8}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    let ran = ran_by(&client, "few").await;
    assert_eq!(ran.values().sum::<u32>(), 8);
    assert!(ran.len() == 2 && ran.values().all(|count| *count >= 2), "{ran:?}");
    // One of them is gone, and nobody waits for it.
    drop(second);
    let job = NewJob { id: Some("alone".to_owned()), ..job };
    client.submit_job(&job).await.expect("taken");
    assert_eq!(ran_by(&client, "alone").await, BTreeMap::from([("a".to_owned(), 8)]));
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_36_each_worker_begins_with_the_program_that_it_has() {
    let cluster = Cluster::start_with(1).await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    cluster.level_is_raised().await;
    push(&client, "one", "sleep 0.5; echo 1 > $IKADA_RESULT").await;
    push(&client, "two", "sleep 0.5; echo 2 > $IKADA_RESULT").await;
    let start = |name: &str| {
        let label = format!("side={name}");
        WorkerProcess::start(&cluster, &folder, name, &["--slots", "1", "--label", &label])
    };
    let workers = [start("a"), start("b")];
    // Each is made to fetch one of the programs.
    let warm = |id: &str, program: &str| json!({"id": format!("warm-{id}"), "program": program, "labels": {"side": id}});
    submit(&client, json!([warm("a", "one"), warm("b", "two")])).await;
    let ran = done(&client, "warm-a").await.attempts.remove(0);
    assert!(ran.program_digest.is_some() && ran.inputs_digest.is_none(), "{ran:?}");
    done(&client, "warm-b").await;
    let task = |number: u32, program: &str| json!({"id": format!("t{number}"), "program": program});
    let tasks: Vec<_> =
        (0..6).map(|number| task(number, if number < 3 { "two" } else { "one" })).collect();
    submit(&client, tasks.into()).await;
    let mut begun: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for number in 0..6 {
        let task = done(&client, &format!("t{number}")).await;
        let program = task.work.expect("it runs a program").program.name;
        let attempt = &task.attempts[0];
        let now = (attempt.fence.0, program);
        let earliest = begun.entry(attempt.worker.clone()).or_insert(now.clone());
        *earliest = now.min(earliest.clone());
    }
    assert_eq!((begun["a"].1.as_str(), begun["b"].1.as_str()), ("one", "two"), "{begun:?}");
    drop(workers);
}

/// Claims tasks and completes them, until there are so many done. Tells which tasks were, each as often as it counted.
async fn work_on(client: &Client, done: &mut Vec<String>, goal: usize) {
    while done.len() < goal {
        let ask =
            json!({"worker": "hand", "queues": ["default"], "count_max": 500, "wait_ms": 500});
        let ask: ClaimRequest = serde_json::from_value(ask).expect("a request");
        let Ok(answer) = client.claim(&ask).await else { continue };
        let items: Vec<_> =
            answer.tasks.iter().map(|task| json!({"id": task.id, "fence": task.fence})).collect();
        if items.is_empty() {
            continue;
        }
        let report: CompleteRequest =
            serde_json::from_value(json!({"worker": "hand", "tasks": items})).expect("a request");
        // A fence makes it safe to say so again.
        let answer = until("the report is taken", || async {
            let answer = client.complete(&report).await.ok()?;
            answer.tasks.iter().all(|item| item.outcome.is_settled()).then_some(answer)
        })
        .await;
        let counted = answer.tasks.into_iter().filter(|item| item.problem.is_none());
        done.extend(counted.map(|item| item.id));
    }
}

// B4-34, B4-57: what a leader had not brought into being the next one does, each index once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_34_b4_57_a_large_job_is_there_whole_although_its_leader_dies_in_between() {
    let mut cluster = Cluster::start_with(1).await;
    let client = cluster.client();
    let job: NewJob = serde_json::from_value(json!({
        "id": "large", "map": {"program": "wordcount", "range": {"to": LARGE}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    let mut done = Vec::new();
    work_on(&client, &mut done, 6_000).await;
    let stage = client.job("large").await.expect("a job").stages.remove(0);
    assert!(stage.begun > 10_000 && stage.begun < LARGE, "in the middle: {stage:?}");
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    work_on(&client, &mut done, LARGE as usize).await;
    cluster.launch(leader);
    let ended = until("the job is done", || async {
        client.job("large").await.ok().filter(|job| job.is_finished())
    })
    .await;
    let stage = &ended.stages[0];
    assert_eq!((ended.status.as_str(), stage.begun, stage.done), ("done", LARGE, LARGE));
    let indices: BTreeSet<u32> = done
        .iter()
        .map(|id| id.rsplit_once('.').and_then(|(_, index)| index.parse().ok()).expect("an index"))
        .collect();
    assert_eq!((done.len(), indices.len() as u32), (LARGE as usize, LARGE), "each index once");
    assert_eq!(indices.last(), Some(&(LARGE - 1)));
    cluster.settle().await;
    cluster.copies_become_equal().await;
}
