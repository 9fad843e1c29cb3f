//! A schedule as callers see it: settings, counts, next instants, alarms.

use ikada_api::convert::{Form, show_schedule};
use ikada_api::state::Schedule;
use ikada_api::v1::ScheduleInfo;
use ikada_replica::schedule::Timetable;

use crate::watch::wall_ms;

/// Next instants shown.
const NEXT_MAX: usize = 5;

/// Describes a schedule. An instant is overdue by this node's clock: log time stands still where nobody leads.
pub(in crate::http) fn describe(schedule: &Schedule, form: Form) -> ScheduleInfo {
    let table = Timetable::read(&schedule.spec.timing).ok();
    let next_ms = table.map(|table| {
        let first = if schedule.spec.paused { None } else { table.next_after(schedule.cursor_ms) };
        std::iter::successors(first, |instant_ms| table.next_after(*instant_ms))
            .take(NEXT_MAX)
            .collect()
    });
    show_schedule(schedule, next_ms, wall_ms(), form)
}
