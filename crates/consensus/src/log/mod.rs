//! The log of one shard in memory, as the engine reads it.
//!
//! Promises: entries after `base` without gaps; the disk copy is somebody else's and only serves recovery.

mod memory;
mod storage;

pub(crate) use memory::MemoryLog;
