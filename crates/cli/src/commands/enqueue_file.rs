//! `ikada task enqueue --file`: tasks as lines of JSON, in parts.
//!
//! Promise: each line has an outcome of its own, and a bad one spoils no other. At most one part is in memory, however long
//! the file is. Parts have request ids that follow from the given one and from the file, so that repeating the command with
//! the same file submits only what is missing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use ikada_api::client::unique_key;
use ikada_api::v1::{EnqueueAnswer, ItemOutcome, NewTask, OutcomeKind};
use ikada_api::{Client, Problem};

use crate::args::EnqueueArgs;
use crate::failure::Failure;
use crate::render::{Screen, counter};

/// Lines of one part.
const PART_LINES_MAX: usize = 1_000;
/// Bytes of one part: half of what a request may have.
const PART_BYTES_MAX: usize = 4 << 20;
/// Longest line: a payload of the largest size in base64, and its settings.
const LINE_BYTES_MAX: usize = 2 << 20;

/// A line that was read.
struct Line {
    number: usize,
    task: Result<NewTask, Problem>,
}

/// What became of the file so far.
#[derive(Default)]
struct Sums {
    taken: u64,
    refused: u64,
    open: u64,
    first: Option<Problem>,
}

pub(super) async fn enqueue_file(
    client: &Client,
    args: &EnqueueArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let path = args.file.as_deref().unwrap_or("-");
    let failed = |error: std::io::Error| Failure::failed(format!("task file {path}: {error}"));
    let source: Box<dyn Read> = match path {
        "-" => Box::new(std::io::stdin()),
        path => Box::new(File::open(path).map_err(failed)?),
    };
    let key = args.idempotency_key.clone().unwrap_or_else(unique_key);
    let mut lines = Lines { source: BufReader::new(source), number: 0 };
    let (bar, mut sums) = (counter("tasks"), Sums::default());
    for part in 0.. {
        let read = lines.part(&args.settings.queue).map_err(failed)?;
        if read.is_empty() {
            break;
        }
        let answer = send(client, &format!("{key}-{part}"), read).await;
        let answer = answer.map_err(|failure| resumable(failure, &key))?;
        bar.inc(answer.tasks.len() as u64);
        sums.add(&answer);
        match part {
            0 => bar.suspend(|| screen.show(&answer))?,
            _ => bar.suspend(|| screen.show_more(&answer))?,
        }
    }
    bar.finish_and_clear();
    sums.verdict(&key)
}

/// How to go on after an end in the middle of a file.
fn resumable(failure: Failure, key: &str) -> Failure {
    match failure {
        Failure::Unavailable { message, .. } => {
            Failure::Unavailable { message, next: repeat_advice(key) }
        }
        other => other,
    }
}

fn repeat_advice(key: &str) -> String {
    format!(
        "repeat the command with the same file and --idempotency-key {key}: nothing is taken twice"
    )
}

/// Sends the good lines of a part; the outcomes are in the order of its lines.
async fn send(client: &Client, key: &str, part: Vec<Line>) -> Result<EnqueueAnswer, Failure> {
    let good: Vec<NewTask> =
        part.iter().filter_map(|line| line.task.as_ref().ok().cloned()).collect();
    let answer = match good.is_empty() {
        true => EnqueueAnswer { request: key.to_owned(), tasks: Vec::new() },
        false => client.enqueue_as(key, good).await?,
    };
    let mut outcomes = answer.tasks.into_iter();
    let tasks = part.into_iter().filter_map(|line| match line.task {
        Ok(_) => outcomes.next(),
        Err(problem) => Some(refused(line.number, problem)),
    });
    Ok(EnqueueAnswer { request: answer.request, tasks: tasks.collect() })
}

fn refused(number: usize, problem: Problem) -> ItemOutcome {
    ItemOutcome {
        id: format!("line {number}"),
        outcome: OutcomeKind::Refused,
        lsn: None,
        ttl_ms: None,
        retry_at_ms: None,
        problem: Some(Box::new(problem)),
    }
}

struct Lines<R> {
    source: BufReader<R>,
    number: usize,
}

impl<R: Read> Lines<R> {
    /// The lines of the next part; none at the end of the file.
    fn part(&mut self, queue: &str) -> std::io::Result<Vec<Line>> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while part.len() < PART_LINES_MAX && bytes < PART_BYTES_MAX {
            let mut text = Vec::new();
            let most = LINE_BYTES_MAX as u64 + 1;
            if self.source.by_ref().take(most).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            self.number += 1;
            bytes += text.len();
            if text.len() > LINE_BYTES_MAX && text.last() != Some(&b'\n') {
                self.skip_line()?;
                part.push(Line { number: self.number, task: Err(too_long(self.number)) });
            } else if !text.trim_ascii().is_empty() {
                let task = read_task(self.number, &text, queue);
                part.push(Line { number: self.number, task });
            }
        }
        Ok(part)
    }

    /// Reads to the end of a line and keeps nothing of it.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let held = self.source.fill_buf()?;
            let end = held.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(held.len(), |end| end + 1);
            self.source.consume(count);
            if end.is_some() || count == 0 {
                return Ok(());
            }
        }
    }
}

fn too_long(number: usize) -> Problem {
    let detail = format!("line {number} is longer than {LINE_BYTES_MAX} bytes");
    Problem::new(413, "too_large", "bad line", detail)
}

fn read_task(number: usize, text: &[u8], queue: &str) -> Result<NewTask, Problem> {
    let task: NewTask = serde_json::from_slice(text).map_err(|error| {
        Problem::new(400, "bad_json", "bad line", format!("line {number}: {error}"))
    })?;
    Ok(NewTask { queue: task.queue.or_else(|| Some(queue.to_owned())), ..task })
}

impl Sums {
    fn add(&mut self, answer: &EnqueueAnswer) {
        for item in &answer.tasks {
            match (item.outcome.is_settled(), &item.problem) {
                (true, None) => self.taken += 1,
                (true, Some(problem)) => {
                    self.refused += 1;
                    self.first.get_or_insert_with(|| (**problem).clone());
                }
                (false, _) => self.open += 1,
            }
        }
    }

    fn verdict(self, key: &str) -> Result<(), Failure> {
        let Sums { taken, refused, open, first } = self;
        let all = taken + refused + open;
        if open > 0 {
            return Err(Failure::Unavailable {
                message: format!("of {all} tasks {open} may or may not have been taken"),
                next: repeat_advice(key),
            });
        }
        match first {
            Some(problem) => Err(Failure::Refused {
                message: format!("{refused} of {all} tasks were refused, the first with {problem}"),
                next: Some(
                    "mend these lines and send them alone: the others were taken".to_owned(),
                ),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Line> {
        let mut lines = Lines { source: BufReader::new(text.as_bytes()), number: 0 };
        let mut all = Vec::new();
        loop {
            let part = lines.part("q").unwrap();
            if part.is_empty() {
                return all;
            }
            assert!(part.len() <= PART_LINES_MAX);
            all.extend(part);
        }
    }

    #[test]
    fn bad_lines_are_told_by_their_number_and_spoil_no_other() {
        let long = format!("{{\"id\": \"{}\"}}", "x".repeat(LINE_BYTES_MAX));
        let text = format!("{{\"id\": \"a\"}}\n\n{{\"ID\": 1}}\n{long}\n{{\"queue\": \"z\"}}");
        let lines = read(&text);
        let numbers: Vec<usize> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 3, 4, 5]);
        let codes: Vec<Option<&str>> =
            lines.iter().map(|line| line.task.as_ref().err().map(|bad| &*bad.code)).collect();
        assert_eq!(codes, [None, Some("bad_json"), Some("too_large"), None]);
        let queue = |line: &Line| line.task.as_ref().unwrap().queue.clone();
        assert_eq!(queue(&lines[0]).as_deref(), Some("q"), "the default");
        assert_eq!(queue(&lines[3]).as_deref(), Some("z"), "its own");
    }

    #[test]
    fn a_long_file_comes_in_parts() {
        let text = "{}\n".repeat(PART_LINES_MAX * 2 + 1);
        assert_eq!(read(&text).len(), PART_LINES_MAX * 2 + 1);
    }
}
