//! Routes of the cluster as a whole and of this node: who is in it, how it is, and what operators change; health, metrics, pages.

use super::parameters::AFTER_EVENT;
use super::policy::{ADMINISTER, HEALTH, KNOWN, LIST, OPERATE, PAGE, VIEW};
use super::shape::{NONE, WRITE, act, look, of};
use super::{Operation, Route, Verb};
use crate::v1;

/// The cluster and its nodes.
pub(super) const CLUSTER: &[Route] = &[
    Route {
        query: NONE,
        answer: Some(of::<v1::ClusterView>),
        ..look(
            "/v1/cluster",
            Operation::ShowCluster,
            VIEW.of_cluster(),
            "Show members, shards and leaders as this node sees them.",
        )
    },
    Route {
        query: WRITE,
        ..look(
            "/v1/live",
            Operation::Live,
            LIST,
            "A live stream of the cluster and its queues as they change: events role and cluster as of /v1/cluster/events and /v1/cluster, queues as of /v1/queues with order=need. Asks for Accept: text/event-stream; callers bound to namespaces hear of queues alone.",
        )
    },
    Route {
        query: &[AFTER_EVENT],
        answer: Some(of::<v1::EventPage>),
        ..look(
            "/v1/cluster/events",
            Operation::ListEvents,
            VIEW.of_cluster(),
            "Role changes of this node with reasons and votes; a live stream with Accept: text/event-stream, gone on with Last-Event-ID.",
        )
    },
    Route {
        query: NONE,
        answer: Some(of::<v1::ScalingPage>),
        ..look(
            "/v1/cluster/autoscale",
            Operation::ShowScaling,
            VIEW.of_cluster(),
            "What the autoscaler of this node did lately, and why; only the leader of shard 0 acts.",
        )
    },
    Route {
        query: NONE,
        body: Some(of::<v1::TransferRequest>),
        answer: Some(of::<v1::TransferResult>),
        keyed: false,
        ..act(
            "/v1/cluster/transfer",
            Operation::Transfer,
            OPERATE.of_cluster(),
            "Move leadership of one shard, or of all, to a node.",
        )
    },
    Route {
        query: NONE,
        ..look(
            "/v1/cluster/backup",
            Operation::Backup,
            ADMINISTER.of_cluster(),
            "The state of every shard as a stream of bytes, for `ikada cluster restore`.",
        )
    },
    Route {
        query: NONE,
        body: Some(of::<v1::GrowRequest>),
        answer: Some(of::<v1::GrowAnswer>),
        ..act(
            "/v1/cluster/growth",
            Operation::Grow,
            ADMINISTER.of_cluster(),
            "Raise the number of shards; slots move while the cluster works.",
        )
    },
    Route {
        query: NONE,
        body: Some(of::<v1::AddNode>),
        answer: Some(of::<v1::ChangeView>),
        keyed: false,
        ..act(
            "/v1/cluster/nodes",
            Operation::AddNode,
            ADMINISTER.of_cluster(),
            "Add a node that waits with --join, perhaps in the place of a member.",
        )
    },
    Route {
        verb: Verb::Delete,
        query: NONE,
        answer: Some(of::<v1::ChangeView>),
        keyed: false,
        ..act(
            "/v1/cluster/nodes/{id}",
            Operation::RemoveNode,
            ADMINISTER.of_cluster(),
            "Remove a member for good.",
        )
    },
    Route {
        verb: Verb::Put,
        query: NONE,
        body: Some(of::<v1::SteerNode>),
        answer: Some(of::<v1::ClusterView>),
        keyed: false,
        ..act(
            "/v1/cluster/nodes/{id}",
            Operation::SteerNode,
            OPERATE.of_cluster(),
            "Steer leadership towards or away from a member: cordon, priority.",
        )
    },
    Route {
        verb: Verb::Put,
        query: NONE,
        body: Some(of::<v1::TuneElections>),
        answer: Some(of::<v1::ClusterView>),
        keyed: false,
        ..act(
            "/v1/cluster/elections",
            Operation::TuneElections,
            OPERATE.of_cluster(),
            "Change how long silence lasts before another leader is elected, on all nodes.",
        )
    },
    Route {
        query: NONE,
        answer: Some(of::<v1::NodeSelf>),
        ..look(
            "/v1/nodes/self",
            Operation::ShowNode,
            VIEW.of_cluster(),
            "This node: role per shard, term, vote, leader, peers.",
        )
    },
    Route {
        query: NONE,
        ..look("/metrics", Operation::Metrics, LIST.of_cluster(), "Metrics as Prometheus text.")
    },
    Route {
        query: NONE,
        ..look("/healthz", Operation::Health, HEALTH, "Answers 200 while the process lives.")
    },
    Route {
        query: NONE,
        ..look(
            "/readyz",
            Operation::Ready,
            VIEW.of_cluster(),
            "Answers 200 when every shard has a leader, else 503 with the reason.",
        )
    },
    Route {
        query: NONE,
        ..look("/", Operation::Dashboard, PAGE, "The dashboard, a page for people.")
    },
    Route {
        query: NONE,
        ..look("/dashboard/{file*}", Operation::Dashboard, PAGE, "A file of the dashboard.")
    },
    Route { query: NONE, ..look("/openapi.json", Operation::OpenApi, KNOWN, "This document.") },
];
