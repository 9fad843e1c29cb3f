//! `POST /v1/cluster/transfer` (MQ-29): one shard, or all.

use hyper::StatusCode;
use ikada_api::v1::{TransferOutcome, TransferRequest, TransferResult};
use ikada_replica::call::{Answer, Request};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn transfer<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let wish: TransferRequest = read_document(context, body)?;
    let from = wish.from.map(|node| node.0);
    context.subject.is(|| {
        let shard = wish.shard.map_or("all".to_owned(), |shard| shard.to_string());
        let node = |node: Option<u64>| node.map_or("any".to_owned(), |node| node.to_string());
        format!("shard={shard} from={} to={}", node(from), node(wish.to.map(|node| node.0)))
    });
    let leads = |leader: Option<u64>| from.is_none() || leader == from;
    if let Some(shard) = wish.shard.filter(|_| from.is_none()) {
        // A wish for one shard is answered as such: refused, redirected or accepted.
        let outcome = move_one(app, context, shard, &wish).await?;
        return show_document(context, StatusCode::OK, &TransferResult { shards: vec![outcome] });
    }
    let mut shards = Vec::new();
    for shard in app.door.status().await.shards {
        if !leads(shard.leader) || wish.shard.is_some_and(|wanted| wanted != shard.shard) {
            continue;
        }
        let outcome = match move_one(app, context, shard.shard, &wish).await {
            Ok(outcome) => outcome,
            Err(Stop::Problem(problem)) => {
                TransferOutcome { shard: shard.shard, accepted: false, problem: Some(problem) }
            }
            Err(redirect) => return Err(redirect),
        };
        shards.push(outcome);
    }
    show_document(context, StatusCode::OK, &TransferResult { shards })
}

async fn move_one<D: Door>(
    app: &App<D>,
    context: &Context,
    shard: u16,
    wish: &TransferRequest,
) -> Result<TransferOutcome, Stop> {
    let request = Request::Transfer { shard, to: wish.to.map(|node| node.0) };
    match call(app, context, request, context.routing).await? {
        Answer::Accepted => Ok(TransferOutcome { shard, accepted: true, problem: None }),
        _ => Err(mismatch("transfer")),
    }
}
