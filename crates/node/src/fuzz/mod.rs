//! What fuzzers feed: one function per target, for everything that is read before a caller is known, and for the files
//! that a node reads (X9, F-41).
//!
//! Promise: a target takes any bytes and returns. It panics only if the product does, or if the product breaks a promise
//! that can be checked on the spot: what was read is written and read again alike, a state obeys its rules. libFuzzer
//! (`fuzz/`, by `cargo xtask fuzz`) and an ordinary test (`fuzz_test.rs`) call the very same functions with the same
//! corpora, `fuzz/corpus/<target>`.
//!
//! Leaves out: TLS itself and the parser of HTTP/1 heads, which others fuzz; the latter runs here all the same, in front
//! of what reads its results. Not part of the shipped program: built for tests and with the feature `fuzz`.

mod files;
#[cfg(test)]
mod fuzz_test;
mod log;
mod peers;
#[cfg(test)]
mod seeds_test;
mod states;

pub use crate::http::fuzz::{pre_auth_bodies, pre_auth_http, pre_auth_pipe, pre_auth_s3};
pub use files::{audit, backup, config, schedules};
pub use log::log;
pub use peers::{
    pre_auth_certificates, pre_auth_frames, pre_auth_gossip, pre_auth_join, pre_auth_links,
    pre_auth_texts,
};
pub use states::{entries, snapshot};

/// One thing to fuzz.
pub struct Target {
    /// Names its corpus and its program in `fuzz/`.
    pub name: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
    /// Damaged copies of its corpus that every verification reads.
    pub rounds: u64,
}

const fn target(name: &'static str, run: fn(&[u8]), rounds: u64) -> Target {
    Target { name, run, rounds }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("pre_auth_texts", pre_auth_texts, 100_000),
    target("pre_auth_http", pre_auth_http, 10_000),
    target("pre_auth_s3", pre_auth_s3, 10_000),
    target("pre_auth_pipe", pre_auth_pipe, 50_000),
    target("pre_auth_bodies", pre_auth_bodies, 20_000),
    target("pre_auth_frames", pre_auth_frames, 100_000),
    target("pre_auth_links", pre_auth_links, 50_000),
    target("pre_auth_join", pre_auth_join, 50_000),
    target("pre_auth_gossip", pre_auth_gossip, 50_000),
    target("pre_auth_certificates", pre_auth_certificates, 20_000),
    target("log", log, 2_000),
    target("snapshot", snapshot, 2_000),
    target("entries", entries, 2_000),
    target("backup", backup, 2_000),
    target("config", config, 10_000),
    target("audit", audit, 10_000),
    target("schedules", schedules, 5_000),
];
