//! `GET /` and `GET /dashboard/{file}`: the page for people, from the files in the folder `dashboard` of the repository, which are
//! part of the program.
//!
//! Promises: the same bytes for everyone, with nothing of any caller in them; a content policy that lets the page run only
//! its own scripts and ask only this node; a tag, so that a browser asks again but loads again only after an upgrade.
//!
//! Leaves out: everything that the page shows. It asks the public API for that, with the caller's token.

mod files;

use std::sync::OnceLock;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use hyper::http::request::Parts;

use self::files::{File, INDEX, find};
use super::answer::{Reply, Stop, with_body};
use super::problems;

/// Only our own files, only our own node, no frames, and no way from text to script.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Answers with the index, or with the file that the path names.
pub(super) fn serve(names: &[String], parts: &Parts) -> Result<Reply, Stop> {
    let name = names.first().map_or(INDEX, String::as_str);
    let Some(file) = find(name) else {
        return Err(problems::no_route(parts.uri.path()).into());
    };
    let asked = parts.headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_known = asked.is_some_and(|tags| {
        tags.split(',').any(|one| one.trim().trim_start_matches("W/") == tag())
    });
    Ok(match is_known {
        true => dress(StatusCode::NOT_MODIFIED, file, Bytes::new()),
        false => dress(StatusCode::OK, file, Bytes::from_static(file.bytes)),
    })
}

fn dress(status: StatusCode, file: &File, body: Bytes) -> Reply {
    let mut response = with_body(status, file.media_type(), Full::new(body).boxed());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag()) {
        headers.insert(ETAG, tag);
    }
    for (name, value) in [
        ("content-security-policy", CONTENT_POLICY),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// One tag for all files: they belong together, and change together with the program.
fn tag() -> &'static str {
    static TAG: OnceLock<String> = OnceLock::new();
    TAG.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        for file in files::FILES {
            hasher.update(file.bytes);
        }
        format!("\"{}\"", &hasher.finalize().to_hex()[..32])
    })
}
