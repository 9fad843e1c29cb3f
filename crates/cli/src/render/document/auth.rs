//! Tokens, callers and contexts.

use ikada_api::v1::{TokenInfo, TokenMade, TokenPage, TokenRevoked, Whoami};

use super::{Document, Grid, or_dash, pretty};
use crate::contexts::Contexts;
use crate::render::time::moment;

const FIELDS: &[&str] = &["field", "value"];

fn places(namespaces: &[String]) -> String {
    if namespaces.is_empty() { "all".to_owned() } else { namespaces.join(", ") }
}

fn end(expires_ms: Option<u64>) -> String {
    expires_ms.map_or_else(|| "never".to_owned(), moment)
}

fn facts<const N: usize>(facts: [(&str, String); N]) -> Vec<Grid> {
    let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    vec![Grid { headings: FIELDS, rows }]
}

impl Document for TokenPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = |token: &TokenInfo| {
            vec![
                token.id.clone(),
                token.name.clone(),
                token.role.clone(),
                places(&token.namespaces),
                moment(token.created_ms),
                end(token.expires_ms),
            ]
        };
        let headings = &["id", "name", "role", "namespaces", "created", "ends"];
        vec![Grid { headings, rows: self.tokens.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.id.clone()).collect()
    }
}

impl Document for TokenMade {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([("id", self.id.clone()), ("token", self.token.clone())])
    }

    fn names(&self) -> Vec<String> {
        vec![self.token.clone()]
    }
}

/// A token that was just made and is in a file.
#[derive(serde::Serialize)]
pub(crate) struct StoredToken {
    pub(crate) id: String,
    pub(crate) file: String,
}

impl Document for StoredToken {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([("id", self.id.clone()), ("file", self.file.clone())])
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

/// A key for the S3 door that was just made.
#[derive(serde::Serialize)]
pub(crate) struct S3Key {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
}

impl Document for S3Key {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([("access key", self.access_key.clone()), ("secret key", self.secret_key.clone())])
    }

    fn names(&self) -> Vec<String> {
        vec![self.access_key.clone(), self.secret_key.clone()]
    }
}

/// A client certificate that was just made.
#[derive(serde::Serialize)]
pub(crate) struct ClientCertificate {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Document for ClientCertificate {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("certificate", self.certificate.clone()),
            ("key", self.key.clone()),
        ])
    }

    fn names(&self) -> Vec<String> {
        vec![self.certificate.clone(), self.key.clone()]
    }
}

impl Document for TokenRevoked {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([("revoked", self.id.clone())])
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

impl Document for Whoami {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        facts([
            ("name", self.name.clone()),
            ("role", self.role.clone()),
            ("namespaces", places(&self.namespaces)),
            ("token", or_dash(self.token.as_ref())),
            ("ends", end(self.expires_ms)),
        ])
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl Document for Contexts {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.contexts.iter().map(|(name, context)| {
            let mark = if self.current.as_ref() == Some(name) { "*" } else { "" };
            let file = context.token_file.as_ref().map(|file| file.display());
            vec![
                mark.to_owned(),
                name.clone(),
                context.url.join(", "),
                or_dash(context.namespace.as_ref()),
                or_dash(file),
            ]
        });
        let headings = &["", "name", "url", "namespace", "token file"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.contexts.keys().cloned().collect()
    }
}
