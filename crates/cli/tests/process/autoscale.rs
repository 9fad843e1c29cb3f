//! The autoscaler over real processes: a program of the operator's is told, and every node tells what was decided; workers are
//! started and drained, and those of others stay.

use std::os::unix::fs::PermissionsExt;

use ikada_api::Client;
use ikada_api::v1::{NewTask, ScalingPage, TaskStateName, WorkerInfo, WorkerStateName};
use serde_json::json;

use crate::cluster::{Cluster, client};
use crate::jobs::WorkerProcess;
use crate::wait::until;

/// What a node tells, once it tells of something.
async fn told(url: &str) -> ScalingPage {
    let client = client(&[url.to_owned()]);
    until("a node tells of decisions", || async {
        client.scaling().await.ok().filter(|page| !page.decisions.is_empty())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_23_every_node_tells_what_was_decided_and_why_also_when_the_leader_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hook, heard) = (folder.path().join("hook"), folder.path().join("heard"));
    let script = format!("#!/bin/sh\necho \"$1 $2\" >> {}\n", heard.display());
    std::fs::write(&hook, script).expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("rights");
    let mut cluster = Cluster::prepare(3);
    cluster.shards = 1;
    let flags =
        ["--autoscale", "exec", "--autoscale-min", "2", "--autoscale-cooldown-ms", "600000"];
    cluster.extra.extend(flags.map(str::to_owned));
    cluster.extra.extend(["--autoscale-command".to_owned(), hook.display().to_string()]);
    (1..=3).for_each(|id| cluster.launch(id));
    let leader = cluster.settle().await[&0];
    for url in cluster.urls() {
        let page = told(&url).await;
        let first = &page.decisions[0];
        assert_eq!((first.from, first.to, &first.error), (0, 2, &None), "{first:?}");
        assert!(first.reason.contains("fewer than the least"), "{first:?}");
        assert!(first.node.is_some(), "{first:?}");
    }
    let lines = std::fs::read_to_string(&heard).expect("the hook was called");
    assert_eq!(lines.lines().next(), Some("2 0"));
    cluster.kill(leader);
    for id in (1..=3).filter(|id| *id != leader) {
        let page = told(&cluster.node(id).url.clone()).await;
        assert_eq!((page.decisions[0].from, page.decisions[0].to), (0, 2), "{page:?}");
    }
}

/// Workers that bear the autoscaler's label, and the others.
async fn own_and_others(client: &Client) -> (Vec<WorkerInfo>, Vec<WorkerInfo>) {
    let workers = client.workers().await.expect("told").workers;
    let own = |worker: &WorkerInfo| {
        worker.labels.get("ikada.autoscaled").is_some_and(|value| value == "true")
    };
    workers.into_iter().partition(own)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_23_workers_come_for_the_work_and_go_and_those_of_others_stay() {
    let mut cluster = Cluster::prepare(1);
    cluster.shards = 1;
    let flags = "--autoscale process --autoscale-max 1 --autoscale-queue busy --autoscale-target-ms 1 --autoscale-cooldown-ms 1000";
    cluster.extra.extend(flags.split(' ').map(str::to_owned));
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("own");
    let arguments = format!("--isolation best --work-dir {}", place.display());
    cluster.extra.extend(["--autoscale-worker-args".to_owned(), arguments]);
    cluster.launch(1);
    cluster.settle().await;
    let client = cluster.client();
    // Somebody else's, idle all the time: it has the least to do.
    let _theirs = WorkerProcess::start(&cluster, &folder, "theirs");
    until("theirs is listed", || async {
        (!own_and_others(&client).await.1.is_empty()).then_some(())
    })
    .await;
    let task = json!({"id": "one", "queue": "busy", "program": "wordcount",
        "inputs": [{"name": "a", "text": "war and peace"}]});
    let task: NewTask = serde_json::from_value(task).expect("a task");
    client.enqueue_as("one", vec![task]).await.expect("taken");
    until("a worker comes and does it", || async {
        client.task("one").await.ok().filter(|task| task.state == TaskStateName::Done)
    })
    .await;
    until("it is drained, and gone", || async {
        own_and_others(&client).await.0.is_empty().then_some(())
    })
    .await;
    let page = told(&cluster.node(1).url).await;
    assert!(page.decisions.iter().any(|one| one.to < one.from), "{page:?}");
    let (_, others) = own_and_others(&client).await;
    assert_eq!(others.len(), 1, "{others:?}");
    assert_eq!((&*others[0].id, others[0].state), ("theirs", WorkerStateName::Alive), "{others:?}");
}
