//! What becomes of instants that have come, by policy.

use ikada_state::{Enqueue, QueueName, ScheduleName, ScheduleSpec, TaskId, Timing};

use super::*;

fn schedule(missed: Missed, overlap: Overlap) -> Schedule {
    let task =
        Enqueue::new(TaskId::parse("s").unwrap(), QueueName::parse("q").unwrap(), Vec::new());
    let timing = Timing::Every { every_ms: 1_000, anchor_ms: 1_000 };
    let spec = ScheduleSpec { timing, task, missed, overlap, grace_ms: 5_000, paused: false };
    Schedule {
        namespace: ikada_state::Namespace::default(),
        name: ScheduleName::parse("s").unwrap(),
        version: 1,
        spec,
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

/// Decides all instants up to a time and follows them as the state would: (kept, missed, overlapped, orders).
fn run(schedule: &mut Schedule, time_ms: u64) -> (Vec<u64>, u64, u64, usize) {
    let key = (schedule.namespace.clone(), schedule.name.clone());
    let mut planner = Planner::default();
    let (mut kept, mut missed, mut overlapped, mut orders) = (Vec::new(), 0, 0, 0);
    for round in 0..10_000 {
        let plan = planner.plans.entry(key.clone()).or_insert_with(|| Plan::of(schedule));
        plan.follow(schedule);
        let now_ms = round * AGAIN_MS;
        if planner.due(time_ms, now_ms).is_empty() {
            break;
        }
        let (fires, _) = planner.decide(&key, schedule, time_ms, now_ms, false, 50);
        assert!(fires.len() <= 50);
        assert!(planner.due(time_ms, now_ms).is_empty(), "not proposed twice at once");
        for fire in fires {
            assert!(fire.instant_ms > schedule.cursor_ms && fire.instant_ms <= time_ms);
            assert_eq!(fire.after_ms, schedule.cursor_ms, "each goes on from the one before");
            schedule.cursor_ms = fire.instant_ms;
            missed += u64::from(fire.missed);
            overlapped += u64::from(fire.overlapped);
            orders += 1;
            if fire.run {
                kept.push(fire.instant_ms);
            }
        }
    }
    (kept, missed, overlapped, orders)
}

#[test]
fn instants_within_the_grace_time_are_always_kept() {
    for policy in [Missed::Skip, Missed::One, Missed::All] {
        let (kept, missed, ..) = run(&mut schedule(policy, Overlap::Allow), 6_000);
        assert_eq!(kept, [1_000, 2_000, 3_000, 4_000, 5_000, 6_000]);
        assert_eq!(missed, 0);
    }
}

// LS-17: every missed instant is made up for or counted, whatever the policy.
#[test]
fn ls_17_missed_instants_are_made_up_for_or_counted() {
    let fresh: Vec<u64> = (15..=20).map(|second| second * 1_000).collect();
    let (kept, missed, ..) = run(&mut schedule(Missed::Skip, Overlap::Allow), 20_000);
    assert_eq!((kept, missed), (fresh.clone(), 14));
    let (kept, missed, ..) = run(&mut schedule(Missed::One, Overlap::Allow), 20_000);
    let newest: Vec<u64> = [14_000].into_iter().chain(fresh).collect();
    assert_eq!((kept, missed), (newest, 13));
    let (kept, missed, ..) = run(&mut schedule(Missed::All, Overlap::Allow), 20_000);
    assert_eq!((kept.len(), missed), (20, 0));
}

#[test]
fn ls_17_a_long_outage_is_bounded_and_fully_accounted() {
    let instants = 25_000;
    let (kept, missed, _, orders) =
        run(&mut schedule(Missed::All, Overlap::Allow), instants * 1_000);
    assert_eq!(kept.len() as u64 + missed, instants);
    assert!(kept.len() >= CATCH_UP_MAX && kept.len() <= CATCH_UP_MAX + 6, "{}", kept.len());
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1_000), "the newest, without gaps");
    assert!(orders < 200, "{orders}");
}

#[test]
fn an_instant_that_overlaps_is_counted() {
    let (kept, missed, overlapped, _) = run(&mut schedule(Missed::All, Overlap::Skip), 4_000);
    assert_eq!((kept, missed, overlapped), (vec![1_000], 0, 3));
}
