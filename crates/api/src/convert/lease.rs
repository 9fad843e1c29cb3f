//! Leases: wishes to orders, records to documents.

use ikada_state::{AcquireLease, BoundTask, Fence, HolderName, Lease, LeaseName, Limits, TaskId};

use super::check::check_ttl;
use super::field::{FieldError, parse_name};
use crate::v1;

/// Lifetime of a holding that names none: long enough for a change of leaders, short enough to wait for.
const TTL_MS_DEFAULT: u32 = 15_000;

/// Longest wait of one call; whoever waits longer asks again and keeps the place.
const WAIT_MS_MAX: u64 = 10 * 60 * 1000;

/// A lease's name.
pub fn lease_name(name: &str) -> Result<LeaseName, FieldError> {
    parse_name("name", name, LeaseName::parse)
}

/// A holder's name.
pub fn lease_holder(holder: &str) -> Result<HolderName, FieldError> {
    parse_name("holder", holder, HolderName::parse)
}

/// A wish for a lease. The task's shard is left to the node, and so is the holder's full name.
pub fn acquire_lease(name: &str, body: &v1::AcquireLease) -> Result<AcquireLease, FieldError> {
    check_ttl(body.ttl_ms, &Limits::default())?;
    if body.wait_ms > WAIT_MS_MAX {
        return Err(FieldError::bad_value("wait_ms", format!("must be at most {WAIT_MS_MAX}")));
    }
    let task = match &body.task {
        None => None,
        Some(task) => {
            let id = parse_name("task.id", &task.id, TaskId::parse)?;
            Some(BoundTask { id, fence: Fence(task.fence.0), shard: 0 })
        }
    };
    Ok(AcquireLease {
        name: lease_name(name)?,
        holder: lease_holder(&body.holder)?,
        ttl_ms: body.ttl_ms.unwrap_or(TTL_MS_DEFAULT),
        wait: body.wait_ms > 0,
        task,
    })
}

/// A lease as a document; none is a lease that nobody holds.
pub fn show_lease(name: &str, lease: Option<&Lease>) -> v1::LeaseInfo {
    let Some(lease) = lease else {
        return v1::LeaseInfo {
            name: name.to_owned(),
            state: v1::LeaseState::Free,
            holder: None,
            fence: None,
            ttl_ms: None,
            since_ms: None,
            task: None,
            waiters: Vec::new(),
        };
    };
    let holding = &lease.holding;
    let waiters = lease.waiters.iter().map(|waiter| v1::LeaseWaiterInfo {
        holder: waiter.holder.to_string(),
        since_ms: waiter.since_ms,
    });
    v1::LeaseInfo {
        name: lease.name.to_string(),
        state: v1::LeaseState::Held,
        holder: Some(holding.holder.to_string()),
        fence: Some(v1::Number(holding.fence.0)),
        ttl_ms: Some(holding.ttl_ms),
        since_ms: Some(holding.since_ms),
        task: holding.task.as_ref().map(|task| task.id.to_string()),
        waiters: waiters.collect(),
    }
}
