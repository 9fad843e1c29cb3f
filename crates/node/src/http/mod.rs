//! The client door: HTTP/1 with JSON or CBOR, problem documents and one route table; and the pipe, which carries many
//! calls at once.
//!
//! This is the only place of the node that knows HTTP. A request passes: connection (limits of X7) -> guard (host and
//! origin, X14) -> route table -> security (caller, role, namespace) -> context (namespace, deadline, key, consistency) -> body (size, depth, unknown
//! fields) -> one handler -> [`Door`] -> answer. No request can end the process: a panic in a handler is answered with
//! 500 and counted. Everything a caller can be told about failure is mapped in `problems.rs`.
//!
//! Leaves out: the rules by which a busy node turns calls away (`admission`).

mod answer;
mod app;
mod cluster;
mod connection;
mod dashboard;
mod dispatch;
mod door;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod guard;
mod jobs;
mod leases;
mod limits;
mod live;
mod logs;
mod namespaces;
mod objects;
mod operate;
mod outflow;
mod pace;
mod passage;
mod pipe;
mod problems;
mod programs;
mod queues;
mod request;
mod requests;
mod s3;
mod schedules;
mod security;
mod standing;
mod strangers;
mod stream;
mod subject;
mod tasks;
mod tokens;
mod trace;
mod uploads;
mod waiting;
mod workers;

pub use connection::{Listeners, serve};
pub use door::{Door, NodeInfo};
pub use limits::HttpLimits;
pub use security::Security;
pub use trace::Audit;
pub use waiting::answer_waiting;

#[cfg(test)]
mod http_test;
#[cfg(test)]
pub(crate) use http_test::fake_door;
