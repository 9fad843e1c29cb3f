//! `GET /v1/cluster`.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use ikada_api::v1::{
    ChangeView, ClusterView, ElectionsView, FollowerView, GrowthView, LoadView, MemberView, Number,
    ShardView, WorkerSummary,
};
use ikada_replica::call::{Answer, Request, Routing};
use ikada_replica::status::{NodeStatus, ShardStatus};

use crate::admission::{Admission, LoadFacts};
use crate::gossip::{Fact, ShardLag};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::workers::summarize;

/// How long the view of the cluster waits for word of its workers.
const WORKERS_PATIENCE: Duration = Duration::from_millis(200);

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    show_document(context, StatusCode::OK, &view(&app.door, &app.admission).await)
}

/// The cluster as this node sees it now.
pub(in crate::http) async fn view<D: Door>(door: &D, admission: &Admission) -> ClusterView {
    let status = door.status().await;
    let mut view = describe(&status);
    let facts = door.shelf().gossip().facts_with_ages(Instant::now());
    for shard in &mut view.shards {
        tell_followers(shard, view.answered_by, &facts);
    }
    for member in &mut view.members {
        let heard = facts.iter().map(|(fact, _)| fact).find(|fact| fact.node == member.node.0);
        member.load = match member.node == view.answered_by {
            // Newer than any gossip.
            true => Some(show_load(&admission.facts(), heard)),
            false => heard.map(|fact| show_load(&fact.load(), Some(fact))),
        };
    }
    if status.shards.first().is_some_and(|shard| shard.leader.is_some()) {
        view.workers = workers(door).await;
    }
    view
}

/// How far others are in a shard that another node leads, if it has said so in this term.
fn tell_followers(shard: &mut ShardView, own: Number, facts: &[(Fact, Duration)]) {
    let Some(leader) = shard.leader.filter(|leader| *leader != own) else { return };
    let Some((fact, age)) = facts.iter().find(|(fact, _)| fact.node == leader.0) else { return };
    let same = |lag: &&ShardLag| (lag.shard, lag.term) == (shard.shard, shard.term);
    let Some(lag) = fact.lags.iter().find(same) else { return };
    let follower = |(node, behind): &(u64, u64)| FollowerView {
        node: Number(*node),
        matched: lag.last_index.saturating_sub(*behind),
        behind: *behind,
    };
    shard.followers = lag.behind.iter().map(follower).collect();
    shard.followers_heard_ms_ago = Some(age.as_millis() as u64);
}

fn show_load(facts: &LoadFacts, heard: Option<&Fact>) -> LoadView {
    LoadView {
        cpu_percent: f32::from(facts.cpu) / 100.0,
        memory_percent: f32::from(facts.memory) / 100.0,
        admitted_last_minute: facts.admitted_last_minute,
        shed_last_minute: facts.shed_last_minute,
        cache_hit_percent: heard.map(|fact| f32::from(fact.cache_hit_permille) / 10.0),
    }
}

/// All workers, summed up, if the leader of shard 0 tells soon.
async fn workers<D: Door>(door: &D) -> Option<WorkerSummary> {
    match door.call(Request::Workers, WORKERS_PATIENCE, Routing::Forward).await {
        Answer::Workers { workers, .. } => Some(summarize(&workers)),
        _ => None,
    }
}

pub(super) fn describe(status: &NodeStatus) -> ClusterView {
    let roster = status.roster.as_ref();
    let members: Vec<MemberView> = status
        .members
        .iter()
        .map(|member| {
            let peer = status.peers.iter().find(|peer| peer.node == member.node);
            let leads =
                status.shards.iter().filter(|shard| shard.leader == Some(member.node)).count();
            MemberView {
                node: Number(member.node),
                peer_addr: member.peer_addr.clone(),
                client_addr: member.client_addr.clone(),
                connected: member.node == status.node || peer.is_some_and(|peer| peer.connected),
                heard_ms_ago: peer.and_then(|peer| peer.heard_ms_ago),
                leads: leads as u32,
                part: part(status, member.node).to_owned(),
                cordoned: roster.is_some_and(|roster| roster.is_cordoned(member.node)),
                priority: roster.and_then(|roster| roster.priority(member.node)).unwrap_or(0),
                load: None,
                level: match member.node == status.node {
                    true => Some(status.own_level),
                    false => peer.and_then(|peer| peer.level),
                },
            }
        })
        .collect();
    let led = !status.shards.is_empty() && status.shards.iter().all(|shard| shard.leader.is_some());
    let whole = members.iter().all(|member| member.connected);
    let word = match (led, whole) {
        (false, _) => "unavailable",
        (true, false) => "degraded",
        (true, true) => "healthy",
    };
    ClusterView {
        cluster: Number(status.cluster),
        answered_by: Number(status.node),
        status: word.to_owned(),
        level: status.level,
        elections: status.elections_ms.map(|(timeout_ms, heartbeat_ms)| ElectionsView {
            timeout_ms,
            timeout_ms_max: 2 * timeout_ms,
            heartbeat_ms,
            changed: roster.is_some_and(|roster| roster.election_ms.is_some()),
        }),
        members,
        change: show_change(status),
        shards: status.shards.iter().map(show_shard).collect(),
        workers: None,
        growth: status.growth.map(|growth| GrowthView {
            from: growth.from,
            to: growth.to,
            moved: growth.moved,
            slots: growth.slots,
            started_ms: growth.started_ms,
        }),
    }
}

/// What a member is, over all shards.
fn part(status: &NodeStatus, node: u64) -> &'static str {
    let change = status.roster.as_ref().and_then(|roster| roster.change);
    match change {
        Some(change) if change.add == Some(node) => "joining",
        Some(change) if change.remove == Some(node) => "leaving",
        _ => "voter",
    }
}

/// The change under way, as far as this node sees it.
pub(super) fn show_change(status: &NodeStatus) -> Option<ChangeView> {
    let change = status.roster.as_ref().and_then(|roster| roster.change)?;
    let is_voter = |shard: &ShardStatus, node| shard.voters.contains(&node);
    let is_member =
        |shard: &ShardStatus, node| is_voter(shard, node) || shard.learners.contains(&node);
    let came = |shard: &ShardStatus| change.add.is_none_or(|node| is_voter(shard, node));
    let went = |shard: &ShardStatus| change.remove.is_none_or(|node| !is_member(shard, node));
    let done = status.shards.iter().filter(|shard| !shard.joint && came(shard) && went(shard));
    let missing = |node: u64| status.shards.iter().any(|shard| !is_member(shard, node));
    let behind = |node: u64| status.shards.iter().any(|shard| !is_voter(shard, node));
    let stage = match (change.add, change.remove) {
        (Some(node), _) if missing(node) => format!("node {node} becomes a learner"),
        (Some(node), _) if behind(node) => format!("node {node} catches up"),
        (_, Some(node)) => format!("node {node} leaves"),
        _ => "settling".to_owned(),
    };
    Some(ChangeView {
        number: change.number,
        add: change.add.map(Number),
        remove: change.remove.map(Number),
        since_ms: change.since_ms,
        shards_done: done.count() as u16,
        shards: status.shards.len() as u16,
        stage,
    })
}

fn show_shard(shard: &ShardStatus) -> ShardView {
    ShardView {
        shard: shard.shard,
        leader: shard.leader.map(Number),
        term: shard.term,
        commit: shard.commit,
        voters: shard.voters.iter().copied().map(Number).collect(),
        learners: shard.learners.iter().copied().map(Number).collect(),
        joint: shard.joint,
        scheduled: shard.scheduled,
        ready: shard.ready,
        claimed: shard.claimed,
        finished: shard.finished,
        followers: shard
            .followers
            .iter()
            .map(|(node, matched)| FollowerView {
                node: Number(*node),
                matched: *matched,
                behind: shard.last_index.saturating_sub(*matched),
            })
            .collect(),
        followers_heard_ms_ago: None,
    }
}
