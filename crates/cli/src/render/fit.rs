//! Makes a table fit its terminal.
//!
//! Only as far as it must, in this order: headings go over several lines, moments lose their seconds and their year, sentences
//! go over several lines, the widest cells are cut and end with an ellipsis. The first column names its row, so that it is
//! what one types next; it is cut last of all.

use super::table::GAP;

/// Narrower than this a column is not cut while others are wider.
const COLUMN_MIN: usize = 10;
/// Narrower than this no column is cut at all.
const COLUMN_LEAST: usize = 6;
/// Cells with so many spaces are sentences.
const SENTENCE_SPACES: usize = 3;
/// A sentence gets no less than this.
const SENTENCE_MIN: usize = 20;
/// Most lines of one sentence; the rest is cut.
pub(super) const WRAPPED_LINES_MAX: usize = 6;

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// Lines of its heading.
    pub(super) heading: Vec<String>,
    /// Letters of a line.
    pub(super) width: usize,
    /// Whether it holds sentences.
    is_prose: bool,
}

impl Column {
    pub(super) fn new(heading: String) -> Column {
        Column { heading: vec![heading], width: 0, is_prose: false }
    }
}

/// Gives every column its width; all together are no wider than `most`, where that can be had.
pub(super) fn fit(columns: &mut [Column], rows: &mut [Vec<String>], most: Option<usize>) {
    measure(columns, rows);
    let Some(most) = most else { return };
    if over(columns, most) > 0 {
        for column in columns.iter_mut() {
            column.heading = words(&column.heading);
        }
        // Rows that come later are lined up with earlier ones by spaces, where there is room for them.
        for cell in rows.iter_mut().flatten() {
            cell.truncate(cell.trim_end().len());
        }
        measure(columns, rows);
    }
    if over(columns, most) > 0 {
        for cell in rows.iter_mut().flatten() {
            if let Some(short) = short_moment(cell) {
                *cell = short;
            }
        }
        measure(columns, rows);
    }
    narrow(columns, most);
}

/// The widths at which nothing is cut.
fn measure(columns: &mut [Column], rows: &[Vec<String>]) {
    for (number, column) in columns.iter_mut().enumerate() {
        let cells = || rows.iter().filter_map(|row| row.get(number));
        let all = column.heading.iter().chain(cells());
        column.width = all.map(|text| text.chars().count()).max().unwrap_or(0);
        let spaces = |cell: &String| cell.matches(' ').count();
        column.is_prose = number > 0 && cells().map(spaces).max() >= Some(SENTENCE_SPACES);
    }
}

/// How many letters too wide.
fn over(columns: &[Column], most: usize) -> usize {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    (columns.iter().map(|column| column.width).sum::<usize>() + gaps).saturating_sub(most)
}

/// Takes from the widest columns until all fit together.
fn narrow(columns: &mut [Column], most: usize) {
    let mut over = over(columns, most);
    let rounds =
        [(1, COLUMN_MIN, SENTENCE_MIN), (1, COLUMN_LEAST, COLUMN_MIN), (0, COLUMN_MIN, COLUMN_MIN)];
    for (first, least, prose_least) in rounds {
        while over > 0 {
            let least = |column: &Column| if column.is_prose { prose_least } else { least };
            let wide = columns.iter_mut().skip(first).filter(|column| column.width > least(column));
            // Sentences first: they lose nothing by it.
            let Some(widest) = wide.max_by_key(|column| (column.is_prose, column.width)) else {
                break;
            };
            widest.width -= 1;
            over -= 1;
        }
    }
}

/// A heading, one word to a line.
fn words(heading: &[String]) -> Vec<String> {
    heading.iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect()
}

/// `2026-11-17 06:00:18.123` as `11-17 06:00`; none if it is no moment.
fn short_moment(cell: &str) -> Option<String> {
    let shape = "0000-00-00 00:00:00";
    let fits = |(letter, shape): (u8, u8)| match shape {
        b'0' => letter.is_ascii_digit(),
        b' ' => matches!(letter, b' ' | b'T'),
        other => letter == other,
    };
    let (front, fraction) = cell.split_at_checked(shape.len())?;
    let is_moment = front.bytes().zip(shape.bytes()).all(fits)
        && fraction.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'.' | b'Z'));
    is_moment.then(|| format!("{} {}", &front[5..10], &front[11..16]))
}

/// The lines of a cell: a sentence goes over several, anything else is cut.
pub(super) fn lines(cell: &str, column: &Column) -> Vec<String> {
    if cell.chars().count() <= column.width || !column.is_prose {
        return vec![cut(cell, column.width)];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut rest: Vec<&str> = cell.split(' ').rev().collect();
    while let Some(word) = rest.pop() {
        if lines.len() == WRAPPED_LINES_MAX
            && let Some(last) = lines.last_mut()
            && last.chars().count() + 1 + word.chars().count() > column.width
        {
            *last = cut(&format!("{last} {word}"), column.width.min(last.chars().count() + 1));
            break;
        }
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= column.width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(cut(word, column.width)),
        }
    }
    lines
}

/// As much of a cell as fits.
fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    kept + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(headings: &[&str], row: &[&str], most: usize) -> (Vec<Column>, Vec<String>) {
        let mut columns: Vec<Column> =
            headings.iter().map(|heading| Column::new((*heading).to_owned())).collect();
        let mut rows = vec![row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
        fit(&mut columns, &mut rows, Some(most));
        (columns, rows.remove(0))
    }

    #[test]
    fn a_name_is_whole_while_anything_else_can_be_narrower() {
        let headings = ["ID", "STATUS", "TASKS DONE", "CREATED", "ASSIGNMENT"];
        let row =
            ["1VwQFqCM5mieNCllkEekkB", "done", "4/4", "2026-11-17T06:00:18.123Z", "not_assigned"];
        let (wide, same) = fitted(&headings, &row, 120);
        assert_eq!(
            (wide[2].heading.len(), same[3].as_str()),
            (1, row[3]),
            "nothing is changed that fits"
        );
        let (columns, shown) = fitted(&headings, &row, 66);
        assert_eq!(columns[0].width, 22);
        assert_eq!(
            (columns[2].heading.as_slice(), shown[3].as_str()),
            (&["TASKS".to_owned(), "DONE".to_owned()][..], "11-17 06:00")
        );
        assert_eq!(over(&columns, 66), 0);
        let (columns, _) = fitted(&headings, &row, 54);
        assert_eq!((columns[0].width, over(&columns, 54)), (22, 0), "others are cut first");
    }

    #[test]
    fn a_sentence_goes_over_several_lines_and_loses_no_word() {
        let said =
            "no worker with a free slot has asked for tasks of this queue in the last minute";
        let (columns, row) = fitted(&["STATE", "IN WORDS"], &["ready", said], 40);
        let lines = lines(&row[1], &columns[1]);
        assert!(
            lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 33),
            "{lines:?}"
        );
        assert_eq!(lines.join(" "), said);
        let endless = "word ".repeat(500);
        let (columns, row) = fitted(&["STATE", "IN WORDS"], &["ready", endless.trim()], 40);
        let lines = super::lines(&row[1], &columns[1]);
        assert_eq!(lines.len(), WRAPPED_LINES_MAX);
        assert!(
            lines
                .last()
                .is_some_and(|line| line.ends_with('\u{2026}') && line.chars().count() <= 33),
            "{lines:?}"
        );
    }

    #[test]
    fn only_moments_are_taken_for_moments() {
        for moment in ["2026-11-17T06:00:18Z", "2026-11-17 06:00:18.123"] {
            assert_eq!(short_moment(moment).as_deref(), Some("11-17 06:00"));
        }
        for other in ["2026-11-17", "2026-11-17T06:00:18+01:00", "2026-xx-17T06:00:18Z", "", "-"] {
            assert_eq!(short_moment(other), None, "{other}");
        }
    }
}
