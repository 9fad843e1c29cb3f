//! Q4 Fence: complete, fail, expire and unclaim with a fence are accepted exactly when the task is claimed with that
//! fence by that worker; otherwise nothing changes.

use ikada_state::{Fence, TaskId, WorkerId};

use super::{Verdict, violation};
use crate::oracle::model::{End, Model};

const NAME: &str = "Q4 fence";

/// What an order with a fence came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It was carried out.
    Accepted,
    /// It was refused because of its fence, its worker, or the task's state.
    Refused,
}

/// One order, before the model follows it. True when the order takes effect now, false when it was refused or only
/// repeats what the same claim did before.
pub fn check(
    model: &Model,
    verb: &str,
    id: &TaskId,
    fence: Fence,
    worker: Option<&WorkerId>,
    came: Came,
) -> Result<bool, super::Violation> {
    let holds = model.holds(id, fence, worker);
    match (holds, came) {
        (true, Came::Accepted) => Ok(true),
        (false, Came::Refused) => Ok(false),
        (true, Came::Refused) => {
            refuse(format!("{verb} of task {id} with its live fence {fence} was refused"))
        }
        (false, Came::Accepted) if repeats(model, verb, id, fence) => Ok(false),
        (false, Came::Accepted) => refuse(format!(
            "{verb} of task {id} with fence {fence} was accepted, but its claim is {:?}",
            model.task(id).and_then(|task| task.claim)
        )),
    }
}

/// A resend by the claim that has ended is answered as the first time.
fn repeats(model: &Model, verb: &str, id: &TaskId, fence: Fence) -> bool {
    let claim = (id.clone(), fence);
    if !model.holders.contains_key(&claim) {
        return false;
    }
    match verb {
        "complete" => model.task(id).is_some_and(|task| task.end == Some(End::Done(fence))),
        "fail" => model.failed.contains(&claim),
        _ => false,
    }
}

fn refuse(what: String) -> Result<bool, super::Violation> {
    let verdict: Verdict = violation(NAME, what);
    verdict.map(|()| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::model::Holder;
    use ikada_state::SessionId;

    #[test]
    fn a_stale_completion_and_a_refused_live_one_are_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let (mine, other) = (WorkerId::parse("w1").unwrap(), WorkerId::parse("w2").unwrap());
        let holder = |worker: &WorkerId| Holder {
            task: id.clone(),
            worker: worker.clone(),
            session: SessionId(1),
            granted: (0, 2),
            ttl_ms: 1,
            timeout_ms: 0,
        };
        let mut model = Model::default();
        model.grant(Fence(5), holder(&mine));
        model.release(&id, true);
        model.grant(Fence(6), holder(&other));
        let came = |model: &Model, fence, worker: &WorkerId, came| {
            check(model, "complete", &id, Fence(fence), Some(worker), came)
        };
        assert!(came(&model, 5, &mine, Came::Accepted).is_err());
        assert!(matches!(came(&model, 5, &mine, Came::Refused), Ok(false)));
        assert!(came(&model, 6, &mine, Came::Accepted).is_err(), "not the owner");
        assert!(came(&model, 6, &other, Came::Refused).is_err());
        assert!(matches!(came(&model, 6, &other, Came::Accepted), Ok(true)));
        model.settle(&id, End::Done(Fence(6)));
        assert!(matches!(came(&model, 6, &other, Came::Accepted), Ok(false)), "a resend");
        assert!(came(&model, 5, &mine, Came::Accepted).is_err());
    }
}
