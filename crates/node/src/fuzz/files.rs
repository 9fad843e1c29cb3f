//! Files and texts that people write, and backups.

use ikada_replica::schedule::Timetable;
use ikada_replica::state::Timing;

use crate::audit::verify;
use crate::backup::Backup;
use crate::config::{RawConfig, resolve};

/// Instants looked at per timetable.
const INSTANTS: usize = 8;

/// Settings.
pub fn config(bytes: &[u8]) {
    if let Ok(raw) = RawConfig::from_toml(&String::from_utf8_lossy(bytes)) {
        let _ = resolve(vec![raw]);
    }
}

/// The audit log.
pub fn audit(bytes: &[u8]) {
    let _ = verify(&String::from_utf8_lossy(bytes));
}

/// A backup's file.
pub fn backup(bytes: &[u8]) {
    if let Ok(mut backup) = Backup::open(bytes) {
        let _ = backup.check_rest();
    }
}

/// A schedule's time zone, its cron line, and moments: one line each, the moments in milliseconds.
pub fn schedules(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n');
    let (zone, line) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let moments = lines.next().unwrap_or("").split_whitespace();
    let moments: Vec<u64> = moments.filter_map(|moment| moment.parse().ok()).take(2).collect();
    let (first, second) = (moments.first().copied(), moments.get(1).copied());
    let cron = Timing::Cron { line: line.to_owned(), zone: zone.to_owned() };
    let every = Timing::Every { every_ms: first.unwrap_or(1), anchor_ms: second.unwrap_or(0) };
    for timing in [cron, every] {
        let Ok(timetable) = Timetable::read(&timing) else { continue };
        for moment in [0, u64::MAX].into_iter().chain(first).chain(second) {
            let mut after = moment;
            for _ in 0..INSTANTS {
                let Some(next) = timetable.next_after(after) else { break };
                assert!(next > after, "{timing:?} after {after} gives {next}");
                after = next;
            }
        }
    }
}
