//! The strict count after the storm: every acknowledged task there, exactly once.

use std::collections::BTreeMap;

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use serde::Serialize;

use super::load::{Fate, QUEUE, task_id};
use crate::failure::Failure;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counted {
    /// Acknowledged.
    pub(super) acked: usize,
    /// Acknowledged, but not there.
    pub(super) missing: u64,
    /// Applied more than once.
    pub(super) duplicated: u64,
    /// Never sent, but there.
    pub(super) invented: u64,
    /// Outcome not known in time; each may be there or not, once.
    pub(super) unknown: usize,
    /// Refused; there is no reason to refuse any.
    pub(super) refused: usize,
}

/// Lists everything, linearizably, and compares.
pub(super) async fn count(client: &Client, fate: &Fate) -> Result<Counted, Failure> {
    let mut listed: BTreeMap<String, u64> = BTreeMap::new();
    let mut query =
        TaskQuery { queue: Some(QUEUE.to_owned()), limit: Some(1_000), ..TaskQuery::default() };
    loop {
        let page = client.tasks(&query).await?;
        for task in page.tasks {
            *listed.entry(task.id).or_default() += 1;
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let submitted = client.queue(QUEUE).await?.counts.submitted_total;
    Ok(judge(&listed, submitted, fate))
}

/// `submitted` is the queue's own count of creations: two creations under one id show there and nowhere else.
fn judge(listed: &BTreeMap<String, u64>, submitted: u64, fate: &Fate) -> Counted {
    let mut counted = Counted {
        acked: fate.acked.len(),
        unknown: fate.unknown.len(),
        refused: fate.refused.len(),
        ..Counted::default()
    };
    let mut known: BTreeMap<String, ()> = BTreeMap::new();
    for number in fate.acked.keys() {
        let id = task_id(*number);
        counted.missing += u64::from(!listed.contains_key(&id));
        known.insert(id, ());
    }
    let doubtful = fate.unknown.iter().map(|number| (task_id(*number), ()));
    known.extend(doubtful);
    let unknown_ids = listed.keys().filter(|id| !known.contains_key(*id));
    counted.invented = unknown_ids.count() as u64;
    let twice: u64 = listed.values().map(|times| times - 1).sum();
    counted.duplicated = twice.max(submitted.saturating_sub(listed.len() as u64));
    counted
}

impl Counted {
    /// What is wrong, if anything.
    pub(super) fn problems(&self) -> Vec<String> {
        let facts = [
            (self.missing, "acknowledged tasks are missing"),
            (self.duplicated, "tasks were created twice"),
            (self.invented, "tasks are there that nobody sent"),
            (self.refused as u64, "writes were refused"),
        ];
        let wrong = facts.iter().filter(|(count, _)| *count > 0);
        wrong.map(|(count, what)| format!("{count} {what}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::load::Ack;
    use super::*;

    #[test]
    fn every_breach_is_counted() {
        let ack = Ack { at: Instant::now(), place: None };
        let fate = Fate {
            acked: (0..3).map(|number| (number, ack)).collect(),
            unknown: vec![7],
            refused: Vec::new(),
        };
        let listed = |numbers: &[(u64, u64)]| -> BTreeMap<String, u64> {
            numbers.iter().map(|(number, times)| (task_id(*number), *times)).collect()
        };
        let all = listed(&[(0, 1), (1, 1), (2, 1), (7, 1)]);
        assert!(judge(&all, 4, &fate).problems().is_empty());
        assert_eq!(judge(&all, 5, &fate).duplicated, 1);
        assert_eq!(judge(&listed(&[(0, 1), (1, 2)]), 2, &fate).missing, 1);
        assert_eq!(judge(&listed(&[(0, 1), (1, 2), (2, 1)]), 3, &fate).duplicated, 1);
        assert_eq!(judge(&listed(&[(0, 1), (1, 1), (2, 1), (9, 1)]), 4, &fate).invented, 1);
    }
}
