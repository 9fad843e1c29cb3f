//! How many workers there should be. A pure function of what was seen and of the settings; it says why.
//!
//! Promise: the answer lies between the least and the most; it rises as soon as the backlog asks for it and the last change
//! is long enough ago; it falls only after a whole cooldown in which fewer would have been enough. What is missing below the least is
//! asked for at once, and again only after a cooldown.

use std::time::Duration;

/// What the operator wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleRule {
    /// Never fewer workers.
    pub min: u32,
    /// Never more workers.
    pub max: u32,
    /// Slots of one worker.
    pub slots: u32,
    /// The queues whose tasks count; none is all.
    pub queues: Vec<String>,
    /// Work that waits should begin within this time.
    pub target: Duration,
    /// Time between two changes, and how long less must be enough before it becomes less.
    pub cooldown: Duration,
}

/// What was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tasks that wait and may be claimed.
    pub backlog: u64,
    /// Tasks that workers hold.
    pub claimed: u64,
    /// How long a task takes on average, in ms; 0 if nothing was measured yet.
    pub service_ms: u64,
    /// Own workers that are alive and not draining.
    pub workers: u32,
    /// Slots of such workers that somebody else started.
    pub foreign_slots: u64,
}

/// What was decided before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// When the number was last changed.
    pub changed_ms: Option<u64>,
    /// When those below the least were last asked for; none since there were enough.
    pub least_ms: Option<u64>,
    /// Since when fewer than now would have been enough, and the most that were wanted since.
    pub spare: Option<(u64, u32)>,
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// How many workers there should be.
    pub desired: u32,
    /// In words.
    pub reason: String,
}

/// A task that nobody has measured is taken to last this long.
const SERVICE_MS_DEFAULT: u64 = 1_000;

/// How many workers the work asks for, without regard to what was decided before.
pub fn wanted(rule: &ScaleRule, seen: &Seen) -> u32 {
    let service_ms = match seen.service_ms {
        0 => SERVICE_MS_DEFAULT,
        measured => measured,
    };
    let target_ms = (rule.target.as_millis() as u64).max(1);
    // Slots that work through the backlog within the target time, beside those that are busy already.
    let for_backlog = seen.backlog.saturating_mul(service_ms).div_ceil(target_ms).min(seen.backlog);
    let slots = for_backlog.saturating_add(seen.claimed).saturating_sub(seen.foreign_slots);
    let workers = slots.div_ceil(u64::from(rule.slots.max(1)));
    u32::try_from(workers).unwrap_or(u32::MAX).clamp(rule.min, rule.max.max(rule.min))
}

/// Decides, and remembers what the next decision needs.
pub fn decide(rule: &ScaleRule, seen: &Seen, memory: &mut Memory, now_ms: u64) -> Decision {
    let wanted = wanted(rule, seen);
    let cooldown_ms = rule.cooldown.as_millis() as u64;
    let rests = memory.changed_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < cooldown_ms);
    let foreign = match seen.foreign_slots {
        0 => String::new(),
        slots => format!(", {slots} slots of other workers"),
    };
    let words = format!(
        "{} waiting, {} running, {} ms each{foreign}, {} slots per worker: {wanted} wanted of {} to {}",
        seen.backlog, seen.claimed, seen.service_ms, rule.slots, rule.min, rule.max
    );
    let stay = |why: &str| Decision { desired: seen.workers, reason: format!("{words}; {why}") };
    // Below the least is not a matter of load: it is made up for at once. Whoever was asked for has a cooldown to come.
    if seen.workers < rule.min {
        memory.spare = None;
        if memory.least_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < cooldown_ms) {
            return stay("fewer than the least, and those that were asked for may still come");
        }
        memory.least_ms = Some(now_ms);
        memory.changed_ms = Some(now_ms);
        return Decision { desired: wanted, reason: format!("{words}; fewer than the least") };
    }
    memory.least_ms = None;
    if wanted >= seen.workers {
        memory.spare = None;
        if wanted == seen.workers {
            return stay("as many as there are");
        }
        if rests {
            return stay("the last change is too fresh");
        }
        memory.changed_ms = Some(now_ms);
        return Decision { desired: wanted, reason: format!("{words}; more") };
    }
    let (since_ms, most) = memory.spare.unwrap_or((now_ms, wanted));
    let most = most.max(wanted);
    memory.spare = Some((since_ms, most));
    if rests || now_ms.saturating_sub(since_ms) < cooldown_ms {
        return stay("fewer would be enough, but not for long enough");
    }
    memory.spare = None;
    memory.changed_ms = Some(now_ms);
    Decision { desired: most, reason: format!("{words}; fewer were enough for a whole cooldown") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> ScaleRule {
        ScaleRule {
            min: 1,
            max: 8,
            slots: 2,
            queues: Vec::new(),
            target: Duration::from_secs(10),
            cooldown: Duration::from_secs(60),
        }
    }

    fn seen(backlog: u64, claimed: u64, service_ms: u64, workers: u32) -> Seen {
        Seen { backlog, claimed, service_ms, workers, foreign_slots: 0 }
    }

    #[test]
    fn b4_23_the_backlog_asks_for_workers_within_bounds() {
        assert_eq!(wanted(&rule(), &seen(0, 0, 100, 1)), 1, "never fewer than the least");
        assert_eq!(wanted(&rule(), &seen(100, 0, 100, 1)), 1, "one slot does 100 of them in 10 s");
        assert_eq!(wanted(&rule(), &seen(600, 0, 100, 1)), 3);
        assert_eq!(wanted(&rule(), &seen(600, 4, 100, 1)), 5, "beside those that run");
        assert_eq!(wanted(&rule(), &seen(3, 0, 60_000, 1)), 2, "no more slots than tasks");
        assert_eq!(wanted(&rule(), &seen(1_000_000, 0, 1_000, 1)), 8, "never more than the most");
        assert_eq!(wanted(&rule(), &seen(u64::MAX, u64::MAX, u64::MAX, 1)), 8);
        let helped = |foreign_slots| Seen { foreign_slots, ..seen(600, 4, 100, 1) };
        assert_eq!(wanted(&rule(), &helped(4)), 3, "slots of others are there, too");
        assert_eq!(wanted(&rule(), &helped(100)), 1);
    }

    #[test]
    fn b4_23_more_at_once_then_a_rest() {
        let mut memory = Memory::default();
        assert_eq!(decide(&rule(), &seen(600, 0, 100, 1), &mut memory, 1_000).desired, 3);
        let soon = decide(&rule(), &seen(2_000, 0, 100, 3), &mut memory, 30_000);
        assert_eq!(soon.desired, 3);
        assert!(soon.reason.contains("too fresh"), "{}", soon.reason);
        assert_eq!(decide(&rule(), &seen(2_000, 0, 100, 3), &mut memory, 61_000).desired, 8);
    }

    #[test]
    fn b4_23_fewer_only_after_a_whole_cooldown_and_not_fewer_than_was_wanted_in_it() {
        let mut memory = Memory::default();
        let idle = seen(0, 0, 100, 6);
        assert_eq!(decide(&rule(), &idle, &mut memory, 0).desired, 6);
        assert_eq!(decide(&rule(), &seen(0, 5, 100, 6), &mut memory, 30_000).desired, 6);
        assert_eq!(decide(&rule(), &idle, &mut memory, 59_000).desired, 6);
        assert_eq!(decide(&rule(), &idle, &mut memory, 60_000).desired, 3, "three ran meanwhile");
        let mut memory = Memory::default();
        decide(&rule(), &idle, &mut memory, 0);
        decide(&rule(), &seen(4_000, 0, 100, 6), &mut memory, 30_000);
        assert_eq!(decide(&rule(), &idle, &mut memory, 70_000).desired, 6, "the count begins anew");
    }

    #[test]
    fn b4_23_the_least_is_made_up_for_whatever_the_cooldown() {
        let mut memory = Memory { changed_ms: Some(0), ..Memory::default() };
        let rule = ScaleRule { min: 2, ..rule() };
        assert_eq!(decide(&rule, &seen(0, 0, 0, 1), &mut memory, 1_000).desired, 2);
        // Those have a while to come, and are not asked for at every look.
        let waits = decide(&rule, &seen(0, 0, 0, 1), &mut memory, 6_000);
        assert_eq!(waits.desired, 1);
        assert!(waits.reason.contains("may still come"), "{}", waits.reason);
        assert_eq!(decide(&rule, &seen(0, 0, 0, 1), &mut memory, 61_000).desired, 2);
        // Once they were there, the next loss is made up for at once.
        decide(&rule, &seen(0, 0, 0, 2), &mut memory, 62_000);
        assert_eq!(decide(&rule, &seen(0, 0, 0, 1), &mut memory, 63_000).desired, 2);
    }
}
