//! What can be shown, and how each document looks as a table.

mod auth;
mod cluster;
mod job;
mod join_token;
mod lease;
mod namespace;
mod object;
mod program;
mod queue;
mod request;
mod schedule;
mod task;
mod worker;

pub(crate) use auth::{ClientCertificate, S3Key, StoredToken};
pub(crate) use cluster::votes_text;
pub(crate) use join_token::JoinTokenPage;
use serde::Serialize;

/// Headings and rows.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    /// One per column.
    pub(crate) headings: &'static [&'static str],
    /// Each as wide as the headings.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Something to show.
pub(crate) trait Document {
    /// As JSON.
    fn json(&self) -> Result<String, serde_json::Error>;
    /// As tables.
    fn grids(&self) -> Vec<Grid>;
    /// As bare names.
    fn names(&self) -> Vec<String>;
}

fn pretty<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document)
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
