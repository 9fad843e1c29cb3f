//! Q8 Idempotent submit: however often it is sent, under its own key or another, one submission makes at most one task,
//! also when that task is no longer there; the same key with another body is refused.

use std::collections::BTreeMap;

use ikada_state::{Enqueue, RefusalCode, Reply, RequestKey, ShardId, TaskId};

use super::{Verdict, violation};

const NAME: &str = "Q8 idempotent_submit";

/// What was submitted first under each request key of a shard, and under each task id.
#[derive(Debug, Default)]
pub struct IdempotentSubmit {
    created: BTreeMap<TaskId, u32>,
    bodies: BTreeMap<(ShardId, RequestKey), Enqueue>,
}

impl IdempotentSubmit {
    /// A task was created.
    pub fn created(&mut self, id: &TaskId) -> Verdict {
        let count = self.created.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 {
            return Ok(());
        }
        violation(NAME, format!("task {id} was created {count} times"))
    }

    /// A committed submission and its reply.
    pub fn applied(
        &mut self,
        key: Option<(ShardId, RequestKey)>,
        body: &Enqueue,
        reply: &Reply,
    ) -> Verdict {
        match reply {
            Reply::Enqueued { id, .. } if *id != body.id => {
                return violation(
                    NAME,
                    format!("a submission of {} was answered with {id}", body.id),
                );
            }
            Reply::Enqueued { .. } if !self.created.contains_key(&body.id) => {
                return violation(
                    NAME,
                    format!("task {} was acknowledged and never created", body.id),
                );
            }
            _ => {}
        }
        let Some(key) = key else { return Ok(()) };
        let accepted = matches!(reply, Reply::Enqueued { .. });
        match self.bodies.get(&key) {
            None if accepted => {
                self.bodies.insert(key, body.clone());
                Ok(())
            }
            Some(first) if accepted && first != body => {
                violation(NAME, format!("request {key:?} was accepted with two bodies"))
            }
            Some(first) if first == body && conflicts(reply) => {
                violation(NAME, format!("a resend of request {key:?} was refused: {reply:?}"))
            }
            _ => Ok(()),
        }
    }
}

fn conflicts(reply: &Reply) -> bool {
    let refused = |code: &RefusalCode| {
        matches!(code, RefusalCode::Conflict | RefusalCode::IdempotencyConflict)
    };
    matches!(reply, Reply::Refused { code } if refused(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{QueueName, RequestId};

    fn body(payload: &[u8]) -> Enqueue {
        Enqueue::new(TaskId::parse("t1").unwrap(), QueueName::parse("q").unwrap(), payload)
    }

    #[test]
    fn a_second_task_and_a_second_body_are_noticed() {
        let key = RequestKey { id: RequestId::parse("r1").unwrap(), item: 0 };
        let id = body(b"a").id;
        let enqueued = Reply::Enqueued { id: id.clone(), created: true };
        let mut check = IdempotentSubmit::default();
        assert!(
            check.applied(Some((0, key.clone())), &body(b"a"), &enqueued).is_err(),
            "never created"
        );
        assert!(check.created(&id).is_ok());
        assert!(check.applied(Some((0, key.clone())), &body(b"a"), &enqueued).is_ok());
        assert!(check.applied(Some((0, key.clone())), &body(b"b"), &enqueued).is_err());
        let conflict = Reply::refused(RefusalCode::IdempotencyConflict);
        assert!(check.applied(Some((0, key.clone())), &body(b"b"), &conflict).is_ok());
        assert!(check.applied(Some((0, key)), &body(b"a"), &conflict).is_err());
        assert!(check.created(&id).is_err());
    }
}
