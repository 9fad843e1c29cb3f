//! Why a client call has no answer.

use crate::problem::Problem;

/// A base URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("url {url:?} cannot be used: {rule}")]
pub struct BadUrl {
    /// The text, cut short.
    pub url: String,
    /// What it should look like.
    pub rule: &'static str,
}

impl BadUrl {
    pub(crate) fn none() -> BadUrl {
        BadUrl { url: String::new(), rule: "at least one url is needed" }
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster decided against it; sending it again gives the same.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// Nothing was decided until the time was over; nothing was changed by this call.
    #[error("no node could serve the request in time: {detail}")]
    Unavailable {
        /// What the last try met.
        detail: String,
        /// The stable code of what the last node said, if one said anything.
        code: Option<String>,
    },
    /// It may or may not have happened: send it again under the same request id, or ask what became of it.
    #[error("the outcome of request {request} is unknown: {detail}")]
    Unknown {
        /// The request id.
        request: String,
        /// What the last try met.
        detail: String,
    },
    /// The other side does not speak this protocol.
    #[error("the answer cannot be understood: {detail}")]
    Protocol {
        /// What is wrong with it.
        detail: String,
    },
}

impl Error {
    /// The stable code of the cluster's refusal, if it is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }
}
