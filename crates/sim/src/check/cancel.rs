//! Q10 Cancel: after an acknowledged cancel no completion is accepted; of both, exactly one wins.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::TaskId;

use super::{Verdict, violation};

/// What clients and workers were told about each task.
#[derive(Debug, Default)]
pub struct Cancels {
    told: BTreeMap<TaskId, Told>,
    /// Tasks that were retried: their first end was not their last.
    revived: BTreeSet<TaskId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Cancelled,
    Completed,
}

impl Cancels {
    /// A retry of the task was committed.
    pub fn revived(&mut self, id: &TaskId) {
        self.revived.insert(id.clone());
    }

    /// A client was told that the task is cancelled.
    pub fn cancelled(&mut self, id: &TaskId) -> Verdict {
        self.note(id, Told::Cancelled)
    }

    /// A worker was told that its completion counts.
    pub fn completed(&mut self, id: &TaskId) -> Verdict {
        self.note(id, Told::Completed)
    }

    fn note(&mut self, id: &TaskId, told: Told) -> Verdict {
        let first = *self.told.entry(id.clone()).or_insert(told);
        if first == told || self.revived.contains(id) {
            return Ok(());
        }
        violation("Q10 cancel", format!("task {id} was reported as {first:?} and as {told:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_one_task_are_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let mut check = Cancels::default();
        assert!(check.cancelled(&id).is_ok());
        assert!(check.cancelled(&id).is_ok());
        assert!(check.completed(&id).is_err());
        check.revived(&id);
        assert!(check.completed(&id).is_ok());
    }
}
