//! Shared Key: what is signed of a request to Azure's blob store. Pure: a request and a time in, text out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use ring::hmac;

use crate::s3::escape::decode;
use crate::s3::sign::write_time;

/// The version of the protocol that is spoken.
pub const VERSION: &str = "2021-08-06";
/// The header with the version.
pub const VERSION_HEADER: &str = "x-ms-version";
/// The header with the time of the signature.
pub const DATE_HEADER: &str = "x-ms-date";
/// What the names of the store's own headers begin with; all of them are signed.
const OWN_HEADERS: &str = "x-ms-";

/// Signs a request for a body of this length, with an account's key. Says what cannot stand in a header.
pub fn sign_request(
    parts: &mut Parts,
    account: &str,
    key: &[u8],
    body_bytes: usize,
    now_ms: u64,
) -> Result<(), &'static str> {
    let date = HeaderValue::from_str(&http_date(now_ms)).map_err(|_| "the time")?;
    parts.headers.insert(HeaderName::from_static(DATE_HEADER), date);
    let text = text_to_sign(parts, account, body_bytes).ok_or("the address")?;
    let said = format!("SharedKey {account}:{}", signature(key, &text));
    let mut said = HeaderValue::from_str(&said).map_err(|_| "the account")?;
    said.set_sensitive(true);
    parts.headers.insert(AUTHORIZATION, said);
    Ok(())
}

/// The signature of a text.
pub fn signature(key: &[u8], text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    STANDARD.encode(hmac::sign(&key, text.as_bytes()))
}

/// The text that is signed for a request whose time stands in [`DATE_HEADER`]; none if an escape in it is broken.
pub fn text_to_sign(parts: &Parts, account: &str, body_bytes: usize) -> Option<String> {
    let header = |name: &str| match parts.headers.get(name) {
        Some(value) => value.to_str().ok().map(str::to_owned),
        None => Some(String::new()),
    };
    // No length is written for an empty body.
    let length = if body_bytes == 0 { String::new() } else { body_bytes.to_string() };
    let lines = [
        parts.method.as_str().to_owned(),
        header("content-encoding")?,
        header("content-language")?,
        length,
        header("content-md5")?,
        header("content-type")?,
        // The time stands among the store's own headers.
        String::new(),
        header("if-modified-since")?,
        header("if-match")?,
        header("if-none-match")?,
        header("if-unmodified-since")?,
        header("range")?,
    ];
    let (own, resource) = (own_headers(parts)?, resource(parts, account)?);
    Some(format!("{}\n{own}{resource}", lines.join("\n")))
}

fn own_headers(parts: &Parts) -> Option<String> {
    let mut own: Vec<String> = Vec::new();
    for (name, value) in parts.headers.iter().filter(|(name, _)| is_own(name)) {
        let words: Vec<&str> = value.to_str().ok()?.split_whitespace().collect();
        own.push(format!("{name}:{}\n", words.join(" ")));
    }
    own.sort();
    Some(own.concat())
}

fn is_own(name: &HeaderName) -> bool {
    name.as_str().starts_with(OWN_HEADERS)
}

/// Account, path as it is sent, and every parameter on a line.
fn resource(parts: &Parts, account: &str) -> Option<String> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    for part in parts.uri.query().unwrap_or("").split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let text = |part: &str| String::from_utf8(decode(part)?).ok();
        parameters.push((text(name)?.to_lowercase(), text(value)?));
    }
    parameters.sort();
    let lines = parameters.iter().map(|(name, value)| format!("\n{name}:{value}"));
    Some(format!("/{account}{}{}", parts.uri.path(), lines.collect::<String>()))
}

/// A time as HTTP writes it: `Fri, 26 Jun 2015 23:39:12 GMT`.
pub fn http_date(now_ms: u64) -> String {
    // The first day of 1970 was a Thursday.
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let day = DAYS[(now_ms / 86_400_000 % 7) as usize];
    let time = write_time(now_ms);
    let (date, clock) = time.split_at(8);
    let (year, month, of_month) = (&date[..4], &date[4..6], &date[6..8]);
    let month: usize = month.parse().unwrap_or(1);
    let month = MONTHS[(month + 11) % 12];
    let (hour, minute, second) = (&clock[1..3], &clock[3..5], &clock[5..7]);
    format!("{day}, {of_month} {month} {year} {hour}:{minute}:{second} GMT")
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::s3::sign::read_time;

    fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri(uri);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    // The example of the protocol's own description of Shared Key.
    #[test]
    fn b4_35_a_request_becomes_the_text_that_the_store_describes() {
        let uri = "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20";
        let headers =
            [("x-ms-version", "2015-02-21"), ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT")];
        let text = text_to_sign(&parts("GET", uri, &headers), "myaccount", 0).unwrap();
        let described = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
            x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20";
        assert_eq!(text, described);
    }

    #[test]
    fn b4_35_lengths_conditions_and_ranges_have_lines_of_their_own() {
        let uri = "https://a.blob.core.windows.net/c/a%20b?comp=block&blockid=YQ%3D%3D";
        let headers = [
            ("if-match", "\"0x8\""),
            ("if-none-match", "*"),
            ("range", "bytes=0-9"),
            ("x-ms-blob-type", "Block  Blob"),
        ];
        let text = text_to_sign(&parts("PUT", uri, &headers), "a", 11).unwrap();
        let expected = "PUT\n\n\n11\n\n\n\n\n\"0x8\"\n*\n\nbytes=0-9\nx-ms-blob-type:Block Blob\n\
            /a/c/a%20b\nblockid:YQ==\ncomp:block";
        assert_eq!(text, expected);
        assert_eq!(text_to_sign(&parts("GET", "http://a/%zz?b=%4", &[]), "a", 0), None);
    }

    // Computed apart from this program, with the text of the first test and these bytes for a key.
    #[test]
    fn b4_35_a_text_is_signed_with_the_decoded_key() {
        let uri = "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20";
        let mut signed = parts("GET", uri, &[("x-ms-version", "2015-02-21")]);
        let then_ms = read_time("20150626T233912Z").unwrap();
        sign_request(&mut signed, "myaccount", b"a key of the test", 0, then_ms).unwrap();
        let said = signed.headers[AUTHORIZATION].to_str().unwrap();
        assert_eq!(said, "SharedKey myaccount:I5NQqLx0KgnFHGV7aLwevifSqX+j9zvUAjGsMGNB3jM=");
    }

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            http_date(read_time("20150626T233912Z").unwrap()),
            "Fri, 26 Jun 2015 23:39:12 GMT"
        );
        assert_eq!(
            http_date(read_time("20241231T000001Z").unwrap()),
            "Tue, 31 Dec 2024 00:00:01 GMT"
        );
    }
}
