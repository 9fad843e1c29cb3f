//! `GET /v1/cluster/autoscale`: what the autoscaler of this node did lately, and why.

use hyper::StatusCode;
use ikada_api::v1::{ScalingPage, ScalingView};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) fn autoscale<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let decisions = app.door.scaling().into_iter().map(|scaled| ScalingView {
        at_ms: scaled.at_ms,
        from: scaled.from,
        to: scaled.to,
        reason: scaled.reason,
        error: scaled.error,
    });
    show_document(context, StatusCode::OK, &ScalingPage { decisions: decisions.collect() })
}
