//! A deterministic world around the production replica, store and state: one seed, one run, byte for byte.
//!
//! A seed draws a plan (`plan`): the cluster's shape, the product's own settings, and a swarm of faults. The world
//! (`world`) runs it on one thread with simulated wires, disks and clocks (`node`), users (`workload`) and an all-knowing
//! book (`oracle`) against which every event is checked (`check`). A failing seed is a bug report: `replay` steps
//! through it. Named faults are played by script (`scenario`). Logs live on the
//! nodes' disks, or in a simulated Postgres (`database`). The bytes of objects have a small world of their own (`blobs`).
//!
//! Invariant: nothing here reads a real clock or draws randomness but from the seed; the commands only measure speed.

pub mod args;
pub mod blobs;
pub mod check;
pub mod commands;
pub mod database;
pub mod draw;
pub mod marks;
pub mod node;
pub mod oracle;
pub mod plan;
pub mod scenario;
pub mod trace;
pub mod workload;
pub mod world;
