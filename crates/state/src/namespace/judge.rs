//! Whether a namespace may take more of a shard.
//!
//! Judged: submissions, retries, the tasks that jobs bring, objects that are put. Not judged, but counted: follow-ups, which
//! were let in with their parent, or put off by the node that a worker brought them to; the tasks of schedules, which would hold up messages of other namespaces; what comes
//! with a slot; outputs and logs, since the work behind them is done.

use crate::planted::{self, Bug};
use crate::shard::Shard;
use crate::{Namespace, RefusalCode};

impl Shard {
    /// Refuses a task of so many bytes if its namespace has its share of this shard.
    pub(crate) fn check_quota(&self, namespace: &Namespace, bytes: u64) -> Result<(), RefusalCode> {
        if self.core.quotas.is_empty() || planted::active(Bug::QuotaNotJudged) {
            return Ok(());
        }
        let Some(record) = self.core.quotas.get(namespace) else {
            return Ok(());
        };
        let waiting = self.index.waiting(namespace);
        if record.quota.pending_max > 0 && waiting.tasks >= record.pending_share {
            return Err(RefusalCode::NamespaceFull);
        }
        let sum = waiting.bytes.saturating_add(bytes);
        match record.quota.bytes_max > 0 && sum > record.bytes_share {
            true => Err(RefusalCode::NamespaceBytes),
            false => Ok(()),
        }
    }

    /// Refuses an object of so many bytes, in place of so many, if it alone brings this shard over the whole quota. The
    /// objects of a bucket are in one shard, so a share of the quota would bound a bucket instead of the namespace.
    pub(crate) fn check_stored(
        &self,
        namespace: &Namespace,
        size: u64,
        replaced: u64,
    ) -> Result<(), RefusalCode> {
        let Some(record) = self.core.quotas.get(namespace) else {
            return Ok(());
        };
        let bytes = self.index.stored(namespace).saturating_add(size).saturating_sub(replaced);
        match record.quota.object_bytes_max > 0 && bytes > record.quota.object_bytes_max {
            true => Err(RefusalCode::NamespaceObjects),
            false => Ok(()),
        }
    }
}
