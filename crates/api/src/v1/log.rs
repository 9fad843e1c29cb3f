//! What programs say, as a live stream tells it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Some of what an attempt has said (event `log`). Whole lines, unless the attempt is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogText {
    /// The task.
    pub task: String,
    /// Which of its attempts.
    pub attempt: u16,
    /// Where in the attempt's log this begins, in bytes.
    pub offset: u64,
    /// The text; absent if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes, if they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_base64: Option<String>,
}

/// A part of a log that cannot be told (event `gap`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogGap {
    /// The task; absent if it is about many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Which of its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// Where in the attempt's log it begins, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How many bytes are missing, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Nothing more will be said (event `end`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEnd {
    /// How the task or job stands, or `gone`.
    pub state: String,
}
