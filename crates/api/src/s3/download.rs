//! Reads one object, or a part of it, from beginning to end, going on where a broken connection stopped.
//!
//! Promise: the bytes are those of one version of the object, in order, each once; a few seconds of trouble at a time
//! are got over, however long the whole takes.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_RANGE, HeaderValue, IF_MATCH, RANGE};
use hyper::{Method, StatusCode};

use super::place::StorePlace;
use super::send::{Ask, Facts, Store, StoreError};
use crate::client::innermost;

/// A store that sends nothing for this long has gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Streams that break one after another without a byte.
const BREAKS_MAX: u32 = 5;

/// An object that is being read.
#[derive(Debug)]
pub struct Download {
    store: Store,
    place: StorePlace,
    facts: Facts,
    at: u64,
    /// The byte after the last that is wanted.
    end: u64,
    body: Option<Incoming>,
    breaks: u32,
}

impl Download {
    /// Begins to read an object; none if there is none.
    pub async fn begin(store: Store, place: StorePlace) -> Result<Option<Download>, StoreError> {
        let facts = store.look(&place).await?;
        Ok(facts.map(|facts| {
            let end = facts.size;
            Download { store, place, facts, at: 0, end, body: None, breaks: 0 }
        }))
    }

    /// Another reading of the same version: so many bytes from this one on, or all that follow; fewer if it ends before.
    /// Nothing else is asked of the store.
    pub fn part(&self, from: u64, length: Option<u64>) -> Download {
        let end = length.map_or(u64::MAX, |length| from.saturating_add(length));
        let end = end.min(self.facts.size);
        let (store, place, facts) = (self.store.clone(), self.place.clone(), self.facts.clone());
        Download { store, place, facts, at: from.min(end), end, body: None, breaks: 0 }
    }

    /// The mark of the version that is read, if the store gives one.
    pub fn tag(&self) -> Option<&str> {
        self.facts.tag.as_ref()?.to_str().ok()
    }

    /// How long the object is.
    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        while self.at < self.end {
            let mut body = match self.body.take() {
                Some(body) => body,
                None => self.open().await?,
            };
            match next_of(&mut body).await {
                Ok(bytes) => {
                    let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
                    let bytes = bytes.slice(..bytes.len().min(left));
                    self.at += bytes.len() as u64;
                    if !bytes.is_empty() {
                        (self.body, self.breaks) = (Some(body), 0);
                        return Ok(Some(bytes));
                    }
                    self.body = Some(body);
                }
                Err(detail) if self.breaks >= BREAKS_MAX => {
                    let at = self.at;
                    return Err(self.store.unavailable(format!("at byte {at}: {detail}")));
                }
                Err(_) => self.breaks += 1,
            }
        }
        Ok(None)
    }

    async fn open(&self) -> Result<Incoming, StoreError> {
        let mut ask = Ask::new(Method::GET, &self.place);
        let range = HeaderValue::from_str(&format!("bytes={}-{}", self.at, self.end - 1));
        ask.headers.extend(range.ok().map(|range| (RANGE, range)));
        ask.headers.extend(self.facts.tag.clone().map(|tag| (IF_MATCH, tag)));
        let response = self.store.open(&ask).await.map_err(|error| match error {
            StoreError::Refused { status: 412, .. } => {
                let detail = format!("{} was replaced while it was read", self.place);
                self.store.refused(412, "PreconditionFailed", detail)
            }
            other => other,
        })?;
        let begins = format!("bytes {}-", self.at);
        let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let fits = match response.status() {
            StatusCode::PARTIAL_CONTENT => range.is_some_and(|range| range.starts_with(&begins)),
            _ => self.at == 0,
        };
        match fits {
            true => Ok(response.into_body()),
            false => {
                let detail = format!("it gives another range than from byte {}", self.at);
                Err(self.store.refused(response.status().as_u16(), "InvalidRange", detail))
            }
        }
    }
}

/// The next bytes of a stream that has not ended.
async fn next_of(body: &mut Incoming) -> Result<Bytes, String> {
    let frame = tokio::time::timeout(SILENCE, body.frame()).await;
    let frame = frame.map_err(|_| "the stream stands still".to_owned())?;
    let frame = frame.ok_or_else(|| "the stream ended early".to_owned())?;
    let frame = frame.map_err(|error| innermost(&error))?;
    Ok(frame.into_data().unwrap_or_default())
}
