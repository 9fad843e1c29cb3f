//! `POST /v1/cluster/growth` (TQ-29): more shards, while the cluster works.

use hyper::StatusCode;
use ikada_api::convert::FieldError;
use ikada_api::state::limits::SHARDS_MAX;
use ikada_api::state::{RefusalCode, Reply as StateReply, RequestKey, ShardId};
use ikada_api::v1::{GrowAnswer, GrowRequest};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn grow<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let GrowRequest { shards } = read_document(context, body)?;
    context.subject.is(|| format!("shards={shards}"));
    let id = context.key.clone().unwrap_or_else(|| app.door.fresh_request_id());
    let key = RequestKey { id: id.clone(), item: 0 };
    let wish = Request::Grow { shards, request: Some(key) };
    let Answer::Written(outcomes) = call(app, context, wish, context.routing).await? else {
        return Err(mismatch("grow"));
    };
    match outcomes.into_iter().next() {
        Some(Outcome::Reply { reply: StateReply::Growing { shards, slots }, shard, lsn }) => {
            let answer = GrowAnswer { shards, slots, request: id.to_string() };
            let mut response = show_document(context, StatusCode::ACCEPTED, &answer)?;
            add_positions(&mut response, &[(shard, lsn)]);
            Ok(response)
        }
        Some(Outcome::Reply { reply: StateReply::Refused { code }, .. }) => {
            Err(refused(app, code, shards).await)
        }
        Some(Outcome::Unavailable(reason)) => Err(problems::unavailable(&reason).into()),
        Some(Outcome::Unknown) => Err(problems::unknown(Some(id.as_str())).into()),
        _ => Err(mismatch("grow")),
    }
}

/// A refusal in words that name the numbers.
async fn refused<D: Door>(app: &App<D>, code: RefusalCode, shards: u16) -> Stop {
    if code != RefusalCode::BadShardCount {
        return problems::refusal(code).into();
    }
    let present = app.door.status().await.shard_count;
    let detail = match shards > SHARDS_MAX {
        true => format!("{shards} shards are more than the {SHARDS_MAX} that a cluster can have"),
        false => format!(
            "the cluster has {present} shards; ask for more than that, as shards cannot be merged"
        ),
    };
    let mut problem = problems::bad_field(&FieldError::bad_value("shards", detail));
    problem.code = code.as_str().into();
    problem.into()
}

/// Number of shards and version of the map of slots, as of now.
pub(in crate::http) async fn shard_map<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<(ShardId, u64), Stop> {
    let read = Request::Read(Query::Shards, Consistency::Linearizable);
    match call(app, context, read, Routing::Forward).await? {
        Answer::View { view: View::Shards { shards, map_version, .. }, .. } => {
            Ok((shards, map_version))
        }
        _ => Err(mismatch("number of shards")),
    }
}
