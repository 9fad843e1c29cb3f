//! `GET /healthz` (the process lives) and `GET /readyz` (it can serve).

use hyper::StatusCode;
use ikada_replica::DatabaseHealth;
use ikada_replica::status::NodeStatus;

use crate::http::answer::{Reply, Stop, text};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;

/// Says that the process lives, and nothing else (X19).
pub(in crate::http) fn health() -> Reply {
    text(StatusCode::OK, "text/plain", "ok\n")
}

pub(in crate::http) async fn ready<D: Door>(app: &App<D>) -> Result<Reply, Stop> {
    match reason_not_ready(&app.door.status().await) {
        None => Ok(text(StatusCode::OK, "text/plain", "ready\n")),
        Some(reason) => Err(problems::not_ready(reason).into()),
    }
}

/// Why the node cannot serve, if it cannot.
fn reason_not_ready(status: &NodeStatus) -> Option<String> {
    if status.stopping {
        return Some("the node is stopping".to_owned());
    }
    if status.shards.is_empty() {
        return Some("the node has no shards yet; it waits for its cluster".to_owned());
    }
    let named = |wanted: fn(&ikada_replica::status::ShardStatus) -> bool| {
        let found = status.shards.iter().filter(|shard| wanted(shard));
        let names: Vec<String> = found.map(|shard| shard.shard.to_string()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let database = status.database.and_then(|health| match health {
        DatabaseHealth::Well => None,
        DatabaseHealth::Away => Some("the database does not answer"),
        DatabaseHealth::Full => Some("the database has no room (database_full)"),
        DatabaseHealth::ReadOnly => Some("the database takes no writes (database_read_only)"),
    });
    if let Some(shards) = named(|shard| shard.leader.is_none()) {
        let why = database.map(|database| format!(": {database}")).unwrap_or_default();
        return Some(format!("no leader is known for shard {shards}{why}"));
    }
    // One question without an answer is no end of service while somebody leads.
    if let Some(why) = database.filter(|_| status.database != Some(DatabaseHealth::Away)) {
        return Some(format!("{why}; nothing can be written"));
    }
    named(|shard| shard.repairing)
        .map(|shards| format!("the log of shard {shards} is being fetched again from peers"))
}
