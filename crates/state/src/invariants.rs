//! Named rules that hold after every entry. Tests, the simulator and debug tools call the same
//! predicates; each gives the rule it found broken. They recompute from the records and cost time
//! in proportion to the state, so they are not run in production.

use std::collections::BTreeMap;

use crate::dedup::RingEntry;
use crate::growth::Part;
use crate::hash::{RecordKind, StateHash, digest_record};
use crate::limits::{FIRED_OVER_BYTES_MAX, FIRED_OVER_MAX, SCHEDULES_MAX};
use crate::outbox::Inbox;
use crate::shard::{Core, Index, queue_digest};
use crate::task::{AttemptOutcome, TaskState};
use crate::{Fence, JobKey, JobState, Shard, StageName};

/// A broken rule, with what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {found}")]
pub struct Violation {
    /// Name of the rule.
    pub name: &'static str,
    /// What was found.
    pub found: String,
}

fn expect(
    holds: bool,
    name: &'static str,
    found: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { name, found: found() }) }
}

/// A named rule.
pub type Rule = fn(&Shard) -> Result<(), Violation>;

/// All rules by name.
pub const ALL: [(&str, Rule); 10] = [
    ("accounting", accounting),
    ("one_live_claim", one_live_claim),
    ("fence_bounds", fence_bounds),
    ("attempts_bounded", attempts_bounded),
    ("bounded", bounded),
    ("members_fit", members_fit),
    ("leases_fit", leases_fit),
    ("jobs_add_up", jobs_add_up),
    ("indexes_match", indexes_match),
    ("hash_matches", hash_matches),
];

/// Checks all rules.
pub fn all(shard: &Shard) -> Result<(), Violation> {
    ALL.iter().try_for_each(|(_, rule)| rule(shard))
}

/// Q1: every task ever created is in exactly one place.
pub fn accounting(shard: &Shard) -> Result<(), Violation> {
    let core = &shard.core;
    let mut counts = vec![[0u64; TaskState::ALL.len()]; core.queues.len()];
    for (_, task) in core.tasks.iter() {
        counts[task.queue as usize][task.state as usize] += 1;
    }
    for (record, count) in core.queues.iter().zip(counts) {
        let total = record.counters;
        let ended = total.done + total.dead + total.cancelled;
        let open = count[0] + count[1] + count[2];
        let kept = count[3] + count[4] + count[5];
        let found = || format!("queue {}: {total:?}, records {count:?}", record.name);
        expect(total.submitted + total.retried == open + ended, "accounting", found)?;
        expect(ended == kept + total.removed + total.retried, "accounting", found)?;
    }
    Ok(())
}

/// R9: a change of membership names members, and nobody who left is one.
pub fn members_fit(shard: &Shard) -> Result<(), Violation> {
    let Some(roster) = &shard.core.roster else { return Ok(()) };
    let is_member = |node: u64| shard.core.members.iter().any(|member| member.node == node);
    let found = || format!("{roster:?} with members {:?}", shard.core.members);
    let named = roster.change.iter().flat_map(|change| [change.add, change.remove]);
    let steered = roster.priorities.iter().map(|(node, _)| *node).chain(roster.cordoned.clone());
    expect(roster.is_valid(), "members_fit", found)?;
    expect(named.flatten().chain(steered).all(is_member), "members_fit", found)?;
    expect(!roster.removed.iter().any(|node| is_member(*node)), "members_fit", found)
}

/// Leases have one holder each, nobody waits twice, and no fence or place exceeds what was given out; whatever leases are
/// bound to is a running attempt.
pub fn leases_fit(shard: &Shard) -> Result<(), Violation> {
    let core = &shard.core;
    let highest = Fence::new(core.epoch, core.grants);
    for (key, lease) in &core.leases {
        let fits = *key == lease.key() && lease.is_valid(&core.limits, highest, core.sequence);
        let home = !shard.is_key_away(&key.0, key.1.as_str());
        expect(fits && home, "leases_fit", || format!("{lease:?}, highest granted {highest:?}"))?;
    }
    for binding in core.bindings.values() {
        let claim = shard.claim_of(&binding.namespace, &binding.task);
        let runs = claim.is_some_and(|claim| claim.fence == binding.attempt);
        expect(runs && binding.is_valid(), "leases_fit", || format!("{binding:?}"))?;
    }
    Ok(())
}

/// Q5: a task has at most one live claim, and it is the newest one.
pub fn one_live_claim(shard: &Shard) -> Result<(), Violation> {
    for (_, task) in shard.core.tasks.iter() {
        let attempts =
            task.history.iter().flat_map(|history| history.earlier.iter().chain([&history.newest]));
        let running = attempts.filter(|attempt| attempt.outcome == AttemptOutcome::Running);
        let live: Vec<Fence> = running.map(|attempt| attempt.fence).collect();
        let holds = match task.state {
            TaskState::Claimed => live == [task.fence],
            _ => live.is_empty(),
        };
        let found = || format!("task {} is {:?} with live fences {live:?}", task.id, task.state);
        expect(holds, "one_live_claim", found)?;
    }
    Ok(())
}

/// Q3: fences of a task rise with each attempt, and none exceeds what was granted.
pub fn fence_bounds(shard: &Shard) -> Result<(), Violation> {
    let highest = Fence::new(shard.core.epoch, shard.core.grants);
    for (_, task) in shard.core.tasks.iter() {
        let Some(history) = &task.history else {
            continue;
        };
        let attempts = history.earlier.iter().chain([&history.newest]);
        let fences: Vec<Fence> = attempts.map(|attempt| attempt.fence).collect();
        let rising = fences.windows(2).all(|pair| pair[0] < pair[1]);
        let found = || format!("task {}: {fences:?}, highest granted {highest:?}", task.id);
        expect(rising, "fence_bounds", found)?;
        expect(task.fence == history.newest.fence, "fence_bounds", found)?;
        expect(task.fence <= highest, "fence_bounds", found)?;
    }
    Ok(())
}

/// Q7: claims that count never exceed the limit, and are at least those that are kept.
pub fn attempts_bounded(shard: &Shard) -> Result<(), Violation> {
    let kept_max = shard.core.limits.attempts_kept_max.max(1) as usize;
    for (_, task) in shard.core.tasks.iter() {
        let attempts =
            task.history.iter().flat_map(|history| history.earlier.iter().chain([&history.newest]));
        let kept: Vec<AttemptOutcome> = attempts.map(|attempt| attempt.outcome).collect();
        let counts = |outcome: &&AttemptOutcome| {
            !matches!(outcome, AttemptOutcome::Unclaimed | AttemptOutcome::Outrun)
        };
        let counted = kept.iter().filter(counts).count();
        let found = || {
            format!(
                "task {}: attempt {} of {}, kept {kept:?}",
                task.id, task.attempt, task.max_attempts
            )
        };
        expect(task.attempt <= task.max_attempts, "attempts_bounded", found)?;
        expect(kept.len() <= kept_max, "attempts_bounded", found)?;
        // Attempts from before a retry are kept, but count no more.
        let spent = task.history.as_ref().map_or(0, |history| history.spent as usize);
        let begun = spent + usize::from(task.attempt);
        expect(begun >= counted, "attempts_bounded", found)?;
        let complete = kept.len() < kept_max;
        let exact = begun == counted;
        expect(!complete || exact, "attempts_bounded", found)?;
    }
    Ok(())
}

/// A job's counts are those of its tasks, and it ends as they say (B4-7).
pub fn jobs_add_up(shard: &Shard) -> Result<(), Violation> {
    let mut found: BTreeMap<(JobKey, StageName), [u64; TaskState::ALL.len()]> = BTreeMap::new();
    for (_, task) in shard.core.tasks.iter() {
        let work = task.extras.as_ref().and_then(|extras| extras.work.as_ref());
        // Who runs beside another is not counted: the two are one task.
        if let Some(part) = work.and_then(|work| work.job.as_ref()).filter(|part| !part.is_twin()) {
            let namespace = shard.core.queues[task.queue as usize].namespace.clone();
            let key = ((namespace, part.job.clone()), part.stage.clone());
            found.entry(key).or_default()[task.state as usize] += 1;
        }
    }
    for (key, job) in &shard.core.jobs {
        let counts = || format!("job {}: {:?}, tasks {found:?}", job.id(), job.stages());
        expect(job.is_valid(&shard.core.limits), "jobs_add_up", counts)?;
        for (spec, progress) in job.spec().stages.iter().zip(job.stages()) {
            let tasks = found.get(&(key.clone(), spec.name.clone())).copied().unwrap_or_default();
            let open = tasks[0] + tasks[1] + tasks[2];
            expect(u64::from(progress.open()) == open, "jobs_add_up", counts)?;
            expect(u64::from(progress.claimed) == tasks[2], "jobs_add_up", counts)?;
        }
        let all = job.stages().iter().all(|stage| stage.settled);
        expect((job.state() == JobState::Done) == all, "jobs_add_up", counts)?;
    }
    let orphan = found.iter().find(|((key, _), counts)| {
        !shard.core.jobs.contains_key(key) && counts[0] + counts[1] + counts[2] > 0
    });
    expect(orphan.is_none(), "jobs_add_up", || format!("tasks without a job: {orphan:?}"))
}

/// Q13: every size is within its bound.
pub fn bounded(shard: &Shard) -> Result<(), Violation> {
    let (sizes, limits) = (shard.sizes(), &shard.core.limits);
    let pending = sizes.scheduled + sizes.ready + sizes.claimed;
    // A slot that moves in is never refused; what it brings was admitted by the shard that it left.
    let admitting = match &shard.core.away {
        Some(away) if away.added => u64::from(shard.core.shards),
        _ => 1,
    };
    // What schedules of another shard bring may go a little further.
    let (fired_tasks, fired_bytes, fired_queues) = match shard.keeps_dead() {
        true => (FIRED_OVER_MAX, FIRED_OVER_BYTES_MAX, SCHEDULES_MAX as u64),
        false => (0, 0, 0),
    };
    // Results are checked one by one and only finished tasks carry them.
    let pairs = [
        ("pending tasks", pending, (limits.pending_tasks_max + fired_tasks) * admitting),
        (
            "pending bytes",
            sizes.pending_bytes,
            (limits.pending_bytes_max + fired_bytes) * admitting,
        ),
        ("finished tasks", sizes.finished, limits.finished_tasks_max),
        ("finished bytes", sizes.finished_bytes, limits.finished_bytes_max),
        ("queues", sizes.queues, 2 * u64::from(limits.queues_max) + fired_queues),
        ("submit window", sizes.submits, u64::from(limits.submit_window_max)),
        ("claim window", sizes.claims, u64::from(limits.claim_window_max)),
        ("remembered grants", shard.index.claim_weight, limits.claim_marks_max),
        ("tombstones", sizes.voids, crate::dedup::VOIDS_MAX as u64),
        ("remembered reports", sizes.settled, u64::from(limits.claim_window_max)),
        ("outbox", sizes.outbox, u64::from(limits.outbox_max)),
        ("schedules", sizes.schedules, crate::limits::SCHEDULES_MAX as u64),
        ("versions of objects", sizes.object_versions, crate::limits::OBJECT_VERSIONS_TOTAL_MAX),
        ("pieces of objects", sizes.object_references, crate::limits::OBJECT_REFERENCES_MAX),
        ("jobs", shard.core.jobs.len() as u64, crate::limits::JOBS_MAX as u64 * admitting),
        ("bytes of jobs", shard.index.job_bytes, crate::limits::JOBS_BYTES_MAX * admitting),
        ("tokens", sizes.tokens, crate::limits::TOKENS_MAX as u64),
        ("leases", sizes.leases, crate::limits::LEASES_MAX as u64 * admitting),
        ("quotas", shard.core.quotas.len() as u64, crate::limits::QUOTAS_MAX as u64),
        (
            "remembered results",
            shard.core.remembered.len() as u64,
            crate::limits::REMEMBERED_MAX as u64,
        ),
        ("bytes of results", shard.index.remembered_bytes, crate::limits::REMEMBERED_BYTES_MAX),
        (
            "files of results",
            shard.index.remembered_stored,
            crate::limits::REMEMBERED_STORED_BYTES_MAX,
        ),
        ("workers", sizes.workers, crate::limits::WORKERS_MAX as u64),
        ("bindings", sizes.bindings, crate::limits::BINDINGS_MAX as u64 * admitting),
    ];
    for (what, size, size_max) in pairs {
        expect(size <= size_max, "bounded", || format!("{what}: {size} exceeds {size_max}"))?;
    }
    Ok(())
}

/// The indexes kept along the way equal those derived from the records.
pub fn indexes_match(shard: &Shard) -> Result<(), Violation> {
    let (kept, derived) = (&shard.index, Index::derive(&shard.core));
    let same = |holds: bool, what: &'static str| {
        expect(holds, "indexes_match", || format!("{what} differs from the records"))
    };
    same(kept.lines == derived.lines, "a queue's line")?;
    same(kept.scheduled == derived.scheduled, "the scheduled line")?;
    same(kept.deadlines == derived.deadlines, "the line of deadlines")?;
    same(kept.kept == derived.kept, "the line of tasks with a retention of their own")?;
    same(kept.finished == derived.finished, "the finished line")?;
    same(kept.dead == derived.dead, "the line of dead tasks")?;
    same(kept.dead_bytes == derived.dead_bytes, "the sum of dead tasks' bytes")?;
    same(kept.dead_apart == derived.dead_apart, "where dead tasks are kept")?;
    same(kept.claimed.iter().eq(derived.claimed.iter()), "the set of live claims")?;
    same(kept.free.first() == derived.free.first(), "the lowest free slot")?;
    same(kept.free.len() == derived.free.len(), "the set of free slots")?;
    same(kept.pending_bytes == derived.pending_bytes, "the sum of pending bytes")?;
    same(kept.finished_bytes == derived.finished_bytes, "the sum of finished bytes")?;
    same(kept.references == derived.references, "the table of references to blobs")?;
    same(kept.reference_count == derived.reference_count, "the sum of references to blobs")?;
    same(kept.object_versions == derived.object_versions, "the number of versions of objects")?;
    same(kept.object_bytes == derived.object_bytes, "the sum of objects' bytes")?;
    same(kept.spaces == derived.spaces, "what namespaces have waiting")?;
    same(kept.stored == derived.stored, "the bytes of namespaces' objects")?;
    same(kept.remembered_line == derived.remembered_line, "the line of remembered results")?;
    same(kept.remembered_bytes == derived.remembered_bytes, "the sum of results' bytes")?;
    same(kept.remembered_stored == derived.remembered_stored, "the sum of results' files")?;
    same(kept.busy_jobs == derived.busy_jobs, "the set of busy jobs")?;
    same(kept.watched_jobs == derived.watched_jobs, "the set of watched jobs")?;
    same(kept.job_ends == derived.job_ends, "the line of ended jobs")?;
    same(kept.job_bytes == derived.job_bytes, "the sum of jobs' bytes")?;
    same(kept.claim_weight == derived.claim_weight, "the number of remembered grants")?;
    same(kept.task_names.len() == shard.core.tasks.len(), "the number of task names")?;
    same(kept.submits.len() == shard.core.submits.len(), "the number of request keys")?;
    same(kept.voids.len() == shard.core.voids.len(), "the number of tombstones")?;
    same(kept.claims.len() == shard.core.claims.len(), "the number of claim keys")?;
    same(kept.settled.len() == shard.core.settled.len(), "the number of remembered reports")?;
    for (slot, task) in shard.core.tasks.iter() {
        let namespace = &shard.core.queues[task.queue as usize].namespace;
        same(!shard.is_away(namespace, &task.id), "the shard of a task's slot")?;
        same(shard.find_task(namespace, &task.id) == Some(slot), "the table of task names")?;
    }
    for (queue, record) in shard.core.queues.iter().enumerate() {
        let found = shard.find_queue(&record.namespace, &record.name);
        same(found == Some(queue as u32), "the table of queue names")?;
    }
    Ok(())
}

/// The state hash kept along the way equals a recomputation from the records.
pub fn hash_matches(shard: &Shard) -> Result<(), Violation> {
    let (kept, computed) = (shard.core.hash, recompute(&shard.core));
    expect(kept == computed, "hash_matches", || format!("kept {kept:?}, computed {computed:?}"))
}

fn add_parts(core: &Core, hash: &mut StateHash) {
    for (slot, parts) in &core.parts {
        for (place, bytes) in parts.iter().enumerate() {
            let part = Part { slot: *slot, place: place as u32, bytes: bytes.clone() };
            hash.add(digest_record(RecordKind::Part, &part));
        }
    }
}

fn add_messages(core: &Core, hash: &mut StateHash) {
    for line in core.outbox.line_records() {
        hash.add(digest_record(RecordKind::OutboxLine, &line));
    }
    for item in core.outbox.items() {
        hash.add(digest_record(RecordKind::OutboxItem, item));
    }
    for (source, applied) in &core.inbox {
        let inbox = Inbox { source: *source, applied: *applied };
        hash.add(digest_record(RecordKind::Inbox, &inbox));
    }
}

fn recompute(core: &Core) -> StateHash {
    let (mut hash, mut scratch) = (StateHash::default(), Vec::new());
    for (queue, record) in core.queues.iter().enumerate() {
        hash.add(queue_digest(queue as u32, record));
    }
    for (slot, task) in core.tasks.iter() {
        hash.add(task.compute_digest(slot, &mut scratch));
    }
    for (number, entry) in core.submits.iter() {
        hash.add(entry.digest(number));
    }
    for (number, entry) in core.claims.iter() {
        hash.add(entry.digest(number));
    }
    for (number, entry) in core.voids.iter() {
        hash.add(entry.digest(number));
    }
    for (number, entry) in core.settled.iter() {
        hash.add(entry.digest(number));
    }
    add_messages(core, &mut hash);
    for member in &core.members {
        hash.add(digest_record(RecordKind::Member, member));
    }
    if let Some(roster) = &core.roster {
        hash.add(digest_record(RecordKind::Roster, &**roster));
    }
    for schedule in core.schedules.values() {
        hash.add(digest_record(RecordKind::Schedule, &**schedule));
    }
    for (_, object) in core.objects.iter() {
        hash.add(digest_record(RecordKind::Object, &**object));
    }
    for token in core.tokens.values() {
        hash.add(digest_record(RecordKind::Token, &**token));
    }
    for job in core.jobs.values() {
        hash.add(job.digest());
    }
    if let Some(map) = &core.slot_map {
        hash.add(map.digest());
    }
    if let Some(away) = &core.away {
        hash.add(away.digest());
    }
    add_parts(core, &mut hash);
    if let Some(growth) = &core.growth {
        hash.add(digest_record(RecordKind::Growth, &**growth));
    }
    for lease in core.leases.values() {
        hash.add(digest_record(RecordKind::Lease, &**lease));
    }
    for quota in core.quotas.values() {
        hash.add(digest_record(RecordKind::Quota, &**quota));
    }
    for worker in core.workers.values() {
        hash.add(digest_record(RecordKind::Worker, &**worker));
    }
    for record in core.remembered.values() {
        hash.add(digest_record(RecordKind::Remembered, &**record));
    }
    for binding in core.bindings.values() {
        hash.add(digest_record(RecordKind::Binding, &**binding));
    }
    hash
}
