//! Random histories and random bytes: invariants hold after every entry, replicas agree also across
//! snapshots, and nothing panics on any input (Q14, F-23, TQ-26, TQ-27).

mod common;
use common::*;
use ikada_state::*;
use proptest::prelude::*;

/// One random step: numbers that the world turns into an order, so that shrinking stays simple.
type Step = (u8, u8, u8, u16);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>()), 1..120)
}

fn enqueue_of(a: u8, b: u8, c: u16) -> Enqueue {
    let mut task = enqueue(&name_of(a), ["q", "p"][usize::from(b % 2)]);
    task.priority = b.is_multiple_of(5).then_some(b % 12);
    task.delay_ms = c.is_multiple_of(3).then_some(u64::from(c % 500));
    task.max_attempts = b.is_multiple_of(7).then_some(u16::from(a % 4));
    if c % 3 == 1 {
        task.options = Some(Box::new(options_of(a, b, c)));
    }
    task
}

/// Names of tasks: half of them share two keys.
fn name_of(a: u8) -> String {
    match a % 4 {
        0 => format!("k{}:t{}", a / 4 % 2, a % 24),
        1 => format!("t{}:then", a % 24),
        _ => format!("t{}", a % 24),
    }
}

/// Rare settings; some of them are refused.
fn options_of(a: u8, b: u8, c: u16) -> TaskOptions {
    let then = a.is_multiple_of(3).then(|| {
        let routing = task_id(&name_of(a)).routing_key().to_owned();
        let key = if b.is_multiple_of(13) { "other" } else { &routing };
        let mut next = enqueue(&format!("{key}:then"), ["q", "p"][usize::from(a % 2)]);
        if c.is_multiple_of(2) {
            let below = encode_then(&[enqueue(&format!("{key}:more"), "q")]);
            let options = TaskOptions { then: Some(below), ..TaskOptions::default() };
            next.options = Some(Box::new(options));
        }
        encode_then(&[next])
    });
    TaskOptions {
        key_limit: b.is_multiple_of(4).then_some(u16::from(a % 4)),
        labels: match b % 5 {
            0 => labels(&[("zone", "a")]),
            1 => labels(&[("zone", "a"), ("gpu", "yes")]),
            _ => Labels::default(),
        },
        timeout_ms: b.is_multiple_of(3).then_some(u32::from(c)),
        deadline_ms: None,
        deadline_in_ms: a.is_multiple_of(2).then_some(u64::from(c % 900)),
        retention_ms: b.is_multiple_of(2).then_some(u64::from(c % 700)),
        then,
        work: a.is_multiple_of(5).then(|| work_of(b, c).into()),
        asked: None,
    }
}

/// What a task runs; some of it is refused.
fn work_of(b: u8, c: u16) -> Work {
    let name = ProgramName::parse("wordcount").unwrap();
    let kind = ProgramKind::ALL[usize::from(b % 3)];
    let digest = b.is_multiple_of(2).then_some(Digest([b; 32]));
    let entry = c.is_multiple_of(2).then(|| "x".repeat(usize::from(c % 300)));
    let part = JobPart {
        job: JobId::parse("j").unwrap(),
        stage: StageName::parse("s").unwrap(),
        index: 0,
        twin: None,
    };
    Work {
        program: ProgramRef { name, kind, digest, entry },
        settings: vec![("a".into(), "1".into()), (format!("b{b}"), "2".into())],
        inputs: (0..b % 4).map(input_of).collect(),
        job: c.is_multiple_of(17).then_some(part),
        reuse: c.is_multiple_of(3).then_some(true),
        output_url: c.is_multiple_of(7).then(|| "file:///out".repeat(usize::from(c % 99))),
    }
}

fn input_of(place: u8) -> Input {
    let name = ObjectName::parse(&format!("in/{place}")).unwrap();
    let source = match place {
        0 => InputSource::Text("line".into()),
        1 => InputSource::Url {
            url: "file:///x".into(),
            offset: Some(3),
            length: None,
            etag: Some("\"v1\"".into()),
        },
        _ => InputSource::Object {
            bucket: BucketName::parse("texts").unwrap(),
            key: name.clone(),
            version: None,
            digest: Some(Digest([place; 32])),
            offset: 3,
            length: Some(9),
        },
    };
    Input { name, source }
}

/// Files that a completion brings; some are refused.
fn outputs_of(b: u8, c: u16) -> Vec<Output> {
    let output = |place: u16| Output {
        name: ObjectName::parse(&format!("out{}", place % 3)).unwrap(),
        size: u64::from(b % 2) * 9,
        content_type: "text/plain".into(),
        digest: Digest([b; 32]),
        chunks: vec![Digest([b; 32]); usize::from(b % 2)].into(),
        address: b.is_multiple_of(16).then(|| format!("file:///out/{place}")),
    };
    (0..c % 5).map(output).collect()
}

/// Turns a step into an order; fences and workers are mostly right and sometimes wrong.
fn order_of(shard: &Shard, (kind, a, b, c): Step) -> Order {
    let id = match c % 4 {
        0 => task_id(&format!("j{}:map.{}", a % 3, b % 4)),
        1 if b.is_multiple_of(3) => task_id(&format!("j{}:map.{}.twin", a % 3, c % 4)),
        1 => task_id(&format!("j{}:sum.0", a % 3)),
        _ => task_id(&name_of(a)),
    };
    let view = shard.task(&Namespace::default(), &id);
    let current = view.map_or(0, |view| view.fence.0);
    let fence = Fence(if b.is_multiple_of(6) { u64::from(c % 40) } else { current });
    let name = if b.is_multiple_of(11) { "v" } else { "w" };
    let command = match kind % 32 {
        0..=4 => Command::Enqueue(enqueue_of(a, b, c)),
        5..=7 => {
            let labels = match a % 3 {
                0 => labels(&[("zone", "a"), ("gpu", "yes")]),
                1 => labels(&[("zone", "a")]),
                _ => Labels::default(),
            };
            let claim = claim(name, &["q", "p", "none"], u32::from(b % 5));
            let mark = |number: u8| Digest([number; 32]).mark();
            let holds = c.is_multiple_of(3).then(|| vec![mark(7), mark(a), mark(b)]);
            let share = c.is_multiple_of(5).then_some(u32::from(b % 3));
            Command::Claim(Claim { labels, holds, share, ..claim })
        }
        8 | 9 => {
            let result = Some(vec![a; usize::from(b)].into());
            let then = c
                .is_multiple_of(7)
                .then(|| encode_then(&[enqueue(&format!("{}:late", id.routing_key()), "q")]));
            Command::Complete(Complete {
                keeps_digest: None,
                id,
                fence,
                worker: worker(name),
                result,
                then,
                outputs: outputs_of(b, c),
            })
        }
        10 | 11 => Command::Fail(Fail {
            id,
            fence,
            worker: worker(name),
            error: vec![b; usize::from(b)].into(),
            retry: !a.is_multiple_of(5),
            delay_ms: c.is_multiple_of(4).then_some(u64::from(c % 300)),
            jitter_permille: c as i16,
        }),
        12 => {
            let cause =
                if a.is_multiple_of(2) { ExpireCause::Silent } else { ExpireCause::TimedOut };
            Command::Expire(Expire { id, fence, cause, jitter_permille: c as i16 })
        }
        13 if a.is_multiple_of(5) => Command::Checkpoint(Checkpoint {
            id,
            fence,
            worker: worker(name),
            size: u64::from(b % 2) * 9,
            digest: Digest([b; 32]),
            chunks: vec![Digest([b; 32]); usize::from(b % 2)].into(),
        }),
        13 if a.is_multiple_of(2) => Command::Duplicate(Duplicate { id, fence }),
        13 => Command::Unclaim(Unclaim { id, fence }),
        14 => Command::Cancel(Cancel { id }),
        15 => Command::Retry(Retry { id }),
        16 => Command::Drop(DropTask { id }),
        17 => {
            let action = SweepAction::ALL[usize::from(a) % SweepAction::ALL.len()];
            let line = queue(["q", "p"][usize::from(b % 2)]);
            Command::Sweep(Sweep { shard: 0, queue: line, action, from: u32::from(c % 9) })
        }
        18 => {
            let request = key(&format!("r{}", c % 64)).id;
            match a.is_multiple_of(8) {
                true => Command::KeepDead(KeepDead { shard: u16::from(b % 7 == 6) }),
                false => Command::Void(Void { shard: u16::from(b % 7 == 6), request }),
            }
        }
        19 => object_command(shard, (kind, a, b, c)),
        20..=22 => schedule_command(shard, (kind, a, b, c)),
        24 | 25 => token_command((kind, a, b, c)),
        26 => member_command(shard, a, b, c),
        27 | 28 => lease_command(shard, a, b, c),
        29 | 30 => job_command(a, b, c),
        31 => worker_command(a, b, c),
        _ => {
            let change = QueueChange {
                paused: c.is_multiple_of(3).then_some(b.is_multiple_of(2)),
                retention_count: b.is_multiple_of(3).then_some(u32::from(a % 8)),
                retention_ms: b.is_multiple_of(4).then_some(u64::from(c)),
                pending_max: Some(u64::from(a % 40)),
                timeout_ms: c.is_multiple_of(5).then_some(u32::from(c)),
                deadline_in_ms: c.is_multiple_of(9).then_some(u64::from(a % 3) * 400),
                key_limit: a.is_multiple_of(6).then_some(u16::from(b % 3)),
                dead_max: c.is_multiple_of(7).then_some(u32::from(a % 12)),
                dead_retention_ms: c.is_multiple_of(11).then_some(u64::from(c)),
                jitter_permille: c.is_multiple_of(13).then_some(c % 600),
                ..QueueChange::default()
            };
            let line = queue(["q", "p"][usize::from(b % 2)]);
            Command::SetQueue(SetQueue { queue: line, change, expected_version: None })
        }
    };
    let request = (c % 5 > 2).then(|| key(&format!("r{}", c % 64)));
    Order { namespace: Namespace::default(), request, command }
}

/// Three small jobs of two stages come and end; some orders are refused.
fn job_command(a: u8, b: u8, c: u16) -> Command {
    let id = JobId::parse(&format!("j{}", a % 3)).unwrap();
    if b.is_multiple_of(7) {
        return Command::CancelJob(CancelJob { id });
    }
    let stage = |name: &str, source: StageSource, settle: Settle| StageSpec {
        name: StageName::parse(name).unwrap(),
        program: work_of(0, 1).program,
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle,
    };
    let settle = [Settle::All, Settle::Any, Settle::Quorum(u32::from(b % 5))][usize::from(c % 3)];
    let numbers = StageSource::Range { from: 0, to: u64::from(b % 5), step: 1 };
    let sum = StageSource::Gather { of: vec![0], fan_in: 0 };
    let spec = JobSpec {
        name: "random".into(),
        queue: queue(["q", "p"][usize::from(b % 2)]),
        stages: vec![stage("map", numbers, settle), stage("sum", sum, Settle::All)],
        priority: None,
        max_attempts: b.is_multiple_of(3).then_some(1),
        ttl_ms: None,
        timeout_ms: None,
        backoff: None,
        labels: Labels::default(),
        retention_ms: u64::from(c % 900),
        reuse: c.is_multiple_of(5).then_some(true),
        duplicate_after: (!c.is_multiple_of(4)).then_some(2),
        output_url: c.is_multiple_of(3).then(|| "file:///out".to_owned()),
    };
    let mut submit = SubmitJob::new(id, spec);
    if !c.is_multiple_of(7) {
        submit.follow_newest_rules();
    }
    Command::SubmitJob(submit)
}

/// A few tokens come and go; some orders are refused.
fn token_command((kind, a, b, c): Step) -> Command {
    let id = TokenId::parse(&format!("t{}", a % 6)).unwrap();
    if kind % 32 == 25 {
        let lasting = c.is_multiple_of(2).then_some(true);
        return Command::RevokeToken(RevokeToken { id, lasting });
    }
    Command::AddToken(AddToken {
        id,
        name: PrincipalName::parse("ops").unwrap(),
        digest: SecretDigest([b % 3; 32]),
        role: Role::ALL[usize::from(b) % Role::ALL.len()],
        namespaces: (0..c % 20).map(|n| Namespace::parse(&format!("n{n}")).unwrap()).collect(),
        ttl_ms: u64::from(c % 700),
        first: a.is_multiple_of(5),
    })
}

/// A few workers come and go.
fn worker_command(a: u8, b: u8, c: u16) -> Command {
    let id = worker(["w", "v", "u"][usize::from(a % 3)]);
    let session = SessionId(u64::from(b % 3));
    match c % 5 {
        0 => Command::DrainWorker(DrainWorker { id }),
        1 => {
            let session = b.is_multiple_of(2).then_some(session);
            Command::RemoveWorker(RemoveWorker { id, session, forget: a.is_multiple_of(4) })
        }
        _ => Command::RegisterWorker(RegisterWorker {
            id,
            session,
            slots: u32::from(c % 9),
            labels: Labels::default(),
            queues: vec![queue("q")],
            version: "1".repeat(usize::from(b % 70)),
            replaces: b.is_multiple_of(5).then_some(SessionId(u64::from(a % 3))),
        }),
    }
}

/// Two leases with a few holders, some of them bound to attempts; marks and fences are mostly right.
fn lease_command(shard: &Shard, a: u8, b: u8, c: u16) -> Command {
    let name = LeaseName::parse(["l", "m"][usize::from(a % 2)]).unwrap();
    let holder = HolderName::parse(&format!("h{}", b % 5)).unwrap();
    let lease = shard.lease(&(Namespace::default(), name.clone()));
    let fence = lease.map_or(Fence(u64::from(c % 40)), |lease| lease.holding.fence);
    match c % 6 {
        0 => {
            let mut marks = lease.into_iter().flat_map(|lease| lease.marks());
            let mark = marks.nth(usize::from(b % 3));
            let mark = mark.map_or(LeaseMark::Waits(u64::from(c)), |(mark, _)| mark);
            Command::ExpireLease(ExpireLease { name, mark })
        }
        1 => {
            let fence = b.is_multiple_of(2).then_some(fence);
            let holder = lease.map_or(holder, |lease| lease.holding.holder.clone());
            Command::ReleaseLease(ReleaseLease { name, holder, fence })
        }
        2 => Command::ReleaseLease(ReleaseLease { name, holder, fence: None }),
        _ => {
            let id = task_id(&name_of(a));
            let view = shard.task(&Namespace::default(), &id);
            let fence = view.map_or(Fence(1), |view| view.fence);
            let task = b.is_multiple_of(3).then_some(BoundTask { id, fence, shard: c % 3 });
            let ttl_ms = 99 + u32::from(c % 40);
            let wait = !b.is_multiple_of(4);
            Command::AcquireLease(AcquireLease { name, holder, ttl_ms, wait, task })
        }
    }
}

/// Changes of a small membership; most of them are refused.
fn member_command(shard: &Shard, a: u8, b: u8, c: u16) -> Command {
    let node = u64::from(a % 12);
    match b % 4 {
        0 => {
            let cordoned = c.is_multiple_of(2).then_some(c.is_multiple_of(4));
            let priority = c.is_multiple_of(3).then_some(i64::from(c % 1_200));
            Command::SteerMember(SteerMember { node, cordoned, priority })
        }
        1 => {
            let number = shard.roster().and_then(|roster| roster.change).map_or(7, |it| it.number);
            Command::SettleChange(SettleChange { number: number + u64::from(a.is_multiple_of(9)) })
        }
        2 if a.is_multiple_of(5) => {
            let timeout_ms = c.is_multiple_of(2).then_some(u32::from(c));
            Command::TuneElections(TuneElections { timeout_ms })
        }
        2 if a.is_multiple_of(3) => {
            let nodes = shard.members().iter().map(|member| member.node);
            let nodes = nodes.filter(|node| !(u64::from(c) + node).is_multiple_of(11)).collect();
            Command::RaiseLevel(RaiseLevel { level: u32::from(c % 2) * LEVEL, nodes })
        }
        _ => {
            let add = Member {
                node,
                incarnation: 1 + u64::from(c % 3),
                peer_addr: format!("p{}", c % 20),
                client_addr: "c".into(),
            };
            let add = (!b.is_multiple_of(3)).then_some(add);
            let remove = b.is_multiple_of(2).then_some(u64::from(c % 12));
            Command::ChangeMembers(ChangeMembers { add, remove, level: u32::from(c % 3) })
        }
    }
}

/// Settings, removals and instants of two schedules; some of them are refused.
fn schedule_command(shard: &Shard, (kind, a, b, c): Step) -> Command {
    let name = ScheduleName::parse(["s", "k"][usize::from(a % 2)]).unwrap();
    let known = shard.schedule(&(Namespace::default(), name.clone()));
    match kind % 32 {
        20 if b.is_multiple_of(8) => Command::DeleteSchedule(DeleteSchedule { name }),
        20 => {
            let template =
                if c.is_multiple_of(2) { format!("k0:{name}") } else { name.to_string() };
            let spec = ScheduleSpec {
                timing: Timing::Every { every_ms: 990 + u64::from(c % 40), anchor_ms: 0 },
                task: enqueue(&template, "q"),
                missed: Missed::All,
                overlap: Overlap::Skip,
                grace_ms: u64::from(c),
                paused: b.is_multiple_of(5),
            };
            let spec = (!b.is_multiple_of(3)).then(|| Box::new(spec));
            let paused = a.is_multiple_of(3).then_some(b.is_multiple_of(2));
            Command::SetSchedule(SetSchedule { name, spec, paused, expected_version: None })
        }
        _ => {
            let cursor_ms = known.map_or(0, |schedule| schedule.cursor_ms);
            let version = known.map_or(1, |schedule| schedule.version);
            let instant_ms = (cursor_ms + u64::from(c % 90)).saturating_sub(20);
            let (missed, overlapped) = (u32::from(b % 4), u32::from(a % 3));
            let run = b.is_multiple_of(2);
            let after_ms = cursor_ms + u64::from(b % 9 == 8);
            Command::Fire(Fire { name, version, instant_ms, run, missed, overlapped, after_ms })
        }
    }
}

/// Writes and removals of a few objects in two buckets that share pieces; some of them are refused.
fn object_command(shard: &Shard, (_, a, b, c): Step) -> Command {
    let bucket = BucketName::parse(["b", "jobs", "c"][usize::from(a % 3)]).unwrap();
    let name = ObjectName::parse(["x", "y/z", "y/a"][usize::from(b % 3)]).unwrap();
    let known = shard.object(&(Namespace::default(), bucket.clone(), name.clone()));
    let newest = known.and_then(|object| object.newest().cloned());
    let condition = match c % 8 {
        0 => PutCondition::Absent,
        1 => PutCondition::Present,
        2 => PutCondition::Match(newest.as_ref().map_or(Digest([0; 32]), |known| known.digest)),
        3 => PutCondition::Match(Digest([b; 32])),
        _ => PutCondition::Any,
    };
    if c.is_multiple_of(11) {
        let digests = vec![Digest([a % 4; 32]), Digest([b; 32])].into();
        return Command::Collect(Collect { node: 1, digests });
    }
    if c.is_multiple_of(4) {
        let version = b.is_multiple_of(2).then(|| newest.map_or(0, |known| known.version));
        return Command::DeleteObject(DeleteObject { bucket, name, version, condition });
    }
    let chunks: Vec<Digest> = (0..a % 4).map(|part| Digest([part.max(b % 4); 32])).collect();
    let full = (u64::from(a % 4)) << 20;
    let size = full.saturating_sub(u64::from(b % 7));
    let (content_type, digest) = ("text/plain".to_owned(), Digest([a ^ b; 32]));
    let chunks = chunks.into();
    Command::PutObject(PutObject {
        bucket,
        name,
        size,
        content_type,
        digest,
        chunks,
        condition,
        upload: None,
    })
}

fn small_world() -> World {
    let limits = Limits { pending_tasks_max: 18, finished_tasks_max: 6, ..limits_small() };
    World::with(limits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // Q1, Q3, Q5, Q7, Q13 by `World`; TQ-10, TQ-26 by the second replica, restored again and again.
    #[test]
    fn tq_10_replicas_agree_and_rules_hold(steps in steps(), batch in 1usize..6) {
        let mut leader = small_world();
        let mut follower = small_world();
        for (round, group) in steps.chunks(batch).enumerate() {
            let mut builder = BatchBuilder::new();
            for step in group {
                builder.push(&order_of(&leader.shard, *step));
            }
            leader.now_ms += u64::from(group[0].3 % 200);
            let entry = builder.finish(leader.now_ms);
            let replies = leader.entry(&entry);
            prop_assert_eq!(replies.len(), group.len());
            prop_assert_eq!(&replies, &follower.entry(&entry));
            prop_assert_eq!(&leader.effects, &follower.effects);
            prop_assert_eq!(leader.shard.hash(), follower.shard.hash());
            if round % 3 == 0 {
                follower = follower.reload();
            }
        }
    }

    // Q2, Q3: effects tell the whole story of every task.
    #[test]
    fn effects_tell_every_transition(steps in steps()) {
        let mut world = small_world();
        let mut story: std::collections::BTreeMap<TaskId, (TaskState, Fence)> = Default::default();
        for step in steps {
            let order = order_of(&world.shard, step);
            world.now_ms += u64::from(step.3 % 200);
            world.one(order);
            for effect in &world.effects {
                let Effect::Moved { id, from, to, fence, .. } = effect else { continue };
                let known = story.get(id).copied();
                prop_assert_eq!(known.map(|(state, _)| state), *from);
                if let (Some(from), Some(to)) = (from, to) {
                    // Only a retry leads back from an end, and never from success.
                    let retried = *from != TaskState::Done && *to == TaskState::Ready;
                    prop_assert!(!from.is_terminal() || retried);
                }
                if *to == Some(TaskState::Claimed) {
                    prop_assert!(known.is_some_and(|(_, before)| before < *fence));
                }
                match to {
                    Some(state) => story.insert(id.clone(), (*state, *fence)),
                    None => story.remove(id),
                };
            }
        }
        prop_assert_eq!(story.len() as u64, {
            let sizes = world.shard.sizes();
            sizes.scheduled + sizes.ready + sizes.claimed + sizes.finished
        });
    }

    #[test]
    fn any_bytes_apply(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
        let mut world = small_world();
        for mut entry in entries {
            world.entry(&entry);
            // Also with a valid frame around the noise.
            let mut framed = vec![1u8];
            framed.extend_from_slice(&[0; 8]);
            framed.extend_from_slice(&1u32.to_le_bytes());
            framed.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            framed.append(&mut entry);
            prop_assert_eq!(world.entry(&framed).len(), 1);
        }
    }
}

/// A world with some of everything in it.
fn full_world() -> World {
    let mut world = World::of(Shard::genesis_with(
        0,
        3,
        &[Member { node: 1, incarnation: 1, peer_addr: "p".into(), client_addr: "c".into() }],
        limits_small(),
    ));
    let mut number = 1u32;
    for _ in 0..400 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, d] = number.to_be_bytes();
        let order = order_of(&world.shard, (a, b, c, u16::from_be_bytes([d, a])));
        world.now_ms += 7;
        world.one(order);
    }
    world
}

// F-23, F-41
#[test]
fn flipped_bytes_in_an_entry_are_refused_alike_everywhere() {
    let orders: Vec<Order> = (0..26u8)
        .map(|kind| order_of(&full_world().shard, (kind, kind, 7, 4 + u16::from(kind))))
        .collect();
    let mut builder = BatchBuilder::new();
    orders.iter().for_each(|order| builder.push(order));
    let entry = builder.finish(9_000);
    let world = full_world();
    let restored = world.reload();
    for place in 0..entry.len() {
        for flip in [0x01u8, 0x80, 0xff] {
            let mut broken = entry.clone();
            broken[place] ^= flip;
            let (mut one, mut other) = (world.shard.clone(), restored.shard.clone());
            let lsn = Lsn { term: 9, index: one.applied().index + 1 };
            let applied = one.apply(lsn, &broken);
            assert_eq!(applied, other.apply(lsn, &broken));
            assert_eq!(one.hash(), other.hash());
            assert!(applied.replies.is_empty() || applied.replies.len() == orders.len());
        }
    }
}

#[test]
fn one_bad_order_does_not_harm_its_neighbours() {
    let mut world = World::new();
    let mut builder = BatchBuilder::new();
    builder.push(&order(Command::Enqueue(enqueue("a", "q"))));
    let start = builder.bytes() + 4;
    builder.push(&order(Command::Enqueue(enqueue("b", "q"))));
    builder.push(&order(Command::Enqueue(enqueue("c", "q"))));
    let mut entry = builder.finish(1);
    entry[start] = 0xff;
    let replies = world.entry(&entry);
    assert_eq!(replies[1], refused(RefusalCode::BadCommand));
    assert_eq!(world.shard.sizes().ready, 2);
    assert_eq!(world.entry(&entry[..20]), []);
    assert_eq!(world.shard.sizes().entries_refused, 1);
    assert_eq!(world.entry(&[]), []);
}

// F-15, F-41: a broken snapshot is refused, never believed and never a panic.
#[test]
fn broken_snapshots_are_refused() {
    let world = full_world();
    let stream: Vec<u8> = world.shard.freeze().chunks().flatten().collect();
    let restore =
        |bytes: &[u8], size: usize| Shard::restore(bytes.chunks(size).map(<[u8]>::to_vec));
    // Where chunks are cut does not matter.
    for size in [1, 7, 1000, stream.len()] {
        assert_eq!(restore(&stream, size).unwrap().hash(), world.shard.hash());
    }
    for length in (0..stream.len()).step_by(13) {
        assert!(restore(&stream[..length], 4096).is_err());
    }
    for place in 0..stream.len() {
        let mut broken = stream.clone();
        broken[place] ^= 1 << (place % 8);
        // A flip may give other bytes of the same meaning, such as two forms of "absent".
        if let Ok(shard) = restore(&broken, 4096) {
            let again: Vec<u8> = shard.freeze().chunks().flatten().collect();
            assert!(again == stream, "byte {place} may be flipped unseen");
        }
    }
    let mut longer = stream;
    longer.push(1);
    assert_eq!(restore(&longer, 4096).err(), Some(RestoreError::Trailing));
}

#[test]
fn a_frozen_state_does_not_change() {
    let mut world = full_world();
    let frozen = world.shard.freeze();
    let (applied, hash) = (frozen.applied(), frozen.hash());
    for number in 0..100u8 {
        let step = (number, number.wrapping_mul(3), number.wrapping_mul(5), 3 + u16::from(number));
        let order = order_of(&world.shard, step);
        world.one(order);
    }
    let restored = Shard::restore(frozen.chunks()).unwrap();
    assert_eq!((restored.applied(), restored.hash()), (applied, hash));
    assert_ne!(world.shard.hash(), hash);
}
