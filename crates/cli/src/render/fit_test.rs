//! Tables on terminals from wide to hopeless: what gives way, and in which order.

use super::*;

fn fitted(headings: &[&str], row: &[&str], most: usize) -> (Vec<Column>, Vec<String>) {
    let (columns, mut rows) = fitted_all(headings, &[row], most);
    (columns, rows.remove(0))
}

fn fitted_all(headings: &[&str], rows: &[&[&str]], most: usize) -> (Vec<Column>, Vec<Vec<String>>) {
    let mut columns: Vec<Column> =
        headings.iter().map(|heading| Column::new((*heading).to_owned())).collect();
    let own = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = rows.iter().map(own).collect();
    fit(&mut columns, &mut rows, Some(most));
    (columns, rows)
}

#[test]
fn a_name_is_whole_while_anything_else_can_be_narrower() {
    let headings = ["ID", "STATUS", "TASKS DONE", "CREATED", "ASSIGNMENT"];
    let row = ["1VwQFqCM5mieNCllkEekkB", "done", "4/4", "2026-11-17T06:00:18.123Z", "not_assigned"];
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
fn what_no_row_says_is_left_out_before_anything_is_cut() {
    let headings =
        ["ID", "NAME", "STATUS", "ASSIGNMENT", "TASKS DONE", "CREATED", "TOOK", "REASON"];
    let row = |id, name, reason| {
        [id, name, "done", "not_assigned", "3/3", "2026-11-19 05:08:47.545", "84 ms", reason]
    };
    let (one, other) = (row("7MzQ7Fpw3L7pPj3ZtKqKJf", "-", "-"), row("1kd8", "-", "-"));
    let (columns, rows) = fitted_all(&headings, &[&one, &other], 80);
    let hidden: Vec<bool> = columns.iter().map(|column| column.is_hidden).collect();
    assert_eq!(hidden, [false, true, false, false, false, false, false, true]);
    assert_eq!(rows[0][5], "11-19 05:08");
    assert!(columns.iter().zip(&one).all(|(column, cell)| column.width >= cell.len().min(11)));
    assert_eq!(over(&columns, 80), 0);
    let (columns, _) = fitted_all(&headings, &[&one, &row("1kd8", "words", "-")], 80);
    assert!(!columns[1].is_hidden && columns[7].is_hidden, "one row says something");
    let (columns, _) = fitted_all(&headings, &[&one], 140);
    assert!(columns.iter().all(|column| !column.is_hidden), "there is room for all");
    // Rows that come later are lined up with these, and may say more.
    let (columns, _) = fitted_all(&["A", "B"], &[&["word  ", "-"]], 3);
    assert!(!columns[1].is_hidden);
}

#[test]
fn headings_are_as_wide_as_their_columns() {
    let headings = ["NODE", "ADDRESS", "LINK", "PART", "LEADS", "CPU", "CALLS/MIN", "SHED/MIN"];
    let row = ["580547969319", "127.0.0.1:24000", "up", "voter", "4", "100%", "45", "0"];
    for most in [74, 66, 60, 50, 44] {
        let (columns, _) = fitted(&headings, &row, most);
        for column in &columns {
            let widest = column.heading.iter().map(|line| measure_text_width(line)).max();
            assert!(widest <= Some(column.width), "{most}: {column:?}");
        }
        assert_eq!(over(&columns, most), 0, "{most}");
    }
    let (columns, _) = fitted(&headings, &row, 66);
    assert_eq!(columns[6].heading, ["CALLS/", "MIN"]);
    // A heading whose column is wide anyway stays on its line.
    let long = "a sentence of many words that goes over several lines";
    let (columns, _) = fitted(&["STATE", "IN WORDS"], &["ready", long], 40);
    assert_eq!(columns[1].heading, ["IN WORDS"]);
}

#[test]
fn two_words_go_over_two_lines_and_moments_stay_whole() {
    let headings = ["SEQUENCE", "TIME (UTC)", "ROLE", "LEADER", "REASON"];
    let row = ["4", "2026-11-19 05:08:23.648", "leader", "580547969319", "leadership transferred"];
    let (columns, shown) = fitted(&headings, &row, 56);
    assert_eq!((shown[1].as_str(), columns[1].width), ("11-19 05:08", 11));
    assert_eq!(lines(&shown[4], &columns[4]), ["leadership", "transferred"]);
    assert_eq!(over(&columns, 56), 0);
}

#[test]
fn letters_that_take_two_places_count_as_two() {
    let (columns, _) = fitted(&["ID", "PAYLOAD"], &["一筏", "筏筏筏筏筏筏筏筏筏筏"], 20);
    assert_eq!((columns[0].width, columns[1].width), (4, 14));
    assert_eq!(lines("筏筏筏筏筏筏筏筏筏筏", &columns[1]), ["筏筏筏筏筏筏\u{2026}"]);
}

#[test]
fn a_sentence_goes_over_several_lines_and_loses_no_word() {
    let said = "no worker with a free slot has asked for tasks of this queue in the last minute";
    let (columns, row) = fitted(&["STATE", "IN WORDS"], &["ready", said], 40);
    let lines = lines(&row[1], &columns[1]);
    assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 33), "{lines:?}");
    assert_eq!(lines.join(" "), said);
    let endless = "word ".repeat(500);
    let (columns, row) = fitted(&["STATE", "IN WORDS"], &["ready", endless.trim()], 40);
    let lines = super::lines(&row[1], &columns[1]);
    assert_eq!(lines.len(), WRAPPED_LINES_MAX);
    assert!(
        lines.last().is_some_and(|line| line.ends_with('\u{2026}') && line.chars().count() <= 33),
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
