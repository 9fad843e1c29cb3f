//! B4-19 Worker gone: when a worker is removed, all its live claims of that session end in the same entry in which a shard
//! learns of it, and no other claim does.

use ikada_state::{SessionId, ShardId, TaskId, WorkerId};

use super::{Verdict, violation};
use crate::oracle::model::Model;

const NAME: &str = "B4-19 worker_gone";

/// Live claims of a session in a shard, by the model.
pub fn claims<'a>(
    model: &'a Model,
    shard: ShardId,
    worker: &'a WorkerId,
    session: SessionId,
) -> impl Iterator<Item = &'a TaskId> + 'a {
    let live = model.tasks.iter().filter(move |(id, task)| {
        let holder = task.claim.and_then(|fence| model.holders.get(&((*id).clone(), fence)));
        holder.is_some_and(|holder| {
            holder.worker == *worker && holder.session == session && holder.granted.0 == shard
        })
    });
    live.map(|(id, _)| id)
}

/// After the model followed the removal: `travels` are tasks on their way to another shard.
pub fn check(
    model: &Model,
    shard: ShardId,
    worker: &WorkerId,
    session: SessionId,
    travels: impl Fn(&TaskId) -> bool,
) -> Verdict {
    match claims(model, shard, worker, session).find(|id| !travels(id)) {
        None => Ok(()),
        Some(id) => violation(NAME, format!("worker {worker} was removed and holds task {id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::model::Holder;
    use ikada_state::Fence;

    #[test]
    fn b4_19_a_claim_that_outlives_its_worker_is_noticed() {
        let (task, worker) = (TaskId::parse("t1").unwrap(), WorkerId::parse("w").unwrap());
        let holder = Holder {
            task: task.clone(),
            worker: worker.clone(),
            session: SessionId(1),
            granted: (0, 2),
            ttl_ms: 1,
            timeout_ms: 0,
        };
        let mut model = Model::default();
        model.grant(Fence(5), holder);
        assert!(check(&model, 0, &worker, SessionId(1), |_| false).is_err());
        assert!(check(&model, 0, &worker, SessionId(2), |_| false).is_ok(), "another session");
        assert!(check(&model, 1, &worker, SessionId(1), |_| false).is_ok(), "another shard");
        assert!(check(&model, 0, &worker, SessionId(1), |_| true).is_ok(), "on its way");
        model.release(&task, true);
        assert!(check(&model, 0, &worker, SessionId(1), |_| false).is_ok());
    }
}
