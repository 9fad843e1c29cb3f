//! Reading a body within its bounds, and JSON with good words about what is wrong.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::http::request::Parts;
use ikada_api::Problem;
use ikada_api::cbor::{CBOR_TYPE, CborError, from_slice};
use ikada_api::convert::Form;
use ikada_api::v1::{JSON_DEPTH_MAX, json_depth};
use serde_json::value::RawValue;
use tokio::sync::SemaphorePermit;

use crate::http::app::{App, BODY_UNIT_BYTES};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::standing::broken_body;

/// Reads the body. The permit accounts for its memory until it is dropped.
pub(in crate::http) async fn take_body<'a, D, B>(
    app: &'a App<D>,
    parts: &Parts,
    body: B,
    bytes_max: usize,
) -> Result<(Bytes, SemaphorePermit<'a>), Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(media_type) = parts.headers.get(CONTENT_TYPE) {
        let media_type = media_type.to_str().unwrap_or("");
        let essence = media_type.split(';').next().unwrap_or("").trim();
        let known = ["application/json", CBOR_TYPE];
        if !known.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
            return Err(problems::bad_media_type());
        }
    }
    let length =
        parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    // Refused by its own word, before a byte is read.
    let expected: usize = length.unwrap_or(bytes_max);
    if expected > bytes_max {
        return Err(problems::body_too_large(bytes_max));
    }
    let units = expected.div_ceil(BODY_UNIT_BYTES) as u32;
    let permit = app.bodies.try_acquire_many(units).map_err(|_| problems::door_full("bodies"))?;
    let collected = Limited::new(Box::pin(body), bytes_max).collect();
    match tokio::time::timeout(app.limits.body_timeout, collected).await {
        Ok(Ok(whole)) => Ok((whole.to_bytes(), permit)),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(problems::body_too_large(bytes_max))
        }
        Ok(Err(error)) => Err(broken_body(error)),
        Err(_) => Err(problems::body_incomplete()),
    }
}

/// Reads the document of a request, in the form it was sent in.
pub(in crate::http) fn read_document<T: serde::de::DeserializeOwned>(
    context: &Context,
    body: &[u8],
) -> Result<T, Problem> {
    read_document_as(context.form_given, body)
}

/// Reads a document in a form.
pub(in crate::http) fn read_document_as<T: serde::de::DeserializeOwned>(
    form: Form,
    body: &[u8],
) -> Result<T, Problem> {
    if form == Form::Json || body.is_empty() {
        return read_json(body);
    }
    from_slice(body).map_err(|error| {
        if matches!(error, CborError::TooDeep) {
            return problems::too_deep(JSON_DEPTH_MAX);
        }
        let words = error.to_string();
        match (unknown_field(&words), missing_field(&words)) {
            (Some(field), _) => problems::bad_cbor(words, Some(field)),
            (None, missing) => {
                let field = missing.or_else(|| doubled_field(&words));
                let field = field.or_else(|| cbor_culprit::<T>(body));
                name(problems::bad_cbor(words, None), field)
            }
        }
    })
}

/// Reads JSON; an empty body reads as `{}`.
fn read_json<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if json_depth(body) > JSON_DEPTH_MAX {
        return Err(problems::too_deep(JSON_DEPTH_MAX));
    }
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| {
        let words = error.to_string();
        match (unknown_field(&words), missing_field(&words)) {
            (Some(field), _) => problems::bad_json(words, Some(field)),
            (None, missing) => {
                let field = missing.or_else(|| doubled_field(&words));
                let field = field.or_else(|| json_culprit::<T>(body));
                name(problems::bad_json(words, None), field)
            }
        }
    })
}

fn name(problem: Problem, field: Option<String>) -> Problem {
    match field {
        Some(field) => problem.with_field(field),
        None => problem,
    }
}

/// The field whose value is of the wrong kind: the first one that cannot be read alone either.
fn json_culprit<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    fields.into_iter().find_map(|(name, value)| {
        let alone = serde_json::to_string(&BTreeMap::from([(&name, value)])).ok()?;
        let words = serde_json::from_str::<T>(&alone).err()?.to_string();
        missing_field(&words).is_none().then_some(name)
    })
}

/// The same for CBOR; none if the document is no map of texts, or breaks off.
fn cbor_culprit<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<String> {
    let mut decoder = minicbor::Decoder::new(body);
    for _ in 0..decoder.map().ok()?? {
        let start = decoder.position();
        let name = decoder.str().ok()?.to_owned();
        decoder.skip().ok()?;
        // A map of one entry.
        let alone = [&[0xa1], &body[start..decoder.position()]].concat();
        let error = from_slice::<T>(&alone).err();
        if error.is_some_and(|error| missing_field(&error.to_string()).is_none()) {
            return Some(name);
        }
    }
    None
}

/// The field that the reader missed, out of its own words.
fn missing_field(words: &str) -> Option<String> {
    let (_, rest) = words.split_once("missing field `")?;
    Some(rest.split('`').next().unwrap_or("").to_owned())
}

/// The field that the reader met twice, out of its own words.
fn doubled_field(words: &str) -> Option<String> {
    let (_, rest) = words.split_once("duplicate field `")?;
    Some(rest.split('`').next().unwrap_or("").to_owned())
}

/// The field that the reader did not know, out of its own words.
fn unknown_field(words: &str) -> Option<String> {
    let (_, rest) = words.split_once("unknown field `")?;
    Some(rest.split('`').next().unwrap_or("").to_owned())
}

/// Checks the length of a list.
pub(in crate::http) fn check_count(
    field: &str,
    count: usize,
    items_max: usize,
) -> Result<(), Problem> {
    if (1..=items_max).contains(&count) {
        Ok(())
    } else {
        Err(problems::bad_count(field, count, items_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_api::v1::{ClaimRequest, NewTask};

    #[test]
    fn an_unknown_field_is_named() {
        let problem = read_json::<NewTask>(b"{\"quue\": \"a\"}").unwrap_err();
        assert_eq!((problem.status, &*problem.code), (400, "unknown_field"));
        assert_eq!(problem.field.as_deref(), Some("quue"));
    }

    // X7
    #[test]
    fn deep_json_is_refused_before_it_is_read() {
        let deep = format!("{{\"payload\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read_json::<NewTask>(deep.as_bytes()).unwrap_err().code, "json_too_deep");
    }

    #[test]
    fn wrong_kinds_and_missing_fields_are_named_in_both_forms() {
        // {"queue": "a", "priority": "high"}
        let cbor = b"\xa2\x65queue\x61a\x68priority\x64high";
        let problem = read_document_as::<NewTask>(Form::Cbor, cbor).unwrap_err();
        assert_eq!((&*problem.code, problem.field.as_deref()), ("bad_cbor", Some("priority")));
        // {"queues": ["a"]}
        let cbor = b"\xa1\x66queues\x81\x61a";
        let problem = read_document_as::<ClaimRequest>(Form::Cbor, cbor).unwrap_err();
        assert_eq!((&*problem.code, problem.field.as_deref()), ("bad_cbor", Some("worker")));
        let problem = read_json::<ClaimRequest>(b"{\"queues\": [\"a\"]}").unwrap_err();
        assert_eq!((&*problem.code, problem.field.as_deref()), ("bad_json", Some("worker")));
        // A list that is none, and bytes that break off: no field, and no panic.
        for broken in [&b"\x83\x01"[..], b"\xa1\x66queues", b"\xbf\xff", b"\xa1\x01\x02"] {
            let problem = read_document_as::<ClaimRequest>(Form::Cbor, broken).unwrap_err();
            assert_eq!(problem.code, "bad_cbor", "{broken:x?}");
        }
    }

    #[test]
    fn a_field_that_is_there_twice_is_named_in_both_forms() {
        let problem = read_json::<NewTask>(b"{\"id\": \"a\", \"id\": \"b\"}").unwrap_err();
        assert_eq!((&*problem.code, problem.field.as_deref()), ("bad_json", Some("id")));
        let cbor = b"\xa2\x62id\x61a\x62id\x61b";
        let problem = read_document_as::<NewTask>(Form::Cbor, cbor).unwrap_err();
        assert_eq!((&*problem.code, problem.field.as_deref()), ("bad_cbor", Some("id")));
    }

    #[test]
    fn broken_json_says_where() {
        let problem = read_json::<NewTask>(b"{\"queue\": }").unwrap_err();
        assert_eq!(problem.code, "bad_json");
        assert!(problem.detail.contains("column"));
    }
}
