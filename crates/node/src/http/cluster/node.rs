//! `GET /v1/nodes/self` (B4-52).

use hyper::StatusCode;
use ikada_api::v1::{NodeSelf, Number, PeerView, Position, ShardSelf};
use ikada_replica::status::{PeerStatus, ShardStatus};

use super::role_word;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) async fn node<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let status = app.door.status().await;
    let info = app.door.info();
    let document = NodeSelf {
        node: Number(info.node),
        name: info.name.clone(),
        cluster: Number(info.cluster),
        version: info.version.clone(),
        client_addr: info.client_addr.clone(),
        peer_addr: info.peer_addr.clone(),
        started_ms: info.started_wall_ms,
        clock_offset_ms: status.clock_offset_ms,
        calls_waiting: status.calls_waiting as u64,
        claims_parked: status.claims_parked as u64,
        stopping: status.stopping,
        database: status.database.map(|health| health.as_str().to_owned()),
        shards: status.shards.iter().map(show_shard).collect(),
        peers: status.peers.iter().map(show_peer).collect(),
    };
    show_document(context, StatusCode::OK, &document)
}

fn show_shard(shard: &ShardStatus) -> ShardSelf {
    ShardSelf {
        shard: shard.shard,
        role: role_word(shard.role).to_owned(),
        term: shard.term,
        leader: shard.leader.map(Number),
        voted_for: shard.voted_for.map(Number),
        commit: shard.commit,
        applied: Position { shard: shard.shard, lsn: shard.applied }.to_string(),
        log_time_ms: shard.log_time_ms,
        last_index: shard.last_index,
        start_index: shard.start_index,
        hash: format!("{:016x}", shard.hash),
        role_since_ms: shard.role_since_ms,
        repairing: shard.repairing,
    }
}

fn show_peer(peer: &PeerStatus) -> PeerView {
    PeerView {
        node: Number(peer.node),
        connected: peer.connected,
        heard_ms_ago: peer.heard_ms_ago,
        clock_offset_ms: peer.clock_offset_ms,
    }
}
