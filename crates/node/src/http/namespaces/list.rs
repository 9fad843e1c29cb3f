//! `GET /v1/namespaces`.

use ikada_api::convert::show_namespace;
use ikada_api::v1::NamespacePage;
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let seen = read(app, context, Query::Namespaces { only_bounded: false }).await?;
    match &seen.view {
        View::Namespaces(all) => {
            let namespaces = all.iter().map(show_namespace).collect();
            show_view(context, &seen, &NamespacePage { namespaces })
        }
        _ => Err(mismatch("list namespaces")),
    }
}
