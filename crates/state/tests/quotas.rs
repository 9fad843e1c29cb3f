//! Quotas of namespaces: judged by share, per item, not by who asked first; counted for every namespace (X7, F-34).

mod common;
use common::*;
use ikada_state::*;

const MIB: u64 = 1 << 20;

fn space(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

fn within(namespace: &str, command: Command) -> Order {
    Order { namespace: space(namespace), request: None, command }
}

fn set(change: QuotaChange) -> Command {
    Command::SetQuota(SetQuota { change })
}

fn pending(count: u64) -> Command {
    set(QuotaChange { pending_max: Some(count), ..QuotaChange::default() })
}

fn submit(namespace: &str, id: &str) -> Order {
    within(namespace, Command::Enqueue(enqueue(id, "q")))
}

fn sized(namespace: &str, id: &str, bytes: u64) -> Order {
    let task = Enqueue::new(task_id(id), queue("q"), vec![7; bytes as usize]);
    within(namespace, Command::Enqueue(task))
}

fn created(id: &str) -> Reply {
    Reply::Enqueued { id: task_id(id), created: true }
}

fn seen(shard: &Shard, namespace: &str) -> NamespaceView {
    let views = shard.namespaces(false);
    views.into_iter().find(|view| view.namespace.as_str() == namespace).unwrap()
}

fn claim_in(world: &mut World, namespace: &str, max: u32) -> Vec<Grant> {
    match world.one(within(namespace, Command::Claim(claim("w", &["q"], max)))) {
        Reply::Claimed { tasks } => tasks,
        other => panic!("claim was answered with {other:?}"),
    }
}

#[test]
fn x_7_a_full_namespace_is_refused_item_by_item_and_others_are_not() {
    let mut world = World::new();
    assert_eq!(world.one(within("team", pending(2))), Reply::QuotaSet { version: 1 });
    assert_eq!(world.one(within("team", pending(2))), Reply::QuotaSet { version: 1 }, "a resend");
    let batch =
        [submit("team", "a"), submit("team", "b"), submit("team", "c"), submit("other", "c")];
    let full = refused(RefusalCode::NamespaceFull);
    assert_eq!(world.give(&batch), [created("a"), created("b"), full.clone(), created("c")]);
    let again = Reply::Enqueued { id: task_id("a"), created: false };
    assert_eq!(world.one(submit("team", "a")), again, "what is there is told, not refused");
    let grant = claim_in(&mut world, "team", 1).remove(0);
    assert_eq!(world.one(submit("team", "c")), full, "a claimed task is not finished");
    assert_eq!(world.one(within("team", complete(&grant, "w"))), Reply::Completed);
    assert_eq!(world.one(submit("team", "c")), created("c"));
    let view = seen(&world.shard, "team");
    assert_eq!((view.pending, view.submitted, view.quota.pending_max), (2, 3, 2));
    assert_eq!(world.one(within("team", pending(0))), Reply::QuotaSet { version: 2 });
    assert_eq!(world.one(submit("team", "d")), created("d"), "0 is no bound");
}

// TQ-4: the first answer is the answer.
#[test]
fn x_7_a_refusal_by_quota_is_judged_afresh_under_the_same_request() {
    let mut world = World::new();
    world.one(within("team", pending(1)));
    world.one(submit("team", "a"));
    let resent = || Order { request: Some(key("r")), ..submit("team", "b") };
    assert_eq!(world.one(resent()), refused(RefusalCode::NamespaceFull));
    let grant = claim_in(&mut world, "team", 1).remove(0);
    world.one(within("team", complete(&grant, "w")));
    assert_eq!(world.one(resent()), created("b"));
    assert_eq!(world.one(resent()), created("b"), "though the namespace is full again");
}

#[test]
fn x_7_bytes_of_waiting_tasks_are_bounded() {
    let mut world = World::new();
    let bytes_max = Some(MIB + 100);
    world.one(within("team", set(QuotaChange { bytes_max, ..QuotaChange::default() })));
    assert_eq!(world.one(sized("team", "a", MIB)), created("a"));
    assert_eq!(world.one(sized("team", "b", 101)), refused(RefusalCode::NamespaceBytes));
    assert_eq!(world.one(sized("team", "b", 100)), created("b"));
    assert_eq!(seen(&world.shard, "team").bytes, MIB + 100);
    let grant = claim_in(&mut world, "team", 1).remove(0);
    world.one(within("team", complete(&grant, "w")));
    assert_eq!(seen(&world.shard, "team").bytes, 100);
}

#[test]
fn x_7_retries_are_judged_and_follow_ups_only_counted() {
    let mut world = World::new();
    world.one(within("team", pending(1)));
    world.one(submit("team", "a"));
    world.one(within("team", Command::Cancel(Cancel { id: task_id("a") })));
    world.one(submit("team", "b"));
    let retry = || within("team", Command::Retry(Retry { id: task_id("a") }));
    assert_eq!(world.one(retry()), refused(RefusalCode::NamespaceFull));
    let grant = claim_in(&mut world, "team", 1).remove(0);
    let then = [enqueue("b:c", "q"), enqueue("b:d", "q")];
    let Command::Complete(done) = complete(&grant, "w") else { panic!("no completion") };
    let done = Command::Complete(Complete { then: Some(encode_then(&then)), ..done });
    assert_eq!(
        world.one(within("team", done)),
        Reply::Completed,
        "the work that was done stays done"
    );
    assert_eq!(seen(&world.shard, "team").pending, 2);
    assert_eq!(world.one(retry()), refused(RefusalCode::NamespaceFull));
}

fn put(bucket: &str, name: &str, size: u64) -> Order {
    let chunk = Digest([size as u8; 32]);
    within(
        "team",
        Command::PutObject(PutObject {
            bucket: BucketName::parse(bucket).unwrap(),
            name: ObjectName::parse(name).unwrap(),
            size,
            content_type: "text/plain".to_owned(),
            digest: chunk,
            chunks: Digests::from(vec![chunk]),
            condition: PutCondition::Any,
            upload: None,
        }),
    )
}

#[test]
fn x_7_bytes_of_objects_are_bounded_and_come_back_with_a_removal() {
    let mut world = World::new();
    let object_bytes_max = Some(100);
    world.one(within("team", set(QuotaChange { object_bytes_max, ..QuotaChange::default() })));
    assert!(matches!(world.one(put("b", "one", 60)), Reply::ObjectPut { fresh: true, .. }));
    assert_eq!(world.one(put("b", "two", 41)), refused(RefusalCode::NamespaceObjects));
    assert!(matches!(world.one(put("b", "two", 40)), Reply::ObjectPut { fresh: true, .. }));
    assert_eq!(seen(&world.shard, "team").object_bytes, 100);
    let (bucket, name) = (BucketName::parse("b").unwrap(), ObjectName::parse("one").unwrap());
    let condition = PutCondition::Any;
    let delete = Command::DeleteObject(DeleteObject { bucket, name, version: None, condition });
    world.one(within("team", delete));
    assert_eq!(seen(&world.shard, "team").object_bytes, 40);
    assert!(matches!(world.one(put("b", "three", 60)), Reply::ObjectPut { fresh: true, .. }));
}

// CH-1: the whole takes the place of its parts, so that a quota of the object's size is enough.
#[test]
fn x_7_an_object_made_of_parts_takes_their_place_in_the_quota() {
    let mut world = World::new();
    let object_bytes_max = Some(100);
    world.one(within("team", set(QuotaChange { object_bytes_max, ..QuotaChange::default() })));
    for part in ["u/00001", "u/00002", "v/00001"] {
        let size = if part.starts_with('u') { 40 } else { 15 };
        assert!(matches!(world.one(put("s3-uploads", part, size)), Reply::ObjectPut { .. }));
    }
    let whole = |upload: Option<&str>, size: u64| {
        let mut order = put("b", "whole", size);
        let Command::PutObject(put) = &mut order.command else { panic!("no put") };
        put.upload = upload.map(|upload| ObjectName::parse(upload).unwrap());
        order
    };
    let full = refused(RefusalCode::NamespaceObjects);
    assert_eq!(world.one(whole(None, 80)), full);
    assert_eq!(world.one(whole(Some("v"), 80)), full, "the parts of another upload stay");
    assert_eq!(world.one(whole(Some("u/0"), 80)), full, "nor is a beginning of names an upload");
    assert_eq!(world.one(whole(Some("u"), 86)), full, "what is more than the parts is judged");
    let key = |order: Order| {
        let id = RequestId::parse("once").unwrap();
        Order { request: Some(RequestKey { id, item: 0 }), ..order }
    };
    let stored = world.one(key(whole(Some("u"), 80)));
    assert!(matches!(stored, Reply::ObjectPut { fresh: true, .. }));
    assert_eq!(world.one(key(whole(None, 80))), stored, "a resend is known without its parts");
    assert_eq!(seen(&world.shard, "team").object_bytes, 175, "until the parts have gone");
    assert_eq!(world.one(put("b", "more", 1)), full);
}

#[test]
fn b4_35_an_object_that_is_not_made_of_parts_is_encoded_as_before() {
    let Command::PutObject(plain) = put("b", "one", 60).command else { panic!("no put") };
    let bytes = |put: &PutObject| minicbor::to_vec(put).unwrap();
    assert_eq!(bytes(&plain)[0], 0x87, "seven fields");
    let parted = PutObject { upload: Some(ObjectName::parse("u").unwrap()), ..plain.clone() };
    assert_eq!(bytes(&parted)[0], 0x88);
    let level = |put: &PutObject| Command::PutObject(put.clone()).level();
    assert_eq!((level(&plain), level(&parted)), (0, LEVEL));
}

// TQ-26
#[test]
fn x_7_every_shard_has_its_share_also_after_a_snapshot() {
    let shard = |number| World::of(Shard::genesis(number, 3, &[]));
    let (mut zero, mut two) = (shard(0), shard(2));
    assert_eq!(
        zero.one(within("team", pending(2))),
        refused(RefusalCode::BadValue),
        "one has none"
    );
    assert_eq!(two.one(within("team", pending(9))), refused(RefusalCode::WrongShard));
    assert_eq!(zero.one(within("team", pending(4))), Reply::QuotaSet { version: 1 });
    assert!(!seen(&zero.shard, "team").settled, "two shards have not heard of it");
    for item in [1, 2].map(|target| zero.shard.outbox_pending(target, 1, 9).remove(0)) {
        if item.target == 2 {
            let (sequence, message) = (item.sequence, item.message);
            two.run(Command::Deliver(Deliver { source: 0, sequence, message }));
        }
        zero.run(Command::Acked(Acked { target: item.target, sequence: item.sequence }));
    }
    assert!(seen(&zero.shard, "team").settled);
    let shares = |world: &World| world.shard.quota(&space("team")).unwrap().pending_share;
    assert_eq!((shares(&zero), shares(&two)), (2, 1));
    let (mut zero, mut two) = (zero.reload(), two.reload());
    let full = refused(RefusalCode::NamespaceFull);
    let batch = ["a", "b", "c"].map(|id| submit("team", id));
    assert_eq!(zero.give(&batch), [created("a"), created("b"), full.clone()]);
    assert_eq!(two.give(&batch), [created("a"), full.clone(), full]);
}

#[test]
fn x_7_growth_shares_quotas_out_anew() {
    let mut zero = World::of(Shard::genesis(0, 1, &[]));
    zero.one(within("team", pending(4)));
    let grow = Command::Grow(Grow { shards: 2, voters: vec![1] });
    assert!(matches!(zero.run(grow), Reply::Growing { shards: 2, .. }));
    let record = zero.shard.quota(&space("team")).unwrap();
    assert_eq!((record.pending_share, record.quota.version), (2, 2));
    let mut one = World::of(Shard::added(1, 2, Limits::default()));
    for OutboxItem { sequence, message, .. } in zero.shard.outbox_pending(1, 1, 9) {
        one.run(Command::Deliver(Deliver { source: 0, sequence, message }));
    }
    assert_eq!(one.shard.quota(&space("team")).unwrap().pending_share, 2);
}

#[test]
fn x_7_quotas_are_bounded_in_number() {
    let mut world = World::new();
    for number in 0..limits::QUOTAS_MAX {
        world.one(within(&format!("n{number}"), pending(1)));
    }
    assert_eq!(world.one(within("more", pending(1))), refused(RefusalCode::TooManyQuotas));
    assert_eq!(world.one(within("n1", pending(5))), Reply::QuotaSet { version: 2 });
}

#[test]
fn x_7_a_job_goes_on_as_far_as_the_quota_reaches() {
    let mut world = World::new();
    world.one(within("team", pending(2)));
    assert_eq!(world.one(within("team", five_parts())), Reply::JobSubmitted { created: true });
    world.tick(1);
    assert_eq!(seen(&world.shard, "team").pending, 2);
    assert_eq!(world.shard.next_scheduled_ms(), None, "an entry would change nothing");
    let grant = claim_in(&mut world, "team", 1).remove(0);
    world.one(within("team", complete(&grant, "w")));
    assert_eq!(seen(&world.shard, "team").pending, 2, "the next task took its place");
}

fn five_parts() -> Command {
    let name = ProgramName::parse("wordcount").unwrap();
    let stage = StageSpec {
        name: StageName::parse("map").unwrap(),
        program: ProgramRef { name, kind: ProgramKind::Handler, digest: None, entry: None },
        settings: Vec::new(),
        source: StageSource::Range { from: 0, to: 5, step: 1 },
        after: Vec::new(),
        settle: Settle::All,
    };
    let spec = JobSpec { name: "five".into(), ..job_spec(vec![stage]) };
    Command::SubmitJob(SubmitJob::new(JobId::parse("five").unwrap(), spec))
}
