//! Workers and slots as a job's owner sees them: how many hold what, who may come when, and what others notice (B4).

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use ikada_api::Client;
use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{JobInfo, NewJob, WorkerSummary};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

/// A worker with the usual two slots; ended when dropped.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(cluster: &Cluster, folder: &TempDir, name: &str) -> WorkerProcess {
        let mut command = ikada();
        // Of all nodes, whether they run yet or not.
        let urls: Vec<&str> = cluster.nodes.iter().map(|node| node.url.as_str()).collect();
        command.args(["worker", "--name", name, "--url", &urls.join(",")]);
        command.args(["--isolation", "best", "--until-stdin-closes"]);
        command.arg("--work-dir").arg(folder.path().join(name));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        WorkerProcess(command.spawn().expect("the worker starts"))
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn workers(client: &Client, is_so: impl Fn(&WorkerSummary) -> bool) -> WorkerSummary {
    until("the workers are so", || async {
        client.cluster().await.ok()?.workers.filter(|workers| is_so(workers))
    })
    .await
}

async fn job_is(client: &Client, id: &str, is_so: impl Fn(&JobInfo) -> bool) -> JobInfo {
    until("the job is so", || async {
        let job = client.job(id).await.ok()?;
        assert_ne!(job.status, "error", "{job:?}");
        is_so(&job).then_some(job)
    })
    .await
}

/// Five texts as objects, and how often each word is in them.
async fn upload(client: &Client) -> (Vec<serde_json::Value>, BTreeMap<String, u64>) {
    let words = ["the", "and", "to", "of", "prince", "Moscow", "the"];
    let (mut inputs, mut counts) = (Vec::new(), BTreeMap::new());
    for number in 0..5_usize {
        let key = format!("{number}.txt");
        let mut text = String::new();
        for place in 0..2_000_usize {
            let word = words[(number + place * place + place / 7) % words.len()];
            *counts.entry(word.to_lowercase()).or_insert(0) += 1;
            text.push_str(word);
            text.push(if place % 11 == 10 { '\n' } else { ' ' });
        }
        let source = ObjectSource::Bytes(text.into());
        let stored = client.put_object("novel", &key, &source, &PutOptions::default()).await;
        stored.expect("stored");
        inputs.push(json!({"name": key, "bucket": "novel", "key": key}));
    }
    (inputs, counts)
}

async fn submit(client: &Client, job: serde_json::Value) {
    let job: NewJob = serde_json::from_value(job).expect("a job");
    client.submit_job(&job).await.expect("taken");
}

/// The one output of a job, as words and their counts.
async fn counted(client: &Client, id: &str) -> BTreeMap<String, u64> {
    let result = client.job_result(id).await.expect("a result");
    let [output] = result.outputs.as_slice() else { panic!("{result:?}") };
    let reader = client.get_object("jobs", &output.key, &GetOptions::default()).await;
    let bytes = reader.expect("an output").collect().await.expect("all bytes");
    let line = |line: &str| {
        let (word, count) = line.split_once('\t').expect("a word and its count");
        (word.to_owned(), count.parse().expect("a number"))
    };
    String::from_utf8(bytes).expect("text").lines().map(line).collect()
}

// The reference run: five texts, two workers of two slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_12_b4_15_b4_17_five_texts_fill_four_slots_and_one_waits() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let (inputs, expected) = upload(&client).await;
    // B4-17: slots come with each worker, and nothing is restarted.
    let first = WorkerProcess::start(&cluster, &folder, "one");
    assert_eq!(workers(&client, |seen| seen.alive == 1).await.slots.total, 2);
    let second = WorkerProcess::start(&cluster, &folder, "two");
    let seen = workers(&client, |seen| seen.alive == 2).await;
    assert_eq!((seen.slots.total, seen.status.as_str()), (4, "healthy"));
    submit(
        &client,
        json!({"id": "novel", "map": {"program": "wordcount", "inputs": inputs,
            "settings": {"pause-ms": "5000"}}, "reduce": {"program": "merge"}}),
    )
    .await;
    let full = job_is(&client, "novel", |job| job.stages[0].claimed == 4).await;
    assert_eq!(
        (full.status.as_str(), full.assignment.as_str()),
        ("in_progress", "partially_assigned")
    );
    assert_eq!((full.stages[0].tasks, full.stages[0].done), (5, 0));
    // B4-15: both say that they are busy while they are.
    for name in ["one", "two"] {
        let busy = until("the worker is busy", || async {
            client.worker(name).await.ok().filter(|worker| worker.busy == 2)
        })
        .await;
        assert_eq!(busy.slots, 2);
    }
    // B4-8: no part of a result before the end.
    let early = client.job_result("novel").await.expect("an answer");
    assert_eq!((early.status.as_str(), early.outputs.len()), ("in_progress", 0));
    let ended = job_is(&client, "novel", JobInfo::is_finished).await;
    assert_eq!((ended.status.as_str(), ended.tasks_done), ("done", 6));
    assert_eq!(counted(&client, "novel").await, expected);
    drop((first, second));
}

// B4-21: a worker that was there first waits for its cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_21_workers_may_start_before_the_cluster() {
    let mut cluster = Cluster::prepare(1);
    let folder = tempfile::tempdir().expect("a folder");
    let worker = WorkerProcess::start(&cluster, &folder, "early");
    cluster.launch(1);
    cluster.settle().await;
    let client = cluster.client();
    submit(&client, json!({"id": "j", "map": {"program": "wordcount", "range": {"to": 3}}})).await;
    let ended = job_is(&client, "j", JobInfo::is_finished).await;
    assert_eq!((ended.status.as_str(), ended.tasks_done), ("done", 3));
    drop(worker);
}

// B4-10: a merge is a task like all others. It runs once, on a worker, and the leader answers everybody meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_10_a_merge_runs_once_and_others_are_answered_meanwhile() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let worker = WorkerProcess::start(&cluster, &folder, "one");
    submit(
        &client,
        json!({"id": "j", "map": {"program": "wordcount", "range": {"to": 2}},
            "reduce": {"program": "merge", "settings": {"pause-ms": "8000"}}}),
    )
    .await;
    let merging =
        job_is(&client, "j", |job| job.stages.last().is_some_and(|last| last.claimed == 1));
    let merging = merging.await;
    assert_eq!(merging.tasks_done, 2);
    for number in 0..8 {
        assert!(crate::work::write(&client, &format!("other-{number}")).await, "{number}");
        client.cluster().await.expect("a view");
    }
    let still = client.job("j").await.expect("a job");
    assert_eq!((still.status.as_str(), still.tasks_done), ("in_progress", 2), "it merges on");
    assert_eq!(job_is(&client, "j", JobInfo::is_finished).await.status, "done");
    let (once, twice) = (client.job_result("j").await, client.job_result("j").await);
    let versions = [once, twice].map(|result| result.expect("a result").outputs[0].version);
    assert_eq!(versions[0], versions[1], "asked again, it is not merged again");
    let last = client.job_tasks("j", None, None).await.expect("tasks").tasks;
    assert_eq!(last.last().map(|task| task.attempts_begun), Some(1));
    drop(worker);
}
