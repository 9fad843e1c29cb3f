//! For people: columns with headings, two spaces apart.
//!
//! On a terminal a table is as wide as that (`fit`). Whole values are in JSON, with `--wide`, and wherever the output is no
//! terminal. There, too, nothing is coloured.

use console::measure_text_width;

use super::fit::{Column, WRAPPED_LINES_MAX, fit, lines};
use super::paint::{paint, paint_heading};
use super::{Document, Grid, Renderer};
use crate::failure::Failure;

/// Between columns.
pub(super) const GAP: &str = "  ";

/// What the place where tables go is like.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Table {
    /// Columns of the terminal; absent where nothing is cut.
    pub(super) width: Option<usize>,
    /// Whether states are coloured.
    pub(super) colour: bool,
    /// Whether somebody looks at it.
    pub(super) is_terminal: bool,
}

impl Renderer for Table {
    fn render(&self, document: &dyn Document) -> Result<String, Failure> {
        let grids: Vec<String> =
            document.grids().iter().map(|grid| self.draw(grid, true)).collect();
        Ok(grids.join("\n"))
    }

    fn render_more(&self, document: &dyn Document) -> Result<String, Failure> {
        Ok(document.grids().iter().map(|grid| self.draw(grid, false)).collect())
    }
}

impl Table {
    fn draw(&self, grid: &Grid, with_headings: bool) -> String {
        let mut rows: Vec<Vec<String>> =
            grid.rows.iter().map(|row| row.iter().map(|cell| self.plain(cell)).collect()).collect();
        let headings = grid.headings.iter().map(|heading| heading.to_uppercase());
        let mut columns: Vec<Column> = headings.map(Column::new).collect();
        fit(&mut columns, &mut rows, self.width);
        let mut text = String::new();
        if with_headings {
            let cells: Vec<Vec<String>> =
                columns.iter().map(|column| column.heading.clone()).collect();
            text.push_str(&self.line_up(&columns, &cells, |_, shown| paint_heading(shown)));
        }
        // A page of nothing is no mistake, and should not look like one.
        if rows.is_empty() && with_headings && self.is_terminal {
            text.push_str("(none)\n");
        }
        for row in &rows {
            let cells: Vec<Vec<String>> =
                row.iter().zip(&columns).map(|(cell, column)| lines(cell, column)).collect();
            let colour = |column: usize, shown: &str| paint(grid.headings[column], row, shown);
            text.push_str(&self.line_up(&columns, &cells, colour));
        }
        text
    }

    /// One row, in as many lines as its tallest cell has.
    fn line_up(
        &self,
        columns: &[Column],
        cells: &[Vec<String>],
        colour: impl Fn(usize, &str) -> String,
    ) -> String {
        let shown = cells.iter().zip(columns).filter(|(_, column)| !column.is_hidden);
        let height = shown.map(|(cell, _)| cell.len()).max().unwrap_or(0).max(1);
        let mut text = String::new();
        for place in 0..height {
            let mut line = String::new();
            let shown = cells.iter().zip(columns).enumerate();
            for (number, (cell, column)) in shown.filter(|(_, (_, column))| !column.is_hidden) {
                let gap = if number == 0 { "" } else { GAP };
                let shown = cell.get(place).map_or("", String::as_str);
                let padding = " ".repeat(column.width.saturating_sub(measure_text_width(shown)));
                let shown = match self.colour && !shown.is_empty() {
                    true => colour(number, shown),
                    false => shown.to_owned(),
                };
                line.push_str(&format!("{gap}{shown}{padding}"));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// A cell without control characters: a task's text must not steer the terminal. No more of it than can be seen.
    fn plain(&self, cell: &str) -> String {
        let plain =
            cell.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
        plain.take(self.width.map_or(usize::MAX, |width| width * WRAPPED_LINES_MAX)).collect()
    }
}
