//! When the instants of a schedule are, counted the plain way: intervals by division, cron lines minute by minute with
//! offsets written down by hand. Shares neither code nor zone data with the product.
//!
//! Leaves out: every line and zone that the workload does not draw.

use ikada_state::Timing;

const MINUTE_MS: u64 = 60_000;

/// A zone: its offset at first, and from each change on. All in minutes, changes since 1970.
#[derive(Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: &'static str,
    offset: i64,
    changes: &'static [(u64, i64)],
}

/// The zones of the workload from 2027 on: none, an odd offset, an hour in spring and autumn, and half an hour.
pub const ZONES: [Zone; 4] = [
    Zone { name: "UTC", offset: 0, changes: &[] },
    Zone { name: "Asia/Kathmandu", offset: 345, changes: &[] },
    Zone { name: "Europe/Berlin", offset: 60, changes: &[(30_103_260, 120), (30_415_740, 60)] },
    Zone {
        name: "Australia/Lord_Howe",
        offset: 660,
        changes: &[(30_112_740, 630), (30_374_850, 660)],
    },
];

/// Moments at which some clocks are set, in ms since 1970.
pub fn changes_ms() -> Vec<u64> {
    ZONES.iter().flat_map(|zone| zone.changes).map(|(minute, _)| minute * MINUTE_MS).collect()
}

/// A change of a zone's offset.
#[derive(Debug, Clone, Copy)]
struct Change {
    minute: i64,
    before: i64,
    after: i64,
}

impl Zone {
    /// The newest change up to a minute.
    fn change(&self, minute: u64) -> Option<Change> {
        let before = |position: usize| match position.checked_sub(1) {
            Some(earlier) => self.changes[earlier].1,
            None => self.offset,
        };
        let position = self.changes.iter().rposition(|(since, _)| *since <= minute)?;
        let (since, after) = self.changes[position];
        Some(Change { minute: since as i64, before: before(position), after })
    }

    /// What a clock shows, in minutes since 1970.
    fn shown(&self, minute: u64) -> i64 {
        minute as i64 + self.change(minute).map_or(self.offset, |change| change.after)
    }

    /// Whether its clocks are set in the hour after a moment.
    pub fn changes_after(&self, moment_ms: u64) -> bool {
        let minute = moment_ms / MINUTE_MS;
        self.changes.iter().any(|(change, _)| (minute..minute + 60).contains(change))
    }

    /// The hour that a clock shows at a moment.
    pub fn hour(&self, moment_ms: u64) -> u32 {
        self.shown(moment_ms / MINUTE_MS).div_euclid(60).rem_euclid(24) as u32
    }
}

/// The instants of one schedule.
#[derive(Debug, PartialEq, Eq)]
pub enum Instants {
    /// Every so often from an anchor on.
    Every {
        /// Distance.
        every_ms: u64,
        /// The first.
        anchor_ms: u64,
    },
    /// Minutes that a step divides, in all hours or in some.
    Cron {
        /// The step.
        step: i64,
        /// Hours that the line names, a bit each; absent if it goes by hours that pass.
        hours: Option<u32>,
        /// The zone.
        zone: &'static Zone,
    },
}

impl Instants {
    /// Reads a timing of the workload: an interval, or `*/step hours * * *` in one of the zones.
    pub fn read(timing: &Timing) -> Option<Self> {
        let (line, zone) = match timing {
            Timing::Every { every_ms, anchor_ms } => {
                return Some(Instants::Every { every_ms: *every_ms, anchor_ms: *anchor_ms });
            }
            Timing::Cron { line, zone } => (line, zone),
        };
        let zone = ZONES.iter().find(|known| known.name == zone)?;
        let (minutes, rest) = line.split_once(' ')?;
        let hours = match rest.strip_suffix(" * * *")? {
            "*" => None,
            list => {
                let bit = |hour: &str| hour.parse().ok().map(|hour: u32| 1 << hour);
                Some(list.split(',').map(bit).sum::<Option<u32>>()?)
            }
        };
        Some(Instants::Cron { step: minutes.strip_prefix("*/")?.parse().ok()?, hours, zone })
    }

    /// Whether a moment is an instant.
    pub fn has(&self, moment_ms: u64) -> bool {
        match self {
            Instants::Every { every_ms, anchor_ms } => {
                moment_ms.checked_sub(*anchor_ms).is_some_and(|ms| ms.is_multiple_of(*every_ms))
            }
            Instants::Cron { step, hours, zone } => {
                moment_ms.is_multiple_of(MINUTE_MS)
                    && takes(moment_ms / MINUTE_MS, *step, *hours, zone)
            }
        }
    }

    /// How many there are after a moment and up to another.
    pub fn count(&self, after_ms: u64, until_ms: u64) -> u64 {
        match self {
            Instants::Every { every_ms, anchor_ms } => {
                let until = |moment_ms: u64| {
                    moment_ms
                        .checked_sub(*anchor_ms)
                        .map_or(0, |passed_ms| passed_ms / every_ms + 1)
                };
                until(until_ms) - until(after_ms)
            }
            Instants::Cron { step, hours, zone } => {
                let minutes = after_ms / MINUTE_MS + 1..=until_ms / MINUTE_MS;
                minutes.filter(|minute| takes(*minute, *step, *hours, zone)).count() as u64
            }
        }
    }

    /// Whether clocks were set within the hour before a moment.
    pub fn clocks_set_before(&self, moment_ms: u64) -> bool {
        let Instants::Cron { zone, .. } = self else {
            return false;
        };
        let minute = moment_ms / MINUTE_MS;
        zone.change(minute).is_some_and(|change| minute as i64 - change.minute <= 60)
    }
}

fn takes(minute: u64, step: i64, hours: Option<u32>, zone: &Zone) -> bool {
    let shown = zone.shown(minute);
    let Some(hours) = hours else {
        return shown.rem_euclid(60) % step == 0;
    };
    let named = |shown: i64| {
        hours >> shown.div_euclid(60).rem_euclid(24) & 1 == 1 && shown.rem_euclid(60) % step == 0
    };
    match zone.change(minute) {
        // Times that were left out are kept where they would have been, at the end of the gap, all as one.
        Some(change) if change.after > change.before && change.minute == minute as i64 => {
            (change.minute + change.before..=change.minute + change.after).any(named)
        }
        // A time that comes twice is kept when it comes first.
        Some(change) if shown < change.minute + change.before => false,
        _ => named(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPRING_MS: u64 = 1_806_195_600_000;
    const AUTUMN_MS: u64 = 1_824_944_400_000;

    fn berlin(line: &str) -> Instants {
        let timing = Timing::Cron { line: line.to_owned(), zone: "Europe/Berlin".to_owned() };
        Instants::read(&timing).unwrap()
    }

    #[test]
    fn named_times_are_kept_once_when_clocks_are_set() {
        let line = berlin("*/30 2 * * *");
        assert_eq!(line.count(SPRING_MS - 7_200_000, SPRING_MS + 7_200_000), 1);
        assert!(line.has(SPRING_MS) && line.clocks_set_before(SPRING_MS));
        assert_eq!(line.count(AUTUMN_MS - 7_200_000, AUTUMN_MS + 7_200_000), 2);
        assert!(line.has(AUTUMN_MS - 3_600_000) && !line.has(AUTUMN_MS));
        assert_eq!(ZONES[2].hour(AUTUMN_MS - 1), ZONES[2].hour(AUTUMN_MS));
    }

    #[test]
    fn a_line_for_every_hour_goes_by_hours_that_pass() {
        let line = berlin("*/30 * * * *");
        for change_ms in changes_ms() {
            assert_eq!(line.count(change_ms - 7_200_000, change_ms + 7_200_000), 8);
        }
        let every = Instants::Every { every_ms: 1_000, anchor_ms: 250 };
        assert_eq!((every.count(0, 250), every.count(250, 3_250), every.has(251)), (1, 3, false));
    }
}
