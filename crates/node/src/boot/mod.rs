//! From a data folder to a running replica: lock, identity, founding, genesis, recovery.
//!
//! Promise: a folder that belongs to another node or cluster, or that lost what it promised, is refused with a message
//! that names both, and nothing on disk is changed. A node's identity is written last, so that a crash while founding
//! repeats the founding.

mod backoff;
mod found;
mod genesis;
mod join;
mod offline;
mod papers;
mod recover;
mod refound;

pub use found::{FoundError, found};
pub use genesis::{members, write_genesis, write_identity};
pub use join::join;
pub use offline::{Offline, OfflineError, OfflineShard, read_offline};
pub use papers::{Papers, PapersError};
pub use recover::{Boot, BootError, load_state, log_exists, recover};
pub use refound::{RefoundError, Refounded, Refounding, refound};
