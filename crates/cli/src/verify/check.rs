//! The judgement: what the cluster shows in the end, against what its clients were told.

use std::collections::BTreeMap;

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::TaskStateName;

use super::history::{History, Kind, Op};
use super::linearize::is_explained;
use super::report::Report;
use crate::failure::Failure;

/// Violations shown; the count says how many there are.
const SHOWN_MAX: usize = 20;

/// What the cluster shows in the end.
pub(super) struct End {
    /// How often each task is listed, and whether it is done.
    listed: BTreeMap<String, (u64, bool)>,
    /// The queue's own count of creations.
    submitted: u64,
    /// Per shard, position and hash of every node's copy.
    copies: Vec<(u16, String, String)>,
}

/// Looks at everything, linearizably.
pub(super) async fn look(client: &Client, queue: &str, urls: &[String]) -> Result<End, Failure> {
    let mut listed: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    let mut query =
        TaskQuery { queue: Some(queue.to_owned()), limit: Some(1_000), ..TaskQuery::default() };
    loop {
        let page = client.tasks(&query).await?;
        for task in page.tasks {
            let entry = listed.entry(task.id).or_default();
            entry.0 += 1;
            entry.1 = task.state == TaskStateName::Done;
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let submitted = client.queue(queue).await?.counts.submitted_total;
    let mut copies = Vec::new();
    for url in urls {
        // A node that is down has no copy to compare.
        if let Ok(node) = Client::new([url])?.node().await {
            copies.extend(node.shards.into_iter().map(|it| (it.shard, it.applied, it.hash)));
        }
    }
    Ok(End { listed, submitted, copies })
}

/// Judges a run.
pub(super) fn judge(history: &History, end: &End, drained: bool) -> Report {
    let tasks = history.take();
    let mut violations = Vec::new();
    let mut report = Report { drained, tasks: tasks.len() as u64, ..Report::default() };
    if !drained {
        violations.push("tasks were left unfinished at the end".to_owned());
    }
    for (id, ops) in &tasks {
        count(&mut report, ops);
        account(id, ops, end, &mut violations);
        match is_explained(ops) {
            Some(true) => {}
            Some(false) => violations.push(format!("{id}: no order of events explains {ops:?}")),
            None => report.too_long += 1,
        }
    }
    for (id, (times, _)) in &end.listed {
        if *times > 1 || !tasks.contains_key(id) {
            violations.push(format!("{id}: listed {times} times, or never submitted"));
        }
    }
    if end.submitted > end.listed.len() as u64 {
        violations.push(format!("{} creations of {} tasks", end.submitted, end.listed.len()));
    }
    copies_equal(end, &mut violations);
    report.violation_count = violations.len() as u64;
    violations.truncate(SHOWN_MAX);
    report.violations = violations;
    report
}

fn count(report: &mut Report, ops: &[Op]) {
    for op in ops {
        report.calls += 1;
        report.unknown += u64::from(op.end_us.is_none());
        match op.kind {
            Kind::Submit => report.acknowledged += u64::from(op.end_us.is_some()),
            Kind::Grant(_) => report.grants += 1,
            Kind::Complete(_, false) => report.stale += 1,
            Kind::Complete(..) | Kind::Read(_) => {}
        }
    }
}

/// Whatever was acknowledged is there, and what was completed is done.
fn account(id: &str, ops: &[Op], end: &End, violations: &mut Vec<String>) {
    let told =
        |wanted: fn(&Kind) -> bool| ops.iter().any(|op| op.end_us.is_some() && wanted(&op.kind));
    let found = end.listed.get(id);
    if told(|kind| matches!(kind, Kind::Submit)) && found.is_none() {
        violations.push(format!("{id}: acknowledged, but missing"));
    }
    let completed = told(|kind| matches!(kind, Kind::Complete(_, true)));
    if completed && !found.is_some_and(|(_, done)| *done) {
        violations.push(format!("{id}: completed, but not done"));
    }
}

/// Copies at the same position are equal.
fn copies_equal(end: &End, violations: &mut Vec<String>) {
    let mut hashes: BTreeMap<(u16, &str), &str> = BTreeMap::new();
    for (shard, position, hash) in &end.copies {
        let first = hashes.entry((*shard, position)).or_insert(hash);
        if first != hash {
            violations.push(format!("shard {shard} at {position}: hashes {first} and {hash}"));
        }
    }
}
