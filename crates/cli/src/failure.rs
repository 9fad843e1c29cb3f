//! How a command can end badly, and what to do next.

use std::fmt;

use ikada_api::Problem;
use ikada_api::client::{BadUrl, Error};

use crate::advice::next_step;

/// Why a command did not do what was asked. The kinds match the exit codes.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong here.
    Failed {
        /// What.
        message: String,
        /// What to do next.
        next: Option<String>,
    },
    /// The arguments do not make sense together.
    Usage {
        /// What is wrong.
        message: String,
    },
    /// The cluster could not serve in time.
    Unavailable {
        /// What was met.
        message: String,
        /// What to do next.
        next: String,
    },
    /// A command that was run for the user failed.
    Command {
        /// What became of it.
        message: String,
        /// Its own exit code.
        code: u8,
    },
    /// The cluster decided against it.
    Refused {
        /// Why.
        message: String,
        /// What to do next.
        next: Option<String>,
    },
    /// Whoever read what is printed has seen enough: nothing went wrong, and nothing is left to do.
    Unheard,
}

impl Failure {
    /// A failure without advice.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed { message: message.into(), next: None }
    }

    /// A failure with advice.
    pub(crate) fn failed_next(message: impl Into<String>, next: impl Into<String>) -> Failure {
        Failure::Failed { message: message.into(), next: Some(next.into()) }
    }

    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into() }
    }

    /// A refusal of the cluster, with advice where its code has some.
    pub(crate) fn refused(problem: &Problem) -> Failure {
        let next = next_step(&problem.code).map(str::to_owned);
        Failure::Refused { message: problem.to_string(), next }
    }

    /// The failure of a command that takes `--idempotency-key`: an open outcome is settled by repeating it.
    pub(crate) fn of_repeatable(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Unknown { request, .. } => Failure::Unavailable {
                message,
                next: format!(
                    "repeat the command with --idempotency-key {request}: it is carried out at most once"
                ),
            },
            other => other.into(),
        }
    }

    /// What to do next.
    pub(crate) fn next(&self) -> Option<&str> {
        match self {
            Failure::Failed { next, .. } | Failure::Refused { next, .. } => next.as_deref(),
            Failure::Unavailable { next, .. } => Some(next),
            Failure::Usage { .. } => Some("see --help for examples"),
            Failure::Command { .. } | Failure::Unheard => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed { message, .. }
            | Failure::Usage { message }
            | Failure::Unavailable { message, .. }
            | Failure::Command { message, .. }
            | Failure::Refused { message, .. } => formatter.write_str(message),
            Failure::Unheard => formatter.write_str("nobody reads this any more"),
        }
    }
}

/// What to do once nobody served a call in time; `code` is what the last node said.
fn after_a_wait(code: Option<&str>) -> String {
    let next = match code {
        None => {
            "is a server running? name one with --url or IKADA_URL, e.g. --url http://127.0.0.1:7400"
        }
        // A node is there and said why not.
        Some(code) => next_step(code).unwrap_or("how the cluster is: ikada cluster status"),
    };
    next.to_owned()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Refused(problem) => Failure::refused(&problem),
            Error::Unavailable { code, .. } => {
                Failure::Unavailable { message, next: after_a_wait(code.as_deref()) }
            }
            Error::Unknown { request, .. } => Failure::Unavailable {
                message,
                next: format!(
                    "see whether it was done before you repeat it: ikada request show {request}"
                ),
            },
            Error::Protocol { .. } => Failure::failed_next(
                message,
                "is this the address of an ikada server of this version (its --listen, not its --peer-listen)?",
            ),
        }
    }
}

impl From<BadUrl> for Failure {
    fn from(error: BadUrl) -> Self {
        Failure::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_refusals_come_with_a_next_step() {
        let lost = Problem::new(409, "stale_fence", "t", "another attempt has taken over");
        let failure = Failure::refused(&lost);
        assert!(failure.to_string().starts_with("stale_fence: "), "{failure}");
        assert!(failure.next().is_some_and(|next| next.contains("ikada task show")));
        let other = Problem::new(400, "bad_value", "t", "priority must be 0 to 9");
        assert_eq!(Failure::refused(&other).next(), None, "its own words say what to do");
    }

    #[test]
    fn who_was_answered_is_not_asked_whether_a_server_runs() {
        let next = |code: Option<&str>| {
            let code = code.map(str::to_owned);
            let failure = Failure::from(Error::Unavailable { detail: "d".to_owned(), code });
            failure.next().map(str::to_owned).unwrap_or_default()
        };
        assert!(next(None).contains("is a server running?"));
        assert!(next(Some("queue_full")).contains("ikada queue set --pending-max"));
        assert!(next(Some("level_too_low")).contains("upgrade the older nodes"));
        assert!(next(Some("a_code_of_tomorrow")).contains("ikada cluster status"));
        let unknown = Error::Unknown { request: "r7".to_owned(), detail: "d".to_owned() };
        // Not every command takes --idempotency-key; those that do say so themselves.
        assert!(Failure::from(unknown).next().is_some_and(|next| next.contains("request show r7")));
    }
}
