//! `ikada bench objects`: what a cluster does as a store of files.
//!
//! Speaks HTTP by itself, without the client's retries, so that every call has exactly one outcome and what was turned
//! away is seen as such (CH-31). Every acknowledged upload is read back in the end and compared by its digest.

mod cached;
mod decision;
mod elections;
mod floor;
mod mix;
mod overload;
mod parted;
mod plan;
mod recipes;
mod renew;
mod report;
pub(in crate::bench) mod speak;
mod transfers;
mod warm;

use std::time::Duration;

pub(in crate::bench) use report::ObjectsReport;

use crate::args::{ObjectsBenchArgs, ObjectsWorkload};
use crate::failure::Failure;
use crate::local::{Nodes, Shape};

/// How long the nodes may take to agree on leaders.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Shards of the cluster; buckets are spread over them.
const SHARDS: u16 = 4;

/// Runs a workload on a cluster of its own.
pub(in crate::bench) async fn measure(args: &ObjectsBenchArgs) -> Result<ObjectsReport, Failure> {
    let mut nodes = prepare(args)?;
    nodes.start_missing()?;
    nodes.agree(START_PATIENCE).await?;
    match args.workload {
        ObjectsWorkload::Recipes => recipes::measure(args, &nodes).await,
        ObjectsWorkload::Transfers => {
            let mut report = transfers::measure(args, &nodes).await?;
            // Its files go before those of the next come.
            drop(nodes);
            report.figures.extend(parted::measure(args, prepare(args)?).await?);
            Ok(report)
        }
        ObjectsWorkload::Cached => cached::measure(args, &nodes).await,
        ObjectsWorkload::Overload => overload::measure(args, &nodes).await,
    }
}

/// A cluster that is not started.
fn prepare(args: &ObjectsBenchArgs) -> Result<Nodes, Failure> {
    let mut nodes = Nodes::prepare(Shape { name: "bench", nodes: args.nodes, shards: SHARDS })?;
    // Load is the point of the one and in the way of the other.
    let rules = match (args.workload, args.shed.is_empty()) {
        (ObjectsWorkload::Transfers | ObjectsWorkload::Cached, true) => vec!["off".to_owned()],
        _ => args.shed.clone(),
    };
    nodes.shed(&rules);
    Ok(nodes)
}

/// Bytes that differ from seed to seed.
fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
