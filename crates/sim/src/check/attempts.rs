//! Q7 Attempts: the attempt number is the number of claims that count, never above the limit; at the limit the next
//! failure or expiry kills the task. A claim that was returned does not count, so none may be returned that its worker
//! has confirmed to the leader that returns it.

use ikada_state::{FailNext, Fence, Shard, TaskId};

use super::{Verdict, violation};
use crate::oracle::model::Model;

const NAME: &str = "Q7 attempts";

/// Looks at all tasks of one shard.
pub fn check(shard: &Shard) -> Verdict {
    super::predicate(NAME, ikada_state::invariants::attempts_bounded(shard))
}

/// A fresh grant, before the model follows it.
pub fn granted(model: &Model, id: &TaskId, attempt: u32, attempts_max: u32) -> Verdict {
    let expected = model.task(id).map_or(0, |task| task.attempts) + 1;
    if attempt != expected {
        return violation(
            NAME,
            format!("task {id} was granted as attempt {attempt}, but it is number {expected}"),
        );
    }
    if attempt > attempts_max {
        return violation(
            NAME,
            format!("task {id} was granted attempt {attempt} of {attempts_max}"),
        );
    }
    Ok(())
}

/// A claim was returned, so that its attempt does not count.
pub fn returned(id: &TaskId, fence: Fence, confirmed: bool) -> Verdict {
    if !confirmed {
        return Ok(());
    }
    violation(
        NAME,
        format!("claim {fence} of task {id} was returned after its worker confirmed it"),
    )
}

/// An attempt ended without success.
pub fn ended(
    id: &TaskId,
    attempts: u32,
    attempts_max: u32,
    retry: bool,
    next: FailNext,
) -> Verdict {
    let dead = next == FailNext::Dead;
    let expected = !retry || attempts >= attempts_max;
    if dead == expected {
        return Ok(());
    }
    violation(
        NAME,
        format!(
            "task {id} after attempt {attempts} of {attempts_max} (retry {retry}) came to {next:?}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_and_an_undead_task_are_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let mut model = Model::default();
        model.task_mut(&id).attempts = 2;
        assert!(granted(&model, &id, 3, 3).is_ok());
        assert!(granted(&model, &id, 2, 3).is_err());
        assert!(granted(&model, &id, 3, 2).is_err());
        assert!(ended(&id, 3, 3, true, FailNext::Dead).is_ok());
        assert!(ended(&id, 3, 3, true, FailNext::Ready).is_err());
        assert!(ended(&id, 1, 3, true, FailNext::Dead).is_err());
        assert!(ended(&id, 1, 3, false, FailNext::Dead).is_ok());
        assert!(returned(&id, Fence(1), false).is_ok());
        assert!(returned(&id, Fence(1), true).is_err());
    }
}
