//! The rows of the report, as text and as JSON.

use std::fmt::Write;

use serde_json::Value;

/// How a scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// Not as it should.
    Failed,
    /// It cannot run here.
    Skipped,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        }
    }
}

/// One scenario in one place.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is known by.
    pub name: String,
    /// What happens.
    pub what: String,
    /// In the simulator, or with real processes.
    pub place: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it says so.
    pub why: String,
    /// Leadership changes while the fault was on.
    pub changes: Option<u64>,
    /// Work under the fault, in percent of the work before it.
    pub throughput_percent: Option<u64>,
    /// Longest time without a leader (simulator) or without writes (processes).
    pub gap_ms: Option<u64>,
    /// How long it took: simulated time in the simulator.
    pub seconds: Option<u64>,
}

impl Row {
    /// A row without figures.
    pub fn new(name: String, what: String, place: &'static str, outcome: Outcome) -> Row {
        let (changes, throughput_percent, gap_ms, seconds) = (None, None, None, None);
        let why = String::new();
        Row { name, what, place, outcome, why, changes, throughput_percent, gap_ms, seconds }
    }

    /// The same with the figures that were told.
    pub fn with(self, told: &Value) -> Row {
        let figure = |name: &str| told[name].as_u64();
        Row {
            changes: figure("changes"),
            throughput_percent: figure("throughput_percent"),
            gap_ms: figure("gap_ms"),
            seconds: figure("seconds"),
            ..self
        }
    }

    /// The row as JSON.
    pub fn json(&self) -> Value {
        serde_json::json!({
            "scenario": self.name,
            "what": self.what,
            "where": self.place,
            "result": self.outcome.word(),
            "why": self.why,
            "changes": self.changes,
            "throughput_percent": self.throughput_percent,
            "gap_ms": self.gap_ms,
            "seconds": self.seconds,
        })
    }
}

/// Lays the rows out as a table in Markdown, and adds one line that says it all.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| scenario | where | result | leadership changes | throughput | longest gap | time |\n|---|---|---|---|---|---|---|\n",
    );
    let show = |figure: Option<u64>, unit: &str| {
        figure.map_or(String::new(), |figure| format!("{figure}{unit}"))
    };
    for row in rows {
        let result = match row.why.as_str() {
            "" => row.outcome.word().to_owned(),
            why => format!("{}: {why}", row.outcome.word()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} {} | {} | {result} | {} | {} | {} | {} |",
            row.name,
            row.what,
            row.place,
            show(row.changes, ""),
            show(row.throughput_percent, " %"),
            show(row.gap_ms, " ms"),
            show(row.seconds, " s"),
        );
    }
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let (failed, skipped) = (count(Outcome::Failed), count(Outcome::Skipped));
    let _ = write!(text, "\n{} rows, {failed} failed, {skipped} skipped", rows.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_their_columns_and_absent_ones_are_empty() {
        let told = serde_json::json!({"changes": 0, "throughput_percent": 99, "seconds": 120});
        let well = Row::new("F-6a".into(), "a link".into(), "simulator", Outcome::Passed);
        let failed = Row {
            why: "late".into(),
            ..Row::new("F-5".into(), "all".into(), "processes", Outcome::Failed)
        };
        let text = table(&[well.with(&told), failed]);
        assert!(text.contains("| F-6a a link | simulator | ok | 0 | 99 % |  | 120 s |"), "{text}");
        assert!(text.contains("| F-5 all | processes | FAILED: late |  |  |  |  |"), "{text}");
        assert!(text.ends_with("2 rows, 1 failed, 0 skipped"), "{text}");
    }
}
