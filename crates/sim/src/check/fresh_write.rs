//! V2 Fresh write: with all faults gone and a leader there, a new write to each shard is acknowledged soon.

use ikada_state::ShardId;

use super::{Verdict, violation};

/// How soon.
pub const WRITE_MS: u64 = 5_000;

/// How long the probe of a shard took; absent when it is still open.
pub fn check(shard: ShardId, took_ms: Option<u64>) -> Verdict {
    match took_ms {
        Some(took_ms) if took_ms <= WRITE_MS => Ok(()),
        _ => violation(
            "V2 fresh_write",
            format!("shard {shard}: a fresh write took {took_ms:?} ms of {WRITE_MS}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_and_an_open_write_are_noticed() {
        assert!(check(0, Some(400)).is_ok());
        assert!(check(0, Some(5_001)).is_err());
        assert!(check(0, None).is_err());
    }
}
