//! Remembers how far one reader has been told, and tells it the rest.
//!
//! Promises: each byte of a log is told once and in order, or is named as a gap with the reason; lines are whole while
//! more may come; whoever has heard an event has heard all that was written before the time in its id.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::channel::Sender;
use ikada_api::state::ObjectVersion;
use ikada_api::state::limits::OBJECT_CHUNK_BYTES;
use ikada_api::v1::{LogEnd, LogGap, LogText};

use super::look::{Found, LOGS_MAX, Logs, Subject};
use crate::http::door::Door;

/// A reader that takes nothing for this long is cut off.
const READER_PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of a log in one event.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// A piece of a log that could not be read this often is told as a gap.
const FAILURES_MAX: u32 = 20;

/// The reader has gone.
#[derive(Debug)]
pub(super) struct Left;

/// How words look on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Events, for programs.
    Events,
    /// Lines that begin with the task's name, for people.
    Lines,
}

/// One reader.
pub(super) struct Teller {
    subject: Subject,
    shape: Shape,
    /// Logs that were written before this time are known to the reader.
    since_ms: u64,
    sender: Sender<Bytes, Infallible>,
    /// How far each log was told, by task and attempt.
    told: BTreeMap<(String, u16), u64>,
    /// How often the next piece of a log could not be read.
    failures: BTreeMap<(String, u16), u32>,
    /// When logs were written that could not be told to their end yet.
    behind: BTreeMap<(String, u16), u64>,
    told_of_more: bool,
}

impl Teller {
    pub(super) fn new(
        subject: Subject,
        shape: Shape,
        since_ms: u64,
        sender: Sender<Bytes, Infallible>,
    ) -> Teller {
        let (told, failures, behind, told_of_more) = Default::default();
        Teller { subject, shape, since_ms, sender, told, failures, behind, told_of_more }
    }

    /// Tells what is new in these logs; says whether anything was. With `all` also lines without an end.
    pub(super) async fn tell<D: Door>(
        &mut self,
        door: &D,
        logs: &Logs,
        all: bool,
    ) -> Result<bool, Left> {
        let mut news = false;
        let mut order: Vec<(&Found, &ObjectVersion)> =
            logs.found.iter().filter_map(|found| Some((found, found.newest()?))).collect();
        if self.shape == Shape::Events {
            order.sort_by_key(|(_, newest)| newest.created_ms);
        }
        for (found, newest) in order {
            let key = (found.task.clone(), found.attempt);
            let from = self.told.get(&key).copied().unwrap_or(0);
            if newest.size <= from || newest.created_ms < self.since_ms {
                continue;
            }
            match fetch(door, newest, from).await {
                Ok(bytes) => news |= self.tell_bytes(found, newest, from, &bytes, all).await?,
                Err(reason) => {
                    let failed = self.failures.entry(key.clone()).or_default();
                    *failed += 1;
                    if *failed < FAILURES_MAX && !all {
                        self.behind.entry(key).or_insert(newest.created_ms);
                        continue;
                    }
                    let gap = LogGap {
                        task: Some(found.task.clone()),
                        attempt: Some(found.attempt),
                        offset: Some(from),
                        bytes: Some(newest.size - from),
                        reason,
                    };
                    self.behind.remove(&key);
                    self.told.insert(key, newest.size);
                    self.gap(&gap).await?;
                    news = true;
                }
            }
        }
        if logs.more && !self.told_of_more {
            self.told_of_more = true;
            let reason = format!("there are more than {LOGS_MAX} logs; ask for those of a task");
            let (task, attempt, offset, bytes) = (None, None, None, None);
            self.gap(&LogGap { task, attempt, offset, bytes, reason }).await?;
        }
        Ok(news)
    }

    async fn tell_bytes(
        &mut self,
        found: &Found,
        newest: &ObjectVersion,
        from: u64,
        bytes: &[u8],
        all: bool,
    ) -> Result<bool, Left> {
        let end = match all {
            true => bytes.len(),
            false => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1),
        };
        let key = (found.task.clone(), found.attempt);
        self.failures.remove(&key);
        match end == bytes.len() {
            true => drop(self.behind.remove(&key)),
            false => drop(self.behind.entry(key.clone()).or_insert(newest.created_ms)),
        }
        let heard_ms = self.behind.values().copied().fold(newest.created_ms, u64::min);
        let mut offset = from;
        let mut is_within = false;
        for part in parts(&bytes[..end]) {
            let is_last = offset + part.len() as u64 == from + end as u64;
            let text = match self.shape {
                Shape::Events => event(found, heard_ms, offset, part),
                Shape::Lines => {
                    let task = self.subject.shorten(&found.task);
                    lines(task, found.attempt, part, is_within, is_last)
                }
            };
            is_within = !part.ends_with(b"\n");
            self.say(text).await?;
            offset += part.len() as u64;
            self.told.insert(key.clone(), offset);
        }
        Ok(offset > from)
    }

    /// Tells that what some tasks said went with them, before this reader came.
    pub(super) async fn tell_forgotten(&mut self, tasks: u64) -> Result<(), Left> {
        let reason = format!(
            "{tasks} of its tasks were retained away, and what they said with them; \
             `ikada queue set --retention-count` keeps more"
        );
        let (task, attempt, offset, bytes) = (None, None, None, None);
        self.gap(&LogGap { task, attempt, offset, bytes, reason }).await
    }

    async fn gap(&mut self, gap: &LogGap) -> Result<(), Left> {
        let text = match self.shape {
            Shape::Events => format!("event: gap\ndata: {}\n\n", json(gap)),
            Shape::Lines => {
                let whose = gap.task.as_deref().map_or("", |task| self.subject.shorten(task));
                format!("{whose}: [a part is missing: {}]\n", gap.reason)
            }
        };
        self.say(text.into_bytes()).await
    }

    /// Says that nothing more will come.
    pub(super) async fn end(&mut self, state: &str) -> Result<(), Left> {
        match self.shape {
            Shape::Events => {
                let end = json(&LogEnd { state: state.to_owned() });
                self.say(format!("event: end\ndata: {end}\n\n").into_bytes()).await
            }
            Shape::Lines => Ok(()),
        }
    }

    /// Says something that is no event, so that both sides know of each other.
    pub(super) async fn comment(&mut self, words: &str) -> Result<(), Left> {
        match self.shape {
            Shape::Events => self.say(format!(": {words}\n\n").into_bytes()).await,
            Shape::Lines => Ok(()),
        }
    }

    async fn say(&mut self, text: Vec<u8>) -> Result<(), Left> {
        let sent = self.sender.send_data(Bytes::from(text));
        match tokio::time::timeout(READER_PATIENCE, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Left),
        }
    }
}

/// The bytes of a log from a place on.
async fn fetch<D: Door>(door: &D, newest: &ObjectVersion, from: u64) -> Result<Vec<u8>, String> {
    let (first, skip) = ((from / OBJECT_CHUNK_BYTES) as usize, from % OBJECT_CHUNK_BYTES);
    let mut bytes = Vec::new();
    for piece in newest.chunks.iter().skip(first) {
        // Not worth a place in memory: the next version of the log is another piece.
        let piece = door.shelf().fetch(*piece, false).await.map_err(|error| error.to_string())?;
        bytes.extend_from_slice(&piece);
    }
    bytes.drain(..(skip as usize).min(bytes.len()));
    Ok(bytes)
}

/// Bounded parts that end with a line where they can.
fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while bytes.len() > TEXT_BYTES_MAX {
        let window = &bytes[..TEXT_BYTES_MAX];
        let end = window.iter().rposition(|byte| *byte == b'\n');
        let (part, rest) = bytes.split_at(end.map_or(TEXT_BYTES_MAX, |last| last + 1));
        parts.push(part);
        bytes = rest;
    }
    if !bytes.is_empty() {
        parts.push(bytes);
    }
    parts
}

fn event(found: &Found, heard_ms: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
    let text_base64 = text.is_none().then(|| STANDARD.encode(bytes));
    let (task, attempt) = (found.task.clone(), found.attempt);
    let data = json(&LogText { task, attempt, offset, text, text_base64 });
    format!("id: {heard_ms}\nevent: log\ndata: {data}\n\n").into_bytes()
}

/// Every line with the name of its task, and its attempt unless that is the first. A line that is longer than a part stays
/// one line: what is within it bears no name, and only the last part ends it.
fn lines(task: &str, attempt: u16, bytes: &[u8], is_within: bool, is_last: bool) -> Vec<u8> {
    let name = match attempt {
        1 => format!("{task}: "),
        _ => format!("{task}/{attempt}: "),
    };
    let mut text = Vec::with_capacity(bytes.len() + name.len());
    for (place, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if place > 0 || !is_within {
            text.extend_from_slice(name.as_bytes());
        }
        text.extend_from_slice(line);
    }
    if is_last && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_lines_and_lose_nothing() {
        let mut text = Vec::new();
        for number in 0..30_000 {
            text.extend_from_slice(format!("line {number}\n").as_bytes());
        }
        text.extend(vec![b'x'; TEXT_BYTES_MAX + 7]);
        let parts = parts(&text);
        assert_eq!(parts.concat(), text);
        assert!(parts.iter().all(|part| part.len() <= TEXT_BYTES_MAX));
        assert!(parts[0].ends_with(b"\n") && parts.len() > 5);
    }

    #[test]
    fn lines_bear_the_name_of_their_task() {
        let told = lines("map.3", 1, b"one\ntwo", false, true);
        assert_eq!(told, b"map.3: one\nmap.3: two\n");
        assert_eq!(lines("map.3", 2, b"\n", false, true), b"map.3/2: \n");
    }

    #[test]
    fn a_line_longer_than_a_part_stays_one_line() {
        let mut text = vec![b'x'; 3 * TEXT_BYTES_MAX];
        text.extend_from_slice(b"\nnext\n");
        let (mut told, mut is_within, count) = (Vec::new(), false, parts(&text).len());
        for (place, part) in parts(&text).into_iter().enumerate() {
            told.extend(lines("map.3", 1, part, is_within, place + 1 == count));
            is_within = !part.ends_with(b"\n");
        }
        let told = String::from_utf8(told).unwrap();
        assert_eq!(told.matches("map.3: ").count(), 2);
        assert_eq!(told.lines().count(), 2);
    }
}
