//! Growth: slots move with everything under them, once, whatever is delivered twice, restored or asked meanwhile
//! (TQ-29, Q1, Q3, Q5, Q8, Q11).

mod common;
use common::*;
use ikada_state::*;
use proptest::prelude::*;

/// All shards of a cluster, with a hand that carries their messages.
struct Cluster {
    shards: Vec<World>,
    /// Snapshot and restore both shards after some deliveries.
    reloads: bool,
}

impl Cluster {
    fn founded(shards: u16) -> Cluster {
        let world = |shard| World {
            check_every: 29,
            ..World::of(Shard::genesis_with(shard, shards, &[], limits()))
        };
        Cluster { shards: (0..shards).map(world).collect(), reloads: false }
    }

    fn grow(&mut self, shards: u16) -> Reply {
        self.shards[0].run(Command::Grow(Grow { shards, voters: vec![1, 2, 3] }))
    }

    /// What every node does when shard 0 names more shards than are open.
    fn open_added(&mut self) {
        let count = self.shards[0].shard.shards();
        for shard in self.shards.len() as u16..count {
            assert_eq!(
                self.shards[0].shard.growth().unwrap().voters_of(shard),
                Some(&[1, 2, 3][..])
            );
            let mut world = World::of(Shard::added(shard, count, limits()));
            (world.now_ms, world.check_every) = (self.shards[0].now_ms, 29);
            self.shards.push(world);
        }
    }

    /// Delivers the first messages of one line, some of them twice; false if there was none.
    fn deliver(&mut self, source: u16, target: u16, count: usize, acked: bool) -> bool {
        let items = self.shards[usize::from(source)].shard.outbox_pending(target, 0, count);
        let Some(last) = items.last().map(|item| item.sequence) else {
            return false;
        };
        for item in items {
            let (sequence, message) = (item.sequence, item.message);
            let order = Command::Deliver(Deliver { source, sequence, message });
            let reply = self.shards[usize::from(target)].run(order);
            assert!(matches!(reply, Reply::Delivered { .. }), "{reply:?}");
        }
        if acked {
            self.shards[usize::from(source)].run(Command::Acked(Acked { target, sequence: last }));
        }
        let index = self.shards[usize::from(target)].shard.applied().index;
        if self.reloads && index.is_multiple_of(7) {
            for shard in [source, target] {
                let world = &mut self.shards[usize::from(shard)];
                *world = world.reload();
            }
        }
        true
    }

    /// Delivers until nothing waits.
    fn settle(&mut self) {
        loop {
            let count = self.shards.len() as u16;
            let lines = (0..count).flat_map(|s| (0..count).map(move |t| (s, t)));
            if !lines.fold(false, |any, (s, t)| self.deliver(s, t, 3, true) | any) {
                return;
            }
        }
    }

    fn home(&self, id: &TaskId) -> usize {
        let map = self.shards[0].shard.slot_map().unwrap();
        usize::from(map.route(&Namespace::default(), id.routing_key()))
    }

    /// Gives an order to the shard that the map names.
    fn route(&mut self, order: Order) -> Reply {
        let home = order.command.task().map_or(0, |id| self.home(id));
        self.shards[home].one(order)
    }

    /// Where a task is; it must not be in two places.
    fn find(&self, id: &str) -> Option<(usize, TaskView)> {
        let namespace = Namespace::default();
        let places = self.shards.iter().enumerate();
        let found: Vec<(usize, TaskView)> = places
            .filter_map(|(at, world)| Some((at, world.shard.task(&namespace, &task_id(id))?)))
            .collect();
        assert!(found.len() <= 1, "{id} is in {} places", found.len());
        found.into_iter().next()
    }

    fn totals(&self) -> QueueCounters {
        let mut sum = QueueCounters::default();
        for view in self.shards.iter().flat_map(|world| world.shard.queues(None)) {
            let counters = view.counters;
            sum.submitted += counters.submitted;
            sum.done += counters.done;
            sum.dead += counters.dead;
            sum.cancelled += counters.cancelled;
            sum.removed += counters.removed;
        }
        sum
    }
}

fn limits() -> Limits {
    Limits { promote_per_entry_max: 4, ..Limits::default() }
}

fn slots_of(cluster: &Cluster, shard: u16) -> usize {
    let map = cluster.shards[0].shard.slot_map().unwrap();
    (0..SLOTS).filter(|slot| map.shard(*slot) == shard).count()
}

// TQ-21, TQ-29: a report about a task that is no longer there is known where its slot went.
#[test]
fn tq_29_reports_about_removed_tasks_move_with_their_slot() {
    let mut cluster = Cluster::founded(1);
    cluster.shards[0].run(Command::KeepDead(KeepDead { shard: 0 }));
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    cluster.shards[0].run(Command::SetQueue(set));
    let mut grants = Vec::new();
    for number in 0..40 {
        cluster.shards[0].put(enqueue(&format!("t{number}"), "q"));
        let grant = cluster.shards[0].take(1).remove(0);
        assert_eq!(cluster.shards[0].run(complete(&grant, "w")), Reply::Completed);
        grants.push(grant);
    }
    cluster.grow(2);
    cluster.open_added();
    cluster.settle();
    assert!(grants.iter().any(|grant| cluster.home(&grant.id) == 1), "some have moved");
    for grant in &grants {
        assert_eq!(cluster.route(order(complete(grant, "w"))), Reply::Completed, "{}", grant.id);
        let stranger = order(complete(grant, "x"));
        assert_eq!(cluster.route(stranger), refused(RefusalCode::TaskNotFound));
    }
}

/// 300 tasks over all shards: some keyed, some claimed, some finished, some to come.
fn fill(cluster: &mut Cluster) -> Vec<(String, Grant)> {
    for number in 0..300 {
        let id = match number % 3 {
            0 => format!("key{}:t{number}", number % 30),
            _ => format!("t{number}"),
        };
        let mut task = enqueue(&id, "q");
        task.delay_ms = (number % 10 == 9).then_some(60_000);
        let reply = cluster.route(requested(&format!("r{number}"), Command::Enqueue(task)));
        assert_eq!(reply, Reply::Enqueued { id: task_id(&id), created: true });
    }
    let mut held = Vec::new();
    for shard in 0..cluster.shards.len() {
        for (number, grant) in cluster.shards[shard].take(60).into_iter().enumerate() {
            if number % 2 == 0 {
                let done = cluster.shards[shard].run(complete(&grant, "w"));
                assert_eq!(done, Reply::Completed);
            } else {
                held.push((grant.id.as_str().to_owned(), grant));
            }
        }
    }
    held
}

#[test]
fn tq_29_growth_moves_everything_and_nothing_twice() {
    for reloads in [false, true] {
        let mut cluster = Cluster::founded(2);
        cluster.reloads = reloads;
        let pause = QueueChange { paused: Some(true), ..QueueChange::default() };
        let pause = SetQueue { queue: queue("idle"), change: pause, expected_version: None };
        cluster.shards[0].run(Command::SetQueue(pause));
        let held = fill(&mut cluster);
        let before = cluster.totals();
        assert_eq!(cluster.grow(3), Reply::Growing { shards: 3, slots: 1365 });
        assert_eq!(cluster.grow(4), refused(RefusalCode::GrowthRunning));
        cluster.open_added();
        cluster.settle();
        assert_eq!(cluster.shards[0].shard.growth_view(), None, "the growth is over");
        assert_eq!(slots_of(&cluster, 2), 1365);
        assert!(cluster.shards[2].shard.sizes().claimed > 5);
        assert_eq!(cluster.totals(), before, "no task came or went");
        for number in 0..300 {
            let id = match number % 3 {
                0 => format!("key{}:t{number}", number % 30),
                _ => format!("t{number}"),
            };
            let (at, view) = cluster.find(&id).expect("every task is somewhere");
            assert_eq!(at, cluster.home(&task_id(&id)), "and where the map says");
            assert_eq!(view.payload.as_ref(), id.as_bytes());
            // Q8: a resend is answered as the first time, wherever it goes now.
            let mut task = enqueue(&id, "q");
            task.delay_ms = (number % 10 == 9).then_some(60_000);
            let resend = requested(&format!("r{number}"), Command::Enqueue(task));
            let first = Reply::Enqueued { id: task_id(&id), created: true };
            assert_eq!(cluster.route(resend.clone()), first);
            if at == 2 {
                // Whoever still has the first map asks the shard that had the slot.
                let slot = slot_of(&Namespace::default(), task_id(&id).routing_key());
                let old = cluster.shards[usize::from(slot % 2)].one(resend);
                assert_eq!(old, refused(RefusalCode::SlotMoved));
            }
        }
        // Claims hold: the first fence is good, and only once.
        for (id, grant) in held {
            let (at, view) = cluster.find(&id).unwrap();
            assert_eq!((view.state, view.fence), (TaskState::Claimed, grant.fence));
            assert!(cluster.shards[at].shard.grants() >= grant.fence.counter());
            assert_eq!(cluster.route(order(complete(&grant, "w"))), Reply::Completed);
        }
        let settings =
            cluster.shards[2].shard.queue(&Namespace::default(), &queue("idle")).unwrap();
        assert!(settings.settings.paused, "the new shard knows the settings");
    }
}

#[test]
fn a_keys_line_keeps_its_order_on_the_way() {
    let mut cluster = Cluster::founded(1);
    for number in 0..40 {
        for key in ["a", "b", "c", "d", "e", "f"] {
            let id = format!("{key}:t{number}");
            cluster.route(order(Command::Enqueue(enqueue(&id, "q"))));
        }
    }
    let first = cluster.shards[0].take(100);
    assert_eq!(first.len(), 6, "one of each key");
    cluster.grow(4);
    cluster.open_added();
    cluster.settle();
    for world in &mut cluster.shards {
        assert_eq!(world.take(100).len(), 0, "the first of each key is still held");
    }
    for grant in &first {
        assert_eq!(cluster.route(order(complete(grant, "w"))), Reply::Completed);
    }
    for number in 1..40 {
        let mut grants = Vec::new();
        for world in &mut cluster.shards {
            grants.extend(world.take(100));
        }
        assert_eq!(grants.len(), 6);
        for grant in grants {
            assert!(grant.id.as_str().ends_with(&format!(":t{number}")), "{}", grant.id);
            assert_eq!(cluster.route(order(complete(&grant, "w"))), Reply::Completed);
        }
    }
}

#[test]
fn tombstones_travel_with_the_slots() {
    let mut cluster = Cluster::founded(1);
    let void = |shard| Command::Void(Void { shard, request: RequestId::parse("late").unwrap() });
    assert_eq!(cluster.shards[0].run(void(0)), Reply::Voided);
    cluster.grow(2);
    cluster.open_added();
    cluster.settle();
    let id = (0..).map(|n| format!("t{n}")).find(|id| cluster.home(&task_id(id)) == 1).unwrap();
    let late = requested("late", Command::Enqueue(enqueue(&id, "q")));
    assert_eq!(cluster.route(late), refused(RefusalCode::RequestVoided));
}

// TQ-22, TQ-29: also of tasks that are no longer there.
#[test]
fn tq_22_names_of_removed_tasks_travel_with_the_slots() {
    let mut cluster = Cluster::founded(1);
    cluster.shards[0].run(Command::KeepDead(KeepDead { shard: 0 }));
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    cluster.shards[0].run(Command::SetQueue(set));
    let ids: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
    for id in &ids {
        cluster.shards[0].put(enqueue(id, "q"));
        let grant = cluster.shards[0].take(1).remove(0);
        assert_eq!(cluster.shards[0].run(complete(&grant, "w")), Reply::Completed);
        assert!(cluster.find(id).is_none());
    }
    cluster.grow(2);
    cluster.open_added();
    cluster.settle();
    assert!(ids.iter().any(|id| cluster.home(&task_id(id)) == 1));
    for id in &ids {
        let known = Reply::Enqueued { id: task_id(id), created: false };
        assert_eq!(cluster.route(order(Command::Enqueue(enqueue(id, "q")))), known);
    }
}

#[test]
fn growth_has_bounds() {
    let mut cluster = Cluster::founded(4);
    for shards in [0, 3, 4, limits::SHARDS_MAX + 1] {
        assert_eq!(cluster.grow(shards), refused(RefusalCode::BadShardCount), "{shards}");
    }
    let nobody = Command::Grow(Grow { shards: 5, voters: Vec::new() });
    assert_eq!(cluster.shards[0].run(nobody), refused(RefusalCode::BadValue));
    let elsewhere = Command::Grow(Grow { shards: 5, voters: vec![1] });
    assert_eq!(cluster.shards[1].run(elsewhere), refused(RefusalCode::WrongShard));
    let first = requested("g", Command::Grow(Grow { shards: 5, voters: vec![1] }));
    let again = requested("g", Command::Grow(Grow { shards: 5, voters: vec![2] }));
    assert_eq!(cluster.shards[0].one(first), Reply::Growing { shards: 5, slots: 819 });
    assert_eq!(cluster.shards[0].one(again), Reply::Growing { shards: 5, slots: 819 });
}

#[test]
fn a_second_growth_begins_where_the_first_ended() {
    let mut cluster = Cluster::founded(1);
    fill(&mut cluster);
    let before = cluster.totals();
    for shards in [2, 3, 5] {
        assert!(matches!(cluster.grow(shards), Reply::Growing { .. }));
        cluster.open_added();
        cluster.settle();
    }
    assert_eq!(cluster.totals(), before);
    let shares: Vec<usize> = (0..5).map(|shard| slots_of(&cluster, shard)).collect();
    assert!(shares.iter().all(|share| (819..=820).contains(share)), "{shares:?}");
}

/// One random step of the world around a growth.
type Step = (u8, u8, u8);

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    // TQ-29: whatever the interleaving, a task is in one place, done once, and every resend is answered alike.
    #[test]
    fn tq_29_any_interleaving_loses_nothing(steps in prop::collection::vec(any::<Step>(), 50..400)) {
        let mut cluster = Cluster::founded(12);
        let mut accepted = std::collections::BTreeSet::new();
        let mut finished = std::collections::BTreeSet::new();
        let mut held: Vec<Grant> = Vec::new();
        let mut growing = false;
        for (kind, a, b) in steps {
            let id = format!("k{}:t{}", a % 40, b % 8);
            let count = cluster.shards.len() as u16;
            match kind % 12 {
                0..=3 => {
                    let task = Command::Enqueue(enqueue(&id, "q"));
                    match cluster.route(requested(&format!("r-{a}-{}", b % 8), task)) {
                        Reply::Enqueued { .. } => drop(accepted.insert(id)),
                        reply => assert_eq!(reply, refused(RefusalCode::SlotMoved)),
                    }
                }
                4 => held.extend(cluster.shards[usize::from(a) % usize::from(count)].take(3)),
                5 | 6 if !held.is_empty() => {
                    let grant = held.remove(usize::from(a) % held.len());
                    match cluster.route(order(complete(&grant, "w"))) {
                        Reply::Completed => {
                            let id = grant.id.as_str().to_owned();
                            prop_assert!(finished.insert(id), "completed twice");
                        }
                        reply => {
                            assert_eq!(reply, refused(RefusalCode::SlotMoved));
                            held.push(grant);
                        }
                    }
                }
                7 if !growing => {
                    growing = true;
                    cluster.grow(13 + u16::from(a % 2));
                    cluster.open_added();
                }
                8 => {
                    let at = usize::from(a) % usize::from(count);
                    cluster.shards[at] = cluster.shards[at].reload();
                }
                _ => {
                    let (source, target) = (u16::from(a) % count, u16::from(b) % count);
                    // Without an acknowledgement the same messages come again.
                    cluster.deliver(source, target, 1 + usize::from(b % 4), a % 5 > 0);
                }
            }
        }
        cluster.settle();
        for id in &accepted {
            let (at, view) = cluster.find(id).expect("an accepted task is kept");
            prop_assert_eq!(at, cluster.home(&task_id(id)));
            prop_assert_eq!(view.state == TaskState::Done, finished.contains(id));
        }
        for grant in held {
            prop_assert_eq!(cluster.route(order(complete(&grant, "w"))), Reply::Completed);
        }
    }
}

// A3: at every moment some shard refers to an object's blobs.
#[test]
fn objects_move_with_their_bucket_and_are_never_without_a_reference() {
    let digest = |number: u8| Digest::parse(&format!("{number:064x}")).unwrap();
    let put = |bucket: u8| {
        Command::PutObject(PutObject {
            bucket: BucketName::parse(&format!("bucket-{bucket}")).unwrap(),
            name: ObjectName::parse("file").unwrap(),
            size: 3,
            content_type: "text/plain".to_owned(),
            digest: digest(bucket),
            chunks: vec![digest(bucket)].into(),
            condition: PutCondition::Any,
            upload: None,
        })
    };
    let mut cluster = Cluster::founded(1);
    let mut versions = Vec::new();
    for bucket in 0..40 {
        match cluster.shards[0].one(requested(&format!("put-{bucket}"), put(bucket))) {
            Reply::ObjectPut { version, fresh: true } => versions.push(version),
            other => panic!("{other:?}"),
        }
    }
    cluster.grow(3);
    cluster.open_added();
    let referred = |cluster: &Cluster, bucket| {
        cluster.shards.iter().any(|world| world.shard.refers_to(&digest(bucket)))
    };
    let mut lines = (0..3).flat_map(|s| (0..3).map(move |t| (s, t))).cycle();
    while cluster.shards[0].shard.growth_view().is_some() {
        let (source, target) = lines.next().unwrap();
        cluster.deliver(source, target, 2, true);
        assert!((0..40).all(|bucket| referred(&cluster, bucket)), "a blob could be removed");
    }
    cluster.settle();
    let namespace = Namespace::default();
    for bucket in 0..40u8 {
        let name = BucketName::parse(&format!("bucket-{bucket}")).unwrap();
        let home = cluster.shards[0].shard.slot_map().unwrap().route(&namespace, name.as_str());
        let key = (namespace.clone(), name, ObjectName::parse("file").unwrap());
        for (shard, world) in cluster.shards.iter().enumerate() {
            let found = world.shard.object(&key).and_then(|object| object.newest());
            let expected = (shard == usize::from(home)).then_some(versions[usize::from(bucket)]);
            assert_eq!(found.map(|version| version.version), expected);
        }
        let shard = &mut cluster.shards[usize::from(home)];
        let again = shard.one(requested(&format!("put-{bucket}"), put(bucket)));
        assert_eq!(again, Reply::ObjectPut { version: versions[usize::from(bucket)], fresh: true });
    }
}

/// Q11: an old shard is told of a new one by nobody but the new one itself; seed 559 found a line that never moved on.
#[test]
fn tq_29_an_old_shard_hears_a_new_one_it_did_not_know() {
    let mut cluster = Cluster::founded(2);
    let from = |source: u16, sequence: u64| {
        Command::Deliver(Deliver { source, sequence, message: Message::Forget { slot: 7 } })
    };
    let old = &mut cluster.shards[1];
    assert_eq!(old.run(from(256, 1)), refused(RefusalCode::WrongShard), "no cluster has so many");
    assert_eq!(old.run(from(1, 1)), refused(RefusalCode::WrongShard), "its own number");
    assert_eq!(old.shard.shards(), 2);
    assert_eq!(old.run(from(3, 1)), Reply::Delivered { fresh: true });
    assert_eq!(old.run(from(3, 1)), Reply::Delivered { fresh: false });
    assert_eq!(old.shard.shards(), 4, "what it has to say to that one is kept from now on");
    let again = Shard::restore(old.shard.freeze().chunks()).expect("a whole snapshot");
    assert_eq!(again.hash(), old.shard.hash());
    // Shard 0 knows how many there are.
    assert_eq!(cluster.shards[0].run(from(3, 1)), refused(RefusalCode::WrongShard));
}

/// What an old shard has to say to a new one is kept only if it knows of it.
#[test]
fn tq_29_every_shard_knows_how_many_there_are_once_slots_have_moved() {
    for (before, after) in [(2, 3), (2, 4), (3, 5)] {
        let mut cluster = Cluster::founded(before);
        assert!(matches!(cluster.grow(after), Reply::Growing { .. }));
        cluster.open_added();
        cluster.settle();
        let counts: Vec<u16> = cluster.shards.iter().map(|world| world.shard.shards()).collect();
        assert_eq!(counts, vec![after; usize::from(after)], "{before} to {after}");
    }
}

// B4-57: a job moves with its tasks and outputs, and goes on where it arrives.
#[test]
fn b4_57_a_job_goes_on_in_the_shard_that_its_slot_moves_to() {
    let mut cluster = Cluster::founded(1);
    let name = ProgramName::parse("wordcount").unwrap();
    let program = ProgramRef { name, kind: ProgramKind::Handler, digest: None, entry: None };
    let stage = |name: &str, source: StageSource| StageSpec {
        name: StageName::parse(name).unwrap(),
        program: program.clone(),
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle: Settle::All,
    };
    let spec = JobSpec {
        retention_ms: 1_000,
        ..job_spec(vec![
            stage("map", StageSource::Range { from: 0, to: 3, step: 1 }),
            stage("sum", StageSource::Gather { of: vec![0], fan_in: 0 }),
        ])
    };
    let ids: Vec<JobId> = (0..8).map(|n| JobId::parse(&format!("j{n}")).unwrap()).collect();
    for id in &ids {
        cluster.shards[0].run(Command::SubmitJob(SubmitJob::new(id.clone(), spec.clone())));
    }
    let finish = |world: &mut World, count: u32| {
        for grant in world.take(count) {
            let output = Output {
                name: ObjectName::parse("out").unwrap(),
                size: 0,
                content_type: "text/plain".into(),
                digest: Digest([1; 32]),
                chunks: Vec::new().into(),
                address: None,
            };
            let (id, fence, worker) = (grant.id, grant.fence, worker("w"));
            let outputs = vec![output];
            let done = Complete {
                keeps_digest: None,
                id,
                fence,
                worker,
                result: None,
                then: None,
                outputs,
            };
            assert_eq!(world.run(Command::Complete(done)), Reply::Completed);
        }
    };
    finish(&mut cluster.shards[0], 9);
    cluster.grow(3);
    cluster.open_added();
    cluster.settle();
    let homes = |cluster: &Cluster, id: &JobId| -> Vec<usize> {
        let has = |world: &World| world.shard.job(&Namespace::default(), id).is_some();
        (0..cluster.shards.len()).filter(|at| has(&cluster.shards[*at])).collect()
    };
    let places: Vec<usize> = ids.iter().flat_map(|id| homes(&cluster, id)).collect();
    assert_eq!(places.len(), ids.len(), "each job is in one place");
    assert!(places.iter().any(|place| *place > 0), "some jobs moved: {places:?}");
    for world in &mut cluster.shards {
        for _ in 0..2 {
            world.tick(1);
            finish(world, 50);
        }
        ikada_state::invariants::all(&world.shard).unwrap();
    }
    for (id, place) in ids.iter().zip(places) {
        let job = cluster.shards[place].shard.job(&Namespace::default(), id).unwrap();
        assert_eq!(job.status(), JobStatus::Done, "{id}");
        let bucket = BucketName::parse("jobs").unwrap();
        let prefix = format!("{id}/");
        let page =
            cluster.shards[place].shard.objects(&Namespace::default(), &bucket, &prefix, None, 9);
        assert_eq!(page.objects.len(), 4, "{id}");
    }
}
