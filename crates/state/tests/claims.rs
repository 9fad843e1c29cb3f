//! Claims: order, turns, bounds, and resends.

mod common;
use common::*;
use ikada_state::*;

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

// Q11, TQ-16
#[test]
fn tq_16_claims_go_by_priority_then_order() {
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
    assert_eq!((grants[0].attempt, grants[0].max_attempts, grants[0].ttl_ms), (1, 5, 30_000));
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
    let of_a = tasks.iter().filter(|grant| grant.queue.as_str() == "a").count();
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
    let Reply::Claimed { tasks } = first else { panic!("not claimed") };
    assert_eq!(world.run(complete(&tasks[0], "w")), Reply::Completed);
    assert_eq!(world.one(ask()), Reply::Claimed { tasks: vec![tasks[1].clone()] });
    let other = requested("c", Command::Claim(claim("w", &["q"], 1)));
    assert_eq!(world.one(other), refused(RefusalCode::IdempotencyConflict));
    assert_eq!(world.state("c"), TaskState::Ready);
}
