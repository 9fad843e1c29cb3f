//! Q2 Terminal once: a task enters at most one terminal state, once; only retention and drops remove it, and only then.
//! A retry alone leads back, and never from success.
//!
//! Every change of state that apply reports must begin where the last one ended.

use std::collections::BTreeMap;

use ikada_state::{TaskId, TaskState};

use super::{Verdict, violation};
use crate::oracle::jobs::Part;

const NAME: &str = "Q2 terminal_once";

/// The last known state of every task of one shard.
#[derive(Debug, Default)]
pub struct TerminalOnce {
    states: BTreeMap<TaskId, TaskState>,
}

impl TerminalOnce {
    /// One change of state.
    pub fn moved(
        &mut self,
        id: &TaskId,
        from: Option<TaskState>,
        to: Option<TaskState>,
    ) -> Verdict {
        let known = self.states.get(id).copied();
        if known != from {
            return violation(NAME, format!("task {id} moves from {from:?}, but was {known:?}"));
        }
        if !legal(from, to) && !outrun(id, from, to) {
            return violation(NAME, format!("task {id} moves from {from:?} to {to:?}"));
        }
        match to {
            Some(state) => self.states.insert(id.clone(), state),
            None => self.states.remove(id),
        };
        Ok(())
    }
}

impl TerminalOnce {
    /// A task left with its slot, or came with it.
    pub fn travelled(&mut self, id: &TaskId, state: TaskState, came: bool) -> Verdict {
        let known = match came {
            true => self.states.insert(id.clone(), state),
            false => self.states.remove(id),
        };
        let expected = (!came).then_some(state);
        if known == expected {
            return Ok(());
        }
        let way = if came { "came" } else { "left" };
        violation(NAME, format!("task {id} {way} as {state:?}, but was {known:?}"))
    }
}

/// A job's task that waits may be done by the one that ran beside it.
fn outrun(id: &TaskId, from: Option<TaskState>, to: Option<TaskState>) -> bool {
    let waits = matches!(from, Some(TaskState::Ready | TaskState::Scheduled));
    Part::of(id).is_some() && waits && to == Some(TaskState::Done)
}

fn legal(from: Option<TaskState>, to: Option<TaskState>) -> bool {
    use TaskState::{Cancelled, Claimed, Dead, Done, Ready, Scheduled};
    match (from, to) {
        (None, Some(to)) => matches!(to, Scheduled | Ready),
        (Some(from), None) => from.is_terminal(),
        // Dead without a claim: its deadline has passed.
        (Some(Scheduled), Some(to)) => matches!(to, Ready | Cancelled | Dead),
        (Some(Ready), Some(to)) => matches!(to, Claimed | Cancelled | Dead),
        (Some(Claimed), Some(to)) => matches!(to, Ready | Scheduled | Done | Dead | Cancelled),
        // Only by a retry, which Q15 asks for.
        (Some(Dead | Cancelled), Some(to)) => to == Ready,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TaskState::{Cancelled, Claimed, Dead, Done, Ready};

    #[test]
    fn a_second_end_and_a_removed_live_task_are_noticed() {
        let id = TaskId::parse("t1").unwrap();
        let mut check = TerminalOnce::default();
        assert!(check.moved(&id, None, Some(Ready)).is_ok());
        assert!(check.moved(&id, Some(Ready), None).is_err());
        assert!(check.moved(&id, Some(Ready), Some(Claimed)).is_ok());
        assert!(check.moved(&id, Some(Claimed), Some(Cancelled)).is_ok());
        assert!(check.moved(&id, Some(Cancelled), Some(Done)).is_err());
        assert!(check.moved(&id, Some(Claimed), Some(Done)).is_err());
        assert!(check.moved(&id, Some(Cancelled), Some(Ready)).is_ok(), "a retry");
        assert!(check.moved(&id, Some(Ready), Some(Claimed)).is_ok());
        assert!(check.moved(&id, Some(Claimed), Some(Done)).is_ok());
        assert!(check.moved(&id, Some(Done), Some(Ready)).is_err());
        let late = TaskId::parse("t2").unwrap();
        assert!(check.moved(&late, None, Some(Ready)).is_ok());
        assert!(check.moved(&late, Some(Ready), Some(Dead)).is_ok(), "a deadline");
        assert!(check.moved(&late, Some(Dead), Some(Claimed)).is_err());
        assert!(check.moved(&id, Some(Done), None).is_ok());
    }
}
