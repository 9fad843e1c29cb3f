//! Building responses.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use ikada_api::Problem;
use ikada_api::cbor::{CBOR_TYPE, to_vec};
use ikada_api::convert::Form;
use ikada_api::problem::PROBLEM_TYPE;
use ikada_api::state::{Lsn, ShardId};
use ikada_api::v1::{AGE_HEADER, LSN_HEADER, print_positions};

use super::problems;
use super::request::Context;

/// The body of every response.
pub(super) type ReplyBody = BoxBody<Bytes, Infallible>;
/// A response.
pub(super) type Reply = Response<ReplyBody>;

/// Why a handler has no ordinary answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// Something is wrong; the caller is told what.
    Problem(Box<Problem>),
    /// Another node leads, and the caller asked to be told.
    Redirect(u64),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Stop::Problem(Box::new(problem))
    }
}

/// A JSON document.
pub(super) fn json<T: serde::Serialize>(status: StatusCode, document: &T) -> Result<Reply, Stop> {
    let bytes = serde_json::to_vec(document).map_err(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        problems::internal()
    })?;
    Ok(reply(status, "application/json", Bytes::from(bytes)))
}

/// A document in the form that the caller wants.
pub(super) fn show_document<T: serde::Serialize>(
    context: &Context,
    status: StatusCode,
    document: &T,
) -> Result<Reply, Stop> {
    match context.form_wanted {
        Form::Json => json(status, document),
        Form::Cbor => {
            let bytes = to_vec(document).map_err(|error| {
                tracing::error!(%error, "an answer could not be written as CBOR");
                problems::internal()
            })?;
            Ok(reply(status, CBOR_TYPE, Bytes::from(bytes)))
        }
    }
}

/// Plain text.
pub(super) fn text(status: StatusCode, media_type: &'static str, text: impl Into<String>) -> Reply {
    reply(status, media_type, Bytes::from(text.into()))
}

fn reply(status: StatusCode, media_type: &'static str, bytes: Bytes) -> Reply {
    with_body(status, media_type, Full::new(bytes).boxed())
}

/// Any body.
pub(super) fn with_body(status: StatusCode, media_type: &'static str, body: ReplyBody) -> Reply {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    // State changes under a reader's feet: nothing between us and the caller may keep an answer.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// A problem document.
pub(super) fn problem(problem: &Problem) -> Reply {
    problem_as(problem, Form::Json)
}

/// A problem document in the form that the caller wants.
pub(super) fn problem_as(problem: &Problem, form: Form) -> Reply {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (media_type, bytes) = match form {
        Form::Json => (PROBLEM_TYPE, serde_json::to_vec(problem).unwrap_or_default()),
        Form::Cbor => (CBOR_TYPE, to_vec(problem).unwrap_or_default()),
    };
    let mut response = reply(status, media_type, Bytes::from(bytes));
    if problem.status == 401 {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = problem.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer to a method that a path does not have.
pub(super) fn method_not_allowed(method: &str, verbs: &[ikada_api::routes::Verb]) -> Reply {
    let mut response = problem(&problems::bad_method(method, verbs));
    let allowed: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    if let Ok(value) = HeaderValue::from_str(&allowed.join(", ")) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

/// 307 to the same path and query at another node (B4-53, B4-55); the caller resends its body (B4-56).
pub(super) fn redirect(scheme: &str, address: &str, path_and_query: &str) -> Reply {
    let location = format!("{scheme}://{address}{path_and_query}");
    let Ok(value) = HeaderValue::from_str(&location) else {
        return problem(&problems::internal());
    };
    let mut response = text(StatusCode::TEMPORARY_REDIRECT, "text/plain", "ask the leader\n");
    response.headers_mut().insert(LOCATION, value);
    response
}

/// Adds the positions that were written or read.
pub(super) fn add_positions(response: &mut Reply, positions: &[(ShardId, Lsn)]) {
    if positions.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&print_positions(positions.iter().copied())) {
        response.headers_mut().insert(LSN_HEADER, value);
    }
}

/// Labels a stale answer with its age.
pub(super) fn add_age(response: &mut Reply, age_ms: u64) {
    response.headers_mut().insert(AGE_HEADER, HeaderValue::from(age_ms));
}
