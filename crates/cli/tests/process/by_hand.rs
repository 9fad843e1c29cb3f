//! A worker made of commands: submit a file, claim, renew, complete and fail, all through the command line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::fresh::ikada;

/// A command about the cluster.
fn command(cluster: &Cluster, line: &str) -> Command {
    let mut command = ikada();
    command.env("IKADA_URL", cluster.urls().join(",")).args(line.split_whitespace());
    command
}

fn run(cluster: &Cluster, line: &str) -> Output {
    command(cluster, line).output().expect("the binary")
}

/// What a command that ends well prints.
fn said(cluster: &Cluster, line: &str) -> String {
    let output = run(cluster, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The exit code of a command and what it says about it.
fn refused(cluster: &Cluster, line: &str) -> (Option<i32>, String) {
    let output = run(cluster, line);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn submit(cluster: &Cluster, lines: &str) -> Output {
    let line = "task enqueue --file - --queue hand --idempotency-key f1 --output json";
    let mut command = command(cluster, line);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it");
    child.stdin.take().expect("stdin").write_all(lines.as_bytes()).expect("written");
    child.wait_with_output().expect("output")
}

/// The first task of the queue by hand: its id and fence.
fn claim(cluster: &Cluster) -> (String, String) {
    let taken = said(cluster, "task claim --queue hand --worker me --wait 10 --output quiet");
    let (id, fence) = taken.trim().split_once(' ').expect("an id and a fence");
    (id.to_owned(), fence.to_owned())
}

// TQ-15, TQ-18, TQ-19: claim, execute, renew, then complete or fail; each refusal has a code of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_15_a_task_is_worked_by_commands_alone() {
    let cluster = Cluster::start().await;
    // One bad line spoils no other, and the same file again changes nothing.
    let lines = "{\"id\": \"a\", \"payload\": 1}\n{\"prio\": 1}\n\n{\"id\": \"b\"}\n";
    for _ in 0..2 {
        let output = submit(&cluster, lines);
        assert_eq!(output.status.code(), Some(4), "a line was refused");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
        let outcomes: Vec<(&str, &str)> = answer["tasks"]
            .as_array()
            .expect("tasks")
            .iter()
            .map(|item| (item["id"].as_str().expect("id"), item["outcome"].as_str().expect("word")))
            .collect();
        assert_eq!(outcomes, [("a", "created"), ("line 2", "refused"), ("b", "created")]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("1 of 3 tasks were refused") && told.contains("line 2"), "{told}");
    }
    assert_eq!(said(&cluster, "task list --queue hand --output quiet").lines().count(), 2);
    // A claim can be renewed by its holder with its fence, and by nobody else.
    let (id, fence) = claim(&cluster);
    let renewed = said(&cluster, &format!("task renew {id} --fence {fence} --worker me"));
    assert!(renewed.contains("renewed") && !renewed.contains('\u{1b}'), "{renewed:?}");
    let cases = [
        (format!("task renew {id} --fence 999999 --worker me"), "stale_fence"),
        (format!("task renew {id} --fence {fence} --worker you"), "not_owner"),
        (format!("task renew nobody --fence {fence} --worker me"), "task_not_found"),
        (format!("task complete {id} --fence 999999 --worker me"), "stale_fence"),
    ];
    for (line, code) in cases {
        let (status, told) = refused(&cluster, &line);
        assert_eq!(status, Some(4), "{line}: {told}");
        assert!(told.contains(code) && told.lines().count() > 1, "a code and a next step: {told}");
    }
    let done = format!("task complete {id} --fence {fence} --worker me --result 7");
    assert!(said(&cluster, &done).contains("completed"));
    assert!(said(&cluster, &done).contains("completed"), "a repeat is answered as the first time");
    let (status, told) = refused(&cluster, &format!("task renew {id} --fence {fence} --worker me"));
    assert!(status == Some(4) && told.contains("task_finished"), "{told}");
    let shown: Value =
        serde_json::from_str(&said(&cluster, &format!("task show {id} -o json"))).expect("a task");
    assert_eq!((&shown["state"], &shown["result"]), (&"done".into(), &7.into()));
    // The other one fails for good.
    let (id, fence) = claim(&cluster);
    let failed = format!("task fail {id} --fence {fence} --worker me --error broken --give-up");
    assert!(said(&cluster, &failed).contains("dead"));
    assert_eq!(said(&cluster, "task claim --queue hand --output quiet"), "", "nothing is left");
    // `last` is the newest.
    said(&cluster, "task enqueue --queue hand --id newest");
    assert_eq!(said(&cluster, "task show last --output quiet"), "newest\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bench_measures_the_cluster_that_it_is_told_of() {
    let cluster = Cluster::start().await;
    let url = cluster.urls().join(",");
    // Named on the command line it is measured, and its tasks are there afterwards.
    let mut bench = ikada();
    bench.args([
        "bench", "queue", "--url", &url, "--only", "enqueue", "--tasks", "100", "-o", "json",
    ]);
    let output = bench.output().expect("the bench");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let queues: Value =
        serde_json::from_str(&said(&cluster, "queue list -o json")).expect("queues");
    let submitted: u64 = queues["queues"]
        .as_array()
        .expect("queues")
        .iter()
        .map(|queue| queue["counts"]["submitted_total"].as_u64().expect("a count"))
        .sum();
    assert!(submitted >= 100, "{submitted}");
    // What would start a cluster of its own says so instead of passing the address over.
    for line in ["bench startup", "bench failover", "bench queue --secure"] {
        let mut bench = ikada();
        let output =
            bench.args(line.split_whitespace()).args(["--url", &url]).output().expect("it");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {told}");
        assert!(told.contains("leave --url out"), "{line}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_followed_is_shown_again_and_again() {
    let cluster = Cluster::start().await;
    said(&cluster, "task enqueue --queue hand");
    for (line, word) in
        [("queue list -f --output quiet", "hand"), ("cluster status --follow -o quiet", "healthy")]
    {
        let mut child = command(&cluster, line).stdout(Stdio::piped()).spawn().expect("it");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let seen: Vec<String> = lines.take(3).map(|line| line.expect("a line")).collect();
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(seen, [word, word, word], "{line}");
    }
}
