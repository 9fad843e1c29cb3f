//! Q5 One holder: at each applied index a task has at most one live claim.

use ikada_state::{Fence, Shard, TaskId};

use super::{Verdict, violation};
use crate::oracle::model::Model;

const NAME: &str = "Q5 one_holder";

/// Looks at all claims of one shard.
pub fn check(shard: &Shard) -> Verdict {
    super::predicate(NAME, ikada_state::invariants::one_live_claim(shard))
}

/// A fresh grant, before the model follows it.
pub fn granted(model: &Model, id: &TaskId, fence: Fence) -> Verdict {
    match model.task(id).and_then(|task| task.claim) {
        Some(live) => violation(
            NAME,
            format!("task {id} was granted fence {fence} while the claim {live} is live"),
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_live_claim_is_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let mut model = Model::default();
        assert!(granted(&model, &id, Fence(1)).is_ok());
        model.task_mut(&id).claim = Some(Fence(1));
        assert!(granted(&model, &id, Fence(2)).is_err());
    }
}
