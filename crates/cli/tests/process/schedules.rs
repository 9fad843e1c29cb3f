//! A schedule through leader kills, each instant exactly once (Q12); and lists of many.

use std::collections::BTreeSet;

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::{MissedPolicy, NewTask, ScheduleBody, SchedulePage};

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::scenario::Scenario;
use crate::wait::until;

const QUEUE: &str = "beats";
const EVERY_MS: u64 = 1_000;
/// Leaders killed, unless `IKADA_SCHEDULE_KILLS` says otherwise (100, which takes about ten minutes, in `cargo xtask scenarios --long`).
const KILLS: u64 = 5;

fn kills() -> u64 {
    let wanted = std::env::var("IKADA_SCHEDULE_KILLS").ok();
    wanted.map_or(KILLS, |wanted| wanted.parse().expect("a number of kills"))
}

/// Ids of all tasks of the queue, each as often as it is listed.
async fn listed(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    let mut query =
        TaskQuery { queue: Some(QUEUE.to_owned()), limit: Some(500), ..TaskQuery::default() };
    loop {
        let page = client.tasks(&query).await.expect("a page");
        ids.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn ls_17_each_instant_is_kept_once_through_leader_kills() {
    let mut cluster = Cluster::start().await;
    let scenario = Scenario::begin("LS-17 kills", &cluster).await;
    each_instant_is_kept_once(&mut cluster, kills()).await;
    scenario.end(&cluster).await;
}

// LS-17: what a schedule misses is never missed in silence, also by a holder that died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_17_each_instant_is_kept_once_although_holders_die_with_logs_in_postgres() {
    let Some(mut cluster) = Cluster::start_in_postgres(2).await else { return };
    each_instant_is_kept_once(&mut cluster, 1).await;
}

async fn each_instant_is_kept_once(cluster: &mut Cluster, kills: u64) {
    let task = NewTask { queue: Some(QUEUE.to_owned()), ..NewTask::default() };
    let body = ScheduleBody {
        every_ms: Some(EVERY_MS),
        missed: Some(MissedPolicy::All),
        task,
        ..ScheduleBody::default()
    };
    let made = cluster.client().set_schedule("beat", &body).await.expect("a schedule");
    let anchor_ms = made.anchor_ms.expect("an anchor");
    for _ in 0..kills {
        let leader = cluster.settle().await[&0];
        let client = cluster.client();
        let before = client.schedule("beat").await.expect("a schedule").fired_total;
        until("the schedule fires", || async {
            let fired = client.schedule("beat").await.ok()?.fired_total;
            (fired > before).then_some(())
        })
        .await;
        cluster.kill(leader);
        cluster.settle().await;
        cluster.launch(leader);
    }
    cluster.settle().await;
    let client = cluster.client();
    let ended = client.pause_schedule("beat").await.expect("a schedule");
    let last_ms = ended.last_ms.expect("it fired");
    let expected = (last_ms - anchor_ms) / EVERY_MS;
    assert!(expected >= kills, "{expected}");
    assert_eq!((ended.fired_total, ended.missed_total), (expected, 0));
    // The last one may still be on its way to its shard.
    let ids = until("all tasks have arrived", || async {
        let ids = listed(&client).await;
        (ids.len() as u64 >= expected).then_some(ids)
    })
    .await;
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len() as u64, distinct.len() as u64), (expected, expected), "{ids:?}");
    let submitted = client.queue(QUEUE).await.expect("the queue").counts.submitted_total;
    assert_eq!(submitted, expected, "a task was created twice");
    cluster.copies_become_equal().await;
}

// X7: the list comes in pages of a hundred; the command follows them and prints one document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_7_the_command_lists_more_schedules_than_a_page_holds() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let body =
        ScheduleBody { every_ms: Some(3_600_000), paused: Some(true), ..ScheduleBody::default() };
    let names: Vec<String> = (0..101).map(|number| format!("beat-{number:03}")).collect();
    for name in &names {
        client.set_schedule(name, &body).await.expect("a schedule");
    }
    let first = client.schedules(None).await.expect("a page");
    assert_eq!((first.schedules.len(), first.next.as_deref()), (100, Some("beat-099")));
    let list = |form: &str| {
        let mut command = ikada();
        command.args(["schedule", "list", "--output", form]);
        command.env("IKADA_URL", cluster.urls().join(","));
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(list("quiet").lines().collect::<Vec<_>>(), names);
    let document: SchedulePage = serde_json::from_str(&list("json")).expect("one document");
    assert_eq!((document.schedules.len(), document.next), (101, None));
}
