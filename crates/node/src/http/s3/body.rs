//! A body as it comes, unwrapped and checked.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use hyper::body::Body;
use hyper::header::CONTENT_LENGTH;
use hyper::http::request::Parts;

use super::Entered;
use super::chunked::{ChunkReader, Step};
use super::fault::Fault;
use super::route::Action;
use super::sign::Payload;
use super::sums::Sums;
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::pace::Pace;
use crate::http::problems;
use crate::http::standing::has_ended;
use crate::objects::{Content, Upload};
use ikada_api::s3::xml::DOCUMENT_BYTES_MAX;

/// Reads one body to its end.
pub(super) struct Reader<B> {
    body: Pin<Box<B>>,
    pace: Pace,
    buffer: BytesMut,
    chunks: Option<ChunkReader>,
    sums: Sums,
    /// Bytes that the object has by its caller's word.
    announced: Option<u64>,
    arrived: u64,
}

impl<B> Reader<B>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Bytes that the object will have; 0 if that is not said.
    pub(super) fn announced(&self) -> u64 {
        self.announced.unwrap_or(0)
    }

    pub(super) fn new<D: Door>(
        app: &App<D>,
        parts: &Parts,
        entered: &Entered,
        action: Action,
        body: B,
    ) -> Result<Reader<B>, Fault> {
        let payload = entered.signed.as_ref().map(|signed| &signed.payload);
        let number =
            |name: &str| -> Option<u64> { parts.headers.get(name)?.to_str().ok()?.parse().ok() };
        let (chunks, announced) = match payload {
            Some(Payload::Chunks { signed }) => {
                let key = entered.chunk_key.clone().filter(|_| *signed);
                (Some(ChunkReader::new(key)), number("x-amz-decoded-content-length"))
            }
            _ => (None, number(CONTENT_LENGTH.as_str())),
        };
        if announced.is_some_and(|bytes| bytes > Upload::BYTES_MAX) {
            return Err(problems::object_too_large(Upload::BYTES_MAX).into());
        }
        // There the headers speak of the object, and the body is a list of its parts.
        let sums = match action {
            Action::CompleteUpload => Sums::of_signature(payload),
            _ => Sums::read(&parts.headers, payload)?,
        };
        Ok(Reader {
            body: Box::pin(body),
            pace: Pace::new(app.limits.body_timeout),
            buffer: BytesMut::new(),
            chunks,
            sums,
            announced,
            arrived: 0,
        })
    }

    /// The next bytes; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            if let Some(chunks) = &mut self.chunks {
                match chunks.step(&mut self.buffer)? {
                    Step::Data(bytes) => return Ok(Some(self.count(bytes))),
                    Step::Done if self.buffer.is_empty() => {}
                    Step::Done => return Err(Fault::argument("bytes follow the last chunk")),
                    Step::More => {}
                }
            }
            let frame = self.pace.frame(self.body.as_mut()).await;
            match (frame, &mut self.chunks) {
                (Err(_), _) => return Err(Fault::incomplete()),
                (Ok(Some(Err(error))), _) => return Err(broken(error)),
                (Ok(None), None) => return Ok(None),
                (Ok(None), Some(chunks)) => return chunks.end().map(|()| None),
                (Ok(Some(Ok(frame))), chunks) => match (frame.into_data(), chunks) {
                    (Ok(bytes), Some(_)) => self.buffer.extend_from_slice(&bytes),
                    (Ok(bytes), None) => return Ok(Some(self.count(bytes))),
                    (Err(_), _) => {}
                },
            }
        }
    }

    fn count(&mut self, bytes: Bytes) -> Bytes {
        self.arrived += bytes.len() as u64;
        self.sums.add(&bytes);
        bytes
    }

    /// Checks everything that came with the bytes, once they are all there.
    fn finish(self) -> Result<(), Fault> {
        let mut sums = self.sums;
        for (name, value) in self.chunks.into_iter().flat_map(|chunks| chunks.trailer) {
            sums.promise(&name, &value);
        }
        if self.announced.is_some_and(|bytes| bytes != self.arrived) {
            return Err(Fault::incomplete());
        }
        sums.check()
    }

    /// Stores all bytes; they have no name yet.
    pub(super) async fn store<D: Door>(mut self, app: &App<D>) -> Result<Content, Fault> {
        let mut upload = Upload::begin(app.door.shelf());
        while let Some(bytes) = self.next().await? {
            if upload.size() + bytes.len() as u64 > Upload::BYTES_MAX {
                return Err(problems::object_too_large(Upload::BYTES_MAX).into());
            }
            upload.push(bytes).await.map_err(|error| problems::not_spread(&error))?;
        }
        self.finish()?;
        upload.finish().await.map_err(|error| problems::not_spread(&error).into())
    }

    /// A small document.
    pub(super) async fn document(mut self) -> Result<String, Fault> {
        let mut document = Vec::new();
        while let Some(bytes) = self.next().await? {
            if document.len() + bytes.len() > DOCUMENT_BYTES_MAX {
                return Err(problems::body_too_large(DOCUMENT_BYTES_MAX).into());
            }
            document.extend_from_slice(&bytes);
        }
        self.finish()?;
        String::from_utf8(document).map_err(|_| Fault::malformed_xml())
    }
}

/// What to answer whoever sent a body that broke off.
fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Fault {
    match has_ended(error) {
        true => problems::unauthenticated().into(),
        false => Fault::incomplete(),
    }
}
