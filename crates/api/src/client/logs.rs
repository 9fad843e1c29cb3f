//! What attempts have said: as it is now, or as it comes.
//!
//! Promises of a stream: what one node has told and another tells again is heard once; what cannot be told is
//! [`LogWord::Gap`], never left out in silence.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::feed::Feed;
use super::url::{escape, with_query};
use super::{Client, Error, GetOptions};
use crate::v1::{LogEnd, LogGap, LogText};

/// The bucket of logs.
const BUCKET: &str = "logs";

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Which attempt.
    pub attempt: u16,
    /// The bytes from the place asked for.
    pub bytes: Vec<u8>,
}

impl Client {
    /// What an attempt has said, from this byte on; the newest attempt that has said anything when none is named.
    /// Nothing if there is no such log.
    pub async fn task_log(
        &self,
        id: &str,
        attempt: Option<u16>,
        from: u64,
    ) -> Result<Option<LogPart>, Error> {
        let prefix = format!("{id}/");
        let page = self.objects(BUCKET, &prefix, None, false).await?;
        let logs = page.objects.iter().filter_map(|object| {
            let number: u16 = object.key.strip_prefix(&prefix)?.parse().ok()?;
            attempt.is_none_or(|wanted| wanted == number).then_some((number, object.size))
        });
        let Some((attempt, size)) = logs.max() else {
            return Ok(None);
        };
        if size <= from {
            return Ok(Some(LogPart { attempt, bytes: Vec::new() }));
        }
        let options = GetOptions { from, ..GetOptions::default() };
        let reader = self.get_object(BUCKET, &format!("{prefix}{attempt}"), &options).await?;
        Ok(Some(LogPart { attempt, bytes: reader.collect().await? }))
    }
}

/// What a stream of logs tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogWord {
    /// An attempt has said this. Bytes come in order, and none twice.
    Said {
        /// The task.
        task: String,
        /// Which of its attempts.
        attempt: u16,
        /// What it said.
        bytes: Vec<u8>,
    },
    /// A part that cannot be told.
    Gap(LogGap),
    /// Nothing more will come.
    End(LogEnd),
}

/// What programs say, as it comes.
#[derive(Debug)]
pub struct LogStream {
    feed: Feed,
    /// How far each log was heard, by task and attempt: another node begins a little earlier.
    heard: BTreeMap<(String, u16), u64>,
    gaps: Vec<LogGap>,
}

impl Client {
    /// Follows what a task's attempts say, or one of them, from the beginning on.
    pub fn follow_task_logs(&self, id: &str, attempt: Option<u16>) -> LogStream {
        let attempt = attempt.map(|attempt| ("attempt", attempt.to_string()));
        self.follow_logs(&format!("/v1/tasks/{}/logs", escape(id)), attempt.as_slice())
    }

    /// Follows what the tasks of a job say, from the beginning on; without `follow` only what they have said so far.
    pub fn follow_job_logs(&self, id: &str, follow: bool) -> LogStream {
        let follow = ("follow", follow.to_string());
        self.follow_logs(&format!("/v1/jobs/{}/logs", escape(id)), &[follow])
    }

    fn follow_logs(&self, path: &str, query: &[(&str, String)]) -> LogStream {
        let feed = Feed::new(self.clone(), with_query(path, query));
        LogStream { feed, heard: BTreeMap::new(), gaps: Vec::new() }
    }
}

impl LogStream {
    /// The next word. When no node answers for the client's timeout this is [`Error::Unavailable`]; asking again goes on.
    pub async fn next(&mut self) -> Result<LogWord, Error> {
        loop {
            let event = self.feed.next().await?;
            match event.kind.as_str() {
                "log" => {
                    if let Some(said) = self.take(event.read()?)? {
                        return Ok(said);
                    }
                }
                "gap" => {
                    let gap: LogGap = event.read()?;
                    if !self.gaps.contains(&gap) {
                        self.gaps.push(gap.clone());
                        return Ok(LogWord::Gap(gap));
                    }
                }
                "end" => return Ok(LogWord::End(event.read()?)),
                // Words of a newer node.
                _ => {}
            }
        }
    }

    /// What is new in an event; none if all of it was heard before.
    fn take(&mut self, text: LogText) -> Result<Option<LogWord>, Error> {
        let LogText { task, attempt, offset, text, text_base64 } = text;
        let bytes = match (text, text_base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|error| Error::Protocol {
                detail: format!("a log that is no text: {error}"),
            })?,
            (None, None) => Vec::new(),
        };
        let heard = self.heard.entry((task.clone(), attempt)).or_default();
        let known = usize::try_from(heard.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(news) = bytes.get(known..).filter(|news| !news.is_empty()) else {
            return Ok(None);
        };
        *heard = offset + bytes.len() as u64;
        Ok(Some(LogWord::Said { task, attempt, bytes: news.to_vec() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_node_tells_again_is_heard_once() {
        let client = Client::new(["http://localhost:1"]).expect("a client");
        let mut stream = client.follow_job_logs("j", true);
        let mut hear = |offset: u64, text: &str| {
            let (task, text) = ("j:map.0".to_owned(), Some(text.to_owned()));
            let text = LogText { task, attempt: 1, offset, text, text_base64: None };
            match stream.take(text).expect("good words") {
                Some(LogWord::Said { bytes, .. }) => String::from_utf8(bytes).expect("text"),
                _ => String::new(),
            }
        };
        assert_eq!(hear(0, "one\n"), "one\n");
        assert_eq!(hear(4, "two\n"), "two\n");
        assert_eq!(hear(0, "one\ntwo\nthree\n"), "three\n");
        assert_eq!(hear(0, "one\n"), "");
        assert_eq!(hear(14, "four\n"), "four\n");
    }
}
