//! Renewals that get lost, and what workers are given, with logs in a real Postgres (LS-4, LS-5, LS-13, LS-18).

use std::collections::BTreeMap;
use std::time::Duration;

use ikada_api::v1::{ClaimRequest, NewTask, Number};

use crate::cluster::{Cluster, client};
use crate::strait::Strait;
use crate::wait::until;
use crate::work::{Stream, check_all_there};

/// How often the test of lost renewals may meet a machine that stands still for seconds.
const TRIES: u32 = 4;
/// Longer than the patience with one renewal, so that it is given up; with what came before still shorter than a lease.
const HELD: Duration = Duration::from_millis(1_800);

/// A cluster of one shard whose nodes reach the database by ways that can be held up.
async fn start_behind_straits(word: &'static str) -> Option<(Cluster, Vec<Strait>)> {
    let mut cluster = Cluster::prepare_in_postgres(1)?;
    let (url, port) = {
        let database = cluster.database.as_ref().expect("a database");
        (database.url(), database.port())
    };
    let mut straits = Vec::new();
    for id in 1..=3 {
        let strait = Strait::start(port, word).await;
        let way = url.replace(&format!(":{port}/"), &format!(":{}/", strait.port));
        cluster.log_urls.insert(id, way);
        straits.push(strait);
        cluster.launch(id);
    }
    cluster.settle().await;
    Some((cluster, straits))
}

fn lease(cluster: &Cluster) -> (u64, u64) {
    let database = cluster.database.as_ref().expect("a database");
    let row = database.sql(
        "SELECT epoch, greatest(0, extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint FROM ikada_lease",
    );
    let numbers: Vec<u64> = row.split('|').filter_map(|number| number.parse().ok()).collect();
    (numbers[0], numbers[1])
}

// LS-4, LS-13: a lease of 5 s, renewed so early that one lost renewal costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_4_ls_13_a_lost_renewal_does_not_cost_the_lease() {
    let Some((cluster, straits)) = start_behind_straits("UPDATE ikada_lease").await else { return };
    let stream = Stream::start(&cluster.urls());
    let database = cluster.database.as_ref().expect("a database");
    let until_when = || database.sql("SELECT expires_at FROM ikada_lease");
    for round in 1.. {
        stream.advance(10).await;
        let holder = cluster.settle().await[&0];
        // The connection for renewals is opened by the first of them.
        let taken = until_when();
        until("the lease is renewed", || async { (until_when() != taken).then_some(()) }).await;
        let (before, remaining_ms) = lease(&cluster);
        assert!(remaining_ms <= 5_000, "LS-4: {remaining_ms} ms are left");
        let strait = &straits[holder as usize - 1];
        strait.hold();
        let waiting = strait.waiting();
        until("a renewal is swallowed", || async { (strait.waiting() > waiting).then_some(()) })
            .await;
        tokio::time::sleep(HELD).await;
        strait.release();
        stream.advance(10).await;
        if lease(&cluster).0 == before {
            break;
        }
        assert!(round < TRIES, "every lost renewal cost the lease");
    }
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
}

// LS-5, LS-6: whoever cannot renew has stopped by itself before another leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_5_ls_6_a_holder_without_its_database_has_stopped_when_another_leads() {
    let Some((cluster, straits)) = start_behind_straits("UPDATE ikada_lease").await else { return };
    let stream = Stream::start(&cluster.urls());
    stream.advance(20).await;
    let holder = cluster.settle().await[&0];
    straits[holder as usize - 1].hold();
    let others: Vec<String> = cluster
        .nodes
        .iter()
        .filter(|node| node.id != holder)
        .map(|node| node.url.clone())
        .collect();
    until("another leads", || async {
        for url in &others {
            let seen = client(std::slice::from_ref(url)).node().await.ok()?;
            if seen.shards.iter().any(|part| part.role == "leader") {
                return Some(());
            }
        }
        None
    })
    .await;
    let old = client(std::slice::from_ref(&cluster.node(holder).url)).node().await;
    let old = old.expect("it answers");
    assert!(old.shards.iter().all(|part| part.role != "leader"), "two lead: {old:?}");
    straits[holder as usize - 1].release();
    stream.advance(20).await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

// LS-18: heavy in one way or another, or near the data: each task goes to who bears its labels.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_18_tasks_go_to_workers_that_bear_their_labels() {
    let Some(cluster) = Cluster::start_in_postgres(4).await else { return };
    let client = cluster.client();
    let label = |value: &str| BTreeMap::from([("fit".to_owned(), value.to_owned())]);
    let task = |kind: &str, number: u32| NewTask {
        id: Some(format!("{kind}-{number}")),
        queue: Some("mixed".to_owned()),
        labels: label(kind),
        ..NewTask::default()
    };
    let both = (0..6).flat_map(|number| [task("cpu", number), task("memory", number)]);
    client.enqueue(both.collect()).await.expect("acknowledged");
    for kind in ["memory", "cpu"] {
        let wish = ClaimRequest {
            holds: Vec::new(),
            worker: kind.to_owned(),
            session: Number(1),
            queues: vec!["mixed".to_owned()],
            count_max: 50,
            wait_ms: 0,
            labels: label(kind),
        };
        let mut handed = Vec::new();
        until("all of its kind are handed out", || {
            let (client, wish) = (&client, &wish);
            async move { client.claim(wish).await.ok() }
        })
        .await
        .tasks
        .into_iter()
        .for_each(|task| handed.push(task.id));
        while handed.len() < 6 {
            let more = client.claim(&wish).await.expect("claimed").tasks;
            handed.extend(more.into_iter().map(|task| task.id));
        }
        assert!(handed.iter().all(|id| id.starts_with(kind)), "{kind} was handed {handed:?}");
        assert_eq!(handed.len(), 6);
    }
}
