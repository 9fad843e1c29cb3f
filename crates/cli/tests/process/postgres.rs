//! Clusters whose logs live in Postgres: holders killed, stopped, paused; the database restarted and set back (LS, F-39).

use ikada_store::postgres::{AppendOutcome, Holder, Target};

use crate::cluster::{Cluster, client};
use crate::fresh::refusal;
use crate::scenario::Scenario;
use crate::server::Server;
use crate::wait::until;
use crate::work::{Stream, check_all_there};

// LS-1, LS-7, LS-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_a_killed_holder_is_followed_and_nothing_acknowledged_is_lost() {
    let Some(mut cluster) = Cluster::start_in_postgres(4).await else { return };
    cluster.everyone_leads().await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(50).await;
    let before = cluster.settle().await;
    cluster.kill(before[&0]);
    // Writes to its shards wait for the lease to run out; nobody is told a falsehood meanwhile.
    let after = cluster.settle().await;
    for (shard, leader) in &before {
        if *leader != before[&0] {
            assert_eq!(after[shard], *leader, "killing one moves its shards only");
        }
    }
    stream.advance(50).await;
    cluster.launch(before[&0]);
    cluster.settle().await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

// LS-7, LS-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_10_a_holder_that_is_asked_to_stop_gives_its_leases_back() {
    let Some(mut cluster) = Cluster::start_in_postgres(4).await else { return };
    let stream = Stream::start(&cluster.urls());
    stream.advance(30).await;
    let leaders = cluster.settle().await;
    let holder = leaders[&0];
    cluster.signal(holder, "TERM");
    let status = cluster.ended(holder).await;
    assert!(status.success(), "{status}");
    assert!(cluster.log(holder).contains("leadership transferred"), "it gave them back");
    let after = cluster.settle().await;
    assert!(after.values().all(|leader| *leader != holder));
    stream.advance(30).await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
}

// LS-9, F-39: what it would append next, as the process that it was, the database refuses; and it does not try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_9_a_holder_paused_past_its_lease_writes_nothing_afterwards() {
    let Some(cluster) = Cluster::start_in_postgres(2).await else { return };
    let stream = Stream::start(&cluster.urls());
    let mut scenario = Scenario::begin("F-39 pause", &cluster).await;
    stream.advance(30).await;
    let holder = cluster.settle().await[&0];
    let database = cluster.database.as_ref().expect("a database");
    let row = database.sql("SELECT holder, life, epoch FROM ikada_lease WHERE shard = 0");
    let row: Vec<u64> = row.split('|').filter_map(|number| number.parse().ok()).collect();
    assert_eq!((row.len(), row[0]), (3, holder));
    cluster.signal(holder, "STOP");
    let others: Vec<String> = cluster
        .nodes
        .iter()
        .filter(|node| node.id != holder)
        .map(|node| node.url.clone())
        .collect();
    until("another takes the lease", || async {
        let seen = client(&others).cluster().await.ok()?;
        let shard = seen.shards.iter().find(|shard| shard.shard == 0)?;
        shard.leader.filter(|leader| leader.0 != holder)
    })
    .await;
    append_is_refused(database, Holder { node: row[0], life: row[1] }, row[2]).await;
    cluster.signal(holder, "CONT");
    stream.advance(50).await;
    cluster.settle().await;
    let falls = "SELECT count(*) FROM (SELECT epoch < lag(epoch) OVER (PARTITION BY shard ORDER BY index) AS falls FROM ikada_log) AS steps WHERE falls";
    assert_eq!(database.sql(falls), "0", "P1: no entry of an older epoch after a newer one");
    scenario.gap(stream.silence_ms(scenario.began()));
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}

/// The very statement that this holder would send, at the end of the log as it is.
async fn append_is_refused(database: &Server, holder: Holder, epoch: u64) {
    let connection = Target::parse(&database.url()).expect("a URL").connect().await;
    let connection = connection.expect("connected");
    let entry = [bytes::Bytes::from_static(b"too late")];
    // The new holder writes meanwhile: only an append at the very end is refused for the epoch's sake.
    let refused = until("the append meets the end of the log", || async {
        let tail = connection.read_entries(0, holder, u64::MAX >> 1, 1).await.expect("read");
        let next = tail.last_index + 1;
        let before = connection.read_entries(0, holder, next, 0).await.expect("read").before;
        let place = (next, before.map_or(0, |(_, chain)| chain));
        let outcome = connection.append_entries(0, holder, epoch, place, &entry).await;
        let outcome = outcome.expect("answered");
        (outcome != AppendOutcome::Conflict).then_some(outcome)
    })
    .await;
    assert_eq!(refused, AppendOutcome::Deposed);
}

// LS-14, F-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_14_a_database_that_restarts_loses_nothing() {
    let Some(mut cluster) = Cluster::start_in_postgres(2).await else { return };
    let stream = Stream::start(&cluster.urls());
    let mut scenario = Scenario::begin("F-39 restart", &cluster).await;
    for _ in 0..2 {
        stream.advance(50).await;
        let database = cluster.database.as_mut().expect("a database");
        database.stop();
        database.resume();
        stream.advance(50).await;
    }
    scenario.gap(stream.silence_ms(scenario.began()));
    let acked = stream.stop().await;
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}

// P2, F-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_2_a_database_set_back_stops_the_nodes_with_a_clear_word() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let stream = Stream::start(&cluster.urls());
    stream.advance(60).await;
    let _ = stream.stop().await;
    let database = cluster.database.as_ref().expect("a database");
    // As a restored dump would be: the log ends earlier than what was read from it.
    database.sql("DELETE FROM ikada_log WHERE index > 10");
    // Followers notice by themselves, the holder when it writes next.
    let writer = cluster.client().with_timeout(std::time::Duration::from_secs(5));
    let writing = tokio::spawn(async move { crate::work::write_all(&writer, "late", 1).await });
    for id in 1..=3 {
        let status = cluster.ended(id).await;
        assert!(!status.success(), "node {id} goes on with a log that was set back");
        assert!(cluster.log(id).contains("restored to an older state"), "{}", cluster.log(id));
    }
    assert!(writing.await.is_err(), "nothing may be acknowledged on a log that was set back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_remembers_where_its_logs_are() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    for id in 1..=3 {
        cluster.kill(id);
    }
    let database = cluster.database.take();
    let said = refusal(&mut cluster.command(1, crate::fresh::ikada()));
    assert!(said.contains("in a database") && said.contains("without --log"), "{said}");
    // What it holds beside them is older than what was acknowledged: no cluster is made of that.
    let mut recover = crate::fresh::ikada();
    recover.args(["cluster", "recover", "--data"]).arg(&cluster.node(1).data);
    recover.arg("--to").arg(cluster.node(1).data.with_extension("made"));
    let said = refusal(recover.args(["--phrase", "acknowledged work may be lost"]));
    assert!(said.contains("in a database") && said.contains("backup"), "{said}");
    cluster.database = database;
    let database = cluster.database.as_ref().expect("a database");
    database.sql("UPDATE ikada_cluster SET plan = NULL");
    let said = refusal(&mut cluster.command(1, crate::fresh::ikada()));
    assert!(said.contains("holds none"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_stored_before_the_log_is_purged() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let behind = cluster.settle().await[&0] % 3 + 1;
    cluster.kill(behind);
    let client = client(&cluster.urls());
    let heavy = "x".repeat(900_000);
    let database = cluster.database.as_ref().expect("a database");
    let mut count = 0;
    until("the log is purged", || {
        count += 1;
        let task = ikada_api::v1::NewTask {
            id: Some(format!("heavy-{count}")),
            queue: Some("heavy".to_owned()),
            payload: serde_json::value::to_raw_value(&heavy).ok(),
            ..Default::default()
        };
        let client = &client;
        async move {
            client.enqueue(vec![task]).await.expect("acknowledged");
            let purged = database.sql("SELECT purged_index FROM ikada_shard");
            (purged != "1").then_some(())
        }
    })
    .await;
    assert_ne!(database.sql("SELECT count(*) FROM ikada_snapshot WHERE part = -1"), "0");
    // The one that was away has nothing of the purged log: it takes the stored snapshot.
    cluster.launch(behind);
    cluster.settle().await;
    cluster.copies_become_equal().await;
}
