//! `GET /openapi.json`.

use std::sync::OnceLock;

use hyper::StatusCode;

use crate::http::answer::{Reply, Stop, text};
use crate::http::app::App;
use crate::http::door::Door;

pub(in crate::http) fn openapi<D: Door>(app: &App<D>) -> Result<Reply, Stop> {
    // The document never changes while the process lives.
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let document =
        DOCUMENT.get_or_init(|| ikada_api::openapi::document(&app.door.info().version).to_string());
    Ok(text(StatusCode::OK, "application/json", document.as_str()))
}
