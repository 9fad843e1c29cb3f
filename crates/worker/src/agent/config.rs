//! The agent's settings, with the reasons for their defaults.

/// How a worker behaves.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Tasks held at one time.
    pub slots: u32,
    /// Most tasks asked for at once; bounds what one lost answer can strand.
    pub claim_max: u32,
    /// How long a claim may wait for work: long enough to be rare, short enough to leave quickly.
    pub poll_wait_ms: u64,
    /// Most reports in one call.
    pub report_max: usize,
    /// Most bytes of results in one call; as base64 they must fit the server's bound on a body.
    pub report_bytes_max: usize,
    /// Largest result; the cluster refuses larger ones, so that such an attempt has failed.
    pub result_bytes_max: usize,
    /// First wait after a call that came to nothing.
    pub retry_base_ms: u64,
    /// Longest such wait; well below the shortest useful claim lifetime.
    pub retry_cap_ms: u64,
    /// How long a draining worker waits for its handlers; what still runs then is given back.
    pub drain_ms: u64,
    /// How long it then insists on its last reports; enough for a leader change.
    pub leave_ms: u64,
    /// Seed of the jitter.
    pub seed: u64,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            slots: 2,
            claim_max: 256,
            poll_wait_ms: 5_000,
            report_max: 256,
            report_bytes_max: 2 << 20,
            result_bytes_max: 64 << 10,
            retry_base_ms: 50,
            retry_cap_ms: 2_000,
            drain_ms: 30_000,
            leave_ms: 5_000,
            seed: 1,
        }
    }
}
