//! Writes one object of unknown length, part by part.
//!
//! Promise: at most [`PARTS_AT_ONCE`] parts and the one that is being filled are in memory; the object shows under its
//! name after [`Upload::finish`] or never; an object that is there already is not replaced where the store can tell.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use hyper::Method;
use hyper::header::{ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use tokio::task::JoinSet;

use super::place::{Door, StorePlace};
use super::send::{Ask, Store, StoreError, read_error};
use super::xml;
use crate::azure::{block_id, block_list};
use crate::client::unique_bits;

/// Smallest part that stores take, but for the last.
pub const PART_BYTES_MIN: usize = 5 << 20;
/// Most parts of one object, as S3 has it.
const PARTS_MAX: u32 = 10_000;
/// Parts on their way at one time.
const PARTS_AT_ONCE: usize = 4;

/// An object that is being written.
#[derive(Debug)]
pub struct Upload {
    store: Store,
    place: StorePlace,
    part_bytes: usize,
    filling: BytesMut,
    /// The store's word for this upload, once its first part is full.
    id: Option<String>,
    next: u32,
    running: JoinSet<Result<(u32, String), StoreError>>,
    /// Numbers and tags of the parts that are there.
    stored: BTreeMap<u32, String>,
    size: u64,
}

impl Upload {
    /// Begins. Nothing is sent before the first part is full.
    ///
    /// # Panics
    /// If parts would be smaller than [`PART_BYTES_MIN`], which stores refuse only at the end.
    pub fn begin(store: Store, place: StorePlace, part_bytes: usize) -> Upload {
        assert!(part_bytes >= PART_BYTES_MIN, "parts of {part_bytes} bytes are too small");
        Upload {
            store,
            place,
            part_bytes,
            filling: BytesMut::new(),
            id: None,
            next: 1,
            running: JoinSet::new(),
            stored: BTreeMap::new(),
            size: 0,
        }
    }

    /// Takes more bytes; waits while enough parts are on their way.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<(), StoreError> {
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = self.part_bytes - self.filling.len();
            let taken = bytes.split_to(room.min(bytes.len()));
            self.filling.extend_from_slice(&taken);
            if self.filling.len() == self.part_bytes {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Makes the object appear. Gives its length.
    pub async fn finish(&mut self) -> Result<u64, StoreError> {
        if self.id.is_none() {
            self.put_whole().await?;
            return Ok(self.size);
        }
        if !self.filling.is_empty() {
            self.send_part().await?;
        }
        while !self.running.is_empty() {
            self.hear_part().await?;
        }
        self.complete().await?;
        self.id = None;
        Ok(self.size)
    }

    /// Gives up, and has the store forget what it was sent. Azure's forgets blocks that nobody put together by itself.
    pub async fn abort(&mut self) -> Result<(), StoreError> {
        self.running.shutdown().await;
        let Some(id) = self.id.take().filter(|_| !self.is_azure()) else { return Ok(()) };
        let mut ask = Ask::new(Method::DELETE, &self.place);
        ask.query.push(("uploadId", id));
        match self.store.send(&ask).await {
            Err(error) if !error.has_code("NoSuchUpload") => Err(error),
            _ => Ok(()),
        }
    }

    async fn send_part(&mut self) -> Result<(), StoreError> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.open().await?,
        };
        if self.next > PARTS_MAX {
            let detail = format!(
                "more than {PARTS_MAX} parts of {} bytes; choose larger parts",
                self.part_bytes
            );
            return Err(self.store.refused(0, "too many parts", detail));
        }
        while self.running.len() >= PARTS_AT_ONCE {
            self.hear_part().await?;
        }
        let (number, body) = (self.next, self.filling.split().freeze());
        self.next += 1;
        let (store, place) = (self.store.clone(), self.place.clone());
        let is_azure = self.is_azure();
        self.running.spawn(async move {
            let mut ask = Ask::new(Method::PUT, &place);
            ask.body = body;
            if is_azure {
                let block = block_id(&id, number);
                ask.query = vec![("comp", "block".to_owned()), ("blockid", block.clone())];
                store.send(&ask).await?;
                return Ok((number, block));
            }
            ask.query = vec![("partNumber", number.to_string()), ("uploadId", id)];
            let answer = store.send(&ask).await?;
            let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
            let tag = tag.ok_or_else(|| store.unavailable("a part without an ETag".to_owned()))?;
            Ok((number, tag.to_owned()))
        });
        Ok(())
    }

    /// Waits for one part.
    async fn hear_part(&mut self) -> Result<(), StoreError> {
        let Some(joined) = self.running.join_next().await else { return Ok(()) };
        let (number, tag) =
            joined.map_err(|error| self.store.unavailable(format!("a part: {error}")))??;
        self.stored.insert(number, tag);
        Ok(())
    }

    async fn open(&mut self) -> Result<String, StoreError> {
        if self.is_azure() {
            let id = format!("{:016x}", unique_bits());
            self.id = Some(id.clone());
            return Ok(id);
        }
        let mut ask = Ask::new(Method::POST, &self.place);
        ask.query.push(("uploads", String::new()));
        let answer = self.store.send(&ask).await?;
        let id = xml::first(&answer.text, "UploadId").filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| self.store.unavailable("an upload without an id".to_owned()))?;
        self.id = Some(id.clone());
        Ok(id)
    }

    /// Small enough for one request.
    async fn put_whole(&mut self) -> Result<(), StoreError> {
        let mut ask = Ask::new(Method::PUT, &self.place);
        ask.headers.extend(self.only_if_absent());
        if self.is_azure() {
            let kind = HeaderName::from_static("x-ms-blob-type");
            ask.headers.push((kind, HeaderValue::from_static("BlockBlob")));
        }
        ask.body = self.filling.split().freeze();
        let sent = self.store.send(&ask).await.map(|_| ());
        self.settle(sent).await
    }

    async fn complete(&mut self) -> Result<(), StoreError> {
        if self.is_azure() {
            let mut ask = Ask::new(Method::PUT, &self.place);
            ask.query.push(("comp", "blocklist".to_owned()));
            ask.headers.extend(self.only_if_absent());
            ask.body = block_list(self.stored.values()).into();
            let sent = self.store.send(&ask).await.map(|_| ());
            return self.settle(sent).await;
        }
        let parts = self.stored.iter().map(|(number, tag)| {
            let number = xml::element("PartNumber", &number.to_string());
            format!("<Part>{number}{}</Part>", xml::element("ETag", tag))
        });
        let parts: String = parts.collect();
        let mut ask = Ask::new(Method::POST, &self.place);
        ask.query.extend(self.id.clone().map(|id| ("uploadId", id)));
        ask.headers.extend(self.only_if_absent());
        ask.body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").into();
        let sent = self.store.send(&ask).await.and_then(|answer| {
            // The answer's first line leaves before the store knows how it ends.
            match read_error(&answer.text) {
                (Some(code), detail) => Err(self.store.refused(200, &code, detail)),
                (None, _) => Ok(()),
            }
        });
        self.settle(sent).await
    }

    /// A last step whose answer got lost is refused when it is repeated: then the object itself tells.
    async fn settle(&self, sent: Result<(), StoreError>) -> Result<(), StoreError> {
        let Err(error) = sent else { return Ok(()) };
        let may_be_done = match &error {
            StoreError::Unavailable { .. } => true,
            StoreError::Refused { status, tries, .. } => {
                let is_there = *status == 412 || error.has_code("BlobAlreadyExists");
                *tries > 1 && (is_there || error.has_code("NoSuchUpload"))
            }
        };
        let is_ours = |size| may_be_done && size == self.size;
        match self.store.look(&self.place).await {
            Ok(Some(facts)) if is_ours(facts.size) => Ok(()),
            _ => Err(error),
        }
    }

    fn is_azure(&self) -> bool {
        self.place.door == Door::Azure
    }

    /// Google's door knows this condition under another name, which cannot be mixed with the headers of S3.
    fn only_if_absent(&self) -> Option<(HeaderName, HeaderValue)> {
        let condition = (IF_NONE_MATCH, HeaderValue::from_static("*"));
        (self.place.door != Door::Google).then_some(condition)
    }
}
