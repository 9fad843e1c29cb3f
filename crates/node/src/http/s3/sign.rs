//! Signature version 4 as the door checks it: what a caller proves with its secret key. Pure: bytes and a time in, a
//! verdict out. How a request becomes the text that is signed stands in `ikada_api::s3::sign`, for both sides.
//!
//! Promise: a request is let in only if method, path, query, host, all `x-amz-` headers and the digest of the body (or
//! the word that it is not signed) are those that were signed, not more than 15 minutes ago.

use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::http::request::Parts;
use ikada_api::s3::escape::{hex, unhex};
use ikada_api::s3::sign::{
    ALGORITHM, DIGEST_HEADER, TIME_HEADER, canonical, digest_of, read_time, scope, signing_key,
    text_to_sign,
};
use ring::hmac;

use super::fault::Fault;

/// How far a caller's clock may be off.
const SKEW_MS: u64 = 15 * 60 * 1000;
/// Longest life of a presigned address: a week.
const EXPIRES_S_MAX: u64 = 7 * 24 * 60 * 60;
/// Most headers that are signed.
const SIGNED_HEADERS_MAX: usize = 64;

/// How the body comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    /// Not signed.
    Unsigned,
    /// With this SHA-256 digest.
    Whole([u8; 32]),
    /// In chunks of `aws-chunked`, each signed or not.
    Chunks {
        /// Whether each has a signature.
        signed: bool,
    },
}

/// What a request says of its signature.
#[derive(Debug)]
pub(super) struct Signed {
    /// Which key.
    pub(super) key_id: String,
    /// How the body comes.
    pub(super) payload: Payload,
    date: String,
    region: String,
    time: String,
    headers: Vec<String>,
    signature: [u8; 32],
    payload_word: String,
    /// Seconds of life, in a presigned address.
    expires_s: Option<u64>,
}

/// Continues the signature over chunks.
#[derive(Debug, Clone)]
pub(super) struct ChunkKey {
    key: hmac::Key,
    time: String,
    scope: String,
    previous: String,
}

impl Signed {
    /// Reads the signature of a request.
    pub(super) fn read(parts: &Parts) -> Result<Signed, Fault> {
        match header(&parts.headers, AUTHORIZATION.as_str()) {
            Some(text) => Signed::of_header(&parts.headers, text),
            None => Signed::of_query(parts),
        }
        .ok_or_else(|| Fault::denied("the request is not signed, or not with signature version 4"))
    }

    fn of_header(headers: &HeaderMap, text: &str) -> Option<Signed> {
        let fields = text.trim().strip_prefix(ALGORITHM)?;
        let field = |name: &str| {
            let mut parts = fields.split(',').map(str::trim);
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let word = header(headers, DIGEST_HEADER)?;
        let time = header(headers, TIME_HEADER)?;
        let names = field("SignedHeaders")?;
        Signed::new(field("Credential")?, time, names, field("Signature")?, word, None)
    }

    fn of_query(parts: &Parts) -> Option<Signed> {
        let query = ikada_api::routes::read_query(parts.uri.query()?)?;
        let field = |name: &str| {
            let found = query.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        if field("X-Amz-Algorithm") != Some(ALGORITHM) {
            return None;
        }
        let expires = field("X-Amz-Expires")?.parse().ok().filter(|life| *life <= EXPIRES_S_MAX)?;
        let names = field("X-Amz-SignedHeaders")?;
        let (credential, time) = (field("X-Amz-Credential")?, field("X-Amz-Date")?);
        let signature = field("X-Amz-Signature")?;
        Signed::new(credential, time, names, signature, "UNSIGNED-PAYLOAD", Some(expires))
    }

    fn new(
        credential: &str,
        time: &str,
        headers: &str,
        signature: &str,
        word: &str,
        expires_s: Option<u64>,
    ) -> Option<Signed> {
        let mut scope = credential.split('/');
        let (key_id, date, region) = (scope.next()?, scope.next()?, scope.next()?);
        if (scope.next()?, scope.next()?, scope.next()) != ("s3", "aws4_request", None) {
            return None;
        }
        let headers: Vec<String> = headers.split(';').map(str::to_owned).collect();
        let hosted = headers.iter().any(|name| name == "host");
        if !hosted || headers.len() > SIGNED_HEADERS_MAX || !time.starts_with(date) {
            return None;
        }
        let payload = match word {
            "UNSIGNED-PAYLOAD" => Payload::Unsigned,
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Payload::Chunks { signed: false },
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" | "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
                Payload::Chunks { signed: true }
            }
            digest => Payload::Whole(unhex(digest)?),
        };
        Some(Signed {
            key_id: key_id.to_owned(),
            payload,
            date: date.to_owned(),
            region: region.to_owned(),
            time: time.to_owned(),
            headers,
            signature: unhex(signature)?,
            payload_word: word.to_owned(),
            expires_s,
        })
    }

    /// Checks it with the secret key.
    pub(super) fn check(
        &self,
        parts: &Parts,
        secret: &str,
        now_ms: u64,
    ) -> Result<ChunkKey, Fault> {
        self.check_time(now_ms)?;
        let signed = |name: &str| self.headers.iter().any(|known| known == name);
        if parts
            .headers
            .keys()
            .any(|name| name.as_str().starts_with("x-amz-") && !signed(name.as_str()))
        {
            return Err(Fault::denied("every x-amz header must be signed"));
        }
        let scope = scope(&self.date, &self.region);
        let request = canonical(parts, &self.headers, &self.payload_word);
        let text = text_to_sign(&self.time, &scope, &request.ok_or_else(Fault::signature)?);
        let key = signing_key(secret, &self.date, &self.region);
        // Takes the same time wherever they differ.
        hmac::verify(&key, text.as_bytes(), &self.signature).map_err(|_| Fault::signature())?;
        let previous = hex(&self.signature);
        Ok(ChunkKey { key, time: self.time.clone(), scope, previous })
    }

    fn check_time(&self, now_ms: u64) -> Result<(), Fault> {
        let skewed = || {
            let detail = "the time in the signature is too far from this node's clock";
            Fault::new(403, "RequestTimeTooSkewed", detail)
        };
        let signed_ms = read_time(&self.time).ok_or_else(skewed)?;
        if signed_ms > now_ms + SKEW_MS {
            return Err(skewed());
        }
        match self.expires_s {
            None if signed_ms + SKEW_MS < now_ms => Err(skewed()),
            Some(life_s) if signed_ms + life_s * 1000 < now_ms => {
                Err(Fault::denied("this presigned address has expired"))
            }
            _ => Ok(()),
        }
    }
}

impl ChunkKey {
    /// Checks the signature of the next chunk by the digest of its bytes.
    pub(super) fn check_chunk(&mut self, digest: &[u8], signature: &str) -> bool {
        let empty = digest_of(b"");
        let text = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{empty}\n{}",
            self.time,
            self.scope,
            self.previous,
            hex(digest)
        );
        self.advance(&text, signature)
    }

    /// Checks the signature of the trailing headers.
    pub(super) fn check_trailer(&mut self, trailer: &str, signature: &str) -> bool {
        let digest = digest_of(trailer.as_bytes());
        let text = format!(
            "AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{}\n{digest}",
            self.time, self.scope, self.previous
        );
        self.advance(&text, signature)
    }

    fn advance(&mut self, text: &str, signature: &str) -> bool {
        let Some(given) = unhex(signature) else { return false };
        self.previous = signature.to_owned();
        hmac::verify(&self.key, text.as_bytes(), &given).is_ok()
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
