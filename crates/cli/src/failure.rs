//! How a command can end badly, and what to do next.

use std::fmt;

use ikada_api::Problem;
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
        /// What to do next.
        next: Option<String>,
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

    /// A refusal of the cluster, with advice where its code has some.
    pub(crate) fn refused(problem: &Problem) -> Failure {
        let next = next_step(&problem.code).map(str::to_owned);
        Failure::Refused { message: problem.to_string(), next }
    }

    /// What to do next.
    pub(crate) fn next(&self) -> Option<&str> {
        match self {
            Failure::Failed { next, .. } | Failure::Refused { next, .. } => next.as_deref(),
            Failure::Unavailable { next, .. } => Some(next),
            Failure::Usage { .. } => Some("see --help for examples"),
            Failure::Command { .. } => None,
        }
    }
}

/// What a person at a shell can do about a refusal; none where the problem's own words say it all.
fn next_step(code: &str) -> Option<&'static str> {
    Some(match code {
        "task_not_found" => {
            "look for it: ikada task list; finished tasks go after their retention time"
        }
        "queue_not_found" => "see which there are: ikada queue list",
        "job_not_found" => "see which there are: ikada job list",
        "schedule_not_found" => "see which there are: ikada schedule list",
        "program_not_found" | "unknown_program" => {
            "see which there are: ikada program list; add one: ikada program push"
        }
        "object_not_found" | "bucket_not_found" => "see which there are: ikada object list",
        "worker_not_found" => "see which there are: ikada worker-pool list",
        "node_not_found" | "shard_not_found" => "see which there are: ikada cluster status",
        "stale_fence" | "not_owner" => {
            "the claim is lost: throw the result away; ikada task show tells who has the task now"
        }
        "task_finished" => "see what came of it: ikada task show",
        "task_not_finished" => "see what it waits for: ikada task explain",
        "conflict" => {
            "the id is taken by another task: see it with ikada task show, or choose another id"
        }
        "idempotency_conflict" => "use another --idempotency-key for another request",
        "request_voided" => "submit it again under another --idempotency-key",
        "version_conflict" => "someone else was faster: look again, then repeat the change",
        "unauthenticated" => {
            "give a token: IKADA_TOKEN, --token-file, or a context (ikada context --help)"
        }
        "forbidden" | "forbidden_namespace" => "see what your token may do: ikada auth whoami",
        "namespace_full" | "namespace_bytes_full" | "namespace_objects_full" => {
            "see the quota and what is used: ikada namespace list"
        }
        "rate_exceeded" | "overloaded" => "wait a little and try again",
        "queue_full" => "let workers catch up, or raise the bound: ikada queue set --pending-max",
        "change_pending" => "wait for it: ikada cluster status -f",
        "node_unreachable" | "not_waiting" => {
            "start the new node with --join, and give its --peer-listen address"
        }
        "copies_missing" => "wait until the other nodes have fetched the files, then repeat this",
        "last_voter" | "no_majority_left" => "add a node first: ikada cluster add",
        "level_too_low" | "node_too_old" => {
            "upgrade the older nodes: ikada cluster status shows levels"
        }
        "too_large" => "put big data into files: ikada object put, and name them in the task",
        _ => return None,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed { message, .. }
            | Failure::Usage { message }
            | Failure::Unavailable { message, .. }
            | Failure::Command { message, .. }
            | Failure::Refused { message, .. } => formatter.write_str(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Refused(problem) => Failure::refused(&problem),
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
}
