//! `GET /v1/schedules/{name}`.

use ikada_api::convert::schedule_name;
use ikada_replica::call::{Query, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let text = &context.names[0];
    let name = schedule_name(text).map_err(|error| problems::bad_field(&error))?;
    let seen = read(app, context, Query::Schedule((context.namespace.clone(), name))).await?;
    match &seen.view {
        View::Schedule(Some(schedule)) => {
            show_view(context, &seen, &describe(schedule, context.form_wanted))
        }
        View::Schedule(None) => {
            Err(problems::not_found("schedule_not_found", "schedule", text).into())
        }
        _ => Err(mismatch("show schedule")),
    }
}
