//! `POST /v1/requests/{id}/void`: rules a request out in every shard, then tells what became of it.

use std::time::{Duration, Instant};

use ikada_api::state::{Command, Order, Reply as StateReply, ShardId, Void};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing};

use super::show::{asked, show_fate};
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::cluster::shard_map;
use crate::http::dispatch::{call, call_within, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// Pause before shards that could not be told are tried again.
const PAUSE: Duration = Duration::from_millis(50);

pub(in crate::http) async fn void<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let (request, item) = asked(context)?;
    let (mut shards, _) = shard_map(app, context).await?;
    let mut open: Vec<ShardId> = (0..shards).collect();
    let until = Instant::now() + context.timeout;
    while !open.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Some shards may refuse it by now; voiding again is safe and tells.
            return Err(problems::unknown(None).into());
        }
        let order = |shard: &ShardId| Order {
            namespace: context.namespace.clone(),
            request: None,
            command: Command::Void(Void { shard: *shard, request: request.clone() }),
        };
        let write = Request::Write(open.iter().map(order).collect());
        let answer = call_within(app, context, write, Routing::Forward, left).await?;
        let Answer::Written(outcomes) = answer else {
            return Err(mismatch("void request"));
        };
        let asked = std::mem::take(&mut open);
        for (shard, outcome) in asked.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Reply { reply: StateReply::Voided, .. } => {}
                Outcome::Reply { reply: StateReply::Refused { code }, .. } => {
                    return Err(problems::refusal(code).into());
                }
                Outcome::Reply { .. } => return Err(mismatch("void request")),
                Outcome::Unknown | Outcome::Unavailable(_) => open.push(shard),
            }
        }
        if !open.is_empty() {
            tokio::time::sleep(PAUSE.min(left)).await;
            continue;
        }
        // Shards that were added meanwhile: what moves to later ones brings the tombstone along.
        let (now, _) = shard_map(app, context).await?;
        open.extend(shards..now);
        shards = now;
    }
    // Every shard has the tombstone: whatever this read shows is final.
    let query = Query::Request(context.namespace.clone(), request, item);
    let read = Request::Read(query, Consistency::Linearizable);
    show_fate(context, item, call(app, context, read, Routing::Forward).await?)
}
