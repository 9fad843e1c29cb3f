//! Signature version 4: what is signed, and with which key. Pure: bytes and a time in, text out.
//!
//! Both sides build the same text of a request, its method, path, query, the named headers and the digest of the body;
//! the caller signs it ([`sign_request`]), the door compares.

use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use ring::{digest, hmac};

use super::escape::{decode, encode, encode_path, hex};

/// The name of the scheme, first word of the header `authorization`.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The header with the digest of the body.
pub const DIGEST_HEADER: &str = "x-amz-content-sha256";
/// The header with the time of the signature.
pub const TIME_HEADER: &str = "x-amz-date";
const SESSION_HEADER: &str = "x-amz-security-token";

/// A key of an object store. Its secret is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Which key.
    pub key_id: String,
    /// What only its owner knows.
    pub secret: String,
    /// What proves that a short-lived key is still good; long-lived ones have none.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// The SHA-256 digest of bytes, as text.
pub fn digest_of(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// What a signature of this day counts for.
pub fn scope(date: &str, region: &str) -> String {
    format!("{date}/{region}/s3/aws4_request")
}

/// The key of one day and region, made of a secret.
pub fn signing_key(secret: &str, date: &str, region: &str) -> hmac::Key {
    let first = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{secret}").as_bytes());
    [date, region, "s3", "aws4_request"].iter().fold(first, |key, word| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, word.as_bytes()).as_ref())
    })
}

/// The text that is signed for a request in canonical form.
pub fn text_to_sign(time: &str, scope: &str, canonical: &str) -> String {
    format!("{ALGORITHM}\n{time}\n{scope}\n{}", digest_of(canonical.as_bytes()))
}

/// A request in canonical form, with these headers and this word for its body; none if an escape in it is broken.
pub fn canonical(parts: &Parts, names: &[String], payload_word: &str) -> Option<String> {
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
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut headers = String::new();
    for name in names {
        headers.push_str(&format!("{name}:{}\n", header_values(&parts.headers, name)?));
    }
    let (method, query, names) = (parts.method.as_str(), query.join("&"), names.join(";"));
    Some(format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{payload_word}"))
}

fn header_values(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = Vec::new();
    for value in headers.get_all(name) {
        let words: Vec<&str> = value.to_str().ok()?.split_whitespace().collect();
        values.push(words.join(" "));
    }
    Some(values.join(","))
}

/// Signs a request that has its header `host`, for a body with this digest. Says what cannot stand in a header.
pub fn sign_request(
    parts: &mut Parts,
    credentials: &Credentials,
    region: &str,
    body_digest: &str,
    now_ms: u64,
) -> Result<(), &'static str> {
    let time = write_time(now_ms);
    let mut names = vec!["host".to_owned()];
    let session = credentials.session_token.as_deref();
    let added = [
        (DIGEST_HEADER, Some(body_digest)),
        (TIME_HEADER, Some(time.as_str())),
        (SESSION_HEADER, session),
    ];
    for (name, value) in added {
        let Some(value) = value else { continue };
        let value = HeaderValue::from_str(value).map_err(|_| "the session token")?;
        parts.headers.insert(HeaderName::from_static(name), value);
        names.push(name.to_owned());
    }
    let (date, _) = time.split_at(8);
    let scope = scope(date, region);
    let canonical = canonical(parts, &names, body_digest).ok_or("the address")?;
    let text = text_to_sign(&time, &scope, &canonical);
    let key = signing_key(&credentials.secret, date, region);
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    let (key_id, names) = (&credentials.key_id, names.join(";"));
    let said = format!(
        "{ALGORITHM} Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    );
    let mut said = HeaderValue::from_str(&said).map_err(|_| "the key or the region")?;
    said.set_sensitive(true);
    parts.headers.insert(AUTHORIZATION, said);
    Ok(())
}

/// Milliseconds since 1970 of `20261115T150405Z`.
pub fn read_time(text: &str) -> Option<u64> {
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
    let days = days.checked_sub(EPOCH_DAYS)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

/// Days from March of the year 0 to 1970.
const EPOCH_DAYS: u64 = 719_468;
/// Days of 400 years.
const ERA_DAYS: u64 = 146_097;

/// The time as [`read_time`] reads it.
pub fn write_time(now_ms: u64) -> String {
    let (days, second) = (now_ms / 86_400_000 + EPOCH_DAYS, now_ms / 1_000 % 86_400);
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day + 2) / 153;
    let day = day - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    #[test]
    fn times_are_read_or_refused_and_written_alike() {
        assert_eq!(read_time("19700101T000000Z"), Some(0));
        assert_eq!(read_time("20240229T000000Z"), Some(1_709_164_800_000));
        assert_eq!(read_time("20261126T150405Z"), Some(1_795_705_445_000));
        for bad in
            ["", "20261126T150405", "2026-11-26T15:04", "20261326T150405Z", "1969é126T15040Z"]
        {
            assert_eq!(read_time(bad), None, "{bad}");
        }
        for day in 0..60_000 {
            let now_ms = day * 86_400_000 + 15_000 * day;
            assert_eq!(read_time(&write_time(now_ms)), Some(now_ms), "{}", write_time(now_ms));
        }
    }

    // The test suite that the scheme's authors published for its keys.
    #[test]
    fn a_request_is_signed_as_published() {
        let request = Request::get("https://examplebucket.s3.amazonaws.com/?lifecycle")
            .header("host", "examplebucket.s3.amazonaws.com");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let credentials = Credentials {
            key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let then_ms = read_time("20130524T000000Z").unwrap();
        sign_request(&mut parts, &credentials, "us-east-1", &digest_of(b""), then_ms).unwrap();
        let said = parts.headers[AUTHORIZATION].to_str().unwrap();
        let expected = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
        assert!(said.ends_with(&format!("Signature={expected}")), "{said}");
        assert!(!format!("{credentials:?}").contains("wJalr"), "the secret is not shown");
    }
}
