//! `GET /metrics`.

use hyper::StatusCode;

use crate::http::answer::{Reply, Stop, text};
use crate::http::app::App;
use crate::http::door::Door;
use crate::metrics::render;

pub(in crate::http) async fn metrics<D: Door>(app: &App<D>) -> Result<Reply, Stop> {
    let status = app.door.status().await;
    let page = render(app.door.info(), &status, &app.door.counters(), &app.counters);
    Ok(text(StatusCode::OK, "text/plain; version=0.0.4", page))
}
