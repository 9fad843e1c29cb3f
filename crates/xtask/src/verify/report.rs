//! The table at the end of a run: step, outcome, seconds, and one line of why for whatever did not pass.

use std::fmt::Write;
use std::time::Duration;

use super::Outcome;

/// One finished step.
pub struct Row {
    /// The step's name.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time.
    pub elapsed: Duration,
}

/// Lays the rows out as text and adds one line that says it all.
pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max("step".len());
    let mut text = format!("{:width$}  {:7}  {:>7}\n", "step", "result", "seconds");
    let mut failed = 0;
    let mut skipped = 0;
    for row in rows {
        let (result, reason) = match &row.outcome {
            Outcome::Passed => ("ok", ""),
            Outcome::Failed(reason) => {
                failed += 1;
                ("FAILED", reason.as_str())
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                ("skipped", reason.as_str())
            }
        };
        let seconds = row.elapsed.as_secs_f64();
        let reason = reason.lines().next().unwrap_or_default();
        let line = format!("{:width$}  {result:7}  {seconds:7.1}  {reason}", row.name);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let total: f64 = rows.iter().map(|row| row.elapsed.as_secs_f64()).sum();
    let _ = write!(
        text,
        "{} steps, {failed} failed, {skipped} skipped, {total:.1} seconds",
        rows.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_result_and_reason() {
        let row = |name, outcome| Row { name, outcome, elapsed: Duration::from_millis(1500) };
        let text = table(&[
            row("fmt", Outcome::Passed),
            row("advisories", Outcome::Failed("first line\nsecond".to_owned())),
            row("deny", Outcome::Skipped("no tool".to_owned())),
        ]);
        let expected = "\
step        result   seconds
fmt         ok           1.5
advisories  FAILED       1.5  first line
deny        skipped      1.5  no tool
3 steps, 1 failed, 1 skipped, 4.5 seconds";
        assert_eq!(text, expected);
    }
}
