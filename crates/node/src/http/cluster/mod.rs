//! The cluster as this node sees it: one file per verb.

mod autoscale;
mod backup;
mod events;
mod grow;
mod members;
mod node;
mod show;
mod transfer;
mod tune;

pub(super) use autoscale::autoscale;
pub(super) use backup::backup;
pub(super) use events::{Told, events};
pub(super) use grow::{grow, shard_map};
pub(super) use members::{add, remove, steer};
pub(super) use node::node;
pub(super) use show::{show, view};
pub(super) use transfer::transfer;
pub(super) use tune::tune;

use ikada_replica::consensus::Role;

/// The public word for a role.
pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Follower => "follower",
        Role::PreCandidate => "pre_candidate",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
    }
}
