//! `GET /v1/cluster/autoscale`: what the autoscaler did lately, and why; every node tells of all.

use hyper::StatusCode;

use crate::autoscale::{recall, show};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) async fn autoscale<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    // Where the cluster cannot be asked, this node tells what it knows itself.
    let decisions = match recall(&app.door).await {
        Some(decisions) => decisions,
        None => app.door.scaling(),
    };
    show_document(context, StatusCode::OK, &show(decisions))
}
