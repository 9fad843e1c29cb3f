//! Addresses that users write, through every place that takes one, against listeners of the test's own (X13): nobody
//! connects, nothing outside of the allowed folder is read, and each is refused in clear words.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::{NewJob, NewTask, ScheduleBody, TaskStateName};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::{ikada, refusal};
use crate::programs::{WorkerProcess, push};
use crate::tricks::{FILES, OUTWARD};
use crate::wait::until;

/// What must not be read.
const CANARY: &str = "canary-of-addresses";

/// Words by which a refusal is clear: the address, and what is wrong with it.
const CLEAR: &[&str] =
    &["may not open", "file:/// only", "leads out", "No such file", "no plain file", "cannot be a"];

/// Listens on both kinds of loopback and counts who comes.
struct Ears {
    port: u16,
    heard: Arc<AtomicU64>,
}

impl Ears {
    fn open() -> Ears {
        let one = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = one.local_addr().expect("an address").port();
        let heard = Arc::new(AtomicU64::new(0));
        // Not every machine has the newer protocol, or this port free in it.
        for listener in [Some(one), TcpListener::bind(("::1", port)).ok()].into_iter().flatten() {
            let heard = heard.clone();
            std::thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    heard.fetch_add(1, Ordering::SeqCst);
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{CANARY}");
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
        }
        Ears { port, heard }
    }

    fn heard(&self) -> u64 {
        self.heard.load(Ordering::SeqCst)
    }
}

/// A folder `in` with links that lead out of it, and a canary beside it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["in", "inside"] {
        std::fs::create_dir(at(name)).expect("a folder");
    }
    for name in ["canary", "inside/canary"] {
        std::fs::write(at(name), CANARY).expect("a canary");
    }
    std::fs::write(at("in/good"), "good").expect("a file");
    symlink("../canary", at("in/link")).expect("a link");
    symlink("..", at("in/folder")).expect("a link");
    symlink(at("canary"), at("in/absolute")).expect("a link");
    symlink("/proc/self/root", at("in/magic")).expect("a link");
    folder
}

/// All tricks, with this port and this folder.
fn tricks(ears: &Ears, folder: &TempDir) -> Vec<String> {
    let inside = folder.path().join("in").display().to_string();
    let all = OUTWARD.iter().chain(FILES);
    all.map(|trick| trick.replace("PORT", &ears.port.to_string()).replace("IN", &inside)).collect()
}

/// A task that wants this address.
fn task(queue: &str, url: &str) -> serde_json::Value {
    json!({"queue": queue, "program": "take", "max_attempts": 1, "inputs": [{"name": "x", "url": url}]})
}

/// Sends every trick through tasks, follow-ups, jobs and a schedule.
async fn submit(client: &Client, tricks: &[String]) {
    for (number, url) in tricks.iter().enumerate() {
        let parent = json!({"queue": "then", "program": "quick", "then": [task("then", url)]});
        let tasks =
            [task("direct", url), parent].map(|one| serde_json::from_value(one).expect("one"));
        let answer = client.enqueue(tasks.to_vec()).await.expect("an answer");
        assert!(answer.tasks.iter().all(|one| one.problem.is_none()), "{url:?}: {answer:?}");
        let job: NewJob = serde_json::from_value(json!({"id": format!("job-{number}"),
            "queue": "job", "max_attempts": 1,
            "map": {"program": "take", "inputs": [{"name": "x", "url": url}]}}))
        .expect("a job");
        client.submit_job(&job).await.expect("taken");
        let task: NewTask = serde_json::from_value(task("schedule", url)).expect("a task");
        let body = ScheduleBody { every_ms: Some(1_000), task, ..ScheduleBody::default() };
        client.set_schedule("s", &body).await.expect("taken");
    }
}

/// The reasons of tasks of a queue that are dead; none of them is done, but those that only make others.
async fn reasons(client: &Client, queue: &str) -> Vec<String> {
    let mut query = TaskQuery {
        queue: Some(queue.to_owned()),
        state: Some(TaskStateName::Dead),
        limit: Some(500),
        ..TaskQuery::default()
    };
    let dead = client.tasks(&query).await.expect("a page").tasks;
    query.state = Some(TaskStateName::Done);
    let done = client.tasks(&query).await.expect("a page").tasks;
    let took =
        |task: &ikada_api::v1::Task| task.work.as_ref().is_some_and(|work| !work.inputs.is_empty());
    assert!(!done.iter().any(took), "an address was opened: {done:?}");
    dead.iter().map(|task| serde_json::to_string(task).expect("text")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_13_no_address_in_tasks_jobs_and_schedules_is_reached() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    let (client, folder, ears) = (cluster.client(), folder(), Ears::open());
    let tricks = tricks(&ears, &folder);
    push(&client, "take", "cp $IKADA_IN/x $IKADA_OUT/x").await;
    push(&client, "quick", "true").await;
    let allowed = format!("file://{}", folder.path().join("in").display());
    let mut more = vec!["--allow-url", &allowed, "--slots", "4"];
    more.extend(["direct", "then", "job", "schedule"].iter().flat_map(|queue| ["--queue", queue]));
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &more);
    // What is allowed works; otherwise all that follows would show nothing.
    let good = task("direct", &format!("{allowed}/good"));
    let good = client.enqueue(vec![serde_json::from_value(good).expect("a task")]).await;
    let id = good.expect("taken").tasks[0].id.clone();
    until("the allowed address is read", || async {
        client.task(&id).await.ok().filter(|task| task.state == TaskStateName::Done)
    })
    .await;
    client.drop_task(&id).await.expect("dropped");

    submit(&client, &tricks).await;
    for (queue, count) in [
        ("direct", tricks.len()),
        ("then", tricks.len()),
        ("job", tricks.len()),
        // The schedule has the last of them only.
        ("schedule", 1),
    ] {
        let reasons = until("every address is refused", || async {
            let reasons = reasons(&client, queue).await;
            (reasons.len() >= count).then_some(reasons)
        })
        .await;
        for reason in reasons {
            assert!(CLEAR.iter().any(|word| reason.contains(word)), "not clear: {reason}");
            assert!(!reason.contains(CANARY), "{reason}");
        }
    }
    drop(worker);
    assert_eq!(ears.heard(), 0, "somebody connected");
    TcpStream::connect(("127.0.0.1", ears.port)).expect("the ears are open");
    until("they hear", || async { (ears.heard() == 1).then_some(()) }).await;
}

#[test]
fn x_13_a_worker_takes_no_address_of_the_network_for_a_rule() {
    let (folder, ears) = (folder(), Ears::open());
    // What begins with file:/// is the operator's own business, and so is a bucket: whose store is asked for it is said by the
    // worker's environment, never by the address.
    let tricks = tricks(&ears, &folder);
    let buckets = ["s3://bucket/key", "gs://bucket/key", "az://bucket/key"];
    let own = |trick: &str| trick.starts_with("file:///") && !trick.contains("/../");
    let tricks = tricks.iter().filter(|trick| !own(trick) && !buckets.contains(&trick.as_str()));
    let mut count = 0;
    for trick in tricks.filter(|trick| !trick.contains('\0')) {
        for flag in ["--allow-url", "--allow-output-url"] {
            let said = refusal(ikada().arg("worker").arg(format!("{flag}={trick}")));
            assert!(said.contains("begin with file:///"), "{flag} {trick:?}: {said}");
            count += 1;
        }
    }
    assert!(count >= 80, "only {count} were tried");
    assert_eq!(ears.heard(), 0, "somebody connected");
}

/// Files of this name below a folder, through no link.
fn brought(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            brought(&entry.path(), found);
        } else if entry.file_name() == "brought" {
            found.push(entry.path().display().to_string());
        }
    }
}

// X13: what a program makes goes below the allowed folder, as new files, or nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_13_no_output_goes_to_an_address_that_is_not_allowed() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    cluster.level_is_raised().await;
    let (client, folder, work) = (cluster.client(), folder(), tempfile::tempdir().expect("one"));
    let (ears, inside) = (Ears::open(), folder.path().join("in"));
    push(&client, "bring", "echo x > $IKADA_OUT/brought").await;
    let allowed = format!("file://{}", inside.display());
    let more = ["--allow-output-url", allowed.as_str(), "--slots", "4"];
    let worker = WorkerProcess::start(&cluster, &work, "w1", &more);
    let mut jobs = Vec::new();
    let mut tricks = tricks(&ears, &folder);
    tricks.push(format!("{allowed}/new"));
    for (number, url) in tricks.iter().enumerate() {
        let job: NewJob = serde_json::from_value(json!({"id": format!("job-{number}"),
            "max_attempts": 1, "output_url": url, "map": {"program": "bring", "range": {"to": 1}}}))
        .expect("a job");
        // Most are no address at all, and refused as such.
        match client.submit_job(&job).await {
            Ok(_) => jobs.push((format!("job-{number}"), url)),
            Err(refused) => assert_eq!(refused.code(), Some("bad_url"), "{url:?}: {refused}"),
        }
    }
    let mut done = 0;
    for (id, url) in &jobs {
        let ended = until("the job has ended", || async {
            let result = client.job_result(id).await.ok()?;
            ["done", "error"].contains(&result.status.as_str()).then_some(result)
        })
        .await;
        let said = serde_json::to_string(&ended).expect("text");
        done += usize::from(ended.status == "done");
        assert!(ended.status != "done" || url.starts_with(&allowed), "{url}: {said}");
    }
    drop(worker);
    assert!(jobs.len() > 10 && done >= 3, "{done} of {} jobs went where they may", jobs.len());
    let mut found = Vec::new();
    brought(folder.path(), &mut found);
    assert!(found.len() >= done, "{found:?}");
    let root = format!("{}/", inside.display());
    assert!(found.iter().all(|path| path.starts_with(&root)), "{found:?}");
    for name in ["canary", "inside/canary"] {
        assert_eq!(std::fs::read_to_string(folder.path().join(name)).expect("a file"), CANARY);
    }
    assert_eq!(std::fs::read_to_string(inside.join("good")).expect("a file"), "good");
    assert_eq!(ears.heard(), 0, "somebody connected");
}

/// Sends lines to a node and gives its answer.
fn say(address: &str, lines: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(lines.as_bytes()).expect("sent");
    let mut answer = String::new();
    // A node may close before it has read everything.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_13_a_node_fetches_nothing_that_a_caller_names() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    let (ears, folder) = (Ears::open(), folder());
    let node = cluster.node(1).url.trim_start_matches("http://").to_owned();
    for trick in tricks(&ears, &folder).iter().filter(|trick| !trick.contains(['\r', '\0'])) {
        let end = "connection: close\r\ncontent-length: 0\r\n\r\n";
        // As a proxy would be asked, and in the headers that servers behind proxies believe.
        for lines in [
            format!("GET {trick} HTTP/1.1\r\nhost: {node}\r\n{end}"),
            format!("CONNECT {trick} HTTP/1.1\r\nhost: {node}\r\n{end}"),
            format!("GET /v1/tasks HTTP/1.1\r\nhost: {trick}\r\n{end}"),
            format!(
                "GET /v1/tasks HTTP/1.1\r\nhost: {node}\r\nreferer: {trick}\r\nx-forwarded-host: {trick}\r\nforwarded: host={trick}\r\nx-original-url: {trick}\r\n{end}"
            ),
            format!(
                "PUT /bucket/copy HTTP/1.1\r\nhost: {node}\r\nx-amz-copy-source: {trick}\r\n{end}"
            ),
        ] {
            let answer = say(&node, &lines);
            assert!(!answer.contains(CANARY), "{lines}: {answer}");
        }
    }
    assert_eq!(ears.heard(), 0, "the node connected");
    assert!(cluster.client().tasks(&TaskQuery::default()).await.is_ok(), "the node serves on");
}

#[test]
fn x_13_the_command_line_follows_no_server_elsewhere() {
    let ears = Ears::open();
    let sender = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", sender.local_addr().expect("an address"));
    let place = format!("http://127.0.0.1:{}/v1/tasks", ears.port);
    std::thread::spawn(move || {
        let statuses = ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"];
        for (mut stream, status) in sender.incoming().flatten().zip(statuses.iter().cycle()) {
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head);
            let answer = format!(
                "HTTP/1.1 {status}\r\nlocation: {place}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    for _ in 0..5 {
        let mut command = ikada();
        command.args(["task", "list", "--url", &url]).env("IKADA_TOKEN", "ikada_1_abcdefgh");
        refusal(&mut command);
    }
    assert_eq!(ears.heard(), 0, "the token went elsewhere");
}
