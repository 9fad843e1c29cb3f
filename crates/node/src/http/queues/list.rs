//! `GET /v1/queues`.

use ikada_api::v1::QueuePage;
use ikada_replica::call::{Query, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let seen = read(app, context, Query::Queues(context.namespace.clone())).await?;
    match &seen.view {
        View::Queues(queues) => {
            let page =
                QueuePage { queues: queues.iter().map(|queue| describe(app, queue)).collect() };
            show_view(context, &seen, &page)
        }
        _ => Err(mismatch("list queues")),
    }
}
