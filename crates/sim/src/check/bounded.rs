//! Q13 Bounded: tasks, windows, outboxes and the log stay within their bounds; at a bound the product refuses.

use ikada_state::Shard;
use ikada_store::LogStats;

use super::{Verdict, violation};

const NAME: &str = "Q13 bounded";

/// Segments that may exist beside the needed bytes: the open one, the one being retired, and one on each side of a
/// rewrite.
const SEGMENTS_SPARE: u64 = 8;

/// Looks at one shard.
pub fn check(shard: &Shard) -> Verdict {
    super::predicate(NAME, ikada_state::invariants::bounded(shard))
}

/// Looks at a log: it must not keep much more than it needs, and what came since the last purge.
pub fn check_log(stats: &LogStats, segment_bytes: u64, purged_at: u64) -> Verdict {
    let since = stats.appended_bytes.saturating_sub(purged_at);
    // Heads of segments, checkpoints and marks cost as much again where segments and batches are tiny.
    let allowed = stats.live_bytes * 4 + SEGMENTS_SPARE * segment_bytes + since * 6;
    if stats.bytes <= allowed {
        return Ok(());
    }
    violation(
        NAME,
        format!(
            "the log keeps {} bytes in {} segments, but needs {} and was given {since} since the last purge \
             (segments of {segment_bytes}, {} batches, {} records)",
            stats.bytes, stats.segments, stats.live_bytes, stats.batches, stats.appended_records
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_never_shrinks_is_noticed() {
        let stats = LogStats { bytes: 5_000, live_bytes: 100, segments: 5, ..LogStats::default() };
        assert!(check_log(&stats, 600, 0).is_ok());
        assert!(check_log(&stats, 500, 0).is_err());
    }
}
