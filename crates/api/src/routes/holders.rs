//! Routes of those who hold something as long as they prove their life: workers and leases.

use super::parameters::{
    AFTER_ID, CONSISTENCY, FIND, LIMIT, MIN_LSN, NAMESPACE, SEEN, SOME, WAIT_MS,
};
use super::policy::{BEAT, END_LEASE, KEEP_LEASE, LEASE, LIST, OPERATE, VIEW, WATCH_LEASE};
use super::shape::{WRITE, act, look, of};
use super::{Operation, Route, Verb};
use crate::v1;

/// Workers and leases.
pub(super) const HOLDERS: &[Route] = &[
    Route {
        query: &[NAMESPACE, FIND, AFTER_ID, SOME],
        answer: Some(of::<v1::WorkerPage>),
        ..look(
            "/v1/workers",
            Operation::ListWorkers,
            LIST,
            "List the workers of the namespace, as the leader of shard 0 sees them.",
        )
    },
    Route {
        query: WRITE,
        answer: Some(of::<v1::WorkerInfo>),
        ..look("/v1/workers/{id}", Operation::ShowWorker, VIEW, "Show a worker.")
    },
    Route {
        verb: Verb::Put,
        keyed: false,
        body: Some(of::<v1::WorkerBeat>),
        answer: Some(of::<v1::WorkerOrders>),
        ..act(
            "/v1/workers/{id}",
            Operation::Beat,
            BEAT,
            "Say that a worker lives and who it is; tells what is wanted of it.",
        )
    },
    Route {
        answer: Some(of::<v1::WorkerChanged>),
        ..act(
            "/v1/workers/{id}/drain",
            Operation::DrainWorker,
            OPERATE,
            "Let a worker finish what it has and leave.",
        )
    },
    Route {
        verb: Verb::Delete,
        answer: Some(of::<v1::WorkerChanged>),
        ..act(
            "/v1/workers/{id}",
            Operation::RemoveWorker,
            OPERATE,
            "End a worker's session; its tasks are reopened.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_ID, LIMIT],
        answer: Some(of::<v1::LeasePage>),
        ..look(
            "/v1/leases",
            Operation::ListLeases,
            LIST,
            "List the leases of the namespace that somebody holds, in order of their names.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, WAIT_MS, SEEN],
        answer: Some(of::<v1::LeaseInfo>),
        ..look(
            "/v1/leases/{name}",
            Operation::ShowLease,
            WATCH_LEASE,
            "Show who holds a lease and who waits; with `wait_ms`, wait for another holder.",
        )
    },
    Route {
        keyed: false,
        body: Some(of::<v1::AcquireLease>),
        answer: Some(of::<v1::LeaseAnswer>),
        ..act(
            "/v1/leases/{name}/acquire",
            Operation::AcquireLease,
            LEASE,
            "Take a lease, or a place in its line; asked again, the holder is told the same fence.",
        )
    },
    Route {
        keyed: false,
        body: Some(of::<v1::RenewLease>),
        answer: Some(of::<v1::LeaseAnswer>),
        ..act(
            "/v1/leases/{name}/renew",
            Operation::RenewLease,
            KEEP_LEASE,
            "Keep a lease for another ttl.",
        )
    },
    Route {
        body: Some(of::<v1::ReleaseLease>),
        answer: Some(of::<v1::LeaseReleased>),
        ..act(
            "/v1/leases/{name}/release",
            Operation::ReleaseLease,
            END_LEASE,
            "Give a lease back, or a place in its line; the next in line has it at once.",
        )
    },
];
