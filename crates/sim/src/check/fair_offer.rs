//! Q11 Order: a claim is handed only what it may have. Within a key the tasks go one by one in the order of their
//! submission, or at most as many at a time as the key allows; a worker gets only tasks whose labels it has; a task is
//! not handed out after its deadline, and does not die of it before (TQ-1).

use ikada_state::{Fence, TaskId, TaskState};

use super::{Verdict, violation};
use crate::oracle::rules::Rules;

const NAME: &str = "Q11 fair_offer";

/// A transition, before the rules follow it.
pub fn check(
    rules: &Rules,
    id: &TaskId,
    from: Option<TaskState>,
    to: Option<TaskState>,
    fence: Fence,
) -> Verdict {
    match (from, to) {
        (_, Some(TaskState::Claimed)) => {
            labels(rules, id, fence)?;
            deadline(rules, id)?;
            key(rules, id)
        }
        (Some(TaskState::Ready | TaskState::Scheduled), Some(TaskState::Dead)) => {
            let deadline_ms = rules.standings.get(id).and_then(|standing| standing.deadline_ms);
            match deadline_ms {
                Some(deadline_ms) if deadline_ms <= rules.time_ms => Ok(()),
                _ => violation(NAME, format!("task {id} died unclaimed before its deadline")),
            }
        }
        _ => Ok(()),
    }
}

fn labels(rules: &Rules, id: &TaskId, fence: Fence) -> Verdict {
    let Some(wish) = rules.wish(id) else {
        return Ok(());
    };
    // Grants that ended within their own entry are not in its replies.
    let Some(held) = rules.labels.get(&fence) else {
        return Ok(());
    };
    match wish.options.labels.pairs().iter().all(|pair| held.pairs().contains(pair)) {
        true => Ok(()),
        false => violation(
            NAME,
            format!("task {id} wants {:?} and was given to {held:?}", wish.options.labels),
        ),
    }
}

fn deadline(rules: &Rules, id: &TaskId) -> Verdict {
    let deadline_ms = rules.standings.get(id).and_then(|standing| standing.deadline_ms);
    match deadline_ms {
        Some(deadline_ms) if deadline_ms <= rules.time_ms => {
            violation(NAME, format!("task {id} was handed out after its deadline"))
        }
        _ => Ok(()),
    }
}

fn key(rules: &Rules, id: &TaskId) -> Verdict {
    let line = rules.line(id);
    if !line.iter().any(|(member, ..)| *member == id) {
        return Ok(());
    }
    let limit = line.iter().map(|(.., limit)| usize::from(*limit)).min().unwrap_or(0);
    let claimed = line.iter().filter(|(_, s, _)| s.state == TaskState::Claimed).count();
    if claimed >= limit {
        return violation(
            NAME,
            format!("task {id} was handed out while {claimed} of {limit} of its key run"),
        );
    }
    let first = line.iter().min_by_key(|(_, standing, _)| standing.place);
    match first {
        Some((first, ..)) if limit == 1 && *first != id => {
            violation(NAME, format!("task {id} was handed out before {first} of the same key"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ikada_state::{Claim, Grant, SessionId, TaskOptions, WorkerId};
    use ikada_state::{Command, Enqueue, Label, Labels, Namespace, Order, QueueName, Reply};

    use super::*;

    fn id(text: &str) -> TaskId {
        TaskId::parse(text).unwrap()
    }

    fn add(rules: &mut Rules, name: &str, options: TaskOptions) {
        let mut task = Enqueue::new(id(name), QueueName::parse("q").unwrap(), Vec::new());
        task.options = Some(Box::new(options));
        let command = Command::Enqueue(task);
        let order = Order { namespace: Namespace::default(), request: None, command };
        rules.order(&order, &Reply::Enqueued { id: id(name), created: true });
        rules.moved(&id(name), Some(TaskState::Ready));
    }

    fn grant(rules: &Rules, name: &str, fence: u64) -> Verdict {
        let (from, to) = (Some(TaskState::Ready), Some(TaskState::Claimed));
        check(rules, &id(name), from, to, Fence(fence))
    }

    #[test]
    fn overtaking_and_crowding_are_noticed() {
        let mut rules = Rules::default();
        add(&mut rules, "k:a", TaskOptions::default());
        add(&mut rules, "k:b", TaskOptions::default());
        add(&mut rules, "other", TaskOptions::default());
        assert!(grant(&rules, "k:b", 1).is_err());
        assert!(grant(&rules, "k:a", 1).is_ok() && grant(&rules, "other", 1).is_ok());
        rules.moved(&id("k:a"), Some(TaskState::Claimed));
        assert!(grant(&rules, "k:b", 2).is_err());
        rules.moved(&id("k:a"), Some(TaskState::Scheduled));
        assert!(grant(&rules, "k:b", 2).is_err(), "the first waits for a retry");
        rules.moved(&id("k:a"), Some(TaskState::Dead));
        assert!(grant(&rules, "k:b", 2).is_ok());
    }

    #[test]
    fn missing_labels_and_wrong_deadlines_are_noticed() {
        let label = |text: &str| Label::parse(text).unwrap();
        let labels = Labels::new(vec![(label("gpu"), label("yes"))]).unwrap();
        let mut rules = Rules::default();
        rules.begin(100);
        let options = TaskOptions {
            labels: labels.clone(),
            deadline_ms: Some(200),
            ..TaskOptions::default()
        };
        add(&mut rules, "t", options);
        let mut claim = |fence: u64, labels: Labels| {
            let queue = QueueName::parse("q").unwrap();
            let command = Command::Claim(Claim {
                share: None,
                holds: None,
                worker: WorkerId::parse("w").unwrap(),
                session: SessionId(1),
                queues: vec![queue.clone()],
                max: 1,
                labels,
            });
            let order = Order { namespace: Namespace::default(), request: None, command };
            let grant = Grant {
                id: id("t"),
                queue,
                fence: Fence(fence),
                attempt: 1,
                max_attempts: 1,
                ttl_ms: 1,
                payload: Vec::new().into(),
                timeout_ms: 0,
                work: None,
                checkpoint: None,
            };
            rules.order(&order, &Reply::Claimed { tasks: vec![grant] });
            rules.moved(&id("t"), Some(TaskState::Ready));
            grant_of(&rules, fence)
        };
        fn grant_of(rules: &Rules, fence: u64) -> Verdict {
            grant(rules, "t", fence)
        }
        assert!(claim(1, Labels::default()).is_err());
        assert!(claim(2, labels).is_ok());
        let died = |rules: &Rules| {
            check(rules, &id("t"), Some(TaskState::Ready), Some(TaskState::Dead), Fence(0))
        };
        assert!(died(&rules).is_err());
        rules.time_ms = 200;
        assert!(died(&rules).is_ok() && grant(&rules, "t", 2).is_err());
    }
}
