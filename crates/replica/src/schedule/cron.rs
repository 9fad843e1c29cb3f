//! Cron lines: `minute hour day-of-month month day-of-week`, or a word such as `@daily`.
//!
//! Fields take `*`, numbers, ranges `a-b`, lists `a,b` and steps `/n`; months and days of the week have English names
//! of three letters; Sunday is 0 or 7. When both day fields are restricted, a day that fits either of them counts, as
//! cron has always had it.
//!
//! Leaves out: time zones. All here is civil time, which knows neither gap nor fold.

use jiff::civil::{Date, DateTime};

/// Longest search: a 29 February is at most eight years away.
const DAYS_SEARCHED_MAX: usize = 9 * 366;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Words for common lines.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// One field: which numbers it takes, and whether it begins with a star.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    bits: u64,
    star: bool,
}

impl Field {
    fn has(self, number: i8) -> bool {
        self.bits >> number & 1 == 1
    }
}

/// What one field may hold.
struct Shape {
    what: &'static str,
    low: u8,
    high: u8,
    names: &'static [&'static str],
}

const SHAPES: [Shape; 5] = [
    Shape { what: "minute", low: 0, high: 59, names: &[] },
    Shape { what: "hour", low: 0, high: 23, names: &[] },
    Shape { what: "day of month", low: 1, high: 31, names: &[] },
    Shape { what: "month", low: 1, high: 12, names: &MONTHS },
    Shape { what: "day of week", low: 0, high: 7, names: &WEEKDAYS },
];

/// A cron line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronLine {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl CronLine {
    /// Reads a line; the error says which field is wrong and what it may hold.
    pub(super) fn parse(line: &str) -> Result<CronLine, String> {
        let line = line.trim();
        let line = match line.starts_with('@') {
            false => line,
            true => {
                let known = WORDS.iter().find(|(word, _)| line.eq_ignore_ascii_case(word));
                known.map(|(_, line)| *line).ok_or_else(|| {
                    let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                    format!("{line:?} is not one of {}", words.join(", "))
                })?
            }
        };
        let texts: Vec<&str> = line.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = texts[..] else {
            return Err(format!(
                "has {} fields; give five: minute hour day-of-month month day-of-week",
                texts.len()
            ));
        };
        let mut weekday = parse_field(&SHAPES[4], weekday)?;
        // 7 is Sunday, too.
        weekday.bits = (weekday.bits | weekday.bits >> 7) & 0x7f;
        let cron = CronLine {
            minute: parse_field(&SHAPES[0], minute)?,
            hour: parse_field(&SHAPES[1], hour)?,
            day: parse_field(&SHAPES[2], day)?,
            month: parse_field(&SHAPES[3], month)?,
            weekday,
        };
        match cron.next_civil(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err("names a day that never comes".to_owned()),
        }
    }

    /// Whether the line goes by hours that pass rather than by hours that it names.
    pub(super) fn takes_every_pass(&self) -> bool {
        self.hour.star
    }

    /// The first minute from this one on that the line takes.
    pub(super) fn next_civil(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut earliest = (from.hour(), from.minute());
        for _ in 0..DAYS_SEARCHED_MAX {
            if self.takes_day(date)
                && let Some((hour, minute)) = self.first_minute(earliest)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            earliest = (0, 0);
        }
        None
    }

    fn takes_day(&self, date: Date) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset());
        let fits = match (self.day.star, self.weekday.star) {
            (false, false) => day || weekday,
            _ => day && weekday,
        };
        fits && self.month.has(date.month())
    }

    fn first_minute(&self, (from_hour, from_minute): (i8, i8)) -> Option<(i8, i8)> {
        (from_hour..24).filter(|hour| self.hour.has(*hour)).find_map(|hour| {
            let from = if hour == from_hour { from_minute } else { 0 };
            (from..60).find(|minute| self.minute.has(*minute)).map(|minute| (hour, minute))
        })
    }
}

fn parse_field(shape: &Shape, text: &str) -> Result<Field, String> {
    let mut bits = 0;
    for part in text.split(',') {
        bits |= parse_part(shape, part)
            .ok_or_else(|| format!("{} {part:?} is not valid: {}", shape.what, rule(shape)))?;
    }
    Ok(Field { bits, star: text.starts_with('*') })
}

fn rule(shape: &Shape) -> String {
    let names = match shape.names {
        [] => String::new(),
        [first, .., last] => format!(", names {first} to {last}"),
        [only] => format!(", the name {only}"),
    };
    format!("give numbers {} to {}{names}, *, a-b, a,b or /n", shape.low, shape.high)
}

fn parse_part(shape: &Shape, part: &str) -> Option<u64> {
    let (range, step) = match part.split_once('/') {
        None => (part, 1),
        Some((range, step)) => (range, parse_number(step).filter(|step| *step > 0)?),
    };
    let (first, last) = match range.split_once('-') {
        _ if range == "*" => (shape.low, shape.high),
        Some((first, last)) => (parse_value(shape, first)?, parse_value(shape, last)?),
        // As in other crons, `a/n` goes on to the end.
        None if step > 1 => (parse_value(shape, range)?, shape.high),
        None => (parse_value(shape, range)?, parse_value(shape, range)?),
    };
    let numbers = (first..=last).step_by(usize::from(step));
    (first <= last).then(|| numbers.fold(0, |bits, number| bits | 1 << number))
}

fn parse_value(shape: &Shape, text: &str) -> Option<u8> {
    let named = shape.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    let value = match named {
        Some(place) => place as u8 + shape.low,
        None => parse_number(text)?,
    };
    (shape.low..=shape.high).contains(&value).then_some(value)
}

fn parse_number(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(line: &str, from: &str) -> String {
        let cron = CronLine::parse(line).unwrap();
        cron.next_civil(from.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn fields_are_numbers_ranges_lists_steps_and_names() {
        assert_eq!(next("*/15 * * * *", "2026-11-15T13:46"), "2026-11-15T14:00:00");
        assert_eq!(next("5,10-12 9-17/4 * * *", "2026-11-15T13:11"), "2026-11-15T13:11:00");
        assert_eq!(next("5,10-12 9-17/4 * * *", "2026-11-15T13:13"), "2026-11-15T17:05:00");
        assert_eq!(next("0 0 1 jan *", "2026-11-15T13:13"), "2027-01-01T00:00:00");
        assert_eq!(next("30 7 * * mon-fri", "2026-11-14T00:00"), "2026-11-16T07:30:00");
        assert_eq!(next("0 0 * * 7", "2026-11-16T00:00"), "2026-11-22T00:00:00");
        assert_eq!(next("20/20 * * * *", "2026-11-15T13:21"), "2026-11-15T13:40:00");
        assert_eq!(next("@daily", "2026-11-15T00:01"), "2026-11-16T00:00:00");
        assert_eq!(next("0 0 29 2 *", "2096-03-01T00:00"), "2104-02-29T00:00:00");
    }

    #[test]
    fn two_restricted_day_fields_take_either() {
        assert_eq!(next("0 0 13 * fri", "2026-11-14T00:00"), "2026-11-20T00:00:00");
        assert_eq!(next("0 0 13 * fri", "2026-12-12T00:00"), "2026-12-13T00:00:00");
        assert_eq!(next("0 0 */2 * fri", "2026-11-14T00:00"), "2026-11-27T00:00:00");
    }

    #[test]
    fn a_bad_line_is_told_by_its_field() {
        for (line, word) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("0 0 * * * *", "6 fields"),
            ("60 * * * *", "minute \"60\""),
            ("* 24 * * *", "hour \"24\""),
            ("* * 0 * *", "day of month \"0\""),
            ("* * * 13 *", "month \"13\""),
            ("* * * * 8", "day of week \"8\""),
            ("* * * * monday", "names sun to sat"),
            ("*/0 * * * *", "minute \"*/0\""),
            ("5-1 * * * *", "minute \"5-1\""),
            ("1,,2 * * * *", "minute \"\""),
            ("+1 * * * *", "minute \"+1\""),
            ("0 0 31 2 *", "never comes"),
            ("@often", "@hourly"),
        ] {
            let error = CronLine::parse(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
