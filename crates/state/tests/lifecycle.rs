//! The life of a task, verb by verb: what each gives, what each refuses, and that a refusal changes
//! nothing.

mod common;
use common::*;
use ikada_state::*;

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

// TQ-4, Q8
#[test]
fn enqueue_is_idempotent_by_id_and_body() {
    let mut world = World::new();
    world.add("a");
    let same = world.run(Command::Enqueue(enqueue("a", "q")));
    assert_eq!(
        same,
        Reply::Enqueued {
            id: task_id("a"),
            created: false
        }
    );
    let mut other = enqueue("a", "q");
    other.priority = Some(5);
    assert_eq!(
        world.run(Command::Enqueue(other)),
        refused(RefusalCode::Conflict)
    );
    assert_eq!(world.shard.sizes().ready, 1);
}

// Q8, Q9, TQ-21
#[test]
fn a_request_id_returns_the_first_reply() {
    let mut world = World::new();
    let first = world.one(requested("r", Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(
        world.one(requested("r", Command::Enqueue(enqueue("a", "q")))),
        first
    );
    let mut world = world.reload();
    assert_eq!(
        world.one(requested("r", Command::Enqueue(enqueue("a", "q")))),
        first
    );
    let conflict = refused(RefusalCode::IdempotencyConflict);
    assert_eq!(
        world.one(requested("r", Command::Enqueue(enqueue("b", "q")))),
        conflict
    );
    let cancel = Command::Cancel(Cancel { id: task_id("a") });
    assert_eq!(world.one(requested("r", cancel.clone())), conflict);
    assert_eq!(world.one(requested("c", cancel.clone())), Reply::Cancelled);
    assert_eq!(world.one(requested("c", cancel.clone())), Reply::Cancelled);
    assert_eq!(world.run(cancel), refused(RefusalCode::TaskFinished));
    let recorded = world
        .shard
        .request(&Namespace::default(), &key("r"))
        .unwrap();
    assert_eq!(recorded.outcome, Outcome::Enqueued { created: true });
    assert_eq!(world.shard.request(&Namespace::default(), &key("x")), None);
}

// TQ-22: the window holds by count and by time, and a refusal for lack of room is not remembered.
#[test]
fn the_submit_window_is_bounded() {
    let mut world = World::with(Limits {
        submit_window_max: 3,
        ..limits_small()
    });
    for number in 0..5 {
        let id = format!("t{number}");
        world.one(requested(&id, Command::Enqueue(enqueue(&id, "q"))));
    }
    let seen = |world: &World, id| {
        world
            .shard
            .request(&Namespace::default(), &key(id))
            .is_some()
    };
    assert!(!seen(&world, "t1") && seen(&world, "t2"));
    world.tick(100_001);
    assert!(!seen(&world, "t4"));
    let mut world = World::with(Limits {
        pending_tasks_max: 1,
        ..limits_small()
    });
    world.add("a");
    let retry = requested("r", Command::Enqueue(enqueue("b", "q")));
    assert_eq!(world.one(retry.clone()), refused(RefusalCode::QueueFull));
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(
        world.one(retry),
        Reply::Enqueued {
            id: task_id("b"),
            created: true
        }
    );
}

// Q11, TQ-16
#[test]
fn claims_go_by_priority_then_order() {
    let mut world = World::new();
    for (id, priority) in [("low", 1), ("mid1", 5), ("mid2", 5), ("high", 9)] {
        let mut task = enqueue(id, "q");
        task.priority = Some(priority);
        world.run(Command::Enqueue(task));
    }
    let mut world = world.reload();
    let grants = world.take(3);
    assert_eq!(ids(&grants), ["high", "mid1", "mid2"]);
    assert!(grants.windows(2).all(|pair| pair[0].fence < pair[1].fence));
    assert_eq!(
        (grants[0].attempt, grants[0].max_attempts, grants[0].ttl_ms),
        (1, 5, 30_000)
    );
    assert_eq!(&grants[0].payload[..], b"high");
    assert_eq!(ids(&world.take(9)), ["low"]);
    assert!(world.take(9).is_empty());
}

#[test]
fn claims_take_turns_over_queues() {
    let mut world = World::new();
    for number in 0..4 {
        world.run(Command::Enqueue(enqueue(&format!("a{number}"), "a")));
        world.run(Command::Enqueue(enqueue(&format!("b{number}"), "b")));
    }
    let Reply::Claimed { tasks } = world.run(Command::Claim(claim("w", &["a", "b", "none"], 6)))
    else {
        panic!("not claimed")
    };
    let of_a = tasks
        .iter()
        .filter(|grant| grant.queue.as_str() == "a")
        .count();
    assert_eq!((tasks.len(), of_a), (6, 3));
    // One at a time: neither queue is starved.
    let mut firsts = Vec::new();
    for _ in 0..2 {
        let Reply::Claimed { tasks } = world.run(Command::Claim(claim("w", &["a", "b"], 1))) else {
            panic!("not claimed")
        };
        firsts.push(tasks[0].queue.clone());
    }
    assert_ne!(firsts[0], firsts[1]);
}

#[test]
fn a_claim_is_refused_outside_its_bounds() {
    let mut world = World::new();
    for (lines, max) in [(vec![], 1), (vec!["q"], 0), (vec!["q"], 1025)] {
        let reply = world.run(Command::Claim(claim("w", &lines, max)));
        assert_eq!(reply, refused(RefusalCode::BadValue));
    }
    let many = vec!["q"; 65];
    let reply = world.run(Command::Claim(claim("w", &many, 1)));
    assert_eq!(reply, refused(RefusalCode::TooLarge));
}

// Q9: a claim whose answer was lost gives the same fences again, as far as they still live.
#[test]
fn a_resent_claim_returns_the_same_grants() {
    let mut world = World::new();
    let ask = || requested("c", Command::Claim(claim("w", &["q"], 2)));
    assert_eq!(world.one(ask()), Reply::Claimed { tasks: vec![] });
    ["a", "b", "c"].iter().for_each(|id| world.add(id));
    let first = world.one(ask());
    let mut world = world.reload();
    assert_eq!(world.one(ask()), first);
    let Reply::Claimed { tasks } = first else {
        panic!("not claimed")
    };
    assert_eq!(world.run(complete(&tasks[0], "w")), Reply::Completed);
    assert_eq!(
        world.one(ask()),
        Reply::Claimed {
            tasks: vec![tasks[1].clone()]
        }
    );
    let other = requested("c", Command::Claim(claim("w", &["q"], 1)));
    assert_eq!(world.one(other), refused(RefusalCode::IdempotencyConflict));
    assert_eq!(world.state("c"), TaskState::Ready);
}

// TQ-6, TQ-18, Q4
#[test]
fn complete_needs_the_live_fence_and_worker() {
    let mut world = World::new();
    world.add("a");
    let grant = world.take(1).remove(0);
    let before = world.shard.hash();
    assert_eq!(
        world.run(complete(&grant, "other")),
        refused(RefusalCode::NotOwner)
    );
    let stale = Grant {
        fence: Fence(grant.fence.0 + 1),
        ..grant.clone()
    };
    assert_eq!(
        world.run(complete(&stale, "w")),
        refused(RefusalCode::StaleFence)
    );
    let missing = Grant {
        id: task_id("none"),
        ..grant.clone()
    };
    assert_eq!(
        world.run(complete(&missing, "w")),
        refused(RefusalCode::TaskNotFound)
    );
    assert_eq!(world.state("a"), TaskState::Claimed);
    assert_ne!(
        world.shard.hash(),
        before,
        "the position is part of the hash"
    );
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    let mut world = world.reload();
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    let view = world.view("a");
    assert_eq!(
        (view.state, view.result.as_deref()),
        (TaskState::Done, Some(&b"result"[..]))
    );
    assert_eq!(
        world
            .shard
            .queue(&Namespace::default(), &queue("q"))
            .unwrap()
            .counters
            .done,
        1
    );
    let fail = Command::Fail(fail(&grant, "w"));
    assert_eq!(world.run(fail), refused(RefusalCode::TaskFinished));
}

// TQ-7, TQ-9, Q7
#[test]
fn failing_retries_with_backoff_until_dead() {
    let mut world = World::new();
    let mut task = enqueue("a", "q");
    task.max_attempts = Some(2);
    world.run(Command::Enqueue(task));
    let grant = world.take(1).remove(0);
    let at_ms = world.now_ms + 1_000;
    let first = world.run(Command::Fail(fail(&grant, "w")));
    assert_eq!(
        first,
        Reply::Failed {
            next: FailNext::Scheduled { at_ms }
        }
    );
    assert!(world.effects.contains(&Effect::Scheduled { at_ms }));
    assert_eq!(world.run(Command::Fail(fail(&grant, "w"))), first);
    assert_eq!(
        world.run(complete(&grant, "w")),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(world.shard.next_scheduled_ms(), Some(at_ms));
    world.tick(999);
    assert!(world.take(1).is_empty());
    world.tick(1);
    let second = world.take(1).remove(0);
    assert_eq!(second.attempt, 2);
    let dead = Reply::Failed {
        next: FailNext::Dead,
    };
    assert_eq!(world.run(Command::Fail(fail(&second, "w"))), dead);
    assert_eq!(world.run(Command::Fail(fail(&second, "w"))), dead);
    let view = world.view("a");
    assert_eq!(view.dead_reason, Some(DeadReason::AttemptsExhausted));
    assert_eq!(view.attempts.len(), 2);
    assert_eq!(view.attempts[0].error.as_deref(), Some(&b"boom"[..]));
}

#[test]
fn a_failure_may_forbid_or_hasten_the_retry() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    let no_retry = Fail {
        retry: false,
        ..fail(&grants[0], "w")
    };
    assert_eq!(
        world.run(Command::Fail(no_retry)),
        Reply::Failed {
            next: FailNext::Dead
        }
    );
    assert_eq!(world.view("a").dead_reason, Some(DeadReason::NotRetryable));
    let error = vec![b'x'; 5000].into();
    let at_once = Fail {
        delay_ms: Some(0),
        error,
        ..fail(&grants[1], "w")
    };
    let ready = Reply::Failed {
        next: FailNext::Ready,
    };
    assert_eq!(world.run(Command::Fail(at_once.clone())), ready);
    assert_eq!(world.run(Command::Fail(at_once)), ready);
    assert_eq!(
        world.view("b").attempts[0].error.as_ref().unwrap().len(),
        1024
    );
    assert_eq!(world.take(1)[0].attempt, 2);
}

// TQ-8, Q6, F-20
#[test]
fn expiry_counts_only_with_the_live_fence() {
    let mut world = World::new();
    let mut task = enqueue("a", "q");
    task.max_attempts = Some(2);
    world.run(Command::Enqueue(task));
    let first = world.take(1).remove(0);
    let expire = |fence| {
        Command::Expire(Expire {
            id: task_id("a"),
            fence,
        })
    };
    assert_eq!(
        world.run(expire(Fence(99))),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(
        world.run(expire(first.fence)),
        Reply::Expired {
            next: FailNext::Ready
        }
    );
    assert!(
        world
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Released { .. }))
    );
    assert!(
        world
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Ready { .. }))
    );
    assert_eq!(
        world.run(expire(first.fence)),
        refused(RefusalCode::StaleFence)
    );
    let second = world.take(1).remove(0);
    assert!(second.fence > first.fence);
    // TQ-17, TQ-18: the same worker's older attempt cannot complete the newer claim.
    assert_eq!(
        world.run(complete(&first, "w")),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(
        world.run(expire(first.fence)),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(
        world.run(expire(second.fence)),
        Reply::Expired {
            next: FailNext::Dead
        }
    );
    assert_eq!(world.view("a").dead_reason, Some(DeadReason::ClaimExpired));
    assert_eq!(
        world.run(expire(second.fence)),
        refused(RefusalCode::TaskFinished)
    );
}

// Q7: an unconfirmed claim does not count, and the task keeps its place.
#[test]
fn unclaim_gives_the_attempt_and_the_place_back() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grant = world.take(1).remove(0);
    let order = Command::Unclaim(Unclaim {
        id: grant.id.clone(),
        fence: grant.fence,
    });
    assert_eq!(world.run(order.clone()), Reply::Unclaimed);
    assert_eq!(world.run(order), refused(RefusalCode::StaleFence));
    assert_eq!(world.view("a").attempt, 0);
    let mut world = world.reload();
    let again = world.take(1).remove(0);
    assert_eq!((again.id.as_str(), again.attempt), ("a", 1));
    assert!(again.fence > grant.fence);
}

// Q10, Q2
#[test]
fn cancel_and_completion_exclude_each_other() {
    let mut world = World::new();
    ["a", "b", "c"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    let cancel = |id: &str| Command::Cancel(Cancel { id: task_id(id) });
    assert_eq!(world.run(cancel("a")), Reply::Cancelled);
    assert_eq!(
        world.run(complete(&grants[0], "w")),
        refused(RefusalCode::TaskFinished)
    );
    assert_eq!(world.run(complete(&grants[1], "w")), Reply::Completed);
    assert_eq!(world.run(cancel("b")), refused(RefusalCode::TaskFinished));
    assert_eq!(world.run(cancel("c")), Reply::Cancelled);
    assert_eq!(
        world.run(cancel("none")),
        refused(RefusalCode::TaskNotFound)
    );
    assert!(world.take(1).is_empty());
}

// TQ-19, TQ-14
#[test]
fn delayed_tasks_become_ready_by_log_time_in_bounded_steps() {
    let mut world = World::with(limits_small());
    for number in 0..6 {
        let mut task = enqueue(&format!("t{number}"), "q");
        task.delay_ms = Some(100);
        world.run(Command::Enqueue(task));
    }
    assert_eq!(world.view("t0").due_ms, Some(world.now_ms + 100));
    world.tick(100);
    assert_eq!(world.shard.sizes().ready, 4);
    world.tick(0);
    assert_eq!(ids(&world.take(9)), ["t0", "t1", "t2", "t3", "t4", "t5"]);
    let before = world.shard.time_ms();
    world.now_ms = 5;
    world.tick(0);
    assert_eq!(world.shard.time_ms(), before);
}

#[test]
fn values_outside_their_bounds_are_refused() {
    let mut world = World::new();
    let base = enqueue("a", "q");
    let wrong = [
        Enqueue {
            priority: Some(10),
            ..base.clone()
        },
        Enqueue {
            max_attempts: Some(0),
            ..base.clone()
        },
        Enqueue {
            ttl_ms: Some(1),
            ..base.clone()
        },
        Enqueue {
            run_at_ms: Some(1),
            delay_ms: Some(1),
            ..base.clone()
        },
        Enqueue {
            backoff: Some(Backoff {
                base_ms: 2,
                cap_ms: 1,
            }),
            ..base.clone()
        },
    ];
    for order in wrong {
        assert_eq!(
            world.run(Command::Enqueue(order)),
            refused(RefusalCode::BadValue)
        );
    }
    let large = Enqueue {
        payload: vec![0; (1 << 20) + 1].into(),
        ..base.clone()
    };
    assert_eq!(
        world.run(Command::Enqueue(large)),
        refused(RefusalCode::TooLarge)
    );
    let largest = Enqueue {
        payload: vec![0; 1 << 20].into(),
        ..base
    };
    world.run(Command::Enqueue(largest));
    let grant = world.take(1).remove(0);
    let (id, fence) = (grant.id.clone(), grant.fence);
    let result = Some(vec![0; (64 << 10) + 1].into());
    let order = Complete {
        id,
        fence,
        worker: worker("w"),
        result,
    };
    assert_eq!(
        world.run(Command::Complete(order)),
        refused(RefusalCode::TooLarge)
    );
    // A record larger than a chunk survives the snapshot.
    assert_eq!(world.reload().view("a").payload.len(), 1 << 20);
    assert!(
        world
            .shard
            .freeze()
            .chunks()
            .all(|chunk| chunk.len() <= 256 << 10)
    );
}

#[test]
fn attempts_are_kept_newest_first_to_go_last() {
    let mut world = World::with(limits_small());
    world.add("a");
    let mut fences = Vec::new();
    for _ in 0..5 {
        let grant = world.take(1).remove(0);
        fences.push(grant.fence);
        let order = Fail {
            delay_ms: Some(0),
            ..fail(&grant, "w")
        };
        world.run(Command::Fail(order));
    }
    let kept: Vec<Fence> = world
        .view("a")
        .attempts
        .iter()
        .map(|attempt| attempt.fence)
        .collect();
    assert_eq!(kept, fences[2..]);
    assert_eq!(world.state("a"), TaskState::Dead);
}

// X5: the same id in two namespaces is two tasks.
#[test]
fn namespaces_do_not_meet() {
    let mut world = World::new();
    world.add("a");
    let other = Namespace::parse("other").unwrap();
    let foreign = |command| Order {
        namespace: other.clone(),
        request: None,
        command,
    };
    let reply = world.one(foreign(Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(
        reply,
        Reply::Enqueued {
            id: task_id("a"),
            created: true
        }
    );
    let grant = world.take(9).remove(0);
    let reply = world.one(foreign(complete(&grant, "w")));
    assert_eq!(reply, refused(RefusalCode::StaleFence));
    let filter = TaskFilter {
        namespace: Some(other),
        ..TaskFilter::default()
    };
    assert_eq!(world.shard.tasks(&filter, None, 10).tasks.len(), 1);
}

#[test]
fn listings_come_in_pages() {
    let mut world = World::new();
    (0..10).for_each(|number| world.add(&format!("t{number}")));
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.shard.tasks(&TaskFilter::default(), after, 3);
        found.extend(page.tasks.into_iter().map(|task| task.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 10);
    let ready = TaskFilter {
        state: Some(TaskState::Done),
        ..TaskFilter::default()
    };
    assert!(world.shard.tasks(&ready, None, 3).tasks.is_empty());
}

// F-31
#[test]
fn a_raised_epoch_exceeds_all_older_fences() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let before = world.take(1)[0].fence;
    let raise = |epoch| Command::RaiseEpoch(RaiseEpoch { epoch });
    assert_eq!(world.run(raise(0)), refused(RefusalCode::VersionConflict));
    assert_eq!(world.run(raise(3)), Reply::EpochRaised);
    let after = world.reload().take(1)[0].fence;
    assert_eq!(after.epoch(), 3);
    assert!(after > before);
}

#[test]
fn live_claims_can_be_listed_and_found() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    world.run(complete(&grants[0], "w"));
    let world = world.reload();
    let claims: Vec<ClaimView> = world.shard.claims().collect();
    assert_eq!(claims.len(), 1);
    assert_eq!(
        (claims[0].id.as_str(), claims[0].fence),
        ("b", grants[1].fence)
    );
    assert_eq!(
        world.shard.claim_at(claims[0].slot, claims[0].fence),
        Some(claims[0].clone())
    );
    assert_eq!(world.shard.claim_at(claims[0].slot, Fence(0)), None);
}
