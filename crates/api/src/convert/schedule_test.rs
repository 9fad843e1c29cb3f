//! Bad settings name their field; alarms follow the newest instant.

use ikada_state::{LastFire, RequestId};

use super::*;
use crate::convert::{BuiltinPrograms, Form};

fn order(body: &ScheduleBody) -> Result<Order, FieldError> {
    let key = RequestKey { id: RequestId::parse("r").unwrap(), item: 0 };
    set_schedule_order(&Namespace::default(), key, "nightly", body, &BuiltinPrograms)
}

fn every(change: impl FnOnce(&mut ScheduleBody)) -> ScheduleBody {
    let mut body = ScheduleBody { every_ms: Some(60_000), ..ScheduleBody::default() };
    change(&mut body);
    body
}

fn made(body: &ScheduleBody) -> Schedule {
    let Command::SetSchedule(set) = order(body).unwrap().command else { panic!("not a schedule") };
    Schedule {
        namespace: Namespace::default(),
        name: set.name,
        version: 1,
        spec: *set.spec.unwrap(),
        created_ms: 0,
        cursor_ms: 0,
        fired: 0,
        missed: 0,
        overlapped: 0,
        last: None,
        last_missed_ms: 0,
        last_overlapped_ms: 0,
    }
}

#[test]
fn bad_settings_name_their_field() {
    let task = |task: NewTask| every(|body| body.task = task);
    let then = |below: NewTask| task(NewTask { then: vec![below], ..NewTask::default() });
    let cases = [
        (ScheduleBody::default(), "cron"),
        (every(|body| body.cron = Some("* * * * *".into())), "every_ms"),
        (every(|body| body.every_ms = Some(999)), "every_ms"),
        (every(|body| body.zone = Some("UTC".into())), "zone"),
        (every(|body| body.anchor_ms = Some(0)), "anchor_ms"),
        (every(|body| body.grace_ms = Some(u64::MAX)), "grace_ms"),
        (task(NewTask { id: Some("x".into()), ..NewTask::default() }), "task.id"),
        (task(NewTask { run_at_ms: Some(1), ..NewTask::default() }), "task.run_at_ms"),
        (task(NewTask { deadline_ms: Some(1), ..NewTask::default() }), "task.deadline_ms"),
        (then(NewTask { id: Some("x".into()), ..NewTask::default() }), "task.then[0].id"),
        (then(NewTask { deadline_ms: Some(1), ..NewTask::default() }), "task.then[0].deadline_ms"),
        (task(NewTask { program: Some("x".into()), ..NewTask::default() }), "task.program"),
        (task(NewTask { entry: Some("x".into()), ..NewTask::default() }), "task.entry"),
        (task(NewTask { reuse: true, ..NewTask::default() }), "task.reuse"),
        (task(NewTask { priority: Some(10), ..NewTask::default() }), "task.priority"),
        (task(NewTask { key: Some("a b".into()), ..NewTask::default() }), "task.key"),
    ];
    for (body, field) in cases {
        assert_eq!(order(&body).unwrap_err().field, field, "{body:?}");
    }
    assert!(serde_json::from_str::<ScheduleBody>(r#"{"every_ms": 1000, "evry": 1}"#).is_err());
    assert_eq!(schedule_name(&"x".repeat(97)).unwrap_err().field, "name");
}

#[test]
fn the_task_bears_the_schedules_name_and_its_key() {
    let keyed = NewTask { key: Some("user-7".into()), ..NewTask::default() };
    let schedule = made(&every(|body| body.task = keyed));
    assert_eq!(schedule.spec.task.id.as_str(), "user-7:nightly");
    let shown = show_schedule(&schedule, Some(vec![60_000]), 0, Form::Json);
    assert_eq!(shown.task.key.as_deref(), Some("user-7"));
    assert_eq!((shown.missed, shown.overlap), (MissedPolicy::One, OverlapPolicy::Allow));
}

#[test]
fn ls_17_a_template_may_have_a_program_and_follow_ups_and_is_shown_whole() {
    let below = NewTask { queue: Some("after".into()), ..NewTask::default() };
    let task = NewTask {
        program: Some("wordcount".into()),
        settings: [("top".to_owned(), "5".to_owned())].into(),
        priority: Some(7),
        then: vec![below],
        reuse: true,
        ..NewTask::default()
    };
    let schedule = made(&every(|body| body.task = task));
    let shown = show_schedule(&schedule, None, 0, Form::Json).task;
    let work = shown.work.unwrap();
    assert_eq!((work.program.name.as_str(), work.reuse), ("wordcount", true));
    assert_eq!(work.settings["top"], "5");
    assert_eq!((shown.priority, shown.then[0].queue.as_str()), (Some(7), "after"));
}

// LS-17: a run that did not happen is told.
#[test]
fn ls_17_alarms_tell_of_runs_that_did_not_happen() {
    let mut schedule = made(&every(|_| ()));
    let alarms = |schedule: &Schedule, next: Option<Vec<u64>>, now_ms: u64| {
        show_schedule(schedule, next, now_ms, Form::Json).alarms
    };
    assert!(alarms(&schedule, Some(vec![60_000]), 120_000).is_empty(), "within the grace time");
    assert_eq!(alarms(&schedule, Some(vec![60_000]), 120_001), ["overdue"]);
    schedule.spec.paused = true;
    assert!(alarms(&schedule, Some(Vec::new()), 120_001).is_empty());
    schedule.spec.paused = false;
    schedule.last_missed_ms = 60_000;
    assert_eq!(alarms(&schedule, Some(vec![120_000]), 0), ["missed"]);
    schedule.last_overlapped_ms = 120_000;
    assert_eq!(alarms(&schedule, Some(vec![180_000]), 0), ["overlapped"]);
    let id = TaskId::parse("t").unwrap();
    schedule.last =
        Some(LastFire { instant_ms: 180_000, fired_ms: 180_001, id, sequence: 0, target: 0 });
    assert!(alarms(&schedule, Some(vec![240_000]), 0).is_empty(), "the newest was kept");
    assert_eq!(alarms(&schedule, None, 0), ["unreadable"]);
}
