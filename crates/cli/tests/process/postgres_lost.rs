//! What is lost and how it comes back, with logs in Postgres: a node's folder, the whole cluster, the newest part of the
//! database (F-30, F-31, F-39).

use std::process::Command;

use ikada_api::Client;
use ikada_api::v1::{ClaimRequest, Number};

use crate::backup::{bytes_of, get, put, run, run_refused};
use crate::cluster::Cluster;
use crate::fresh::{ikada, refusal};
use crate::wait::until;
use crate::work::{QUEUE, check_all_there, write_all};

const PHRASE: &str = "acknowledged work may be lost";

/// What the object holds that each of these clusters has.
fn held() -> Vec<u8> {
    bytes_of(7, 100_000)
}

/// Claims so many tasks; gives the highest fence.
async fn highest_fence(client: &Client, count_max: u32) -> u64 {
    let wish = ClaimRequest {
        holds: Vec::new(),
        worker: "w".to_owned(),
        session: Number(1),
        queues: vec![QUEUE.to_owned()],
        count_max,
        wait_ms: 10_000,
        labels: Default::default(),
    };
    let tasks = client.claim(&wish).await.expect("claimed").tasks;
    tasks.iter().map(|task| task.fence.0).max().expect("something to claim")
}

/// Files below a folder of a node.
fn files(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

// F-17 as it is where nothing that counts is in the folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_17_f_39_a_member_whose_folder_is_lost_takes_its_place_with_a_new_one() {
    let Some(mut cluster) = Cluster::start_in_postgres(2).await else { return };
    let acked = write_all(&cluster.client(), "before", 20).await;
    put(&cluster.client(), "held", &held()).await;
    until("node 2 has the bytes", || async {
        (files(&cluster.node(2).data.join("blob")) > 0).then_some(())
    })
    .await;
    cluster.kill(2);
    std::fs::remove_dir_all(&cluster.node(2).data).expect("lost");
    let said = refusal(&mut cluster.command(2, ikada()));
    assert!(said.contains("another data folder") && said.contains("--new-folder"), "{said}");
    // Somebody who was never a member has no folder to replace.
    let mut stranger = Cluster::prepare(4);
    stranger.database = None;
    let url = cluster.database.as_ref().expect("a database").url();
    let mut command = stranger.command(4, ikada());
    let said = refusal(command.args(["--log", &url, "--new-folder"]));
    assert!(said.contains("none of them"), "{said}");
    let rows =
        cluster.database.as_ref().expect("a database").sql("SELECT count(*) FROM ikada_node");
    assert_eq!(rows, "3", "a stranger leaves no trace");
    cluster.extra = vec!["--new-folder".to_owned()];
    cluster.launch(2);
    cluster.settle().await;
    let more = write_all(&cluster.client(), "after", 20).await;
    check_all_there(&cluster.client(), &acked.union(&more).cloned().collect()).await;
    cluster.copies_become_equal().await;
    until("the bytes are fetched again", || async {
        (files(&cluster.node(2).data.join("blob")) > 0).then_some(())
    })
    .await;
    // From now on it is a folder as any other.
    cluster.extra.clear();
    cluster.kill(2);
    cluster.launch(2);
    cluster.settle().await;
    cluster.copies_become_equal().await;
}

/// Turns the cluster's nodes to fresh folders and to a schema of its own in the same database.
fn turn_to(cluster: &mut Cluster, schema: &str) -> String {
    let database = cluster.database.as_ref().expect("a database");
    database.sql(&format!("CREATE SCHEMA {schema}"));
    let url = format!("{}?options=-csearch_path%3D{schema}", database.url());
    for node in &mut cluster.nodes {
        node.data = node.data.with_file_name(format!("{schema}-{}", node.id));
    }
    cluster.log_urls = (1..=3).map(|id| (id, url.clone())).collect();
    url
}

/// Names the nodes of the new cluster: the first with the folder to make, the others as members.
fn name_nodes(cluster: &Cluster, command: &mut Command, url: &str) {
    let client = |id: u64| cluster.node(id).url.trim_start_matches("http://").to_owned();
    command.args(["--log", url, "--node-id", "1", "--advertise", &client(1)]);
    command.args(["--peer-advertise", &cluster.node(1).peer]);
    for id in 2..=3 {
        command.arg("--member").arg(format!("{id}={},{}", cluster.node(id).peer, client(id)));
    }
}

/// Starts the nodes of a cluster that was just made: the first has a folder, the others begin with empty ones.
async fn start_made(cluster: &mut Cluster) {
    cluster.launch(1);
    cluster.extra = vec!["--new-folder".to_owned()];
    cluster.launch(2);
    cluster.launch(3);
    cluster.extra.clear();
    cluster.settle().await;
}

// F-31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_31_a_backup_is_restored_into_a_fresh_schema() {
    let Some(mut cluster) = Cluster::start_in_postgres(2).await else { return };
    let acked = write_all(&cluster.client(), "before", 20).await;
    put(&cluster.client(), "held", &held()).await;
    let before = highest_fence(&cluster.client(), 5).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("monday.ikada");
    let mut backup = ikada();
    backup.args(["cluster", "--url", &cluster.node(1).url, "backup"]).arg(&file);
    run(backup).await;
    for id in 1..=3 {
        cluster.kill(id);
    }
    let restore = |cluster: &Cluster, url: &str| {
        let mut command = ikada();
        command.args(["cluster", "restore"]).arg(&file).arg("--data").arg(&cluster.node(1).data);
        name_nodes(cluster, &mut command, url);
        command
    };
    let taken = cluster.database.as_ref().expect("a database").url();
    let url = turn_to(&mut cluster, "restored");
    let said = run_refused(restore(&cluster, &taken)).await;
    assert!(said.contains("holds a cluster already") && said.contains("search_path"), "{said}");
    assert!(!cluster.node(1).data.exists(), "nothing is made then");
    run(restore(&cluster, &url)).await;
    start_made(&mut cluster).await;
    check_all_there(&cluster.client(), &acked).await;
    assert_eq!(get(&cluster.client(), "held").await, held());
    assert_eq!(cluster.client().cluster().await.expect("seen").members.len(), 3);
    assert!(highest_fence(&cluster.client(), 5).await > before, "fences rise over the restore");
    cluster.copies_become_equal().await;
    // The last one alone has all that it needs to lead.
    cluster.kill(1);
    cluster.settle().await;
    let more = write_all(&cluster.client(), "after", 10).await;
    check_all_there(&cluster.client(), &acked.union(&more).cloned().collect()).await;
}

// F-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_39_an_older_database_becomes_a_new_cluster_when_the_loss_is_accepted() {
    let Some(mut cluster) = Cluster::start_in_postgres(2).await else { return };
    let kept = write_all(&cluster.client(), "kept", 20).await;
    put(&cluster.client(), "held", &held()).await;
    until("node 1 has the bytes", || async {
        (files(&cluster.node(1).data.join("blob")) > 0).then_some(())
    })
    .await;
    cluster.database.as_ref().expect("a database").dump("older");
    write_all(&cluster.client(), "lost", 20).await;
    let before = highest_fence(&cluster.client(), 30).await;
    for id in 1..=3 {
        cluster.kill(id);
    }
    cluster.database.as_ref().expect("a database").restore("older");
    let (old, from) =
        (cluster.node(1).data.clone(), cluster.database.as_ref().expect("a database").url());
    let url = turn_to(&mut cluster, "anew");
    let recover = |phrase: Option<&str>| {
        let mut command = ikada();
        command.args(["cluster", "recover", "--data"]).arg(&old);
        command.args(["--from-log", &from]).arg("--to").arg(&cluster.node(1).data);
        command.args(phrase.iter().flat_map(|phrase| ["--phrase", phrase]));
        name_nodes(&cluster, &mut command, &url);
        command
    };
    let said = run_refused(recover(None)).await;
    assert!(said.contains("--phrase"), "{said}");
    run(recover(Some(PHRASE))).await;
    start_made(&mut cluster).await;
    check_all_there(&cluster.client(), &kept).await;
    assert_eq!(get(&cluster.client(), "held").await, held());
    assert!(highest_fence(&cluster.client(), 5).await > before, "no fence is granted twice");
    cluster.copies_become_equal().await;
}

// P2, F-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_2_f_39_no_cluster_is_made_of_a_snapshot_and_a_log_of_two_histories() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    write_all(&cluster.client(), "kept", 20).await;
    for id in 1..=3 {
        cluster.kill(id);
    }
    let (old, from) =
        (cluster.node(1).data.clone(), cluster.database.as_ref().expect("a database").url());
    // What is made in a fresh schema begins with a snapshot.
    let url = turn_to(&mut cluster, "anew");
    let mut recover = ikada();
    recover.args(["cluster", "recover", "--data"]).arg(&old).args(["--from-log", &from]);
    recover.arg("--to").arg(&cluster.node(1).data).args(["--phrase", PHRASE]);
    name_nodes(&cluster, &mut recover, &url);
    run(recover).await;
    let look = || {
        let mut command = ikada();
        command.args(["cluster", "recover", "--data"]).arg(&old).args(["--from-log", &url]);
        command.arg("--to").arg(old.with_extension("made"));
        run_refused(command)
    };
    let said = look().await;
    assert!(said.contains("--phrase"), "as it was made it can be read: {said}");
    let database = cluster.database.as_ref().expect("a database");
    database.sql(
        "INSERT INTO anew.ikada_log (shard, index, epoch, chain, payload)
            SELECT shard, purged_index, 99, 1, '' FROM anew.ikada_shard",
    );
    let said = look().await;
    assert!(said.contains("two histories"), "{said}");
    database.sql("DELETE FROM anew.ikada_log");
    let said = look().await;
    assert!(said.contains("--phrase"), "a snapshot alone can be read: {said}");
    database.sql("UPDATE anew.ikada_shard SET purged_index = purged_index - 1");
    let said = look().await;
    assert!(said.contains("not of one moment"), "{said}");
}
