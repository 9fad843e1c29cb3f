//! Reads one object from beginning to end, going on where a broken connection stopped.
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
    body: Option<Incoming>,
    breaks: u32,
}

impl Download {
    /// Begins to read an object; none if there is none.
    pub async fn begin(store: Store, place: StorePlace) -> Result<Option<Download>, StoreError> {
        let facts = store.look(&place).await?;
        Ok(facts.map(|facts| Download { store, place, facts, at: 0, body: None, breaks: 0 }))
    }

    /// How long the object is.
    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        while self.at < self.facts.size {
            let mut body = match self.body.take() {
                Some(body) => body,
                None => self.open().await?,
            };
            match next_of(&mut body).await {
                Ok(bytes) => {
                    let left = self.facts.size - self.at;
                    let bytes = bytes.slice(..bytes.len().min(left as usize));
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
        let range = HeaderValue::from_str(&format!("bytes={}-", self.at));
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
