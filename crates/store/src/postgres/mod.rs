//! A log in Postgres: leases, entries, snapshots, and the nodes that take part.
//!
//! Promises: every work is one statement that commits by itself, whole or not at all, so that a pooler in transaction mode is
//! no harm; statements have no names for the same reason. Expiry is judged by the database's clock alone (P4). An append
//! share-locks the lease's row and checks holder, life and epoch in the statement that writes: a takeover and an append cannot
//! cross. Both also check, in the same statement, that the log is still the one that the node knows (`chain`). Names of tables begin with `ikada_` and live in the schema that the connection uses.
//!
//! Leaves out: when to do what (`consensus/lease`), and repeating what failed.

mod chain;
mod connect;
mod lease;
mod log;
mod node;
mod protect;
mod reach;
mod schema;
mod seed;
mod snapshot;
mod watch;

pub use connect::{Connection, PostgresError, Target};
pub use lease::{Holder, KnownLog, LeaseRow};
pub use log::{AppendOutcome, LogRow, Missing, Tail};
pub use node::NodeRow;
pub use schema::SCHEMA_VERSION;
pub use seed::ShardSeed;
pub use snapshot::StoredSnapshot;
pub use watch::{QUIET, Watch, watch};
