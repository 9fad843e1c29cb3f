//! A cluster of replicas in one thread, with instant disks and a loyal network: what callers see.

mod calls;
mod claims;
mod growth;
mod harness;
mod leadership;
mod leases;
mod level;
mod long;
mod lost_claims;
mod members;
mod newer;
mod operations;
mod placement;
mod reads;
mod room;
mod schedules;
mod snapshots;
mod workers;
