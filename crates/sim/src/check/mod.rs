//! The checks: one file per property, named after it. Each has a test that feeds it a violation.
//!
//! R1 to R11 look at nodes and disks, Q1 to Q16 at committed commands and what clients were told, A4, B4-19 and B4-34 at files,
//! workers and jobs, V1 to V7 at the cluster after all faults have gone, L1 at programs of two versions, P1 to P3 at leases in
//! a database (P4 is a test: another clock there gives the same run). Predicates over the state itself are shared with `ikada_state::invariants`.
//!
//! Leaves out: when each check is asked (`world::watch`), and where its facts come from (`oracle`).

pub mod accounting;
pub mod all_settled;
pub mod apply_is_pure;
pub mod attempts;
pub mod bounded;
pub mod calm_balance;
pub mod cancel;
pub mod committed_forever;
pub mod config_safety;
pub mod config_settled;
pub mod dead_kept;
pub mod election_safety;
pub mod epoch_fence;
pub mod equal_state;
pub mod fair_offer;
pub mod fence;
pub mod follow_ups;
pub mod fresh_write;
pub mod honest_outcome;
pub mod idempotent_submit;
pub mod job_whole;
pub mod known_commands;
pub mod leader_completeness;
pub mod lease_order;
pub mod lease_time;
pub mod linearizable_reads;
pub mod log_matching;
pub mod monotonic;
pub mod no_early_expiry;
pub mod no_early_refusal;
pub mod no_silent_loss;
pub mod nobody_stuck;
pub mod one_holder;
pub mod one_leader;
pub mod operations;
pub mod persist_before_speak;
pub mod quorum_evidence;
pub mod same_result;
pub mod schedule_instants;
pub mod settings_version;
pub mod state_machine_safety;
pub mod terminal_once;
pub mod token_order;
mod view;
pub mod winner_outputs;
pub mod within_quota;
pub mod worker_gone;

pub use view::ShardView;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {what}")]
pub struct Violation {
    /// Number and name of the property.
    pub check: &'static str,
    /// What was seen.
    pub what: String,
}

/// What a check says.
pub type Verdict = Result<(), Violation>;

/// A verdict that something is wrong.
pub fn violation(check: &'static str, what: String) -> Verdict {
    Err(Violation { check, what })
}

/// Turns the verdict of a predicate over the state into ours.
pub fn predicate<E: std::fmt::Display>(check: &'static str, found: Result<(), E>) -> Verdict {
    found.map_err(|error| Violation { check, what: error.to_string() })
}
