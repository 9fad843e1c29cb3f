//! Settings of the autoscaler.

use std::path::PathBuf;
use std::time::Duration;

use ikada_replica::state::QueueName;

use super::RawConfig;
use crate::autoscale::ScaleRule;

/// Most workers when the settings name no number.
const MAX_DEFAULT: u32 = 4;
/// Slots of a worker when the settings name no number; as `ikada worker` has.
const SLOTS_DEFAULT: u32 = 2;
/// Work should begin within this time.
const TARGET_MS_DEFAULT: u64 = 30_000;
/// Time between two changes.
const COOLDOWN_MS_DEFAULT: u64 = 60_000;

/// How workers come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleDriver {
    /// Processes on this machine, with these further arguments.
    Process {
        /// Arguments of `ikada worker`.
        arguments: Vec<String>,
    },
    /// A program of the operator's.
    Exec {
        /// Which.
        program: PathBuf,
    },
    /// A Kubernetes workload.
    Kubernetes {
        /// `namespace/name`.
        workload: String,
    },
}

/// What the autoscaler is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleConfig {
    /// How many workers.
    pub rule: ScaleRule,
    /// How they come and go.
    pub driver: ScaleDriver,
}

/// Reads the settings; none if nobody asked for an autoscaler.
pub(super) fn read_autoscale(raw: &RawConfig, problems: &mut Vec<String>) -> Option<ScaleConfig> {
    let Some(driver) = raw.autoscale.as_deref() else {
        let others = raw.autoscale_min.is_some()
            || raw.autoscale_max.is_some()
            || raw.autoscale_queue.is_some()
            || raw.autoscale_command.is_some()
            || raw.autoscale_workload.is_some();
        if others {
            problems
                .push("autoscale-* settings need autoscale: process, exec or kubernetes".into());
        }
        return None;
    };
    let queues: Vec<String> = raw
        .autoscale_queue
        .iter()
        .flat_map(|queues| queues.split(','))
        .map(|queue| queue.trim().to_owned())
        .filter(|queue| !queue.is_empty())
        .collect();
    if let Some(bad) = queues.iter().find(|queue| QueueName::parse(queue).is_err()) {
        problems.push(format!("autoscale-queue: {bad:?} is no name of a queue"));
    }
    let rule = ScaleRule {
        min: raw.autoscale_min.unwrap_or(0),
        max: raw.autoscale_max.unwrap_or(MAX_DEFAULT),
        slots: raw.autoscale_slots.unwrap_or(SLOTS_DEFAULT),
        queues,
        target: Duration::from_millis(raw.autoscale_target_ms.unwrap_or(TARGET_MS_DEFAULT)),
        cooldown: Duration::from_millis(raw.autoscale_cooldown_ms.unwrap_or(COOLDOWN_MS_DEFAULT)),
    };
    if rule.max == 0 || rule.max > 10_000 || rule.min > rule.max {
        problems.push(format!(
            "autoscale-min {} and autoscale-max {}: the most must be 1 to 10000, and not below the least",
            rule.min, rule.max
        ));
    }
    if rule.slots == 0 || rule.target.is_zero() {
        problems.push("autoscale-slots and autoscale-target-ms must be 1 or more".into());
    }
    let driver = match (driver, &raw.autoscale_command, &raw.autoscale_workload) {
        ("process", _, _) => {
            let text = raw.autoscale_worker_args.as_deref().unwrap_or_default();
            let arguments = text.split_whitespace().map(str::to_owned).collect();
            ScaleDriver::Process { arguments }
        }
        ("exec", Some(program), _) => ScaleDriver::Exec { program: program.clone() },
        ("exec", None, _) => {
            problems.push("autoscale exec needs autoscale-command, the program to run".into());
            return None;
        }
        ("kubernetes", _, Some(workload)) => ScaleDriver::Kubernetes { workload: workload.clone() },
        ("kubernetes", _, None) => {
            problems.push("autoscale kubernetes needs autoscale-workload, namespace/name".into());
            return None;
        }
        (other, _, _) => {
            problems.push(format!("autoscale {other}: choose process, exec or kubernetes"));
            return None;
        }
    };
    Some(ScaleConfig { rule, driver })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: impl FnOnce(&mut RawConfig)) -> (Option<ScaleConfig>, Vec<String>) {
        let mut raw = RawConfig::default();
        change(&mut raw);
        let mut problems = Vec::new();
        (read_autoscale(&raw, &mut problems), problems)
    }

    #[test]
    fn settings_are_checked_together() {
        assert_eq!(read(|_| {}), (None, vec![]));
        let (good, problems) = read(|raw| {
            raw.autoscale = Some("process".into());
            raw.autoscale_worker_args = Some("--queue mail  --isolation best".into());
        });
        assert!(problems.is_empty());
        let arguments = ["--queue", "mail", "--isolation", "best"].map(str::to_owned).to_vec();
        assert_eq!(good.unwrap().driver, ScaleDriver::Process { arguments });
        for (driver, words) in
            [("exec", "autoscale-command"), ("kubernetes", "autoscale-workload"), ("vm", "choose")]
        {
            let (none, problems) = read(|raw| raw.autoscale = Some(driver.into()));
            assert!(none.is_none() && problems[0].contains(words), "{problems:?}");
        }
        let (_, problems) = read(|raw| {
            raw.autoscale = Some("process".into());
            (raw.autoscale_min, raw.autoscale_max) = (Some(3), Some(2));
            raw.autoscale_slots = Some(0);
        });
        assert_eq!(problems.len(), 2);
        let (some, problems) = read(|raw| {
            raw.autoscale = Some("process".into());
            raw.autoscale_queue = Some("mail, own".into());
        });
        assert!(problems.is_empty());
        assert_eq!(some.unwrap().rule.queues, ["mail", "own"]);
        let (_, problems) = read(|raw| {
            raw.autoscale = Some("process".into());
            raw.autoscale_queue = Some("no such/name!".into());
        });
        assert!(problems[0].contains("autoscale-queue"), "{problems:?}");
        assert_eq!(read(|raw| raw.autoscale_min = Some(1)).1.len(), 1, "a driver is missing");
    }
}
