//! Join tokens.

use ikada_node::tls::Grant;
use serde::Serialize;

use super::{Document, Grid};
use crate::render::time::moment;

/// Join tokens, and the text of one that was just made.
#[derive(Serialize)]
pub(crate) struct JoinTokenPage {
    /// What is kept of them.
    #[serde(serialize_with = "without_digests")]
    pub(crate) tokens: Vec<Grant>,
    /// The whole text, shown this once.
    #[serde(rename = "token", skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u64>,
    uses_left: u32,
    expires_ms: u64,
}

fn without_digests<S: serde::Serializer>(tokens: &[Grant], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(tokens.iter().map(|grant| Shown {
        id: &grant.id,
        role: grant.role.as_str(),
        node: grant.node,
        uses_left: grant.uses_left,
        expires_ms: grant.expires_ms,
    }))
}

impl Document for JoinTokenPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        super::pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = |grant: &Grant| {
            vec![
                grant.id.clone(),
                grant.role.as_str().to_owned(),
                grant.node.map(|node| node.to_string()).unwrap_or_default(),
                grant.uses_left.to_string(),
                moment(grant.expires_ms),
            ]
        };
        let rows = self.tokens.iter().map(row).collect();
        let mut grids = vec![Grid { headings: &["id", "role", "node", "uses left", "ends"], rows }];
        if let Some(text) = &self.text {
            grids.push(Grid { headings: &["token"], rows: vec![vec![text.clone()]] });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        match &self.text {
            Some(text) => vec![text.clone()],
            None => self.tokens.iter().map(|grant| grant.id.clone()).collect(),
        }
    }
}
