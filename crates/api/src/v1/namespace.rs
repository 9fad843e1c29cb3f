//! Namespaces: how much they may take, and how much they have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// New bounds of a namespace; an absent one stays as it is, 0 lifts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaBody {
    /// Most unfinished tasks; each shard admits its share, so at least the number of shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_max: Option<u64>,
    /// Most bytes of unfinished tasks; each shard admits its share, so at least 1 MiB for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Most bytes of objects, all their versions counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_bytes_max: Option<u64>,
    /// Most tasks submitted in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_max: Option<u32>,
}

/// Bounds of a namespace; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaInfo {
    /// Rises with each change; 0 if none was ever set.
    pub version: u64,
    /// Most unfinished tasks.
    pub pending_max: u64,
    /// Most bytes of unfinished tasks.
    pub bytes_max: u64,
    /// Most bytes of objects.
    pub object_bytes_max: u64,
    /// Most tasks submitted in a second.
    pub rate_max: u32,
}

/// A namespace with what it has in the whole cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceInfo {
    /// Its name.
    pub name: String,
    /// What it may take.
    pub quota: QuotaInfo,
    /// Unfinished tasks.
    pub pending: u64,
    /// Bytes of unfinished tasks.
    pub bytes: u64,
    /// Bytes of objects.
    pub object_bytes: u64,
    /// Tasks ever submitted.
    pub submitted_total: u64,
}

/// Namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespacePage {
    /// All that have a quota, a queue or an object, in order of their names.
    pub namespaces: Vec<NamespaceInfo>,
}
