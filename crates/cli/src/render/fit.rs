//! Makes a table fit its terminal.
//!
//! Only as far as it must, in this order: headings go over several lines, moments lose their seconds and their year, columns that
//! say nothing in any row are left out, sentences and words go over several lines, the widest cells are cut and end with an
//! ellipsis. Headings stay whole while anything else can give way. The first column names its row, so that it is what one types
//! next; it is cut last of all. Widths are those of a terminal: a letter of Chinese takes two places.

use console::measure_text_width;

use super::table::GAP;

/// Narrower than this a column is not cut while others are wider.
const COLUMN_MIN: usize = 10;
/// Narrower than this no column is cut, as long as the table then fits.
const COLUMN_LEAST: usize = 6;
/// What is left of a column where nothing else makes the table fit: some letters and the ellipsis.
const COLUMN_BARE: usize = 3;
/// Cells with so many spaces are sentences.
const SENTENCE_SPACES: usize = 3;
/// A sentence gets no less than this.
const SENTENCE_MIN: usize = 20;
/// Most lines of one sentence; the rest is cut.
pub(super) const WRAPPED_LINES_MAX: usize = 6;

/// What can be done to the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// They may be cut.
    Plain,
    /// They go over several lines: the longest word is so wide.
    Words(usize),
    /// They go over several lines, each of some words.
    Prose,
    /// They are of no use when they are cut.
    Moments,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// Lines of its heading.
    pub(super) heading: Vec<String>,
    /// Places of a line.
    pub(super) width: usize,
    /// Left out, since it says nothing.
    pub(super) is_hidden: bool,
    kind: Kind,
}

impl Column {
    pub(super) fn new(heading: String) -> Column {
        Column { heading: vec![heading], width: 0, is_hidden: false, kind: Kind::Plain }
    }
}

/// How far `narrow` may go.
#[derive(Clone, Copy)]
struct Round {
    /// The first column that may give way.
    first: usize,
    plain_least: usize,
    prose_least: usize,
    /// Whether headings and moments stay whole.
    is_gentle: bool,
}

impl Round {
    /// No column gets narrower than this.
    fn least(self, column: &Column) -> usize {
        let heading = column.heading.iter().map(|line| measure_text_width(line)).max();
        let whole = if self.is_gentle { heading.unwrap_or(0) } else { 0 };
        match column.kind {
            Kind::Plain => self.plain_least.max(whole),
            Kind::Words(longest) => longest.clamp(COLUMN_LEAST, SENTENCE_MIN).max(whole),
            Kind::Prose => self.prose_least.max(whole),
            Kind::Moments if self.is_gentle => column.width,
            Kind::Moments => self.plain_least,
        }
    }
}

/// Gives every column its width; all together are no wider than `most`, where that can be had.
pub(super) fn fit(columns: &mut [Column], rows: &mut [Vec<String>], most: Option<usize>) {
    measure(columns, rows);
    let Some(most) = most else { return };
    if over(columns, most) == 0 {
        return;
    }
    // Rows that come later are lined up with earlier ones by spaces, where there is room for them, and need every column.
    let goes_on = rows.iter().flatten().any(|cell| cell.ends_with(' '));
    for cell in rows.iter_mut().flatten() {
        cell.truncate(cell.trim_end().len());
    }
    for column in columns.iter_mut() {
        column.heading = words(&column.heading);
    }
    measure(columns, rows);
    if over(columns, most) > 0 {
        for cell in rows.iter_mut().flatten() {
            if let Some(short) = short_moment(cell) {
                *cell = short;
            }
        }
        measure(columns, rows);
    }
    if over(columns, most) > 0 && !goes_on {
        for (number, column) in columns.iter_mut().enumerate().skip(1) {
            let says = |row: &Vec<String>| row.get(number).is_some_and(|cell| says_something(cell));
            column.is_hidden = !rows.is_empty() && !rows.iter().any(says);
        }
    }
    narrow(columns, most);
    for column in columns.iter_mut() {
        column.heading = heading_lines(&column.heading, column.width);
    }
}

fn says_something(cell: &str) -> bool {
    !matches!(cell, "" | "-")
}

/// The widths at which nothing is cut.
fn measure(columns: &mut [Column], rows: &[Vec<String>]) {
    for (number, column) in columns.iter_mut().enumerate() {
        let cells = || rows.iter().filter_map(|row| row.get(number));
        let all = column.heading.iter().chain(cells());
        column.width = all.map(|text| measure_text_width(text)).max().unwrap_or(0);
        column.kind = if number == 0 { Kind::Plain } else { kind(cells()) };
    }
}

fn kind<'a>(cells: impl Iterator<Item = &'a String> + Clone) -> Kind {
    let spaces = cells.clone().map(|cell| cell.matches(' ').count()).max().unwrap_or(0);
    let mut said = cells.clone().filter(|cell| says_something(cell)).peekable();
    if said.peek().is_some() && said.all(|cell| is_moment(cell)) {
        return Kind::Moments;
    }
    match spaces {
        0 => Kind::Plain,
        1..SENTENCE_SPACES => {
            let all = cells.flat_map(|cell| cell.split(' '));
            Kind::Words(all.map(measure_text_width).max().unwrap_or(0))
        }
        _ => Kind::Prose,
    }
}

/// How many places too wide.
fn over(columns: &[Column], most: usize) -> usize {
    let shown = || columns.iter().filter(|column| !column.is_hidden);
    let gaps = GAP.len() * shown().count().saturating_sub(1);
    (shown().map(|column| column.width).sum::<usize>() + gaps).saturating_sub(most)
}

/// Takes from the widest columns until all fit together.
fn narrow(columns: &mut [Column], most: usize) {
    let mut over = over(columns, most);
    let round = |first, plain_least, prose_least, is_gentle| Round {
        first,
        plain_least,
        prose_least,
        is_gentle,
    };
    let rounds = [
        round(1, COLUMN_MIN, SENTENCE_MIN, true),
        round(1, COLUMN_LEAST, COLUMN_MIN, true),
        round(1, COLUMN_LEAST, COLUMN_MIN, false),
        round(0, COLUMN_MIN, COLUMN_MIN, false),
        round(0, COLUMN_LEAST, COLUMN_LEAST, false),
        round(0, COLUMN_BARE, COLUMN_LEAST, false),
    ];
    for round in rounds {
        while over > 0 {
            let wide = columns.iter_mut().skip(round.first);
            let wide =
                wide.filter(|column| !column.is_hidden && column.width > round.least(column));
            // What has spaces first: it loses nothing by it.
            let goes_over = |column: &Column| matches!(column.kind, Kind::Prose | Kind::Words(_));
            let Some(widest) = wide.max_by_key(|column| (goes_over(column), column.width)) else {
                break;
            };
            widest.width -= 1;
            over -= 1;
        }
    }
}

/// A heading, one word to a line.
fn words(heading: &[String]) -> Vec<String> {
    let words = heading.iter().flat_map(|line| line.split(' '));
    // `CALLS/MIN` is two words.
    words.flat_map(|word| word.split_inclusive('/')).map(str::to_owned).collect()
}

/// As few lines for the words of a heading as its width allows.
fn heading_lines(words: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(last) => {
                let gap = if last.ends_with('/') { "" } else { " " };
                match measure_text_width(last) + gap.len() + measure_text_width(word) <= width {
                    true => last.push_str(&format!("{gap}{word}")),
                    false => lines.push(cut(word, width)),
                }
            }
            None => lines.push(cut(word, width)),
        }
    }
    lines
}

/// Letters of a moment; a zero stands for any digit.
const MOMENT: &str = "0000-00-00 00:00:00";
const MOMENT_SHORT: &str = "00-00 00:00";

fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(letter, shape): (u8, u8)| match shape {
        b'0' => letter.is_ascii_digit(),
        b' ' => matches!(letter, b' ' | b'T'),
        other => letter == other,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

fn is_moment(cell: &str) -> bool {
    has_shape(cell, MOMENT_SHORT) || short_moment(cell).is_some()
}

/// `2026-11-17 06:00:18.123` as `11-17 06:00`; none if it is no moment.
fn short_moment(cell: &str) -> Option<String> {
    let (front, fraction) = cell.split_at_checked(MOMENT.len())?;
    let is_moment = has_shape(front, MOMENT)
        && fraction.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'.' | b'Z'));
    is_moment.then(|| format!("{} {}", &front[5..10], &front[11..16]))
}

/// The lines of a cell: what has spaces goes over several, anything else is cut.
pub(super) fn lines(cell: &str, column: &Column) -> Vec<String> {
    let goes_over = matches!(column.kind, Kind::Prose | Kind::Words(_));
    if measure_text_width(cell) <= column.width || !goes_over {
        return vec![cut(cell, column.width)];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut rest: Vec<&str> = cell.split(' ').rev().collect();
    while let Some(word) = rest.pop() {
        let room =
            |line: &str| measure_text_width(line) + 1 + measure_text_width(word) <= column.width;
        if lines.len() == WRAPPED_LINES_MAX
            && let Some(last) = lines.last_mut()
            && !room(last)
        {
            *last = cut(&format!("{last} {word}"), column.width.min(measure_text_width(last) + 1));
            break;
        }
        match lines.last_mut() {
            Some(last) if room(last) => {
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
    if measure_text_width(cell) <= width {
        return cell.to_owned();
    }
    let mut kept = String::new();
    let mut left = width.saturating_sub(1);
    for letter in cell.chars() {
        let wide = measure_text_width(letter.encode_utf8(&mut [0; 4]));
        if wide > left {
            break;
        }
        left -= wide;
        kept.push(letter);
    }
    kept + "\u{2026}"
}

#[cfg(test)]
#[path = "fit_test.rs"]
mod tests;
