//! Growth over real processes: under load, with a killed leader, over restarts (TQ-29).

use std::collections::BTreeSet;

use ikada_api::client::Error;
use ikada_api::v1::{
    ClaimRequest, ClaimedTask, ClusterView, CompleteItem, CompleteRequest, GrowRequest,
    OutcomeKind, RenewItem, RenewRequest,
};

use crate::cluster::{Cluster, is_passed_over};
use crate::wait::until;
use crate::work::{Stream, check_all_there, write, write_all};

const SHARDS: u16 = 5;

fn wish() -> ClaimRequest {
    let body =
        r#"{"worker": "w", "session": "1", "queues": ["work"], "count_max": 40, "wait_ms": 2000}"#;
    serde_json::from_str(body).expect("a claim")
}

async fn claim_some(cluster: &Cluster) -> Vec<ClaimedTask> {
    let (client, mut held) = (cluster.client(), Vec::new());
    while held.len() < 60 {
        held.extend(client.claim(&wish()).await.expect("a claim").tasks);
    }
    held
}

/// What the cluster says, once it says something else than before.
async fn growing(cluster: &Cluster, seen: impl Fn(&ClusterView) -> bool) -> ClusterView {
    let client = cluster.client();
    until("the growth goes on", || async {
        let view = client.cluster().await.ok()?;
        seen(&view).then_some(view)
    })
    .await
}

fn is_over(view: &ClusterView) -> bool {
    view.growth.is_none() && view.shards.len() == usize::from(SHARDS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_29_growth_under_load_with_a_killed_leader_loses_nothing() {
    if is_passed_over("shards are not added yet where they live in a database") {
        return;
    }
    let mut cluster = Cluster::start_with(2).await;
    let mut acked = write_all(&cluster.client(), "before", 200).await;
    let held = claim_some(&cluster).await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(50).await;
    let client = cluster.client();
    let begun = client.grow(&GrowRequest { shards: SHARDS }).await.expect("it grows");
    assert_eq!((begun.shards, begun.slots), (SHARDS, 2457));
    match client.grow(&GrowRequest { shards: 6 }).await {
        Err(Error::Refused(problem)) => assert_eq!(problem.code, "growth_running"),
        other => panic!("a second growth: {other:?}"),
    }
    // Whoever leads shard 0 chooses the slots: it dies in the middle.
    let moved = |view: &ClusterView| view.growth.as_ref().map_or(0, |growth| growth.moved);
    growing(&cluster, |view| moved(view) > 20 || is_over(view)).await;
    let leader = cluster.settle().await[&0];
    cluster.kill(leader);
    growing(&cluster, |view| moved(view) > 200 || is_over(view)).await;
    cluster.launch(leader);
    growing(&cluster, is_over).await;
    stream.advance(50).await;
    acked.extend(stream.stop().await);
    cluster.settle().await;
    let client = cluster.client();
    check_all_there(&client, &acked).await;
    // Claims are still their worker's, by their first fences.
    let item =
        |task: &ClaimedTask| RenewItem { id: task.id.clone(), fence: task.fence, progress: None };
    let tasks = held.iter().map(item).collect();
    let list = RenewRequest { worker: "w".to_owned(), session: None, tasks };
    let renewed = client.renew(&list).await.expect("a renewal");
    assert!(renewed.tasks.iter().all(|item| item.outcome == OutcomeKind::Renewed));
    let item = |task: &ClaimedTask| CompleteItem {
        id: task.id.clone(),
        fence: task.fence,
        result: None,
        result_base64: None,
        then: Vec::new(),
        outputs: Vec::new(),
        result_bytes: None,
    };
    let tasks = held.iter().map(item).collect();
    let report = CompleteRequest { worker: "w".to_owned(), tasks, claim: None };
    let completed = client.complete(&report).await.expect("a report");
    assert!(completed.tasks.iter().all(|item| item.outcome == OutcomeKind::Completed));
    // Every resend gets its first reply.
    for id in acked.iter().step_by(7) {
        assert!(write(&client, id).await, "{id} was not answered as the first time");
    }
    check_restart(&mut cluster, &acked).await;
}

/// All nodes die at once, and come back with all shards.
async fn check_restart(cluster: &mut Cluster, acked: &BTreeSet<String>) {
    for id in 1..=3 {
        cluster.kill(id);
    }
    for id in 1..=3 {
        cluster.launch(id);
    }
    let leaders = cluster.settle().await;
    assert_eq!(leaders.len(), usize::from(SHARDS));
    let client = cluster.client();
    check_all_there(&client, acked).await;
    for id in acked.iter().step_by(11) {
        assert!(write(&client, id).await, "{id} was not answered as the first time");
    }
    cluster.copies_become_equal().await;
}
