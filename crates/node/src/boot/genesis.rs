//! The first state of every shard, the same on all members, and then the identity.

use ikada_replica::consensus::{BOOTSTRAP, Conf};
use ikada_replica::founding::Plan;
use ikada_replica::state::{Member, Shard};
use ikada_store::{Identity, RealDisk, Snapshots};

use super::recover::BootError;

/// The members that a plan names.
pub fn members(plan: &Plan) -> Vec<Member> {
    plan.members
        .iter()
        .map(|candidate| Member {
            node: candidate.node,
            incarnation: candidate.incarnation,
            peer_addr: candidate.peer_addr.clone(),
            client_addr: candidate.client_addr.clone(),
        })
        .collect()
}

/// Writes a snapshot of each shard's first state, then the identity. May be repeated after a crash.
pub fn write_genesis(
    disk: &RealDisk,
    plan: &Plan,
    node: u64,
    incarnation: u64,
    name: &str,
) -> Result<Identity, BootError> {
    let identity = Identity { cluster: plan.cluster, node, incarnation, name: name.to_owned() };
    let snapshots = Snapshots::open(disk.clone(), &identity)?;
    let members = members(plan);
    let mut conf = Vec::new();
    Conf::of_voters(members.iter().map(|member| member.node)).encode(&mut conf);
    for shard in 0..plan.shards {
        if snapshots.load(shard)?.is_some() {
            continue;
        }
        let frozen = Shard::genesis(shard, plan.shards, &members).freeze();
        let mut writer = snapshots.begin(shard, BOOTSTRAP.index, BOOTSTRAP.term)?;
        for chunk in frozen.chunks() {
            writer.chunk(&chunk)?;
        }
        writer.finish(&conf, frozen.hash())?;
    }
    identity.store(disk)?;
    Ok(identity)
}

/// Writes the identity of a node that joins: its first state comes from a leader.
pub fn write_identity(
    disk: &RealDisk,
    plan: &Plan,
    node: u64,
    incarnation: u64,
    name: &str,
) -> Result<Identity, BootError> {
    let identity = Identity { cluster: plan.cluster, node, incarnation, name: name.to_owned() };
    identity.store(disk)?;
    Ok(identity)
}
