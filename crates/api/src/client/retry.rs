//! What to do after one try: a pure decision, so that every case can be tested without a socket.

use std::time::Duration;

use super::Error;
use crate::problem::Problem;

/// What a try met that was no answer to go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Met {
    /// In words.
    pub(crate) detail: String,
    /// The code of the problem that a node gave; none where no node gave one.
    pub(crate) code: Option<String>,
}

impl Met {
    /// What is reported if nothing can have happened.
    pub(crate) fn unavailable(self) -> Error {
        Error::Unavailable { detail: self.detail, code: self.code }
    }
}

impl From<String> for Met {
    fn from(detail: String) -> Met {
        Met { detail, code: None }
    }
}

impl From<&str> for Met {
    fn from(detail: &str) -> Met {
        Met::from(detail.to_owned())
    }
}

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
        met: Met,
    },
}

/// The code of a namespace whose objects have as many bytes as they may: no wait of a call makes room.
const OBJECTS_FULL: &str = "namespace_objects_full";

/// Decides. Only answers that say so are final: 2xx is success, 4xx (but 408 and 429) and 507 are refusals, and so is a 429 or 503 of a
/// node that names no time to come back.
pub(crate) fn decide(outcome: Try) -> Next {
    let again = |maybe_done, after, met| Next::Again { maybe_done, after, met };
    match outcome {
        Try::NotSent(detail) => again(false, None, detail.into()),
        Try::NoAnswer(detail) => again(true, None, detail.into()),
        Try::Answer { status: 200..=299, .. } => Next::Accept,
        Try::Answer { status, problem, retry_after } => {
            let met = match &problem {
                Some(problem) => {
                    Met { detail: problem.to_string(), code: Some(problem.code.to_string()) }
                }
                None => format!("status {status}").into(),
            };
            let is_final = problem.as_ref().is_some_and(|problem| {
                problem.code == OBJECTS_FULL
                    || problem.retry_after_s.is_none() && retry_after.is_none()
            });
            match status {
                429 | 503 if is_final => {
                    Next::Refuse(problem.unwrap_or_else(|| bare_problem(status)))
                }
                // Shed or leaderless before anything was begun.
                408 | 429 | 503 => again(false, retry_after, met),
                // No room on the disks: nothing was begun, and no wait of a call makes any.
                507 => Next::Refuse(problem.unwrap_or_else(|| bare_problem(status))),
                500..=599 => again(true, retry_after, met),
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
        let problem = Problem::new(status, "code", "title", "detail");
        let problem =
            if matches!(status, 429 | 503) { problem.with_retry_after_s(1) } else { problem };
        Try::Answer { status, problem: Some(Box::new(problem)), retry_after: None }
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
    fn what_was_met_keeps_its_code() {
        let Next::Again { met, .. } = decide(answer(429)) else { panic!("another try") };
        assert_eq!(met, Met { detail: "code: detail".to_owned(), code: Some("code".to_owned()) });
        let Next::Again { met, .. } = decide(Try::NotSent("refused".into())) else {
            panic!("another try")
        };
        assert_eq!(met.code, None, "no node said anything");
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
        // Claims that are used up do not come back by waiting; a proxy that says nothing may be asked again.
        let spent = Box::new(Problem::new(503, "fence_exhausted", "used up", "raise the epoch"));
        let spent = Try::Answer { status: 503, problem: Some(spent), retry_after: None };
        assert!(
            matches!(decide(spent), Next::Refuse(problem) if problem.code == "fence_exhausted")
        );
        assert!(!maybe_done(decide(Try::Answer { status: 503, problem: None, retry_after: None })));
        let bare = Try::Answer { status: 404, problem: None, retry_after: None };
        assert!(matches!(decide(bare), Next::Refuse(problem) if problem.code == "unexplained"));
    }
}
