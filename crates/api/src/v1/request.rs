//! What became of a request id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::v1::OutcomeKind;

/// The recorded fate of one item of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RequestInfo {
    /// The request id.
    pub request: String,
    /// Which item of it, from 0.
    pub item: u32,
    /// Whether it was committed.
    pub status: RequestStatus,
    /// The recorded outcome; absent unless committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
    /// When it was first applied, in log time; absent unless committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_ms: Option<u64>,
    /// Since when it is ruled out, in log time; absent unless voided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voided_ms: Option<u64>,
    /// How many tasks this step of a job on many tasks changed; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Why it was refused; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

/// Whether a request was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// It was, with the outcome shown.
    Committed,
    /// It was not, as of this read; a resend that is still under way may yet be.
    NotYet,
    /// It was not and never will be: every shard refuses it.
    Voided,
}

impl RequestStatus {
    /// The public word.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestStatus::Committed => "committed",
            RequestStatus::NotYet => "not_yet",
            RequestStatus::Voided => "voided",
        }
    }
}
