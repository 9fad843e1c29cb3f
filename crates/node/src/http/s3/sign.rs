//! Signature version 4: what a caller proves with its secret key. Pure: bytes and a time in, a verdict out.
//!
//! Promise: a request is let in only if method, path, query, host, all `x-amz-` headers and the digest of the body (or
//! the word that it is not signed) are those that were signed, not more than 15 minutes ago.

use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::http::request::Parts;
use ring::{digest, hmac};

use super::fault::Fault;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
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
        let word = header(headers, "x-amz-content-sha256")?;
        let time = header(headers, "x-amz-date")?;
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
        let scope = format!("{}/{}/s3/aws4_request", self.date, self.region);
        let request = self.canonical(parts).ok_or_else(Fault::signature)?;
        let digest = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{digest}", self.time);
        let first = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{secret}").as_bytes());
        let chain = [self.date.as_str(), &self.region, "s3", "aws4_request"];
        let key = chain.iter().fold(first, |key, word| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, word.as_bytes()).as_ref())
        });
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

    fn canonical(&self, parts: &Parts) -> Option<String> {
        let path = encode_path(&decode(parts.uri.path())?);
        let mut query: Vec<(String, String)> = Vec::new();
        for part in parts.uri.query().unwrap_or("").split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = encode(&decode(name)?);
            if name != "X-Amz-Signature" {
                query.push((name, encode(&decode(value)?)));
            }
        }
        query.sort();
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers = String::new();
        for name in &self.headers {
            let mut values = Vec::new();
            for value in parts.headers.get_all(name.as_str()) {
                let words: Vec<&str> = value.to_str().ok()?.split_whitespace().collect();
                values.push(words.join(" "));
            }
            headers.push_str(&format!("{name}:{}\n", values.join(",")));
        }
        let (method, query) = (parts.method.as_str(), query.join("&"));
        let (names, word) = (self.headers.join(";"), &self.payload_word);
        Some(format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{word}"))
    }
}

impl ChunkKey {
    /// Checks the signature of the next chunk by the digest of its bytes.
    pub(super) fn check_chunk(&mut self, digest: &[u8], signature: &str) -> bool {
        let empty = hex(digest::digest(&digest::SHA256, b"").as_ref());
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
        let digest = hex(digest::digest(&digest::SHA256, trailer.as_bytes()).as_ref());
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

/// Milliseconds since 1970 of `20261115T150405Z`.
fn read_time(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let plain = text.len() == 16 && text.is_ascii() && &text[8..9] == "T" && text.ends_with('Z');
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if !plain || year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

/// Undoes percent escapes; none if one is broken.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
                digit(bytes.next()?)? << 4 | digit(bytes.next()?)?
            }
            other => other,
        });
    }
    Some(plain)
}

/// Escapes all but what needs none, as S3 wants it.
pub(super) fn encode(bytes: &[u8]) -> String {
    encode_but(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

fn encode_path(bytes: &[u8]) -> String {
    encode_but(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte))
}

fn encode_but(bytes: &[u8], plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match plain(*byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_or_refused() {
        assert_eq!(read_time("19700101T000000Z"), Some(0));
        assert_eq!(read_time("20240229T000000Z"), Some(1_709_164_800_000));
        assert_eq!(read_time("20261126T150405Z"), Some(1_795_705_445_000));
        for bad in
            ["", "20261126T150405", "2026-11-26T15:04", "20261326T150405Z", "1969é126T15040Z"]
        {
            assert_eq!(read_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn escapes_return() {
        let odd = "a b/%é+~";
        assert_eq!(decode(&encode(odd.as_bytes())).unwrap(), odd.as_bytes());
        assert_eq!(encode(b"a b/"), "a%20b%2F");
        for bad in ["%", "%4", "%zz"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
