//! Is there an order of events that explains every answer about one task?
//!
//! A depth-first search over the calls in the manner of Wing and Gong: a call may come next if it began before every
//! call that is still missing had been answered. Positions already visited (calls taken, state reached) are not visited
//! again. Tasks are independent, and a task has a few dozen calls at most, so this is quick.
//!
//! Hidden events (expiry of a claim, grants whose answer was lost) need no call of their own: fences tell.

use std::collections::BTreeSet;

use super::history::{Kind, Op, Seen};

/// More calls than this about one task are not searched.
pub(super) const OPS_MAX: usize = 64;

/// A task as the model knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Absent,
    /// Waiting or claimed; the highest fence granted.
    Open(u64),
    /// Completed by this fence.
    Done(u64),
}

/// What a call makes of a state; none if it contradicts it.
fn step(state: State, kind: Kind) -> Option<State> {
    match (kind, state) {
        (Kind::Submit, State::Absent) => Some(State::Open(0)),
        // A resend of the same submission.
        (Kind::Submit, state) => Some(state),
        (Kind::Grant(fence), State::Open(before)) if fence > before => Some(State::Open(fence)),
        (Kind::Complete(fence, true), State::Open(live)) if live == fence => {
            Some(State::Done(fence))
        }
        (Kind::Complete(fence, true), State::Done(by)) if by == fence => Some(state),
        // Stale: another attempt took over, or the claim had expired. Never for the one that counted.
        (Kind::Complete(fence, false), State::Open(_)) => Some(state).filter(|_| fence > 0),
        (Kind::Complete(fence, false), State::Done(by)) if by != fence => Some(state),
        (Kind::Read(Seen::Nothing), State::Absent)
        | (Kind::Read(Seen::Open), State::Open(_))
        | (Kind::Read(Seen::Done), State::Done(_)) => Some(state),
        _ => None,
    }
}

/// Whether some order explains all answers; none if there are too many calls to say.
pub(super) fn is_explained(ops: &[Op]) -> Option<bool> {
    if ops.len() > OPS_MAX {
        return None;
    }
    let definite = ops.iter().enumerate().filter(|(_, op)| op.end_us.is_some());
    let needed = definite.fold(0u64, |mask, (place, _)| mask | 1 << place);
    let mut visited = BTreeSet::new();
    let mut open = vec![(0u64, State::Absent)];
    while let Some((taken, state)) = open.pop() {
        if taken & needed == needed {
            return Some(true);
        }
        if !visited.insert((taken, state)) {
            continue;
        }
        let missing = |place: usize| taken & (1 << place) == 0;
        let ends = ops.iter().enumerate().filter(|(place, _)| missing(*place));
        let first_end = ends.filter_map(|(_, op)| op.end_us).min().unwrap_or(u64::MAX);
        for (place, op) in ops.iter().enumerate() {
            if missing(place)
                && op.begin_us <= first_end
                && let Some(next) = step(state, op.kind)
            {
                open.push((taken | 1 << place, next));
            }
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind, begin_us: u64, end_us: u64) -> Op {
        Op { kind, begin_us, end_us: Some(end_us) }
    }

    fn lost(kind: Kind, begin_us: u64) -> Op {
        Op { kind, begin_us, end_us: None }
    }

    #[test]
    fn an_ordinary_life_is_explained() {
        let life = [
            op(Kind::Submit, 0, 10),
            op(Kind::Read(Seen::Open), 11, 12),
            op(Kind::Grant(5), 20, 30),
            op(Kind::Grant(9), 40, 50),
            op(Kind::Complete(5, false), 55, 60),
            op(Kind::Complete(9, true), 56, 70),
            op(Kind::Read(Seen::Done), 71, 80),
        ];
        assert_eq!(is_explained(&life), Some(true));
        // An unknown submission may have happened, or not.
        assert_eq!(
            is_explained(&[lost(Kind::Submit, 0), op(Kind::Read(Seen::Open), 5, 6)]),
            Some(true)
        );
        assert_eq!(
            is_explained(&[lost(Kind::Submit, 0), op(Kind::Read(Seen::Nothing), 5, 6)]),
            Some(true)
        );
    }

    #[test]
    fn every_breach_is_found() {
        let breaches: [&[Op]; 6] = [
            // A stale read.
            &[op(Kind::Submit, 0, 10), op(Kind::Read(Seen::Nothing), 11, 12)],
            // A fence that does not rise.
            &[op(Kind::Submit, 0, 1), op(Kind::Grant(5), 2, 3), op(Kind::Grant(5), 4, 5)],
            // Two completions by different attempts.
            &[
                op(Kind::Submit, 0, 1),
                op(Kind::Grant(5), 2, 3),
                op(Kind::Complete(5, true), 4, 5),
                op(Kind::Complete(6, true), 6, 7),
            ],
            // A grant after the end.
            &[
                op(Kind::Submit, 0, 1),
                op(Kind::Grant(5), 2, 3),
                op(Kind::Complete(5, true), 4, 5),
                op(Kind::Grant(6), 6, 7),
            ],
            // A zombie's completion counts although another attempt had been granted before.
            &[
                op(Kind::Submit, 0, 1),
                op(Kind::Grant(5), 2, 3),
                op(Kind::Grant(6), 4, 5),
                op(Kind::Complete(5, true), 6, 7),
            ],
            // Done, and then not.
            &[
                op(Kind::Submit, 0, 1),
                op(Kind::Grant(5), 2, 3),
                lost(Kind::Complete(5, true), 4),
                op(Kind::Read(Seen::Done), 5, 6),
                op(Kind::Read(Seen::Open), 7, 8),
            ],
        ];
        for breach in breaches {
            assert_eq!(is_explained(breach), Some(false), "{breach:?}");
        }
    }

    #[test]
    fn too_many_calls_are_not_judged() {
        let reads = vec![op(Kind::Read(Seen::Nothing), 0, 1); OPS_MAX + 1];
        assert_eq!(is_explained(&reads), None);
    }
}
