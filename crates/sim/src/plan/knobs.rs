//! Settings of the product itself, drawn per seed, also to odd values that no operator would choose.
//!
//! One entry per message, a snapshot every few entries, tiny log segments, a deduplication window shorter than a
//! client's patience: each of them makes some path common that is rare with the defaults.

use fastrand::Rng;

use crate::draw::{chance, log_uniform, pick};
use crate::oracle::timing;

/// Wall time at the start unless something else is drawn: a day on which no clocks are set.
const WALL_START_MS: u64 = 1_800_000_000_000;

/// The product's own bound, which no run reaches.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Drawn settings.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// Length of a consensus tick.
    pub tick_ms: u64,
    /// Ticks between heartbeats.
    pub heartbeat_ticks: usize,
    /// Ticks without a leader before an election, before randomisation.
    pub election_ticks: usize,
    /// Bytes of entries in one append message; 0 means one entry per message.
    pub message_bytes_max: u64,
    /// Append messages in flight to one follower.
    pub inflight_max: usize,
    /// Bytes of one batch of commands.
    pub batch_bytes_max: usize,
    /// Bytes of orders that wait at a leader before it turns callers away.
    pub pending_bytes_max: usize,
    /// Applied entries between two snapshots of a shard.
    pub snapshot_distance: u64,
    /// Entries kept in the log behind a snapshot.
    pub log_kept: u64,
    /// Size of a log segment.
    pub segment_bytes: u64,
    /// Lifetime of a claim.
    pub ttl_ms: u64,
    /// Attempts before a task is dead.
    pub attempts_max: u32,
    /// Finished tasks kept per queue.
    pub retention_count: u32,
    /// How long finished tasks are kept, of log time.
    pub retention_ms: u64,
    /// Dead tasks of one queue and shard at which it takes no new ones.
    pub dead_max: u32,
    /// How long dead tasks are kept, of log time.
    pub dead_retention_ms: u64,
    /// How long a request id is remembered, of log time.
    pub dedup_window_ms: u64,
    /// How many request ids are remembered.
    pub dedup_count_max: u32,
    /// Tasks that one shard takes before it refuses more.
    pub pending_max: u64,
    /// How long the loop of a node gathers inputs before it acts.
    pub turn_us_max: u64,
    /// Usual time of a sync, least.
    pub sync_us_min: u64,
    /// Usual time of a sync, most.
    pub sync_us_max: u64,
    /// Applied entries between two comparisons of the state hash.
    pub hash_distance: u64,
    /// Wall time at the start, in ms since 1970.
    pub wall_start_ms: u64,
    /// How long all must be quiet before leaders are balanced; 0: never.
    pub balance_quiet_ms: u64,
}

impl Knobs {
    /// Settings near the product's defaults.
    pub fn usual() -> Self {
        Self {
            tick_ms: 50,
            heartbeat_ticks: 2,
            election_ticks: 20,
            message_bytes_max: 1 << 20,
            inflight_max: 256,
            batch_bytes_max: 1 << 20,
            pending_bytes_max: PENDING_BYTES_MAX,
            snapshot_distance: 10_000,
            log_kept: 1_000,
            segment_bytes: 64 << 10,
            ttl_ms: 5_000,
            attempts_max: 5,
            retention_count: 10_000,
            retention_ms: 86_400_000,
            dead_max: 100_000,
            dead_retention_ms: 14 * 86_400_000,
            dedup_window_ms: 86_400_000,
            dedup_count_max: 1_000_000,
            pending_max: 1_000_000,
            turn_us_max: 100,
            sync_us_min: 300,
            sync_us_max: 3_000,
            hash_distance: 1_000,
            wall_start_ms: WALL_START_MS,
            balance_quiet_ms: 0,
        }
    }

    /// Draws settings.
    pub fn draw(rng: &mut Rng) -> Self {
        let tick_ms = [50, 50, 20, 100][rng.usize(0..4)];
        let one_entry = chance(rng, 350);
        Self {
            tick_ms,
            heartbeat_ticks: rng.usize(1..=3),
            election_ticks: (1_000 / tick_ms) as usize,
            message_bytes_max: if one_entry { 0 } else { log_uniform(rng, 64, 1 << 20) },
            inflight_max: if chance(rng, 300) { rng.usize(1..=4) } else { 256 },
            batch_bytes_max: log_uniform(rng, 256, 1 << 20) as usize,
            pending_bytes_max: PENDING_BYTES_MAX,
            snapshot_distance: log_uniform(rng, 5, 2_000),
            log_kept: log_uniform(rng, 1, 200),
            segment_bytes: log_uniform(rng, 4 << 10, 256 << 10),
            ttl_ms: log_uniform(rng, 1_000, 10_000),
            attempts_max: rng.u32(1..=6),
            retention_count: if chance(rng, 300) { rng.u32(1..=50) } else { 10_000 },
            retention_ms: if chance(rng, 300) { rng.u64(5_000..=60_000) } else { 86_400_000 },
            dead_max: if chance(rng, 150) { rng.u32(2..=10) } else { 100_000 },
            dead_retention_ms: match chance(rng, 300) {
                true => rng.u64(5_000..=60_000),
                false => 14 * 86_400_000,
            },
            // Never shorter than a client's patience (`workload::client::RESEND_MS_MAX`): the window is a promise
            // about time, and a client that resends after it has been told that it may run twice.
            dedup_window_ms: if chance(rng, 300) { 600_000 } else { 86_400_000 },
            dedup_count_max: 1_000_000,
            pending_max: if chance(rng, 150) { rng.u64(20..=100) } else { 1_000_000 },
            turn_us_max: [0, 50, 500, 3_000][rng.usize(0..4)],
            sync_us_min: 100,
            sync_us_max: log_uniform(rng, 500, 20_000),
            hash_distance: log_uniform(rng, 8, 1_000),
            wall_start_ms: wall_start_ms(rng),
            balance_quiet_ms: 0,
        }
    }
}

/// In some runs a leader turns callers away as soon as a few orders wait. Drawn apart, so that seeds from before keep their
/// other settings.
pub fn draw_pending_bytes_max(rng: &mut Rng) -> usize {
    if chance(rng, 200) { log_uniform(rng, 1, 2_000) as usize } else { PENDING_BYTES_MAX }
}

/// Some runs begin a minute or so before the clocks of some zone are set.
fn wall_start_ms(rng: &mut Rng) -> u64 {
    let changes_ms = timing::changes_ms();
    let change_ms = *pick(rng, &changes_ms);
    let early_ms = rng.u64(5_000..=100_000);
    if chance(rng, 400) { change_ms - early_ms } else { WALL_START_MS + early_ms }
}
