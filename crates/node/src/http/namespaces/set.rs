//! `PUT /v1/namespaces/{name}`. Answers with the namespace as it then is, once every shard works by the new quota.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use ikada_api::convert::{set_quota_order, show_namespace};
use ikada_api::v1::QuotaBody;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use super::show::pick;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::cluster::shard_map;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

/// Pause between two looks at whether all shards have the quota.
const SETTLE_PAUSE: Duration = Duration::from_millis(10);

pub(in crate::http) async fn set<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let quota: QuotaBody = read_document(context, body)?;
    let (shards, _) = shard_map(app, context).await?;
    let name = &context.names[0];
    let order =
        set_quota_order(name, &quota, shards).map_err(|error| problems::bad_field(&error))?;
    let namespace = order.namespace.clone();
    let item = Item { id: name.clone(), order: Ok(order) };
    let written = write(app, context, vec![item], None).await?;
    let (_, positions) = written.only()?;
    // If the caller's time is over first, 202 says that the quota is stored and on its way.
    let until = Instant::now() + context.timeout;
    loop {
        let query = Query::Namespaces { only_bounded: true };
        let read = Request::Read(query, Consistency::Linearizable);
        let answer = call(app, context, read, Routing::Forward).await?;
        let Answer::View { view: View::Namespaces(all), .. } = answer else {
            return Err(mismatch("set quota"));
        };
        let view = pick(&all, namespace.clone());
        if view.settled || Instant::now() >= until {
            app.quotas.learn(&all, Instant::now());
            let status = if view.settled { StatusCode::OK } else { StatusCode::ACCEPTED };
            let mut response = show_document(context, status, &show_namespace(&view))?;
            add_positions(&mut response, &positions);
            return Ok(response);
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
}
