//! For people: columns with headings, two spaces apart.
//!
//! On a terminal a table is as wide as that: the widest cells are cut, and end with an ellipsis. Whole values are in JSON, with
//! `--wide`, and wherever the output is no terminal. There, too, nothing is coloured.

use super::paint::{paint, paint_heading};
use super::{Document, Grid, Renderer};
use crate::failure::Failure;

/// Narrower than this no column is cut.
const COLUMN_MIN: usize = 10;
/// Between columns.
const GAP: &str = "  ";

/// What the place where tables go is like.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Table {
    /// Columns of the terminal; absent where nothing is cut.
    pub(super) width: Option<usize>,
    /// Whether states are coloured.
    pub(super) colour: bool,
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
            vec![grid.headings.iter().map(|heading| heading.to_uppercase()).collect()];
        rows.extend(grid.rows.iter().map(|row| row.iter().map(|cell| self.plain(cell)).collect()));
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row: &Vec<String>| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..grid.headings.len()).map(width).collect();
        if let Some(most) = self.width {
            fit(&mut widths, most);
        }
        let mut text = String::new();
        for (place, row) in rows.iter().enumerate().skip(usize::from(!with_headings)) {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { GAP };
                let shown = cut(cell, *width);
                let padding = " ".repeat(width.saturating_sub(shown.chars().count()));
                let shown = match (self.colour, place) {
                    (false, _) => shown,
                    (true, 0) => paint_heading(&shown),
                    (true, _) => paint(grid.headings[column], row, &shown),
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
        plain.take(self.width.map_or(usize::MAX, |width| width + 1)).collect()
    }
}

/// Takes from the widest columns until all fit together. The first names its row and is cut last; what is narrow stays.
fn fit(widths: &mut [usize], most: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
    for first in [1, 0] {
        while over > 0 {
            let columns = widths.iter_mut().skip(first).filter(|width| **width > COLUMN_MIN);
            let Some(widest) = columns.max() else { break };
            *widest -= 1;
            over -= 1;
        }
    }
}

/// As much of a cell as fits.
fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    kept + "\u{2026}"
}
