//! Q3 Token order: the fences of a task strictly grow with each claim, and a (task, fence) pair is granted to exactly
//! one worker session.

use ikada_state::Fence;

use super::{Verdict, violation};
use crate::oracle::model::{Holder, Model};

const NAME: &str = "Q3 token_order";

/// A grant, before the model follows it. True when it repeats an earlier grant to the same session.
pub fn check(model: &Model, fence: Fence, holder: &Holder) -> Result<bool, super::Violation> {
    if let Some(before) = model.holders.get(&(holder.task.clone(), fence)) {
        let same = before.task == holder.task
            && before.worker == holder.worker
            && before.session == holder.session;
        return if same {
            Ok(true)
        } else {
            refuse(format!("fence {fence} was granted to {before:?} and to {holder:?}"))
        };
    }
    let highest = model.task(&holder.task).map_or(Fence(0), |task| task.fence_max);
    if fence <= highest {
        return refuse(format!("task {} was granted fence {fence} after {highest}", holder.task));
    }
    Ok(false)
}

fn refuse(what: String) -> Result<bool, super::Violation> {
    let verdict: Verdict = violation(NAME, what);
    verdict.map(|()| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{SessionId, TaskId, WorkerId};

    #[test]
    fn a_falling_or_shared_fence_is_noticed() {
        let holder = |session| Holder {
            task: TaskId::parse("t1").unwrap(),
            worker: WorkerId::parse("w1").unwrap(),
            session: SessionId(session),
            granted: (0, 2),
            ttl_ms: 1,
            timeout_ms: 0,
        };
        let mut model = Model::default();
        assert!(matches!(check(&model, Fence(5), &holder(1)), Ok(false)));
        model.grant(Fence(5), holder(1));
        assert!(matches!(check(&model, Fence(5), &holder(1)), Ok(true)));
        assert!(check(&model, Fence(5), &holder(2)).is_err());
        assert!(check(&model, Fence(4), &holder(1)).is_err());
        assert!(matches!(check(&model, Fence(6), &holder(2)), Ok(false)));
    }
}
