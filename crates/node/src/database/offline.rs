//! Reading a cluster's states out of its database without a running node: the newest snapshots, with every entry applied.
//!
//! For a database that was brought back to an older state: its nodes refuse it, and what it holds becomes a new cluster
//! whose fences exceed all that were ever granted. Nothing is written there. A snapshot and a log that do not belong together are
//! refused: no state is made of two histories.

use ikada_replica::consensus::BOOTSTRAP;
use ikada_replica::founding::Plan;
use ikada_replica::state::{Lsn, Shard};
use ikada_store::Manifest;
use ikada_store::postgres::{Connection, Holder, PostgresError, Tail, Target};

use crate::boot::{Offline, OfflineShard, members};

/// Whoever only reads holds nothing.
const NOBODY: Holder = Holder { node: 0, life: 0 };
/// Bytes of entries that are read at a time.
const PART_BYTES: u64 = 8 << 20;

/// Reads the states of the cluster in a database.
pub async fn read_database(target: &Target) -> Result<Offline, PostgresError> {
    let connection = target.connect().await?;
    connection.check_schema().await?;
    let broken = |why: &str| PostgresError::Statement(format!("{target}: {why}"));
    let plan = connection.agree_on_plan(None).await?;
    let plan = plan.ok_or_else(|| broken("it holds no cluster"))?;
    let plan: Plan = minicbor::decode(&plan).map_err(|_| broken("its plan cannot be read"))?;
    let mut shards = Vec::new();
    for shard in 0..plan.shards {
        shards.push(read_shard(&connection, target, &plan, shard).await?);
    }
    let node = plan.members.first().map_or(0, |member| member.node);
    Ok(Offline { cluster: plan.cluster, node, shards })
}

async fn read_shard(
    connection: &Connection,
    target: &Target,
    plan: &Plan,
    shard: u16,
) -> Result<OfflineShard, PostgresError> {
    let broken = |why: String| PostgresError::Statement(format!("{target}: shard {shard}: {why}"));
    let mut state = match stored(connection, shard).await? {
        Some(found) => found.map_err(broken)?,
        None => Shard::genesis(shard, plan.shards, &members(plan)),
    };
    let mut last = Lsn { index: state.applied().index.max(BOOTSTRAP.index), ..state.applied() };
    loop {
        let from = last.index + 1;
        let tail = connection.read_entries(shard, NOBODY, from, PART_BYTES).await?;
        if let Some(why) = breaks_off(&tail, last) {
            return Err(broken(why));
        }
        for entry in &tail.entries {
            if entry.index != last.index + 1 {
                return Err(broken(format!("entry {} is missing", last.index + 1)));
            }
            last = Lsn { term: entry.epoch, index: entry.index };
            state.apply(last, &entry.payload);
        }
        if tail.entries.is_empty() {
            let (commit, is_damaged) = (last.index, tail.last_index > last.index);
            return Ok(OfflineShard { state, last, commit, is_damaged });
        }
    }
}

/// Why a log does not go on from what was read before: a snapshot of another history, or of a later moment, makes no state with it.
fn breaks_off(tail: &Tail, last: Lsn) -> Option<String> {
    let Lsn { term, index } = last;
    let (first, end) = (tail.purged_index, tail.last_index);
    match tail.before {
        _ if first > index => Some(format!("its log begins after index {first}")),
        _ if end < index => Some(format!(
            "its snapshot is of index {index}, but its log ends at {end}: its tables are not of one moment"
        )),
        Some((epoch, _)) if epoch != term => Some(format!(
            "entry {index} is of epoch {epoch} in its log, and of {term} in its snapshot: they are two histories"
        )),
        None if first < index => Some(format!("entry {index} is missing")),
        _ => None,
    }
}

/// The newest stored snapshot; none if there is none, words if it cannot be used.
async fn stored(
    connection: &Connection,
    shard: u16,
) -> Result<Option<Result<Shard, String>>, PostgresError> {
    let Some(found) = connection.newest_snapshot(shard).await? else { return Ok(None) };
    let manifest = match Manifest::decode(&found.manifest) {
        Ok(manifest) => manifest,
        Err(error) => return Ok(Some(Err(error.to_string()))),
    };
    let mut chunks = Vec::new();
    for chunk in 0..manifest.chunks.len() as u32 {
        match connection.snapshot_chunk(shard, found.index, chunk).await? {
            Some(bytes) => chunks.push(bytes.to_vec()),
            None => return Ok(Some(Err(format!("chunk {chunk} of its snapshot is missing")))),
        }
    }
    let restored = Shard::restore(chunks.into_iter()).map_err(|error| error.to_string());
    Ok(Some(restored.and_then(|state| match state.hash() == manifest.state_hash {
        true => Ok(state),
        false => Err("its snapshot does not match its hash".to_owned()),
    })))
}

#[cfg(test)]
mod tests {
    use ikada_store::postgres::LeaseRow;

    use super::*;

    /// A log that begins after an index and ends at another, with the epoch of the entry that was read last.
    fn tail(purged_index: u64, last_index: u64, before: Option<u64>) -> Tail {
        let before = before.map(|epoch| (epoch, 77));
        let (lease, missing, entries) = (LeaseRow::default(), None, Vec::new());
        Tail { lease, purged_index, last_index, before, missing, entries }
    }

    // P2
    #[test]
    fn p_2_a_snapshot_and_a_log_of_two_histories_make_no_state() {
        let last = Lsn { term: 4, index: 10 };
        assert_eq!(breaks_off(&tail(6, 12, Some(4)), last), None);
        assert_eq!(breaks_off(&tail(10, 12, Some(4)), last), None);
        assert_eq!(breaks_off(&tail(10, 12, None), last), None, "a seeded log has no entry there");
        assert_eq!(breaks_off(&tail(10, 10, None), last), None);
        let refused = [
            (tail(6, 12, Some(3)), "two histories"),
            (tail(6, 12, Some(5)), "two histories"),
            (tail(6, 9, None), "not of one moment"),
            (tail(11, 12, None), "begins after index 11"),
            (tail(6, 12, None), "entry 10 is missing"),
        ];
        for (log, word) in refused {
            let said = breaks_off(&log, last);
            assert!(said.as_ref().is_some_and(|said| said.contains(word)), "{log:?}: {said:?}");
        }
    }
}
