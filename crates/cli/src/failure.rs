//! How a command can end badly, and what to do next.

use std::fmt;

use ikada_api::client::{BadUrl, Error};

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
    },
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

    /// What to do next.
    pub(crate) fn next(&self) -> Option<&str> {
        match self {
            Failure::Failed { next, .. } => next.as_deref(),
            Failure::Unavailable { next, .. } => Some(next),
            Failure::Usage { .. } => Some("see --help for examples"),
            Failure::Refused { .. } | Failure::Command { .. } => None,
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
            | Failure::Refused { message } => formatter.write_str(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Refused(problem) => Failure::Refused { message: problem.to_string() },
            Error::Unavailable { .. } => Failure::Unavailable {
                message,
                next: "is a server running? name one with --url or IKADA_URL, e.g. --url http://127.0.0.1:7400".into(),
            },
            Error::Unknown { request, .. } => Failure::Unavailable {
                message,
                next: format!("repeat the command with --idempotency-key {request}: it is carried out at most once"),
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
