//! Namespaces, their quotas and what they use.

use ikada_api::v1::{NamespaceInfo, NamespacePage};

use super::{Document, Grid, pretty};

/// What is used of a bound, if there is one.
fn of(used: u64, bound: u64) -> String {
    match bound {
        0 => used.to_string(),
        bound => format!("{used} of {bound}"),
    }
}

fn rate(rate_max: u32) -> String {
    if rate_max == 0 { "no limit".to_owned() } else { format!("{rate_max}/s") }
}

fn row(namespace: &NamespaceInfo) -> Vec<String> {
    let quota = namespace.quota;
    vec![
        namespace.name.clone(),
        of(namespace.pending, quota.pending_max),
        of(namespace.bytes, quota.bytes_max),
        of(namespace.object_bytes, quota.object_bytes_max),
        rate(quota.rate_max),
    ]
}

impl Document for NamespacePage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings = &["name", "unfinished tasks", "their bytes", "bytes of objects", "rate"];
        vec![Grid { headings, rows: self.namespaces.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.namespaces.iter().map(|namespace| namespace.name.clone()).collect()
    }
}

impl Document for NamespaceInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let quota = self.quota;
        let facts = [
            ("name", self.name.clone()),
            ("quota version", quota.version.to_string()),
            ("unfinished tasks", of(self.pending, quota.pending_max)),
            ("bytes of unfinished tasks", of(self.bytes, quota.bytes_max)),
            ("bytes of objects", of(self.object_bytes, quota.object_bytes_max)),
            ("submissions at most", rate(quota.rate_max)),
            ("submitted in all", self.submitted_total.to_string()),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![Grid { headings: &["field", "value"], rows }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
