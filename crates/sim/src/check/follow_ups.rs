//! Q9 Follow-ups: they come with the completion of their parent, in the same entry, once; and no task comes from
//! nowhere.

use ikada_state::{Effect, TaskId, TaskState};

use super::{Verdict, violation};
use crate::oracle::rules::Rules;

const NAME: &str = "Q9 follow_ups";

/// A task is created, before the rules follow it. `done` are the tasks that this entry completes.
pub fn created(rules: &Rules, id: &TaskId, done: &[&TaskId]) -> Verdict {
    let follows = |parent: &&TaskId| rules.wish(parent).is_some_and(|wish| wish.then.contains(id));
    match rules.expected.contains(id) || done.iter().any(follows) {
        true => Ok(()),
        false => violation(NAME, format!("task {id} was created and nobody had asked for it")),
    }
}

/// The tasks that an entry completes.
pub fn completed(effects: &[Effect]) -> Vec<&TaskId> {
    let done = effects.iter().filter_map(|effect| match effect {
        Effect::Moved { id, to: Some(TaskState::Done), .. } => Some(id),
        _ => None,
    });
    done.collect()
}

/// At the end of an entry: every follow-up of what it completed exists, unless it was removed in the meantime.
pub fn all_there(rules: &Rules, done: &[&TaskId], removed: &[&TaskId]) -> Verdict {
    for parent in done {
        let missing = rules.wish(parent).and_then(|wish| {
            let there = |id: &&TaskId| rules.standings.contains_key(*id) || removed.contains(id);
            wish.then.iter().find(|id| !there(id))
        });
        if let Some(missing) = missing {
            return violation(NAME, format!("task {parent} was completed without {missing}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ikada_state::{
        Command, Enqueue, Namespace, Order, QueueName, Reply, TaskOptions, encode_then,
    };

    use super::*;

    #[test]
    fn doubled_and_missing_follow_ups_are_noticed() {
        let id = |text: &str| TaskId::parse(text).unwrap();
        let task = |name: &str| Enqueue::new(id(name), QueueName::parse("q").unwrap(), Vec::new());
        let then = Some(encode_then(&[task("p:next")]));
        let mut parent = task("p");
        parent.options = Some(Box::new(TaskOptions { then, ..TaskOptions::default() }));
        let command = Command::Enqueue(parent);
        let order = Order { namespace: Namespace::default(), request: None, command };
        let mut rules = Rules::default();
        rules.order(&order, &Reply::Enqueued { id: id("p"), created: true });
        let (next, parent) = (id("p:next"), id("p"));
        assert!(created(&rules, &parent, &[]).is_ok());
        rules.moved(&parent, Some(TaskState::Ready));
        rules.begin(1);
        assert!(created(&rules, &next, &[]).is_err());
        assert!(all_there(&rules, &[&parent], &[]).is_err());
        assert!(created(&rules, &next, &[&parent]).is_ok());
        rules.moved(&next, Some(TaskState::Ready));
        assert!(all_there(&rules, &[&parent], &[]).is_ok());
        assert!(created(&rules, &id("p:next-again"), &[&parent]).is_err());
    }
}
