//! Leases: one holder, fences that only rise, a line that is served in order, attempts that take their leases with them
//! (LS: locks and elections for users).

mod common;
use common::*;
use ikada_state::*;

fn name(text: &str) -> LeaseName {
    LeaseName::parse(text).unwrap()
}

fn holder(text: &str) -> HolderName {
    HolderName::parse(text).unwrap()
}

fn key(text: &str) -> LeaseKey {
    (Namespace::default(), name(text))
}

fn wish(who: &str, wait: bool) -> AcquireLease {
    AcquireLease { name: name("l"), holder: holder(who), ttl_ms: 1_000, wait, task: None }
}

fn acquire(world: &mut World, who: &str) -> Reply {
    world.run(Command::AcquireLease(wish(who, true)))
}

fn release(who: &str, fence: Option<Fence>) -> Command {
    Command::ReleaseLease(ReleaseLease { name: name("l"), holder: holder(who), fence })
}

fn expire_lease(mark: LeaseMark) -> Command {
    Command::ExpireLease(ExpireLease { name: name("l"), mark })
}

fn granted(reply: &Reply) -> Fence {
    match reply {
        Reply::LeaseGranted { fence, .. } => *fence,
        other => panic!("{other:?}"),
    }
}

fn holding(world: &World) -> (String, Fence) {
    let lease = world.shard.lease(&key("l")).unwrap();
    (lease.holding.holder.to_string(), lease.holding.fence)
}

#[test]
fn ls_2_one_holds_and_the_others_wait_in_order() {
    let mut world = World::new();
    let first = granted(&acquire(&mut world, "a"));
    assert_eq!(acquire(&mut world, "a"), Reply::LeaseGranted { fence: first, fresh: false });
    assert_eq!(acquire(&mut world, "b"), Reply::LeaseWaiting { ahead: 0 });
    assert_eq!(acquire(&mut world, "c"), Reply::LeaseWaiting { ahead: 1 });
    assert_eq!(acquire(&mut world, "b"), Reply::LeaseWaiting { ahead: 0 }, "the place is kept");
    let refused_at_once = world.run(Command::AcquireLease(wish("d", false)));
    assert_eq!(refused_at_once, refused(RefusalCode::LeaseHeld));
    assert_eq!(world.run(release("b", Some(first))), refused(RefusalCode::NotOwner));
    assert_eq!(world.run(release("a", Some(Fence(99)))), refused(RefusalCode::StaleFence));
    world = world.reload();
    assert_eq!(world.run(release("a", Some(first))), Reply::LeaseReleased);
    let (who, second) = holding(&world);
    assert_eq!(who, "b");
    assert!(second > first);
    assert_eq!(world.run(release("b", None)), Reply::LeaseReleased);
    assert_eq!(holding(&world).0, "c");
    assert_eq!(world.run(release("c", None)), Reply::LeaseReleased);
    assert_eq!(world.shard.lease(&key("l")), None, "nothing is kept of a free lease");
    assert!(granted(&acquire(&mut world, "a")) > second, "fences rise all the same");
}

#[test]
fn ls_3_whoever_asks_again_on_other_terms_is_refused_and_keeps_what_it_has() {
    let mut world = World::new();
    world.add("t");
    let grant = world.take(1).remove(0);
    let task = BoundTask { id: grant.id.clone(), fence: grant.fence, shard: 0 };
    let bound = |who: &str| {
        let task = Some(BoundTask { shard: 7, ..task.clone() });
        Command::AcquireLease(AcquireLease { task, ..wish(who, true) })
    };
    let fence = granted(&acquire(&mut world, "a"));
    assert_eq!(world.run(bound("a")), refused(RefusalCode::LeaseTerms));
    assert_eq!(world.run(bound("b")), Reply::LeaseWaiting { ahead: 0 });
    assert_eq!(world.run(bound("b")), Reply::LeaseWaiting { ahead: 0 }, "as before");
    assert_eq!(acquire(&mut world, "b"), refused(RefusalCode::LeaseTerms), "without the task");
    assert_eq!(acquire(&mut world, "c"), Reply::LeaseWaiting { ahead: 1 });
    let longer = |who: &str| AcquireLease { ttl_ms: 2_000, ..wish(who, true) };
    let reply = world.run(Command::AcquireLease(longer("c")));
    assert_eq!(reply, refused(RefusalCode::LeaseTerms), "another ttl in line");
    let reply = world.run(Command::AcquireLease(longer("a")));
    assert_eq!(reply, Reply::LeaseGranted { fence, fresh: false });
    let lease = world.shard.lease(&key("l")).unwrap();
    assert_eq!((lease.holding.ttl_ms, lease.waiters.len()), (2_000, 2), "the holder's ttl follows");
    world.run(complete(&grant, "w"));
    assert_eq!(holding(&world), ("a".to_owned(), fence), "it was never bound");
}

#[test]
fn ls_fences_share_the_counter_of_the_attempts() {
    let mut world = World::new();
    world.add("t");
    let attempt = world.take(1).remove(0).fence;
    let lease = granted(&acquire(&mut world, "a"));
    assert_eq!(lease.counter(), attempt.counter() + 1);
}

#[test]
fn ls_expiry_counts_only_for_the_mark_it_names() {
    let mut world = World::new();
    let first = granted(&acquire(&mut world, "a"));
    acquire(&mut world, "b");
    acquire(&mut world, "c");
    let place = world.shard.lease(&key("l")).unwrap().waiters[0].place;
    assert_eq!(
        world.run(expire_lease(LeaseMark::Held(Fence(first.0 + 1)))),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(world.run(expire_lease(LeaseMark::Waits(place))), Reply::LeaseExpired);
    assert_eq!(
        world.run(expire_lease(LeaseMark::Waits(place))),
        refused(RefusalCode::StaleFence),
        "a repeated proposal changes nothing"
    );
    assert_eq!(world.run(expire_lease(LeaseMark::Held(first))), Reply::LeaseExpired);
    assert_eq!(holding(&world).0, "c");
    assert_eq!(
        world.run(expire_lease(LeaseMark::Held(first))),
        refused(RefusalCode::StaleFence),
        "the old holder's end does not end the new one"
    );
    assert_eq!(world.run(release("a", Some(first))), refused(RefusalCode::StaleFence));
}

#[test]
fn ls_a_resent_release_is_answered_as_the_first_time() {
    let mut world = World::new();
    let fence = granted(&acquire(&mut world, "a"));
    let order = requested("r", release("a", Some(fence)));
    assert_eq!(world.one(order.clone()), Reply::LeaseReleased);
    acquire(&mut world, "a");
    assert_eq!(world.one(order), Reply::LeaseReleased);
    assert_eq!(holding(&world).0, "a", "and does not end the next holding");
}

#[test]
fn ls_lines_and_values_are_bounded() {
    let mut world = World::new();
    acquire(&mut world, "a");
    for number in 0..limits::LEASE_WAITERS_MAX {
        let reply = acquire(&mut world, &format!("w{number}"));
        assert_eq!(reply, Reply::LeaseWaiting { ahead: number as u32 });
    }
    assert_eq!(acquire(&mut world, "late"), refused(RefusalCode::TooManyWaiters));
    let never = AcquireLease { ttl_ms: 1, ..wish("z", true) };
    assert_eq!(world.run(Command::AcquireLease(never)), refused(RefusalCode::BadValue));
}

#[test]
fn ls_a_lease_ends_with_the_attempt_it_is_bound_to() {
    let mut world = World::new();
    world.add("t");
    let grant = world.take(1).remove(0);
    let task = BoundTask { id: grant.id.clone(), fence: grant.fence, shard: 0 };
    let bound = |who: &str, task: &BoundTask| {
        Command::AcquireLease(AcquireLease { task: Some(task.clone()), ..wish(who, true) })
    };
    granted(&world.run(bound("a", &task)));
    assert_eq!(world.run(bound("b", &task)), Reply::LeaseWaiting { ahead: 0 });
    assert_eq!(acquire(&mut world, "c"), Reply::LeaseWaiting { ahead: 1 });
    world = world.reload();
    assert_eq!(world.shard.sizes().bindings, 1);
    world.run(complete(&grant, "w"));
    // The next in line was bound to the same attempt, which is over: the one after it has the lease.
    assert_eq!(holding(&world).0, "c");
    assert_eq!(world.shard.sizes().bindings, 0);
}

/// Delivers all messages between two shards.
fn settle(shards: &mut [World; 2]) {
    loop {
        let mut any = false;
        for (source, target) in [(0u16, 1u16), (1, 0)] {
            for item in shards[usize::from(source)].shard.outbox_pending(target, 0, 9) {
                let (sequence, message) = (item.sequence, item.message);
                let deliver = Command::Deliver(Deliver { source, sequence, message });
                shards[usize::from(target)].run(deliver);
                shards[usize::from(source)].run(Command::Acked(Acked { target, sequence }));
                any = true;
            }
        }
        if !any {
            return;
        }
    }
}

#[test]
fn ls_a_bound_lease_of_another_shard_ends_by_message() {
    let world = |shard| World::of(Shard::genesis_with(shard, 2, &[], Limits::default()));
    let mut shards = [world(0), world(1)];
    shards[1].add("t");
    let grant = shards[1].take(1).remove(0);
    let task = Some(BoundTask { id: grant.id.clone(), fence: grant.fence, shard: 1 });
    let order = AcquireLease { task, ..wish("a", true) };
    granted(&shards[0].run(Command::AcquireLease(order.clone())));
    settle(&mut shards);
    assert_eq!(shards[1].shard.sizes().bindings, 1);
    shards[1].run(complete(&grant, "w"));
    assert!(shards[0].shard.lease(&key("l")).is_some(), "until the message arrives the ttl holds");
    settle(&mut shards);
    assert_eq!(shards[0].shard.lease(&key("l")), None);
    // An attempt that is over when the word of the grant comes ends the holding at once.
    granted(&shards[0].run(Command::AcquireLease(order)));
    settle(&mut shards);
    assert_eq!(shards[0].shard.lease(&key("l")), None);
}
