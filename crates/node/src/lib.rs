//! The server process around a replica: clock, sockets, disk threads, HTTP.
//!
//! Promise: everything that decides lives in `replica` and below; this crate reads clocks, moves bytes and translates.
//! Each part is a room of its own: `config` (settings), `auth` (callers), `quotas` (tenants), `admission` (load), `boot` (from disk to replica), `driver` (the loop and its disk
//! threads), `peers` (frames between nodes), `objects` (bytes of objects), `gossip` (hints about nodes), `http` (clients), `metrics`.
//!
//! Leaves out: commands and their output (`cli`), the public words (`api`).

pub mod admission;
pub mod audit;
pub mod auth;
pub mod autoscale;
mod backup;
mod boot;
mod certify;
pub mod config;
mod counters;
mod database;
mod driver;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gossip;
mod handle;
pub mod http;
pub mod metrics;
pub mod objects;
mod peers;
mod places;
pub mod quotas;
mod ration;
mod run;
mod seldom;
pub mod tls;
pub mod traces;
mod watch;

/// Work on data folders without a running node: backups read, folders made of them, the last disk of a lost cluster.
pub mod offline {
    pub use crate::backup::{Backup, BackupError};
    pub use crate::boot::{
        Offline, OfflineError, OfflineShard, RefoundError, Refounded, Refounding, read_offline,
        refound,
    };
    pub use crate::database::{Seeding, SeedingError, read_database};
    pub use ikada_store::postgres::Target;
}

pub use handle::Handle;
pub use run::{RunError, Started, run};
