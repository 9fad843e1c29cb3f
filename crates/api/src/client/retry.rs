//! What to do after one try: a pure decision, so that every case can be tested without a socket.

use std::time::Duration;

use crate::problem::Problem;

/// How one try ended.
#[derive(Debug)]
pub(crate) enum Try {
    /// No connection came about; the request was not sent.
    NotSent(String),
    /// Something was sent and no answer came.
    NoAnswer(String),
    /// An answer came.
    Answer {
        /// Its status.
        status: u16,
        /// The problem it carries, if it is one.
        problem: Option<Box<Problem>>,
        /// The wait it asks for.
        retry_after: Option<Duration>,
    },
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Hand the answer to the caller.
    Accept,
    /// Tell the caller that it was refused.
    Refuse(Box<Problem>),
    /// Try again, on another node.
    Again {
        /// Whether this try may have had an effect.
        maybe_done: bool,
        /// The wait the server asked for.
        after: Option<Duration>,
        /// What to report if there is no time left.
        detail: String,
    },
}

/// The code of a namespace whose objects have as many bytes as they may: no wait of a call makes room.
const OBJECTS_FULL: &str = "namespace_objects_full";

/// Decides. Only answers that say so are final: 2xx is success, 4xx (but 408 and 429) and 507 are refusals.
pub(crate) fn decide(outcome: Try) -> Next {
    let again = |maybe_done, after, detail| Next::Again { maybe_done, after, detail };
    match outcome {
        Try::NotSent(detail) => again(false, None, detail),
        Try::NoAnswer(detail) => again(true, None, detail),
        Try::Answer { status: 200..=299, .. } => Next::Accept,
        Try::Answer { status, problem, retry_after } => {
            let detail = match &problem {
                Some(problem) => problem.to_string(),
                None => format!("status {status}"),
            };
            let is_full = problem.as_ref().is_some_and(|problem| problem.code == OBJECTS_FULL);
            match status {
                429 if is_full => Next::Refuse(problem.unwrap_or_else(|| bare_problem(status))),
                // Shed or leaderless before anything was begun.
                408 | 429 | 503 => again(false, retry_after, detail),
                // No room on the disks: nothing was begun, and no wait of a call makes any.
                507 => Next::Refuse(problem.unwrap_or_else(|| bare_problem(status))),
                500..=599 => again(true, retry_after, detail),
                _ => Next::Refuse(problem.unwrap_or_else(|| bare_problem(status))),
            }
        }
    }
}

/// Stands in for a refusal without a problem document, as a proxy in between would send it.
fn bare_problem(status: u16) -> Box<Problem> {
    let detail = format!("the server answered with status {status} and no explanation");
    Box::new(Problem::new(status, "unexplained", "unexplained refusal", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Try {
        let problem = Box::new(Problem::new(status, "code", "title", "detail"));
        Try::Answer { status, problem: Some(problem), retry_after: None }
    }

    fn maybe_done(next: Next) -> bool {
        match next {
            Next::Again { maybe_done, .. } => maybe_done,
            other => panic!("expected another try, got {other:?}"),
        }
    }

    #[test]
    fn only_tries_that_reached_a_server_leave_doubt() {
        assert!(!maybe_done(decide(Try::NotSent("refused".into()))));
        assert!(maybe_done(decide(Try::NoAnswer("reset".into()))));
        assert!(!maybe_done(decide(answer(503))));
        assert!(!maybe_done(decide(answer(429))));
        assert!(maybe_done(decide(answer(504))));
        assert!(maybe_done(decide(answer(500))));
    }

    #[test]
    fn refusals_are_final_and_successes_accepted() {
        assert_eq!(decide(answer(200)), Next::Accept);
        assert_eq!(decide(answer(201)), Next::Accept);
        for status in [400, 404, 409, 413, 415, 307, 507] {
            assert!(matches!(decide(answer(status)), Next::Refuse(_)), "{status}");
        }
        let full = Box::new(Problem::new(429, "namespace_objects_full", "full", "remove some"));
        let full = Try::Answer { status: 429, problem: Some(full), retry_after: None };
        assert!(matches!(decide(full), Next::Refuse(problem) if problem.status == 429));
        let bare = Try::Answer { status: 404, problem: None, retry_after: None };
        assert!(matches!(decide(bare), Next::Refuse(problem) if problem.code == "unexplained"));
    }
}
