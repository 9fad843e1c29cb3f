//! Databases that a node cannot work with: each is refused at the start with a word on what to do.

use crate::cluster::Cluster;
use crate::fresh::{ikada, refusal};

/// What a fresh node says that is pointed at this URL.
fn told(url: &str) -> String {
    told_as(1, url)
}

fn told_as(id: u64, url: &str) -> String {
    let mut fresh = Cluster::prepare(id);
    fresh.database = None;
    refusal(fresh.command(id, ikada()).args(["--log", url]))
}

#[tokio::test]
async fn bad_urls_and_databases_are_told_at_the_start() {
    let Some(cluster) = Cluster::prepare_in_postgres(1) else { return };
    let server = cluster.database.as_ref().expect("a database");
    let url = server.url();
    for (url, word) in [
        ("mysql://ikada@127.0.0.1/x".to_owned(), "postgres://"),
        (url.replace("/postgres", "/nowhere"), "nowhere"),
        (url.replace("ikada@", "stranger@"), "stranger"),
        (format!("{url}?sslmode=prefer"), "sslmode"),
        (format!("{url}?sslmode=verify-full"), "TLS"),
    ] {
        let said = told(&url);
        assert!(said.contains(word), "{url}: {said}");
    }
}

#[tokio::test]
async fn missing_rights_are_told_with_what_to_grant() {
    let Some(cluster) = Cluster::prepare_in_postgres(1) else { return };
    let server = cluster.database.as_ref().expect("a database");
    server.sql("CREATE ROLE weak LOGIN");
    let said = told(&server.url().replace("ikada@", "weak@"));
    assert!(
        said.contains("permission denied") && said.contains("docs/guides/postgres.md"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_in_the_guide_are_enough() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    for id in 1..=3 {
        cluster.kill(id);
    }
    let server = cluster.database.as_ref().expect("a database");
    let guide = include_str!("../../../../docs/guides/postgres.md");
    let statements = guide.split("```sql").nth(1).and_then(|rest| rest.split("```").next());
    server.sql(
        &statements
            .expect("statements in the guide")
            .replace("ROLE ikada", "ROLE node")
            .replace("TO ikada", "TO node"),
    );
    let url = server.url().replace("ikada@", "node@");
    cluster.log_urls = (1..=3).map(|id| (id, url.clone())).collect();
    for id in 1..=3 {
        cluster.launch(id);
    }
    cluster.settle().await;
    crate::work::write_all(&cluster.client(), "granted", 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_versions_and_other_clusters_are_refused() {
    let Some(mut cluster) = Cluster::start_in_postgres(1).await else { return };
    let url = cluster.database.as_ref().expect("a database").url();
    // A second cluster on the same schema: its nodes are none of those that are entered there.
    let said = told(&url);
    assert!(said.contains("another data folder") && said.contains("--node-id"), "{said}");
    let said = told_as(4, &url);
    assert!(said.contains("none of them") && said.contains("another schema"), "{said}");
    let rows =
        cluster.database.as_ref().expect("a database").sql("SELECT count(*) FROM ikada_node");
    assert_eq!(rows, "3", "whoever is refused leaves no entry behind");
    for id in 1..=3 {
        cluster.kill(id);
    }
    let server = cluster.database.as_ref().expect("a database");
    server.sql("UPDATE ikada_cluster SET version = 7");
    let said = refusal(&mut cluster.command(1, ikada()));
    assert!(said.contains("schema version 7"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_this_mode_has_not_yet_is_refused_with_its_reason_and_leaves_nothing_begun() {
    let Some(cluster) = Cluster::start_in_postgres(2).await else { return };
    let mut remove = crate::fresh::ikada();
    remove.args(["cluster", "--url", &cluster.node(1).url, "remove", "3"]);
    let said = tokio::task::spawn_blocking(move || refusal(&mut remove)).await.expect("joined");
    assert!(said.contains("members_unsupported") && said.contains("in a database"), "{said}");
    let mut grow = crate::fresh::ikada();
    grow.args(["cluster", "--url", &cluster.node(1).url, "grow", "--shards", "4"]);
    let said = tokio::task::spawn_blocking(move || refusal(&mut grow)).await.expect("joined");
    assert!(said.contains("growth_unsupported"), "{said}");
    let seen = cluster.client().cluster().await.expect("seen");
    assert!(seen.change.is_none() && seen.growth.is_none(), "{seen:?}");
}
