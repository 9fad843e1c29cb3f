//! `GET /v1/schedules`.

use ikada_api::v1::{ScheduleInfo, SchedulePage};
use ikada_replica::call::{Query, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let seen = read(app, context, Query::Schedules(Some(context.namespace.clone()))).await?;
    match &seen.view {
        View::Schedules(all) => {
            let schedules = all.iter().map(|schedule| brief(describe(schedule))).collect();
            show_view(context, &seen, &SchedulePage { schedules })
        }
        _ => Err(mismatch("list schedules")),
    }
}

/// A list leaves out payloads and follow-ups: a thousand of them would be too much for one answer.
fn brief(mut schedule: ScheduleInfo) -> ScheduleInfo {
    let task = &mut schedule.task;
    (task.payload, task.payload_base64) = (None, None);
    task.then.clear();
    schedule
}
