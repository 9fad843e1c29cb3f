//! Moments and spans for people. Moments are UTC, so that nodes in different places can be compared.

/// The last moment with a year of four digits; later ones are shown as the number they are.
const MOMENT_MAX_MS: u64 = 253_402_300_799_999;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Milliseconds since 1970 as `2026-01-31 23:59:59.123`, in UTC.
pub(crate) fn moment(ms: u64) -> String {
    if ms > MOMENT_MAX_MS {
        return format!("{ms} ms");
    }
    let (year, month, day) = date(ms / DAY_MS);
    let rest = ms % DAY_MS;
    let (seconds, milliseconds) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milliseconds:03}")
}

/// Year, month and day of a day counted from 1970-01-01, by walking there: few thousand steps at most.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// A span in the largest unit that shows it exactly: `30 s`, `24 h`, `14 d`, `1500 ms`.
pub(crate) fn span(ms: u64) -> String {
    let units = [(DAY_MS, "d"), (60 * 60 * 1000, "h"), (60 * 1000, "min"), (1000, "s")];
    // A single day is 24 h to everybody.
    let exact =
        |length: u64| ms > 0 && ms.is_multiple_of(length) && (length < DAY_MS || ms > DAY_MS);
    let fitting = units.iter().find(|(length, _)| exact(*length));
    match fitting {
        Some((length, unit)) => format!("{} {unit}", ms / length),
        None => format!("{ms} ms"),
    }
}

/// A measured length of time, rounded: `84 ms`, `7.1 s`, `12 min`, `14 d`.
pub(crate) fn length(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / DAY_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_in_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000");
        assert_eq!(moment(951_782_399_999), "2000-02-28 23:59:59.999");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00.000");
        assert_eq!(moment(1_709_251_200_000), "2024-03-01 00:00:00.000");
        assert_eq!(moment(1_798_761_599_001), "2026-12-31 23:59:59.001");
        assert_eq!(moment(MOMENT_MAX_MS), "9999-12-31 23:59:59.999");
        assert_eq!(moment(u64::MAX), format!("{} ms", u64::MAX));
    }

    #[test]
    fn spans_are_exact() {
        let shown: Vec<String> = [0, 999, 1_000, 90_000, 60_000, 86_400_000].map(span).into();
        assert_eq!(shown, ["0 ms", "999 ms", "1 s", "90 s", "1 min", "24 h"]);
        assert_eq!([14 * DAY_MS, 36 * 3_600_000].map(span), ["14 d", "36 h"]);
    }

    #[test]
    fn measured_lengths_are_rounded() {
        let shown = [84, 7_063, 61_900, 600_500, 86_400_001, 14 * DAY_MS + 1].map(length);
        assert_eq!(shown, ["84 ms", "7.0 s", "61 s", "10 min", "24 h", "14 d"]);
    }
}
