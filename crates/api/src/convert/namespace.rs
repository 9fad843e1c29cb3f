//! Quotas of namespaces.

use super::{FieldError, parse_name};
use crate::v1::{NamespaceInfo, QuotaBody, QuotaInfo};
use ikada_state::limits::Limits;
use ikada_state::{Command, Namespace, NamespaceView, Order, QuotaChange, SetQuota};

/// New bounds of a namespace, in a cluster of so many shards.
pub fn set_quota_order(name: &str, body: &QuotaBody, shards: u16) -> Result<Order, FieldError> {
    let shards = u64::from(shards);
    check_share("pending_max", body.pending_max, shards)?;
    let task_bytes_max = u64::from(Limits::default().payload_bytes_max);
    check_share("bytes_max", body.bytes_max, shards * task_bytes_max)?;
    let change = QuotaChange {
        pending_max: body.pending_max,
        bytes_max: body.bytes_max,
        object_bytes_max: body.object_bytes_max,
        rate_max: body.rate_max,
    };
    let namespace = parse_name("name", name, Namespace::parse)?;
    Ok(Order { namespace, request: None, command: Command::SetQuota(SetQuota { change }) })
}

/// Every shard admits a share, which must have room for a task.
fn check_share(field: &'static str, given: Option<u64>, least: u64) -> Result<(), FieldError> {
    match given {
        Some(bound) if bound != 0 && bound < least => {
            let detail =
                format!("must be 0, or at least {least}: every shard admits a share of it");
            Err(FieldError::bad_value(field, detail))
        }
        _ => Ok(()),
    }
}

/// A namespace as the public sees it.
pub fn show_namespace(view: &NamespaceView) -> NamespaceInfo {
    let quota = view.quota;
    NamespaceInfo {
        name: view.namespace.to_string(),
        quota: QuotaInfo {
            version: quota.version,
            pending_max: quota.pending_max,
            bytes_max: quota.bytes_max,
            object_bytes_max: quota.object_bytes_max,
            rate_max: quota.rate_max,
        },
        pending: view.pending,
        bytes: view.bytes,
        object_bytes: view.object_bytes,
        submitted_total: view.submitted,
    }
}
