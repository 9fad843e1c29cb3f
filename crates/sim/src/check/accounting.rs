//! Q1 Accounting: what was submitted is ready, claimed, scheduled, done, dead, cancelled or removed by retention; and
//! nothing that a client was told is stored has vanished.

use ikada_state::{Shard, TaskId};

use super::{Verdict, violation};
use crate::oracle::model::Model;

const NAME: &str = "Q1 accounting";

/// Looks at the counters of one shard.
pub fn check(shard: &Shard) -> Verdict {
    super::predicate(NAME, ikada_state::invariants::accounting(shard))
}

/// Looks for a task whose submission was acknowledged.
pub fn acknowledged(id: &TaskId, present: bool, model: &Model) -> Verdict {
    if present || model.task(id).is_some_and(|task| task.removed && task.end.is_some()) {
        return Ok(());
    }
    violation(NAME, format!("task {id} was acknowledged and is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::model::End;

    #[test]
    fn a_vanished_task_is_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let mut model = Model::default();
        assert!(acknowledged(&id, true, &model).is_ok());
        assert!(acknowledged(&id, false, &model).is_err());
        model.task_mut(&id).removed = true;
        assert!(acknowledged(&id, false, &model).is_err(), "removed before it had ended");
        model.settle(&id, End::Dead);
        assert!(acknowledged(&id, false, &model).is_ok());
    }
}
