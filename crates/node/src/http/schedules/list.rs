//! `GET /v1/schedules`: in order of their names, a page at a time.

use ikada_api::convert::parse_name;
use ikada_api::state::ScheduleName;
use ikada_api::v1::{ScheduleInfo, SchedulePage};
use ikada_replica::call::{Query, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::page_limit;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let after = context.query("after").map(|text| parse_name("after", text, ScheduleName::parse));
    let after = after.transpose().map_err(|error| problems::bad_field(&error))?;
    let limit = page_limit(app, context)?;
    // One more tells whether there is another page.
    let query = Query::Schedules { namespace: context.namespace.clone(), after, limit: limit + 1 };
    let seen = read(app, context, query).await?;
    let View::Schedules(all) = &seen.view else {
        return Err(mismatch("list schedules"));
    };
    let form = context.form_wanted;
    let schedules: Vec<ScheduleInfo> =
        all.iter().take(limit).map(|schedule| brief(describe(schedule, form))).collect();
    let next = schedules.last().filter(|_| all.len() > limit).map(|last| last.name.clone());
    show_view(context, &seen, &SchedulePage { schedules, next })
}

/// A list leaves out payloads and follow-ups: a thousand of them would be too much for one answer.
fn brief(mut schedule: ScheduleInfo) -> ScheduleInfo {
    let task = &mut schedule.task;
    (task.payload, task.payload_base64, task.payload_bytes) = (None, None, None);
    task.then.clear();
    schedule
}
