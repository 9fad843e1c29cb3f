//! A seed's database, where logs live in one: how slow it is, what gets lost on the way, settings of the leases in it.

use fastrand::Rng;
use ikada_consensus::lease::LeaseConfig;

use crate::draw::{chance, log_uniform};

/// What the database shows at the beginning unless a test wants something else: the nodes' clocks show something else.
const CLOCK_START_MS: u64 = 1_500_000_000_000;

/// A simulated Postgres.
#[derive(Debug, Clone)]
pub struct DatabasePlan {
    /// Settings of the product.
    pub lease: LeaseConfig,
    /// What its clock shows at the beginning.
    pub clock_start_ms: u64,
    /// Most that a question, and an answer, take on the way.
    pub delay_us_max: u64,
    /// Answers that get lost, of 1000.
    pub lost_permille: u32,
    /// Works that happen only long after their asker gave up, of 1000.
    pub late_permille: u32,
    /// Most that such a work is late.
    pub late_ms_max: u64,
    /// Notices that arrive, of 1000; poolers let none through.
    pub notices_permille: u32,
    /// Whether it is set back to an older state once the faults are over.
    pub is_set_back: bool,
    /// What is wrong with it, to see that it is found.
    pub mischief: Option<Mischief>,
}

/// A way to get the statements wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// An append does not look at the lease: whoever is late writes as well.
    AppendUnchecked,
    /// A taking leaves the epoch as it was.
    EpochKept,
    /// An append does not look at the end of the log.
    EndUnchecked,
}

impl Mischief {
    /// All of them.
    pub const ALL: [Mischief; 3] =
        [Mischief::AppendUnchecked, Mischief::EpochKept, Mischief::EndUnchecked];
}

impl DatabasePlan {
    /// Near the product's defaults, and quick.
    pub fn calm() -> Self {
        Self {
            lease: LeaseConfig::default(),
            clock_start_ms: CLOCK_START_MS,
            delay_us_max: 2_000,
            lost_permille: 0,
            late_permille: 0,
            late_ms_max: 1,
            notices_permille: 1_000,
            is_set_back: false,
            mischief: None,
        }
    }

    /// Draws a database.
    pub fn draw(rng: &mut Rng) -> Self {
        let ttl_ms = log_uniform(rng, 2_000, 8_000);
        let lease = LeaseConfig {
            ttl_ms,
            renew_ms: ttl_ms / rng.u64(3..=6),
            margin_ms: ttl_ms / 10,
            poll_ms: log_uniform(rng, 100, 1_000),
            retry_ms: log_uniform(rng, 50, 500),
            spread_ms: rng.u64(0..=300),
            favour_ms: 300,
            batch_bytes_max: log_uniform(rng, 200, 1 << 20),
        };
        Self {
            lease,
            clock_start_ms: CLOCK_START_MS,
            delay_us_max: log_uniform(rng, 300, 200_000),
            lost_permille: if chance(rng, 500) { log_uniform(rng, 1, 150) as u32 } else { 0 },
            late_permille: if chance(rng, 500) { log_uniform(rng, 1, 100) as u32 } else { 0 },
            late_ms_max: log_uniform(rng, 500, 12_000),
            notices_permille: if chance(rng, 250) { 0 } else { rng.u32(500..=1_000) },
            is_set_back: chance(rng, 400),
            mischief: None,
        }
    }
}
