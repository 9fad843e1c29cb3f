//! Real `ikada` processes over loopback: refused starts, killed, paused and damaged nodes.
//!
//! Every test has its own folder and ports, is bounded in time, ends what it started, and asserts no durations: a
//! limit is only there so that a hang becomes a failure.

mod addresses;
mod autoscale;
mod backup;
mod backup_store;
mod bad_start;
mod by_hand;
mod canaries;
mod claims;
mod cluster;
mod crowd;
mod damage;
mod events;
mod follow;
mod fresh;
mod full_disk;
mod growth;
mod holder;
mod jobs;
mod kill;
mod lease_run;
mod logs;
mod members;
mod modules;
mod names;
mod network;
mod objects;
mod operations;
mod outside;
mod pages;
mod partition;
mod pause;
mod pooler;
mod postgres;
mod postgres_faults;
mod postgres_flows;
mod postgres_lost;
mod postgres_refusals;
mod postgres_shards;
mod postgres_tls;
mod programs;
mod redirect;
mod relay;
mod revoke;
mod rolling;
mod s3;
mod scenario;
mod schedules;
mod secrets;
#[path = "../../../store/tests/postgres/server.rs"]
mod server;
mod slow_disk;
mod stores;
mod strait;
mod strangers;
mod sync_error;
mod tls;
mod told;
mod tracer;
mod traces;
mod tricks;
mod wait;
mod work;
mod worker;
