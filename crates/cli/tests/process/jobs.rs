//! Jobs over real processes: workers and leaders are killed in the middle, and the result is right all the same.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use ikada_api::Client;
use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{ClaimRequest, CompleteRequest, JobInfo, NewJob, OutputItem};
use ikada_worker::{Claimed, TaskResult, Worker};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

/// How often the whole run is repeated; `IKADA_JOB_KILLS` asks for more.
const RUNS_DEFAULT: u32 = 1;
/// Texts, and so tasks of the map.
const TEXTS: u32 = 200;

/// A worker process; ended when dropped.
pub struct WorkerProcess(Child);

impl WorkerProcess {
    pub fn start(cluster: &Cluster, folder: &TempDir, name: &str) -> WorkerProcess {
        let mut command = ikada();
        command.args(["worker", "--name", name, "--url", &cluster.urls().join(",")]);
        command.args(["--slots", "2", "--isolation", "best", "--until-stdin-closes"]);
        command.arg("--work-dir").arg(folder.path().join(name));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        WorkerProcess(command.spawn().expect("the worker starts"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("it lives");
        self.0.wait().expect("it ended");
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A text of words that are easily counted by other means.
fn text(number: u32) -> String {
    let words = ["war", "and", "peace", "the", "prince", "of"];
    (0..300).map(|place| words[(number as usize + place * place) % 6]).collect::<Vec<_>>().join(" ")
}

async fn upload(client: &Client) -> (Vec<serde_json::Value>, BTreeMap<String, u64>) {
    let (mut inputs, mut counts) = (Vec::new(), BTreeMap::new());
    for number in 0..TEXTS {
        let (key, text) = (format!("{number}.txt"), text(number));
        for word in text.split(' ') {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
        let source = ObjectSource::Bytes(text.into());
        let stored = client.put_object("texts", &key, &source, &PutOptions::default()).await;
        let version = stored.expect("stored").version;
        inputs.push(json!({"name": key, "bucket": "texts", "key": key, "version": version}));
    }
    (inputs, counts)
}

async fn done_at_least(client: &Client, id: &str, count: u64) -> JobInfo {
    until("the job gets on", || async {
        let job = client.job(id).await.ok()?;
        assert_ne!(job.status, "error", "{job:?}");
        (job.tasks_done >= count || job.is_finished()).then_some(job)
    })
    .await
}

async fn result_of(client: &Client, id: &str) -> BTreeMap<String, u64> {
    let result = client.job_result(id).await.expect("a result");
    assert_eq!((result.status.as_str(), result.outputs.len()), ("done", 1), "{result:?}");
    let key = &result.outputs[0].key;
    let reader = client.get_object("jobs", key, &GetOptions::default()).await.expect("an output");
    let bytes = reader.collect().await.expect("all bytes");
    let line = |line: &str| {
        let (word, count) = line.split_once('\t').expect("a word and its count");
        (word.to_owned(), count.parse().expect("a number"))
    };
    String::from_utf8(bytes).expect("text").lines().map(line).collect()
}

// B4-9, B4-12, B4-26, B4-28, B4-57
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_9_b4_26_b4_57_workers_and_leaders_killed_through_a_job_leave_its_result_right() {
    let runs = std::env::var("IKADA_JOB_KILLS").ok().and_then(|text| text.parse().ok());
    let mut cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let (inputs, expected) = upload(&client).await;
    for run in 0..runs.unwrap_or(RUNS_DEFAULT) {
        let id = format!("count-{run}");
        let mut workers = ["a", "b"].map(|name| WorkerProcess::start(&cluster, &folder, name));
        let job: NewJob = serde_json::from_value(json!({
            "id": id, "ttl_ms": 2_000, "max_attempts": 20, "settings": {"pause-ms": "20"},
            "backoff": {"base_ms": 10, "cap_ms": 100},
            "map": {"program": "wordcount", "inputs": inputs},
            "reduce": {"program": "merge", "fan_in": 16}}))
        .expect("a job");
        let made = client.submit_job(&job).await.expect("taken");
        assert_eq!(made.tasks_total, u64::from(TEXTS) + 13 + 1);
        done_at_least(&client, &id, 30).await;
        workers[0].kill();
        done_at_least(&client, &id, 60).await;
        let leaders = cluster.settle().await;
        let busiest = *leaders.values().max().expect("a leader");
        cluster.kill(busiest);
        workers[0] = WorkerProcess::start(&cluster, &folder, "c");
        done_at_least(&client, &id, 100).await;
        workers[1].kill();
        cluster.launch(busiest);
        workers[1] = WorkerProcess::start(&cluster, &folder, "d");
        let ended = done_at_least(&client, &id, u64::MAX).await;
        assert_eq!(ended.status, "done", "{ended:?}");
        // B4-9: no worker is needed to read it.
        drop(workers);
        assert_eq!(result_of(&client, &id).await, expected, "run {run}");
        cluster.settle().await;
    }
    cluster.copies_become_equal().await;
}

// B4-27, B4-30, B4-33
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_6_b4_27_a_job_without_workers_halts_and_goes_on_with_the_next() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let job: NewJob = serde_json::from_value(json!({
        "id": "slow", "ttl_ms": 1_000, "settings": {"pause-ms": "200"},
        "backoff": {"base_ms": 10, "cap_ms": 100}, "max_attempts": 20,
        "map": {"program": "wordcount", "range": {"to": 60}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    assert_eq!(client.job("slow").await.expect("a job").status, "not_started");
    // Two workers, killed one after the other.
    let mut first = WorkerProcess::start(&cluster, &folder, "a");
    let mut second = WorkerProcess::start(&cluster, &folder, "b");
    done_at_least(&client, "slow", 4).await;
    first.kill();
    let alone = client.job("slow").await.expect("a job").tasks_done;
    done_at_least(&client, "slow", alone + 2).await;
    second.kill();
    let halted = until("the job halts", || async {
        client.job("slow").await.ok().filter(|job| job.status == "halted")
    })
    .await;
    assert!(halted.tasks_done < 60 && halted.tasks_total == 60, "{halted:?}");
    let listed = client.job_tasks("slow", None, None).await.expect("tasks").tasks;
    assert_eq!(listed.len(), 60, "it keeps its tasks");
    // One worker is enough; the two that are dead are told of.
    let third = WorkerProcess::start(&cluster, &folder, "c");
    assert_eq!(done_at_least(&client, "slow", u64::MAX).await.status, "done");
    let workers = until("the dead are known", || async {
        client.cluster().await.ok()?.workers.filter(|workers| workers.dead == 2)
    })
    .await;
    assert_eq!((workers.status.as_str(), workers.slots.total), ("degraded", 2));
    let job = NewJob { id: Some("stopped".to_owned()), ..job };
    client.submit_job(&job).await.expect("taken");
    done_at_least(&client, "stopped", 2).await;
    let cancelled = client.cancel_job("stopped").await.expect("cancelled");
    assert_eq!((cancelled.status.as_str(), cancelled.stages[0].claimed), ("cancelled", 0));
    // The slots are free for others at once.
    let next: NewJob = serde_json::from_value(json!({
        "id": "next", "map": {"program": "wordcount", "range": {"to": 3}, "settle": "any"}}))
    .expect("a job");
    client.submit_job(&next).await.expect("taken");
    assert_eq!(done_at_least(&client, "next", u64::MAX).await.status, "done");
    drop(third);
}

/// What a run of the command line came to: exit code, standard output, standard error.
pub fn cli(cluster: &Cluster, folder: &TempDir, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = ikada();
    command.current_dir(folder.path()).env("IKADA_URL", cluster.urls().join(",")).args(words);
    let ran = command.stdin(Stdio::null()).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

// B4-2, B4-29, B4-32, B4-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_2_the_command_line_runs_jobs_and_tells_mistakes_by_exit_code() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let worker = WorkerProcess::start(&cluster, &folder, "a");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("a.txt", "war and\npeace\n").expect("a file");
    write("b.txt", "War is not peace\n").expect("a file");
    let count = ["job", "run", "--map", "wordcount", "--input", "*.txt", "--reduce", "merge"];
    let (code, counted, said) = cli(&cluster, &folder, &count);
    assert_eq!(
        (code, counted.as_str()),
        (Some(0), "peace\t2\nwar\t2\nand\t1\nis\t1\nnot\t1\n"),
        "{said}"
    );
    let grep = ["job", "run", "--map", "grep", "--set", "pattern=peace", "--input", "a.txt"];
    let parts = ["--lines", "1", "--reduce", "merge"];
    let (code, found, said) = cli(&cluster, &folder, &[&grep[..], &parts[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(found.ends_with("-a.txt:1:peace\n") && found.lines().count() == 1, "{found}");
    let shuffle = "[[stages]]\nname = \"split\"\nprogram = \"wordcount\"\nfiles = [\"*.txt\"]\n\
        settings = { partitions = \"2\" }\n[[stages]]\nname = \"join\"\nprogram = \"merge\"\n\
        shuffle = { of = [\"split\"], partitions = 2 }\n";
    write("shuffle.toml", shuffle).expect("a file");
    let (code, _, said) = cli(&cluster, &folder, &["job", "submit", "shuffle.toml", "--wait"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = cli(&cluster, &folder, &["job", "result", "last", "--to", "parts"]);
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    // The job failed: 1. Usage: 2. Refused: 4.
    let none = ["job", "run", "--map", "wordcount", "--input", "*.csv"];
    let missing = ["job", "run", "--map", "wordcount", "--input", "c.txt"];
    let unknown = ["job", "run", "--map", "wrod", "--input", "*.txt"];
    for (words, wanted, named) in [
        (&grep[..3], 2, "--map"),
        (&["job", "run", "--map", "grep", "--input", "a.txt"][..], 1, "pattern"),
        (&none[..], 2, "*.csv"),
        (&missing[..], 2, "c.txt"),
        (&unknown[..], 4, "wrod"),
        (&["job", "show", "nothing"][..], 4, "nothing"),
    ] {
        let (code, _, said) = cli(&cluster, &folder, words);
        assert_eq!(code, Some(wanted), "{words:?}: {said}");
        assert!(said.contains(named), "{words:?}: {said}");
    }
    drop(worker);
}

/// Claims so many tasks and completes each with outputs of these names, all with the same few bytes.
async fn complete_with(client: &Client, tasks: usize, names: std::ops::Range<usize>) {
    let source = ObjectSource::Bytes("x".into());
    let stored = client.upload(&source, &PutOptions::default()).await.expect("an upload");
    let outputs: Vec<OutputItem> =
        names.map(|name| stored.clone().into_output(format!("{name:04}"))).collect();
    let mut left = tasks;
    while left > 0 {
        let ask =
            json!({"worker": "hand", "queues": ["default"], "count_max": left, "wait_ms": 5_000});
        let ask: ClaimRequest = serde_json::from_value(ask).expect("a request");
        for task in client.claim(&ask).await.expect("a claim").tasks {
            let item = json!({"id": task.id, "fence": task.fence, "outputs": outputs});
            let done = json!({"worker": "hand", "tasks": [item]});
            let done: CompleteRequest = serde_json::from_value(done).expect("a request");
            let answer = client.complete(&done).await.expect("an answer");
            assert_eq!(answer.tasks[0].problem, None);
            left -= 1;
        }
    }
}

// B4-8, B4-29: a result of many files is told and saved whole, page by page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_8_b4_29_a_result_of_more_files_than_a_page_is_saved_whole() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let job: NewJob = serde_json::from_value(json!({
        "id": "many", "map": {"program": "wordcount", "range": {"to": 2}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    complete_with(&client, 2, 0..600).await;
    assert_eq!(done_at_least(&client, "many", u64::MAX).await.status, "done");
    let (mut names, mut after, mut pages) = (std::collections::BTreeSet::new(), None, 0);
    loop {
        let page = client.job_result_after("many", after.as_deref()).await.expect("a page");
        pages += 1;
        names.extend(page.outputs.into_iter().map(|output| output.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((names.len(), pages), (1_200, 2));
    assert!(names.contains("many/map/0/0000") && names.contains("many/map/1/0599"));
    let (code, _, said) = cli(&cluster, &folder, &["job", "result", "many"]);
    assert!(code == Some(0) && said.contains("the first 1000 outputs"), "{code:?} {said}");
    let (code, _, said) = cli(&cluster, &folder, &["job", "result", "many", "--to", "files"]);
    assert_eq!(code, Some(0), "{said}");
    let saved = std::fs::read_dir(folder.path().join("files")).expect("a folder").count();
    assert_eq!(saved, 1_200);
    let wrong = client.job_result_after("many", Some("other/map/0/x")).await;
    let said = wrong.expect_err("not a place in this job").to_string();
    assert!(said.contains("the next of a page"), "{said}");
}

// B4-38, B4-40, B4-41: a job names code that lives in somebody's own workers as it names any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_38_b4_41_a_job_runs_a_function_of_somebodys_own_workers() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    for (name, text) in [("a.txt", "one two"), ("b.txt", "three")] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let run = ["job", "run", "--map", "shout", "--input", "*.txt", "--set", "mark=!"];
    let (code, _, said) = cli(&cluster, &folder, &run);
    assert!(code == Some(4) && said.contains("shout"), "{code:?} {said}");
    let (code, _, said) = cli(&cluster, &folder, &["program", "push", "--handler", "shout"]);
    assert_eq!(code, Some(0), "{said}");
    let own = client.clone();
    let worker = Worker::new(client.clone()).name("own").queue("default");
    let worker = worker.function("shout", move |task: Claimed| {
        let client = own.clone();
        async move {
            let name = task.input_names().concat();
            let text = task.read_input(&client, &name, 1 << 20).await?;
            let mark = task.setting("mark").unwrap_or_default().to_owned();
            let loud = String::from_utf8_lossy(&text).to_uppercase() + &mark;
            let source = ObjectSource::Bytes(loud.into());
            let stored = client.upload(&source, &PutOptions::default()).await?;
            let outputs = vec![stored.into_output("loud.txt")];
            Ok(TaskResult::from(json!({"bytes": text.len()})).with_outputs(outputs))
        }
    });
    let mut worker = worker.start().expect("a good worker");
    let (code, _, said) = cli(&cluster, &folder, &[&run[..], &["--to", "loud"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("loud").join(name));
    assert_eq!(read("map.0.loud.txt").expect("a file"), "ONE TWO!");
    assert_eq!(read("map.1.loud.txt").expect("a file"), "THREE!");
    worker.drain();
    assert_eq!(worker.wait().await.completed, 2);
}
