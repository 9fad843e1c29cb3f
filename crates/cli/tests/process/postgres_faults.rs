//! Real faults of a real Postgres under a cluster that keeps its logs there (F-39): it stalls, its clock is moved, an append
//! hangs in it past the lease, it is restored to an older dump, it stands behind a pooler, it is read-only, it is full.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, client};
use crate::fresh::{ikada, refusal};
use crate::full_disk::SmallDisk;
use crate::pooler::Pooler;
use crate::scenario::Scenario;
use crate::strait::Strait;
use crate::wait::until;
use crate::work::{Stream, check_all_there, write, write_all};

/// Seconds that a stall lasts: past the ttl of 5 s. `IKADA_TEST_STALL_S` for more.
fn stall() -> Duration {
    Duration::from_secs(number("IKADA_TEST_STALL_S", 8))
}

/// How often what is repeated is repeated; `IKADA_TEST_ROUNDS` for more.
fn rounds() -> u64 {
    number("IKADA_TEST_ROUNDS", 2)
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// P1: no entry of an older epoch after a newer one, and no gap.
fn check_epochs(cluster: &Cluster) {
    let database = cluster.database.as_ref().expect("a database");
    let steps = "SELECT index - lag(index) OVER of_shard AS step, epoch < lag(epoch) OVER of_shard AS falls FROM ikada_log
        WINDOW of_shard AS (PARTITION BY shard ORDER BY index)";
    let wrong = format!("SELECT count(*) FROM ({steps}) AS steps WHERE falls OR step <> 1");
    assert_eq!(database.sql(&wrong), "0", "P1");
}

/// What a node answers to a submission, without the client's retries.
async fn submit_raw(url: &str) -> String {
    raw(url, "POST /v1/tasks", "{}").await
}

async fn raw(url: &str, line: &str, body: &str) -> String {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nikada-timeout-ms: 1500\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.expect("an answer");
    String::from_utf8_lossy(&heard).into_owned()
}

/// Waits until all nodes refuse what they are given by this code, and are not ready for this reason.
async fn all_refuse(cluster: &Cluster, code: &str) {
    for url in cluster.urls() {
        until(code, || async {
            let refused = submit_raw(&url).await;
            let ready = raw(&url, "GET /readyz", "").await;
            let is_told = refused.starts_with("HTTP/1.1 503") && refused.contains(code);
            (is_told && ready.starts_with("HTTP/1.1 503") && ready.contains(code)).then_some(())
        })
        .await;
        let page = raw(&url, "GET /metrics", "").await;
        assert!(!page.contains("\nikada_database_state 0\n"), "{code} is in no number of {url}");
    }
}

/// The URLs of all nodes but one.
fn others(cluster: &Cluster, but: u64) -> Vec<String> {
    let nodes = cluster.nodes.iter().filter(|node| node.id != but);
    nodes.map(|node| node.url.clone()).collect()
}

/// Waits until somebody else than this node leads the first shard.
async fn another_leads(cluster: &Cluster, but: u64) {
    let urls = others(cluster, but);
    until("another takes the lease", || async {
        let seen = client(&urls).cluster().await.ok()?;
        let shard = seen.shards.iter().find(|shard| shard.shard == 0)?;
        shard.leader.filter(|leader| leader.0 != but)
    })
    .await;
}

/// All is well in the end.
async fn end_well(cluster: &Cluster, stream: Stream, mut scenario: Scenario) {
    stream.advance(30).await;
    scenario.gap(stream.silence_ms(scenario.began()));
    let acked = stream.stop().await;
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    check_epochs(cluster);
    scenario.end(cluster).await;
}

// LS-6, LS-14, F-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_14_f_39_a_database_that_stalls_has_no_leader_and_loses_nothing() {
    let Some(cluster) = Cluster::start_in_postgres(2).await else { return };
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 stall", &cluster).await;
    stream.advance(50).await;
    let database = cluster.database.as_ref().expect("a database");
    database.pause();
    tokio::time::sleep(stall()).await;
    for node in &cluster.nodes {
        let seen = client(std::slice::from_ref(&node.url)).node().await.expect("the node answers");
        assert!(seen.shards.iter().all(|part| part.role != "leader"), "node {} leads", node.id);
    }
    database.unpause();
    end_well(&cluster, stream, scenario).await;
}

// LS-9, P1, F-39: what the holder sends is held back on its way, and arrives after its lease was taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_9_f_39_an_append_that_arrives_after_its_lease_was_taken_is_refused_by_the_database() {
    let Some(mut cluster) = Cluster::prepare_in_postgres(1) else { return };
    let (url, port) = {
        let database = cluster.database.as_ref().expect("a database");
        (database.url(), database.port())
    };
    let mut straits = Vec::new();
    for id in 1..=3 {
        let strait = Strait::start(port, "INSERT INTO ikada_log").await;
        let way = url.replace(&format!(":{port}/"), &format!(":{}/", strait.port));
        cluster.log_urls.insert(id, way);
        straits.push(strait);
        cluster.launch(id);
    }
    cluster.settle().await;
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 late append", &cluster).await;
    for _ in 0..rounds() {
        stream.advance(30).await;
        let holder = cluster.settle().await[&0];
        let strait = &straits[holder as usize - 1];
        let late = strait.late();
        strait.hold();
        until("an append is on its way", || async { (strait.waiting() > late).then_some(()) })
            .await;
        // Somebody takes the lease and writes nothing: the append would still fit the end of the log.
        let database = cluster.database.as_ref().expect("a database");
        database.sql(
            "UPDATE ikada_lease SET holder = 99, life = 1, epoch = epoch + 1, expires_at = clock_timestamp() + interval '4 seconds'",
        );
        let end = "SELECT max(index) FROM ikada_log";
        let before = database.sql(end);
        strait.release();
        until("it has arrived", || async { (strait.late() > late).then_some(()) }).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(database.sql(end), before, "written under an epoch that is over");
        stream.advance(10).await;
        check_epochs(&cluster);
    }
    end_well(&cluster, stream, scenario).await;
}

// LS-8, P4, F-39. The database's clock is moved by a function of the same name that the role finds first: what the
// statements of the nodes see is an hour off, and everything else on this machine is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_8_f_39_a_database_clock_that_is_moved_costs_no_entry_and_no_hour() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 clock", &cluster).await;
    stream.advance(30).await;
    let database = cluster.database.as_ref().expect("a database");
    database.sql(
        "CREATE SCHEMA moved;
         CREATE TABLE moved.by (span interval NOT NULL);
         INSERT INTO moved.by VALUES ('0');
         CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS
             'SELECT pg_catalog.clock_timestamp() + span FROM moved.by';
         ALTER ROLE ikada SET search_path = moved, pg_catalog, public;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ikada'",
    );
    stream.advance(30).await;
    for span in ["1 hour", "-1 hour"] {
        let database = cluster.database.as_ref().expect("a database");
        database.sql(&format!("UPDATE moved.by SET span = '{span}'"));
        stream.advance(30).await;
        // Whoever dies now leaves a lease behind that was made by the new clock, or by the one before.
        let holder = cluster.settle().await[&0];
        cluster.kill(holder);
        database_forgets_nothing(&cluster, holder).await;
        cluster.launch(holder);
        cluster.settle().await;
    }
    // The worst: the holder dies, and then the clock goes back, so that its lease seems to last for an hour.
    let holder = cluster.settle().await[&0];
    cluster.kill(holder);
    let database = cluster.database.as_ref().expect("a database");
    database.sql("UPDATE moved.by SET span = '-2 hours'");
    database_forgets_nothing(&cluster, holder).await;
    cluster.launch(holder);
    end_well(&cluster, stream, scenario).await;
}

async fn database_forgets_nothing(cluster: &Cluster, dead: u64) {
    another_leads(cluster, dead).await;
    check_epochs(cluster);
}

// P2, F-39: restored under running nodes, and again while they are down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_2_f_39_nodes_halt_before_a_restored_dump_also_after_a_restart() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 older dump", &cluster).await;
    stream.advance(30).await;
    let database = cluster.database.as_ref().expect("a database");
    database.dump("older");
    stream.advance(100).await;
    let acked = stream.stop().await;
    // Every disk is told about once a second how far the log reaches.
    tokio::time::sleep(Duration::from_secs(2)).await;
    database.dump("newest");
    database.restore("older");
    let writer = cluster.client().with_timeout(Duration::from_secs(5));
    let late = tokio::spawn(async move { write(&writer, "late").await });
    for id in 1..=3 {
        let status = cluster.ended(id).await;
        assert!(!status.success(), "node {id} goes on with an older log");
        assert!(cluster.log(id).contains("restored to an older state"), "{}", cluster.log(id));
    }
    assert!(
        !late.await.expect("a writer"),
        "nothing may be acknowledged on a log that was set back"
    );
    for id in 1..=3 {
        let said = refusal(&mut cluster.command(id, ikada()));
        assert!(said.contains("restored to an older state"), "node {id}, started again: {said}");
    }
    // The newest dump has everything: the same nodes go on with it.
    cluster.database.as_ref().expect("a database").restore("newest");
    for id in 1..=3 {
        cluster.launch(id);
    }
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}

// P2, F-39: as after a failover to a standby that lacked the newest commits, and that was written to since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_2_f_39_commits_that_only_their_writer_knew_are_missed_though_others_wrote_in_their_place()
 {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let scenario = Scenario::begin("F-39 failover to a standby behind", &cluster).await;
    let before = write_all(&cluster.client(), "before", 10).await;
    check_all_there(&cluster.client(), &before).await;
    let holder = cluster.settle().await[&0];
    let away: Vec<u64> = (1..=3).filter(|id| *id != holder).collect();
    for id in &away {
        cluster.signal(*id, "STOP");
    }
    let database = cluster.database.as_ref().expect("a database");
    let end = || database.sql("SELECT max(index) FROM ikada_log").parse::<u64>().expect("a number");
    let fork = end();
    write_all(&client(&[cluster.node(holder).url.clone()]), "alone", 5).await;
    cluster.signal(holder, "STOP");
    let known = end();
    database.sql(&format!("DELETE FROM ikada_log WHERE index > {fork}"));
    database.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
    for id in &away {
        cluster.signal(*id, "CONT");
    }
    // Nobody can tell them: they go on, until the log is longer than the one that the holder knows.
    let going = client(&others(&cluster, holder)).with_timeout(Duration::from_secs(2));
    let mut number = 0;
    while end() <= known {
        number += 1;
        write(&going, &format!("instead-{number}")).await;
    }
    cluster.signal(holder, "CONT");
    for id in 1..=3 {
        let status = cluster.ended(id).await;
        assert!(!status.success(), "node {id} goes on");
        assert!(cluster.log(id).contains("restored to an older state"), "{}", cluster.log(id));
    }
    let database = cluster.database.as_ref().expect("a database");
    let mark = database.sql("SELECT missing_by FROM ikada_shard");
    assert_eq!(mark, holder.to_string(), "who knew more told the others");
    scenario.end(&cluster).await;
}

// F-39: no notices come through, and every statement may run on another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_39_a_pooler_in_transaction_mode_is_good_enough() {
    let Some(mut cluster) = Cluster::prepare_in_postgres(4) else { return };
    let Some(pooler) = Pooler::start(cluster.database.as_ref().expect("a database")) else {
        return;
    };
    cluster.log_urls = (1..=3).map(|id| (id, pooler.url())).collect();
    for id in 1..=3 {
        cluster.launch(id);
    }
    let holder = cluster.settle().await[&0];
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 pooler", &cluster).await;
    stream.advance(50).await;
    cluster.kill(holder);
    cluster.settle().await;
    stream.advance(50).await;
    cluster.launch(holder);
    end_well(&cluster, stream, scenario).await;
}

// LS-14: what cannot be written is not acknowledged, and all goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_14_a_database_that_becomes_read_only_is_waited_for() {
    let Some(cluster) = Cluster::start_in_postgres(1).await else { return };
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 read-only", &cluster).await;
    stream.advance(30).await;
    let database = cluster.database.as_ref().expect("a database");
    database.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    database.sql("SELECT pg_reload_conf()");
    let mut fresh = Cluster::prepare(1);
    fresh.database = None;
    // Its tables are not there yet, and cannot be made.
    let url = database.url();
    let (server, _) = url.rsplit_once('/').expect("a name behind the address");
    let said = refusal(fresh.command(1, ikada()).args(["--log", &format!("{server}/template1")]));
    assert!(said.contains("read-only"), "{said}");
    until("nobody leads", || async {
        let said: Vec<String> = (1..=3).map(|id| cluster.log(id)).collect();
        said.iter().any(|log| log.contains("read-only")).then_some(())
    })
    .await;
    let quick = cluster.client().with_timeout(Duration::from_secs(2));
    assert!(!write(&quick, "meanwhile").await, "acknowledged without being written");
    all_refuse(&cluster, "database_read_only").await;
    database.sql("ALTER SYSTEM RESET default_transaction_read_only");
    database.sql("SELECT pg_reload_conf()");
    end_well(&cluster, stream, scenario).await;
}

// LS-14: a database without room acknowledges nothing; with room again all goes on. Only the log's table is on the small disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_14_a_database_that_is_full_is_waited_for() {
    const DISK_MIB: u64 = 24;
    let Some(cluster) = Cluster::start_in_postgres(1).await else { return };
    let database = cluster.database.as_ref().expect("a database");
    let place = database.folder().join("small");
    let Some(disk) = SmallDisk::mount(&place, DISK_MIB) else { return };
    let owner = std::fs::metadata(database.folder()).expect("the folder");
    std::os::unix::fs::chown(&place, Some(owner.uid()), Some(owner.gid())).expect("its owner");
    database.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    database.sql("ALTER TABLE ikada_log SET TABLESPACE small");
    let stream = Stream::start(&cluster.urls());
    let scenario = Scenario::begin("F-39 full", &cluster).await;
    stream.advance(30).await;
    let ballast = place.join("ballast");
    // The database writes meanwhile, so that the last of it may not fit: it is full then, too.
    if let Err(error) = std::fs::write(&ballast, vec![0; disk.free_bytes() as usize]) {
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    }
    until("somebody says that there is no room", || async {
        let mut said = (1..=3).map(|id| cluster.log(id));
        said.any(|log| log.contains("No space left")).then_some(())
    })
    .await;
    let quick = cluster.client().with_timeout(Duration::from_secs(2));
    assert!(!write(&quick, "meanwhile").await, "acknowledged without being written");
    let leader = cluster.settle().await[&0];
    let refused = until("the leader says why", || async {
        Some(submit_raw(&cluster.node(leader).url).await)
            .filter(|told| told.contains("HTTP/1.1 503"))
    })
    .await;
    assert!(refused.contains("database_full"), "{refused}");
    std::fs::remove_file(&ballast).expect("room");
    end_well(&cluster, stream, scenario).await;
    drop(cluster);
    drop(disk);
}
