//! `GET /metrics`.

use hyper::StatusCode;

use crate::http::answer::{Reply, Stop, text};
use crate::http::app::App;
use crate::http::door::Door;
use crate::metrics::render;

pub(in crate::http) async fn metrics<D: Door>(app: &App<D>) -> Result<Reply, Stop> {
    let status = app.door.status().await;
    let queues = app.every_queue().await.into_iter();
    let queues = queues.map(|view| (app.health(&view), view)).map(|(health, view)| (view, health));
    let schedules = app.every_schedule().await;
    let (info, counters) = (app.door.info(), app.door.counters());
    let blobs = app.door.shelf().counters();
    let queues = queues.collect();
    let doors = (&app.counters, &*app.admission, &app.rooms, &app.security.figures());
    let page = render(info, &status, &counters, doors, queues, schedules, &blobs);
    Ok(text(StatusCode::OK, "text/plain; version=0.0.4", page))
}
