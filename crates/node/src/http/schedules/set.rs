//! `PUT /v1/schedules/{name}` and its short forms pause and resume. Answers with the schedule as it then is.

use hyper::StatusCode;
use ikada_api::convert::{FieldError, FindProgram, pause_schedule_order, set_schedule_order};
use ikada_api::state::{Command, Order, RequestId};
use ikada_api::v1::ScheduleBody;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use ikada_replica::schedule::Timetable;

use super::describe::describe;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::programs::with_programs;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

pub(in crate::http) async fn set<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let schedule: ScheduleBody = read_document(context, body)?;
    let (request, key) = app.request_key(context);
    let read = |programs: &dyn FindProgram| {
        let (namespace, name) = (&context.namespace, &context.names[0]);
        set_schedule_order(namespace, key.clone(), name, &schedule, programs)
            .map_err(|error| Stop::from(problems::bad_field(&error)))
    };
    let order = with_programs(app, context, read).await?;
    check_timing(&order)?;
    store(app, context, &request, order).await
}

pub(in crate::http) async fn pause<D: Door>(
    app: &App<D>,
    context: &Context,
    paused: bool,
) -> Result<Reply, Stop> {
    let (request, key) = app.request_key(context);
    let order = pause_schedule_order(&context.namespace, key, &context.names[0], paused)
        .map_err(|error| problems::bad_field(&error))?;
    store(app, context, &request, order).await
}

/// The state takes any cron line; one that nobody can read is refused here.
fn check_timing(order: &Order) -> Result<(), Stop> {
    let Command::SetSchedule(set) = &order.command else {
        return Err(mismatch("set schedule"));
    };
    let timing = set.spec.as_ref().map(|spec| Timetable::read(&spec.timing));
    match timing {
        Some(Err(error)) => {
            let error = FieldError::bad_value(error.field, error.detail);
            Err(problems::bad_field(&error).into())
        }
        _ => Ok(()),
    }
}

async fn store<D: Door>(
    app: &App<D>,
    context: &Context,
    request: &RequestId,
    order: Order,
) -> Result<Reply, Stop> {
    let Command::SetSchedule(set) = &order.command else {
        return Err(mismatch("set schedule"));
    };
    let name = set.name.clone();
    let item = Item { id: name.to_string(), order: Ok(order) };
    let written = write(app, context, vec![item], Some(request.as_str())).await?;
    let (_, positions) = written.only()?;
    // The look afterwards is forwarded in any case: the caller was not asked to go elsewhere for it.
    let query = Query::Schedule((context.namespace.clone(), name));
    let read = Request::Read(query, Consistency::Linearizable);
    match call(app, context, read, Routing::Forward).await? {
        Answer::View { view: View::Schedule(Some(schedule)), .. } => {
            let mut response =
                show_document(context, StatusCode::OK, &describe(&schedule, context.form_wanted))?;
            add_positions(&mut response, &positions);
            Ok(response)
        }
        Answer::View { view: View::Schedule(None), .. } => {
            // Somebody removed it in between.
            Err(problems::not_found("schedule_not_found", "schedule", &context.names[0]).into())
        }
        _ => Err(mismatch("set schedule")),
    }
}
