//! One node's share of the cluster: requests in, decisions, log work and outputs out, for all shards of the node.

pub mod call;
pub mod output;
pub mod status;
