//! Objects: versions, conditions, lists, references; and all of it survives a snapshot (CH-3, CH-6, CH-7, CH-9, A3).

mod common;
use common::*;
use ikada_state::limits::{OBJECT_CHUNKS_MAX, OBJECT_VERSIONS_MAX};
use ikada_state::*;

const PIECE: u64 = 1 << 20;

fn bucket(name: &str) -> BucketName {
    BucketName::parse(name).unwrap()
}

fn object_name(name: &str) -> ObjectName {
    ObjectName::parse(name).unwrap()
}

/// An object of as many pieces as numbers, each filled with its number.
fn put(home: &str, name: &str, pieces: &[u8]) -> PutObject {
    PutObject {
        bucket: bucket(home),
        name: object_name(name),
        size: pieces.len() as u64 * PIECE,
        content_type: "text/plain".to_owned(),
        digest: Digest([pieces.iter().fold(7, |sum: u8, n| sum.wrapping_mul(31) ^ n); 32]),
        chunks: pieces.iter().map(|number| Digest([*number; 32])).collect::<Vec<_>>().into(),
        condition: PutCondition::Any,
        upload: None,
    }
}

fn delete(home: &str, name: &str, version: Option<u64>) -> Command {
    let (bucket, name) = (bucket(home), object_name(name));
    Command::DeleteObject(DeleteObject { bucket, name, version, condition: PutCondition::Any })
}

fn stored(world: &mut World, order: PutObject) -> u64 {
    match world.run(Command::PutObject(order)) {
        Reply::ObjectPut { version, fresh: true } => version,
        other => panic!("{other:?}"),
    }
}

fn found(world: &World, home: &str, name: &str) -> Option<Object> {
    let key = (Namespace::default(), bucket(home), object_name(name));
    world.shard.object(&key).map(|object| (**object).clone())
}

fn names(page: &ObjectPage) -> Vec<&str> {
    page.objects.iter().map(|object| object.name.as_str()).collect()
}

// CH-9
#[test]
fn ch_9_an_overwrite_is_a_new_version_and_old_ones_stay_readable() {
    let mut world = World::new();
    let first = stored(&mut world, put("b", "a/x", &[1]));
    let second = stored(&mut world, put("b", "a/x", &[2, 3]));
    assert!(second > first);
    let again = world.run(Command::PutObject(put("b", "a/x", &[2, 3])));
    assert_eq!(again, Reply::ObjectPut { version: second, fresh: false });
    let object = found(&world, "b", "a/x").unwrap();
    assert_eq!(object.newest().unwrap().version, second);
    assert_eq!(object.version(Some(first)).unwrap().size, PIECE);
    for number in 0..20 {
        stored(&mut world, put("b", "a/x", &[100 + number]));
    }
    let object = found(&world, "b", "a/x").unwrap();
    assert_eq!(object.versions.len(), OBJECT_VERSIONS_MAX);
    assert!(object.version(Some(first)).is_none(), "the oldest goes first");
    assert!(!world.shard.refers_to(&Digest([1; 32])));
    assert!(world.shard.refers_to(&Digest([119; 32])));
}

// CH-9
#[test]
fn ch_9_conditions_keep_writers_from_overwriting_each_other() {
    let mut world = World::new();
    let conditional = |condition, pieces: &[u8]| {
        Command::PutObject(PutObject { condition, ..put("b", "x", pieces) })
    };
    let failed = refused(RefusalCode::PreconditionFailed);
    assert_eq!(world.run(conditional(PutCondition::Present, &[1])), failed);
    assert_eq!(world.run(conditional(PutCondition::Match(Digest([1; 32])), &[1])), failed);
    let version = match world.run(conditional(PutCondition::Absent, &[1])) {
        Reply::ObjectPut { version, fresh: true } => version,
        other => panic!("{other:?}"),
    };
    assert_eq!(world.run(conditional(PutCondition::Absent, &[2])), failed);
    let seen = found(&world, "b", "x").unwrap().newest().unwrap().digest;
    let next = world.run(conditional(PutCondition::Match(seen), &[2]));
    assert!(matches!(next, Reply::ObjectPut { version: v, fresh: true } if v > version));
    assert_eq!(
        world.run(conditional(PutCondition::Match(seen), &[3])),
        failed,
        "seen too long ago"
    );
    let stale = Command::DeleteObject(DeleteObject {
        bucket: bucket("b"),
        name: object_name("x"),
        version: None,
        condition: PutCondition::Match(seen),
    });
    assert_eq!(world.run(stale), failed);
}

// CH-7
#[test]
fn ch_7_a_removed_object_is_gone_and_its_numbers_never_return() {
    let mut world = World::new();
    let not_found = refused(RefusalCode::ObjectNotFound);
    assert_eq!(world.run(delete("b", "x", None)), not_found);
    let first = stored(&mut world, put("b", "x", &[1]));
    let second = stored(&mut world, put("b", "x", &[1, 2]));
    assert_eq!(world.run(delete("b", "x", Some(first + 1_000))), not_found);
    assert_eq!(world.run(delete("b", "x", Some(first))), Reply::ObjectDeleted { versions: 1 });
    assert!(world.shard.refers_to(&Digest([1; 32])), "the other version has it too");
    assert_eq!(world.run(delete("b", "x", None)), Reply::ObjectDeleted { versions: 1 });
    assert_eq!(found(&world, "b", "x"), None);
    assert_eq!(world.shard.references(None, 10).digests, []);
    assert!(stored(&mut world, put("b", "x", &[1])) > second);
}

#[test]
fn a_resend_gives_the_first_answer() {
    let mut world = World::new();
    let order = Command::PutObject(put("b", "x", &[1]));
    let first = world.one(requested("r", order.clone()));
    stored(&mut world, put("b", "x", &[2]));
    assert_eq!(world.one(requested("r", order)), first);
    let newest = found(&world, "b", "x").unwrap().newest().unwrap().chunks[0];
    assert_eq!(newest, Digest([2; 32]), "a resend does not overwrite");
    let other = world.one(requested("r", Command::PutObject(put("b", "x", &[3]))));
    assert_eq!(other, refused(RefusalCode::IdempotencyConflict));
    let gone = world.one(requested("d", delete("b", "x", None)));
    assert_eq!(world.one(requested("d", delete("b", "x", None))), gone);
}

#[test]
fn lists_are_in_order_by_prefix_and_by_page() {
    let mut world = World::new();
    for name in ["logs/2", "logs/1", "logs/10", "log", "zoo", "logs!"] {
        stored(&mut world, put("b", name, &[1]));
    }
    stored(&mut world, put("a", "logs/0", &[1]));
    stored(&mut world, put("c", "logs/9", &[1]));
    let list = |prefix: &str, after: Option<&str>, limit| {
        world.shard.objects(&Namespace::default(), &bucket("b"), prefix, after, limit)
    };
    let page = list("logs/", None, 10);
    assert_eq!(names(&page), ["logs/1", "logs/10", "logs/2"]);
    assert_eq!(page.next, None);
    assert_eq!(names(&list("", None, 10)).len(), 6);
    let page = list("logs/", None, 2);
    assert_eq!(page.next.as_ref().map(ObjectName::as_str), Some("logs/10"));
    let page = list("logs/", Some("logs/10"), 2);
    assert_eq!((names(&page), &page.next), (vec!["logs/2"], &None));
    assert_eq!(names(&list("", Some("logs/2"), 9)), ["zoo"]);
    assert_eq!(names(&list("nothing", None, 9)), [""; 0]);
    let buckets = world.shard.buckets(&Namespace::default(), None, 10);
    assert_eq!(buckets, [bucket("a"), bucket("b"), bucket("c")]);
    let rest = world.shard.buckets(&Namespace::default(), Some(&bucket("a")), 1);
    assert_eq!(rest, [bucket("b")]);
    assert_eq!(world.shard.buckets(&Namespace::parse("other").unwrap(), None, 9), []);
}

#[test]
fn bad_orders_change_nothing() {
    let mut world = World::new();
    let good = put("b", "x", &[1, 2]);
    let long: Vec<Digest> = vec![Digest([1; 32]); OBJECT_CHUNKS_MAX + 1];
    let cases = [
        (PutObject { bucket: bucket("jobs"), ..good.clone() }, RefusalCode::BucketReserved),
        (PutObject { bucket: bucket("tasks"), ..good.clone() }, RefusalCode::BucketReserved),
        (PutObject { size: PIECE, ..good.clone() }, RefusalCode::BadValue),
        (PutObject { size: 2 * PIECE + 1, ..good.clone() }, RefusalCode::BadValue),
        (PutObject { content_type: "a\nb".to_owned(), ..good.clone() }, RefusalCode::BadValue),
        (PutObject { content_type: "x".repeat(129), ..good.clone() }, RefusalCode::TooLarge),
        (PutObject { size: u64::MAX, chunks: long.into(), ..good.clone() }, RefusalCode::TooLarge),
    ];
    for (order, code) in cases {
        assert_eq!(world.run(Command::PutObject(order)), refused(code));
    }
    assert_eq!(world.shard.sizes().objects, 0);
    let empty = PutObject { size: 0, chunks: vec![].into(), ..good };
    stored(&mut world, empty);
}

#[test]
fn names_of_objects_are_paths_and_never_climb() {
    for good in ["a", "a/b", "2026/ä ö.csv", "..a", "a..", "...", &"x".repeat(1024)] {
        assert!(ObjectName::parse(good).is_ok(), "{good}");
    }
    let bad =
        ["", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/.", "a\0b", "a\nb", "\u{7f}"];
    for bad in bad.iter().copied().chain([&*"x".repeat(1025)]) {
        assert!(ObjectName::parse(bad).is_err(), "{bad:?}");
    }
}

// CH-6, TQ-26
#[test]
fn ch_6_objects_survive_a_snapshot() {
    let mut world = World::new();
    for number in 0..600u32 {
        let pieces = [(number % 200) as u8, 255];
        stored(&mut world, put(["b", "c"][number as usize % 2], &format!("k/{number}"), &pieces));
    }
    let mut restored = world.reload();
    assert_eq!(restored.shard.hash(), world.shard.hash());
    assert_eq!(restored.shard.sizes(), world.shard.sizes());
    assert_eq!(found(&restored, "c", "k/599"), found(&world, "c", "k/599"));
    assert!(stored(&mut restored, put("b", "k/0", &[1])) > 600, "numbers go on");
}

// A3
#[test]
fn what_is_referred_to_is_never_collected() {
    let mut world = World::new();
    stored(&mut world, put("b", "x", &[1, 2]));
    let collect = |pieces: &[u8]| {
        let digests = pieces.iter().map(|number| Digest([*number; 32])).collect::<Vec<_>>();
        Command::Collect(Collect { node: 1, digests: digests.into() })
    };
    assert_eq!(world.run(collect(&[9])), Reply::Collected);
    assert_eq!(world.run(collect(&[9, 2])), refused(RefusalCode::BlobReferenced));
    assert_eq!(world.run(collect(&[])), refused(RefusalCode::TooLarge));
    let page = world.shard.references(Some(&Digest([1; 32])), 1);
    assert_eq!((page.digests, page.more), (vec![Digest([2; 32])], false));
    assert!(world.shard.references(None, 1).more);
    world.run(delete("b", "x", None));
    assert_eq!(world.run(collect(&[1, 2])), Reply::Collected);
}
