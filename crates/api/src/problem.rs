//! Problem documents (`application/problem+json`): how every refusal looks to a caller.
//!
//! `code` is stable and made for programs; `title` and `detail` are made for people and say what to do next.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The media type of a problem.
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request, or one item of it, was not carried out. Kept small, since it travels in results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A URI reference that names the kind of problem; `urn:ikada:problem:<code>`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The kind of problem in a few words.
    pub title: Box<str>,
    /// The HTTP status that belongs to it.
    pub status: u16,
    /// What happened here, and what to do next.
    pub detail: Box<str>,
    /// Stable code for programs.
    pub code: Cow<'static, str>,
    /// The field that was refused; absent when no single field is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// The request id under which to ask what became of it; absent when nothing was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<str>>,
    /// Seconds after which to try again; absent when trying again does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
}

impl Problem {
    /// A problem without field, request id or advice to retry.
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        title: impl Into<Box<str>>,
        detail: impl Into<Box<str>>,
    ) -> Problem {
        let code = code.into();
        Problem {
            kind: format!("urn:ikada:problem:{code}").into(),
            title: title.into(),
            status,
            detail: detail.into(),
            code,
            field: None,
            request: None,
            retry_after_s: None,
        }
    }

    /// Names the field to blame.
    pub fn with_field(mut self, field: impl Into<Box<str>>) -> Problem {
        self.field = Some(field.into());
        self
    }

    /// Names the request to ask about.
    pub fn with_request(mut self, request: impl Into<Box<str>>) -> Problem {
        self.request = Some(request.into());
        self
    }

    /// Advises when to try again.
    pub fn with_retry_after_s(mut self, seconds: u32) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.detail)?;
        match &self.field {
            Some(field) => write!(formatter, " (field {field})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_it_was_written() {
        let problem =
            Problem::new(400, "bad_value", "bad value", "priority is 12, at most 9 is allowed")
                .with_field("tasks[3].priority");
        let text = serde_json::to_string(&problem).unwrap();
        assert!(text.contains("\"type\":\"urn:ikada:problem:bad_value\""));
        assert!(!text.contains("retry_after_s"));
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        assert!(problem.to_string().ends_with("(field tasks[3].priority)"));
    }
}
