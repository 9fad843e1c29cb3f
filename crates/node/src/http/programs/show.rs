//! `GET /v1/programs/{name}`: a program with its manifest.

use ikada_api::convert::{BUILTIN_PROGRAMS, parse_name};
use ikada_api::state::ProgramName;
use ikada_replica::call::{Query, View};

use super::describe::{describe, named};
use super::list::built_in;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let text = context.names[0].as_str();
    let name = parse_name("name", text, ProgramName::parse)
        .map_err(|error| problems::bad_field(&error))?;
    if BUILTIN_PROGRAMS.contains(&text) {
        return show_document(context, hyper::StatusCode::OK, &built_in(text));
    }
    let seen = read(app, context, Query::Object(named(&context.namespace, &name)?)).await?;
    let View::Object(object) = &seen.view else {
        return Err(mismatch("show program"));
    };
    let found = object.as_ref().and_then(|object| Some((describe(object)?, object.newest()?)));
    let Some((mut shown, newest)) = found else {
        return Err(problems::not_found("program_not_found", "program", text).into());
    };
    let mut manifest = Vec::new();
    for piece in newest.chunks.iter() {
        let bytes = app.door.shelf().fetch(*piece, true).await;
        manifest.extend_from_slice(&bytes.map_err(|error| problems::piece_missing(&error))?);
    }
    shown.manifest = serde_json::from_slice(&manifest).ok();
    show_view(context, &seen, &shown)
}
