//! Keys for other servers, which nodes and workers are given by their environment: of object stores, of a collector of traces.
//! They are told nowhere (X6), and programs, which run beside them, do not see them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions};
use ikada_api::v1::{NewJob, NewTask, TaskStateName};
use serde_json::json;

use crate::cluster::Cluster;
use crate::fresh::{ikada, ports};
use crate::programs::push;
use crate::secrets::{first_token, make, secret_of, with_file};
use crate::told::Secrets;
use crate::wait::until;

/// A program that looks for what it should not see.
const LOOK: &str = "env; cat /proc/*/environ /proc/*/cmdline; echo looked";

/// A worker's environment: keys that the store at this door does not take.
fn with_keys(secrets: &mut Secrets, command: &mut Command, door: &str) {
    for (kind, name, value) in [
        ("a worker's key of S3", "AWS_SECRET_ACCESS_KEY", "key-of-a-worker-0123456789abcdef"),
        ("a worker's session", "AWS_SESSION_TOKEN", "session-of-a-worker-0123456789"),
        ("a worker's key of Azure", "AZURE_STORAGE_KEY", "a2V5LW9mLWEtd29ya2VyLTAxMjM0NTY3ODk="),
    ] {
        secrets.add(kind, value.trim_end_matches('='));
        command.env(name, value);
    }
    command.env("AWS_ACCESS_KEY_ID", "nobody").env("AWS_REGION", "here");
    command.env("AWS_ENDPOINT_URL", format!("http://{door}"));
    command.env("AZURE_STORAGE_ACCOUNT", "acc");
    command.env("AZURE_STORAGE_ENDPOINT", format!("http://{door}/acc"));
}

/// Tasks that read from stores, one that looks around, and a job that writes to a store.
async fn submit(client: &Client) {
    push(client, "look", LOOK).await;
    let task = |id: &str, more: serde_json::Value| {
        let mut task = json!({"id": id, "queue": "q", "program": "wordcount", "max_attempts": 1});
        for (name, value) in more.as_object().expect("fields") {
            task[name] = value.clone();
        }
        serde_json::from_value::<NewTask>(task).expect("a task")
    };
    let reads = |url: &str| json!({"inputs": [{"name": "a", "url": url}]});
    let tasks = vec![
        task("amazon", reads("s3://vault/x")),
        task("azure", reads("az://vault/x")),
        task("around", json!({"program": "look"})),
    ];
    let answer = client.enqueue(tasks).await.expect("taken");
    assert!(answer.tasks.iter().all(|one| one.problem.is_none()), "{answer:?}");
    let job = json!({"id": "writes", "queue": "q", "max_attempts": 1, "output_url": "s3://vault/out",
        "map": {"program": "wordcount", "inputs": [{"name": "a", "text": "a b"}]}});
    let job: NewJob = serde_json::from_value(job).expect("a job");
    until("the job is taken", || async { client.submit_job(&job).await.ok() }).await;
}

/// Waits until all have ended as they must, so that the keys were used.
async fn ended(client: &Client) {
    for id in ["amazon", "azure"] {
        let dead = until("the key was not taken", || async {
            client.task(id).await.ok().filter(|task| task.state == TaskStateName::Dead)
        })
        .await;
        let reason = serde_json::to_string(&dead).expect("text");
        let met_it = reason.contains("://vault/x: ") && !reason.contains("this worker");
        assert!(met_it, "{id} failed at the store: {reason}");
    }
    until("the program has looked", || async {
        client.task("around").await.ok().filter(|task| task.state == TaskStateName::Done)
    })
    .await;
    let job = until("the job has failed", || async {
        client.job_result("writes").await.ok().filter(|job| job.status == "error")
    })
    .await;
    let reason = serde_json::to_string(&job).expect("text");
    assert!(reason.contains("s3://vault/out/"), "it failed at the store: {reason}");
}

/// Everything that anybody can ask for about them.
fn look_at_all(secrets: &mut Secrets, cluster: &Cluster, admin: &Path) {
    let asked: [&[&str]; 8] = [
        &["task", "show", "amazon", "-o=json"],
        &["task", "show", "azure"],
        &["task", "explain", "amazon"],
        &["task", "list", "-o=json"],
        &["job", "show", "writes", "-o=json"],
        &["job", "result", "writes"],
        &["worker-pool", "list", "-o=json"],
        &["cluster", "status", "-o=json"],
    ];
    for words in asked {
        secrets.run(&mut with_file(cluster, admin, words), false);
    }
    let log = secrets.run(&mut with_file(cluster, admin, &["task", "logs", "around"]), false);
    assert!(log.contains("IKADA_TASK_ID") && log.contains("looked"), "it saw something: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_6_keys_for_other_servers_are_told_nowhere() {
    let (mut secrets, mut cluster) = (Secrets::default(), Cluster::prepare(1));
    let (work, doors) = (tempfile::tempdir().expect("a folder"), ports(2));
    let collector = "header-of-a-collector-0123456789";
    secrets.add("a header for a collector", collector);
    let mut program = ikada();
    program.env("IKADA_AUTH", "true").env("IKADA_LOG", "debug").env("IKADA_S3_LISTEN", &doors[0]);
    // Nobody listens there: what could not be sent is told.
    program.env("IKADA_OTLP", format!("http://{}", doors[1]));
    program.env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-api-key={collector}"));
    cluster.launch_by(1, program);
    let admin = first_token(&cluster).await;
    secrets.add("the first admin token", secret_of(&admin));
    let file = cluster.node(1).data.join("admin-token");
    let options =
        ClientOptions { token: AccessToken::parse(&admin).ok(), ..ClientOptions::default() };
    let client = Client::with(cluster.urls(), options).expect("urls");

    let token = work.path().join("token");
    fs::write(&token, make(&mut secrets, &cluster, "worker")).expect("a file");
    // Else the worker would not start: its commands could read it.
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("rights");
    let log = fs::File::create(work.path().join("worker.log")).expect("a log");
    let mut command = with_file(&cluster, &token, &["worker", "--queue", "q"]);
    command.args(["--until-stdin-closes", "--allow-command", "/bin/sh"]);
    command.args(["--allow-url", "s3://vault", "--allow-url", "az://vault"]);
    command.args(["--allow-output-url", "s3://vault"]);
    command.arg("--work-dir").arg(work.path().join("work")).env("IKADA_LOG", "debug");
    with_keys(&mut secrets, &mut command, &doors[0]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    let mut worker = command.spawn().expect("starts");
    submit(&client).await;
    ended(&client).await;

    // A process that crashes leaves no picture of its memory behind.
    for process in [cluster.process(1), worker.id()] {
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).expect("it lives");
        let cores = limits.lines().find(|line| line.starts_with("Max core file size"));
        let words: Vec<&str> = cores.expect("a limit").split_whitespace().collect();
        assert_eq!(words[4..6], ["0", "0"], "{limits}");
    }
    look_at_all(&mut secrets, &cluster, &file);
    let node = cluster.node(1).url.trim_start_matches("http://").to_owned();
    secrets.look_at_routes(&node, Some(admin.trim()));
    secrets.look_at_processes();
    until("the collector was tried", || async {
        cluster.log(1).contains("the collector of traces takes no spans").then_some(())
    })
    .await;
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    cluster.signal(1, "TERM");
    assert!(cluster.ended(1).await.success());
    fs::remove_file(&token).expect("the one place where it belongs");
    secrets.look_at_files(cluster.node(1).data.parent().expect("a folder"));
    secrets.look_at_files(work.path());
    secrets.assert_untold(6);
}
