//! Q16 Within quota: a namespace never has more unfinished tasks, over all shards, than its quota lets in.

use ikada_state::Namespace;

use super::{Verdict, violation};

/// Looks at what a namespace has waiting in each shard.
pub fn check(namespace: &Namespace, pending: &[u64], pending_max: u64) -> Verdict {
    if pending.iter().sum::<u64>() <= pending_max {
        return Ok(());
    }
    violation(
        "Q16 within_quota",
        format!("{namespace} has {pending:?} unfinished tasks, and may have {pending_max}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_over_its_quota_is_noticed() {
        let namespace = Namespace::default();
        assert!(check(&namespace, &[2, 3], 5).is_ok());
        assert!(check(&namespace, &[2, 4], 5).is_err());
    }
}
