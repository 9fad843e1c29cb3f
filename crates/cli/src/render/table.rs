//! For people: columns with headings, two spaces apart.

use super::{Document, Grid, Renderer};
use crate::failure::Failure;

pub(super) struct Table;

impl Renderer for Table {
    fn render(&self, document: &dyn Document) -> Result<String, Failure> {
        let grids: Vec<String> = document.grids().iter().map(|grid| draw(grid, true)).collect();
        Ok(grids.join("\n"))
    }

    fn render_more(&self, document: &dyn Document) -> Result<String, Failure> {
        Ok(document.grids().iter().map(|grid| draw(grid, false)).collect())
    }
}

fn draw(grid: &Grid, with_headings: bool) -> String {
    let mut rows = vec![grid.headings.iter().map(|heading| heading.to_uppercase()).collect()];
    rows.extend(grid.rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row: &Vec<String>| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..grid.headings.len()).map(width).collect();
    let mut text = String::new();
    for row in rows.iter().skip(usize::from(!with_headings)) {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A cell without control characters: a task's text must not steer the terminal.
fn plain(cell: &str) -> String {
    cell.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
