//! `GET /v1/cluster`.

use hyper::StatusCode;
use ikada_api::v1::{ClusterView, MemberView, Number, ShardView};
use ikada_replica::status::{NodeStatus, ShardStatus};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    show_document(context, StatusCode::OK, &describe(&app.door.status().await))
}

fn describe(status: &NodeStatus) -> ClusterView {
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
        members,
        shards: status.shards.iter().map(show_shard).collect(),
    }
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
    }
}
