//! Q9 Settings version: the settings of a queue never go back to an older version in any shard, however often their
//! message is delivered; and a message delivered again changes nothing.

use std::collections::BTreeMap;

use ikada_state::{QueueHandle, ShardId};

use super::{Verdict, violation};

/// The newest version seen, per shard and queue.
#[derive(Debug, Default)]
pub struct SettingsVersion {
    versions: BTreeMap<(ShardId, QueueHandle), u64>,
}

impl SettingsVersion {
    /// A queue's settings were stored; `version` is what the shard has now.
    pub fn changed(&mut self, shard: ShardId, queue: QueueHandle, version: u64) -> Verdict {
        let newest = self.versions.entry((shard, queue)).or_insert(version);
        if version < *newest {
            return violation(
                "Q9 settings_version",
                format!("shard {shard}: {queue:?} went back from version {newest} to {version}"),
            );
        }
        *newest = version;
        Ok(())
    }

    /// An entry changed settings so many times, and had so many orders that may.
    pub fn caused(shard: ShardId, changes: usize, causes: usize) -> Verdict {
        if changes <= causes {
            return Ok(());
        }
        violation(
            "Q9 settings_version",
            format!("shard {shard}: {changes} changes of settings from {causes} fresh orders"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_settings_are_noticed() {
        let mut check = SettingsVersion::default();
        assert!(check.changed(1, QueueHandle(0), 4).is_ok());
        assert!(check.changed(1, QueueHandle(0), 4).is_ok());
        assert!(check.changed(2, QueueHandle(0), 3).is_ok());
        assert!(check.changed(1, QueueHandle(0), 3).is_err());
        assert!(SettingsVersion::caused(0, 1, 1).is_ok());
        assert!(SettingsVersion::caused(0, 1, 0).is_err());
    }
}
