//! The rows of the report, as text and as JSON.

use std::fmt::Write;

use anyhow::Context;
use serde_json::Value;

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// `module` or `command`.
    pub kind: String,
    /// The wall that it ran against.
    pub wall: String,
    /// What it tried.
    pub tried: String,
    /// How it ended.
    pub ended: String,
    /// Whether it was held back.
    pub contained: bool,
    /// How long it ran.
    pub took_ms: u64,
}

impl Row {
    /// Reads a line of the tests.
    pub fn read(line: &str) -> anyhow::Result<Row> {
        let told: Value = serde_json::from_str(line).context("a line of the tests")?;
        let text = |name: &str| told[name].as_str().map(str::to_owned).context("a word is missing");
        Ok(Row {
            kind: text("kind")?,
            wall: text("wall")?,
            tried: text("tried")?,
            ended: text("ended")?,
            contained: told["contained"] == true,
            took_ms: (told["seconds"].as_f64().unwrap_or_default() * 1_000.0) as u64,
        })
    }

    /// The row as JSON.
    pub fn json(&self) -> Value {
        serde_json::json!({
            "kind": self.kind,
            "wall": self.wall,
            "tried": self.tried,
            "ended": self.ended,
            "contained": self.contained,
            "seconds": self.took_ms as f64 / 1_000.0,
        })
    }
}

/// Longest text of a cell; what a program says may be long.
const CELL_CHARS_MAX: usize = 70;

/// One line, short, and without what would end a cell.
fn cell(text: &str) -> String {
    let line: String =
        text.chars().map(|one| if one.is_control() || one == '|' { ' ' } else { one }).collect();
    match line.char_indices().nth(CELL_CHARS_MAX) {
        Some((place, _)) => format!("{}...", &line[..place]),
        None => line,
    }
}

/// Lays the rows out as a table in Markdown, and adds a line for each kind.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| probe | against | tried | how it ended | time | contained |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let contained = if row.contained { "yes" } else { "NO" };
        let seconds = row.took_ms as f64 / 1_000.0;
        let (wall, tried, ended) = (cell(&row.wall), cell(&row.tried), cell(&row.ended));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {wall} | {tried} | {ended} | {seconds:.1} s | {contained} |",
            row.kind
        );
    }
    for kind in ["module", "command"] {
        let all: Vec<&Row> = rows.iter().filter(|row| row.kind == kind).collect();
        let held = all.iter().filter(|row| row.contained).count();
        let _ = write!(text, "\n{kind}s: {held} of {} contained", all.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_12_a_probe_that_got_through_shows() {
        let row = |tried: &str, contained| Row {
            kind: "command".into(),
            wall: "files".into(),
            tried: tried.into(),
            ended: format!("exit | code\n{}", "x".repeat(200)),
            contained,
            took_ms: 1_240,
        };
        let text = table(&[row("read a key", true), row("write a key", false)]);
        assert!(text.contains("| command | files | read a key | exit   code x"), "{text}");
        assert!(text.contains("| 1.2 s | yes |") && text.contains("| 1.2 s | NO |"), "{text}");
        assert!(text.ends_with("modules: 0 of 0 contained\ncommands: 1 of 2 contained"), "{text}");
        assert!(text.lines().all(|line| line.len() < 200));
    }
}
