//! The cluster and the queues as they change, for whoever watches: one stream carries both, because a browser has few connections
//! to one node.

mod follow;

pub(super) use follow::follow;
