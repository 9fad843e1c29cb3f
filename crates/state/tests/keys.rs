//! Keys: order and caps within a key, what holds them up and what does not, and their cost.

mod common;
use common::*;
use ikada_state::*;

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

fn world_of(handles: &[&str]) -> World {
    let mut world = World::new();
    handles.iter().for_each(|handle| world.add(handle));
    world
}

fn fail_for(world: &mut World, grant: &Grant, delay_ms: u64) {
    let order = Fail { delay_ms: Some(delay_ms), ..fail(grant, "w") };
    assert!(matches!(world.run(Command::Fail(order)), Reply::Failed { .. }));
}

// TQ-1: order kept per user where asked, also over a restore.
#[test]
fn tq_1_a_key_hands_out_its_tasks_one_by_one_in_order() {
    let mut world = world_of(&["u:a", "u:b", "v:a", "u:c", "plain"]);
    let grants = world.take(9);
    assert_eq!(ids(&grants), ["u:a", "v:a", "plain"]);
    assert_eq!(world.shard.sizes().ready, 2);
    let mut world = world.reload();
    assert!(world.take(9).is_empty());
    world.run(complete(&grants[0], "w"));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Ready { .. })));
    let second = world.take(9);
    assert_eq!(ids(&second), ["u:b"]);
    world.run(complete(&second[0], "w"));
    assert_eq!(ids(&world.reload().take(9)), ["u:c"]);
}

// TQ-1: the place of submission decides, not the priority.
#[test]
fn tq_1_priority_does_not_overtake_within_a_key() {
    let mut world = World::new();
    for (id, priority) in [("u:first", 0), ("u:second", 9), ("other", 5)] {
        world.put(Enqueue { priority: Some(priority), ..enqueue(id, "q") });
    }
    assert_eq!(ids(&world.take(9)), ["other", "u:first"]);
}

// TQ-1: a head that waits for its retry still holds up those behind it.
#[test]
fn tq_1_a_retry_keeps_its_place() {
    let mut world = world_of(&["u:a", "u:b"]);
    let grant = world.take(1).remove(0);
    fail_for(&mut world, &grant, 5_000);
    assert_eq!(world.state("u:a"), TaskState::Scheduled);
    assert!(world.take(9).is_empty());
    let mut world = world.reload();
    world.tick(5_000);
    let again = world.take(9);
    assert_eq!(ids(&again), ["u:a"]);
    // An attempt that fails at once, or is returned, goes back to the front as well.
    fail_for(&mut world, &again[0], 0);
    let again = world.take(9);
    assert_eq!(ids(&again), ["u:a"]);
    world.run(Command::Unclaim(Unclaim { id: again[0].id.clone(), fence: again[0].fence }));
    let again = world.take(9);
    world.run(expire(again[0].id.clone(), again[0].fence));
    assert_eq!(ids(&world.take(9)), ["u:a"]);
}

// TQ-1: a dead or cancelled head lets the next go; one that waits for its first time does too.
#[test]
fn tq_1_an_ended_head_lets_the_next_go() {
    let mut world = world_of(&["u:a", "u:b", "u:c", "u:d"]);
    let grant = world.take(1).remove(0);
    world.run(Command::Fail(Fail { retry: false, ..fail(&grant, "w") }));
    assert_eq!(world.state("u:a"), TaskState::Dead);
    world.run(Command::Cancel(Cancel { id: task_id("u:b") }));
    let grant = world.take(9);
    assert_eq!(ids(&grant), ["u:c"]);
    world.run(Command::Cancel(Cancel { id: task_id("u:c") }));
    assert_eq!(ids(&world.take(9)), ["u:d"]);

    let mut world = World::new();
    world.put(Enqueue { delay_ms: Some(500), ..enqueue("u:later", "q") });
    world.add("u:now");
    world.add("u:next");
    assert_eq!(ids(&world.take(1)), ["u:now"]);
    world.tick(500);
    assert!(world.take(9).is_empty(), "one at a time");
    let now = world.view("u:now");
    world.run(Command::Complete(Complete {
        keeps_digest: None,
        id: now.id,
        fence: now.fence,
        worker: worker("w"),
        result: None,
        then: None,
        outputs: Vec::new(),
    }));
    assert_eq!(ids(&world.take(9)), ["u:later"], "it was submitted first");
}

// TQ-1: a limit above 1 caps the live claims and leaves the order to priority and time.
#[test]
fn tq_1_a_key_limit_caps_the_live_claims() {
    let mut world = World::new();
    for (id, priority) in [("u:a", 5), ("u:b", 5), ("u:c", 5), ("u:d", 9)] {
        let task = enqueue_with(id, "q", |options| options.key_limit = Some(2));
        world.put(Enqueue { priority: Some(priority), ..task });
    }
    let mut world = world.reload();
    let grants = world.take(9);
    assert_eq!(ids(&grants), ["u:d", "u:a"]);
    assert!(world.take(9).is_empty());
    world.run(complete(&grants[0], "w"));
    assert_eq!(ids(&world.take(9)), ["u:b"]);
    fail_for(&mut world, &grants[1], 900);
    assert_eq!(ids(&world.take(9)), ["u:c"], "a cap counts claims, not waits");
    // The smallest limit in line holds.
    world.add("u:strict");
    assert!(world.take(9).is_empty());
}

#[test]
fn tq_1_a_key_may_route_without_ordering() {
    let mut world = World::new();
    for id in ["u:a", "u:b"] {
        world.put(enqueue_with(id, "q", |options| options.key_limit = Some(0)));
    }
    assert_eq!(ids(&world.take(9)), ["u:a", "u:b"]);
    let change = QueueChange { key_limit: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    world.add("v:a");
    world.add("v:b");
    assert_eq!(ids(&world.take(9)), ["v:a", "v:b"]);
    assert_eq!(world.view("v:a").key_limit, 0);
    let plain = enqueue_with("plain", "q", |options| options.key_limit = Some(1));
    assert_eq!(world.run(Command::Enqueue(plain)), refused(RefusalCode::BadValue));
    let wide = enqueue_with("v:w", "q", |options| options.key_limit = Some(1001));
    assert_eq!(world.run(Command::Enqueue(wide)), refused(RefusalCode::BadValue));
}

// TQ-1, TQ-4: an id is unique within its key.
#[test]
fn tq_4_an_id_is_unique_within_its_key() {
    let mut world = world_of(&["u:a", "v:a", "a"]);
    let again = Command::Enqueue(enqueue("u:a", "q"));
    assert_eq!(world.run(again), Reply::Enqueued { id: task_id("u:a"), created: false });
    let other = Enqueue { priority: Some(1), ..enqueue("u:a", "q") };
    assert_eq!(world.run(Command::Enqueue(other)), refused(RefusalCode::Conflict));
    assert_eq!(world.shard.sizes().ready, 3);
}

// TQ-1: what waits behind a key costs claims nothing; 100,000 tasks of one key go by in order.
#[test]
fn tq_1_a_long_line_costs_no_scans() {
    let mut shard = Shard::genesis(0, 1, &[]);
    let mut index = 0;
    let mut apply = |shard: &mut Shard, orders: &[Command]| {
        let mut builder = BatchBuilder::new();
        orders.iter().for_each(|command| builder.push(&order(command.clone())));
        index += 1;
        shard.apply(Lsn { term: 1, index }, &builder.finish(1_000)).replies
    };
    const COUNT: usize = 100_000;
    let tasks: Vec<Command> =
        (0..COUNT).map(|number| Command::Enqueue(enqueue(&format!("u:{number}"), "q"))).collect();
    for part in tasks.chunks(10_000) {
        apply(&mut shard, part);
    }
    for number in 0..2_000 {
        let replies = apply(&mut shard, &[Command::Claim(claim("w", &["q"], 1024))]);
        let Reply::Claimed { tasks } = &replies[0] else { panic!("not claimed") };
        assert_eq!(ids(tasks), [format!("u:{number}")]);
        apply(&mut shard, &[complete(&tasks[0], "w")]);
    }
    assert_eq!(shard.sizes().ready, (COUNT - 2_000) as u64);
}
