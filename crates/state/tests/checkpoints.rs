//! Checkpoints: kept by the live attempt alone, seen by the next one, gone with the task (Q4, A3).

mod common;
use common::*;
use ikada_state::*;

fn keep(grant: &Grant, name: &str, mark: u8) -> Command {
    Command::Checkpoint(Checkpoint {
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker(name),
        size: 3,
        digest: Digest([mark; 32]),
        chunks: vec![Digest([mark; 32])].into(),
    })
}

fn kept(world: &World, id: &str) -> Option<Digest> {
    let bucket = BucketName::parse("tasks").unwrap();
    let name = ObjectName::parse(&format!("{id}/.checkpoint")).unwrap();
    let object = world.shard.object(&(Namespace::default(), bucket, name))?;
    assert_eq!(object.versions.len(), 1, "only the last one is kept");
    object.newest().map(|version| version.digest)
}

#[test]
fn q4_the_next_attempt_sees_the_last_checkpoint_and_a_stale_one_changes_nothing() {
    let mut world = World::new();
    world.add("t1");
    let first = world.take(1).remove(0);
    assert_eq!(first.checkpoint, None);
    assert!(matches!(world.run(keep(&first, "w", 1)), Reply::ObjectPut { fresh: true, .. }));
    assert!(matches!(world.run(keep(&first, "w", 2)), Reply::ObjectPut { fresh: true, .. }));
    assert!(matches!(world.run(keep(&first, "w", 2)), Reply::ObjectPut { fresh: false, .. }));
    assert_eq!(world.run(keep(&first, "v", 3)), refused(RefusalCode::NotOwner));
    assert!(!world.shard.refers_to(&Digest([1; 32])), "the one before it is gone");
    world.run(expire(first.id.clone(), first.fence));
    assert_eq!(world.run(keep(&first, "w", 4)), refused(RefusalCode::StaleFence));
    let mut world = world.reload();
    let second = world.take(1).remove(0);
    assert_eq!((second.checkpoint, kept(&world, "t1")), (Some(true), Some(Digest([2; 32]))));
    assert_eq!(world.run(keep(&first, "w", 4)), refused(RefusalCode::StaleFence));
    assert!(matches!(world.run(keep(&second, "w", 5)), Reply::ObjectPut { .. }));
    world.run(complete(&second, "w"));
    assert_eq!(kept(&world, "t1"), None, "who is done needs none");
    assert_eq!(world.run(keep(&second, "w", 6)), refused(RefusalCode::TaskFinished));
    world.reload();
}

#[test]
fn a3_a_checkpoint_goes_with_its_task() {
    let mut world = World::new();
    world.add("t1");
    let grant = world.take(1).remove(0);
    world.run(keep(&grant, "w", 1));
    world.run(Command::Fail(Fail { retry: false, ..fail(&grant, "w") }));
    assert!(kept(&world, "t1").is_some(), "a retry goes on from it");
    world.run(Command::Retry(Retry { id: task_id("t1") }));
    let again = world.take(1).remove(0);
    assert_eq!((again.attempt, again.checkpoint), (1, Some(true)));
    world.run(Command::Cancel(Cancel { id: task_id("t1") }));
    world.run(Command::Drop(DropTask { id: task_id("t1") }));
    assert_eq!(kept(&world, "t1"), None);
    assert!(!world.shard.refers_to(&Digest([1; 32])));
}

#[test]
fn what_cannot_be_a_checkpoint_is_refused() {
    let mut world = World::new();
    world.add("t1");
    let grant = world.take(1).remove(0);
    let Command::Checkpoint(good) = keep(&grant, "w", 1) else { unreachable!() };
    let pieces = (limits::CHECKPOINT_BYTES_MAX >> 20) as usize + 1;
    let large = Checkpoint {
        size: limits::CHECKPOINT_BYTES_MAX + 1,
        chunks: vec![Digest([1; 32]); pieces].into(),
        ..good.clone()
    };
    assert_eq!(world.run(Command::Checkpoint(large)), refused(RefusalCode::TooLarge));
    let torn = Checkpoint { chunks: Vec::new().into(), ..good.clone() };
    assert_eq!(world.run(Command::Checkpoint(torn)), refused(RefusalCode::BadValue));
    let missing = Checkpoint { id: task_id("no"), ..good };
    assert_eq!(world.run(Command::Checkpoint(missing)), refused(RefusalCode::TaskNotFound));
}
