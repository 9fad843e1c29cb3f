//! The S3 door: objects for programs that speak S3 (boto3, aws-cli, rclone).
//!
//! Promise: what it stores and shows is the same as under `/v1/objects`, through the same admission, policies, audit and
//! bounds. A call is let in by signature version 4 (header or presigned), whose key is one of `ikada auth s3-key`; bytes
//! are checked against every digest that came with them before their name is committed. Where no tokens are asked for,
//! any key will do.
//!
//! Leaves out: versions, access lists, tags, storage classes, buckets as records (a bucket is there when it holds
//! something), and MD5: an ETag is the BLAKE3 digest.

mod body;
mod buckets;
mod chunked;
mod copy;
#[cfg(test)]
mod copy_test;
mod fault;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod headers;
mod list;
mod multipart;
mod object;
mod route;
mod sign;
mod sums;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use ikada_api::routes::Operation;
use ikada_api::state::TokenId;

use self::fault::Fault;
use self::route::{Action, Call};
use self::sign::{ChunkKey, Signed};
use super::answer::{Reply, Stop};
use super::app::App;
use super::door::Door;
use super::objects::check_bucket;
use super::passage::{check_head, contain, finish, in_lane};
use super::problems;
use super::request::Context;
use super::security::{Source, allow, enter as enter_namespace, policy_of, trust};
use super::trace::{Line, Trace, subject_of};
use crate::admission::Lane;
use crate::auth::{Denied, Flaw, Principal};
use crate::watch::wall_ms;

/// Who calls, and what was proved of the bytes to come.
struct Entered {
    principal: Arc<Principal>,
    signed: Option<Signed>,
    chunk_key: Option<ChunkKey>,
}

/// Answers one request, whatever happens.
pub(super) async fn answer<D, B>(app: &App<D>, request: Request<B>) -> Reply
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let source = request.extensions().get::<Source>().map(|source| source.address);
    let path = request.uri().path().to_owned();
    // Whoever names objects in the body has told them; the path is but their bucket.
    let trace = Trace { source, subject_is_all: true, ..Trace::default() };
    let mut line = Line::new(app, trace);
    let outcome = contain(app, Box::pin(respond(app, request, &mut line))).await;
    let outcome = outcome.unwrap_or_else(|| Err(problems::internal().into()));
    let mut response = outcome.unwrap_or_else(|fault| fault.show(&path));
    let id = format!("{:016x}", app.draw());
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-amz-request-id", id);
    }
    finish(app, line, &response).await;
    response
}

async fn respond<D, B>(app: &App<D>, request: Request<B>, trace: &mut Trace) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    check_head(app, &parts)?;
    let entered = enter(app, &parts).await?;
    trace.principal = Some(entered.principal.clone());
    let call = Call::read(&parts)?;
    let operation = call.action.operation();
    trace.operation = Some(operation);
    trace.object = Some(call.name());
    let policy = policy_of(operation).ok_or_else(problems::internal)?;
    allow(app, operation, policy, &entered.principal)?;
    // No call of this door names a namespace: it works in the key's own, if that is one which the key may use.
    trace.namespace = Some(entered.principal.home());
    let namespace = enter_namespace(app, &entered.principal, None)?;
    let names = vec![call.bucket.clone(), call.key.clone()];
    let timeout = app.limits.timeout_default;
    let mut context = Context::of_s3(entered.principal.clone(), namespace, names, timeout);
    trace.subject = subject_of(app, operation);
    context.subject = trace.subject.clone();
    let serving = || serve(app, &context, &parts, call, &entered, body);
    in_lane(app, lane_of(operation), None, &parts, serving).await
}

fn lane_of(operation: Operation) -> Lane {
    match operation {
        Operation::PutObject => Lane::Upload,
        Operation::GetObject => Lane::Download,
        Operation::DeleteObject => Lane::Submit,
        _ => Lane::List,
    }
}

async fn serve<D, B>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: Call,
    entered: &Entered,
    body: B,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if call.action.writes() {
        check_bucket(&buckets::bucket(context)?)?;
    }
    let body = app.security.standing(&context.principal).vouch_for(body);
    let reader = body::Reader::new(app, parts, entered, call.action, body)?;
    match call.action {
        Action::ListBuckets => buckets::list(app, context, &call).await,
        Action::CreateBucket => buckets::create(context),
        Action::HeadBucket => buckets::head(context),
        Action::DeleteBucket => buckets::delete(app, context).await,
        Action::Location => Ok(buckets::location()),
        Action::Versioning => buckets::versioning(context),
        Action::ListObjects => list::list(app, context, &call).await,
        Action::DeleteMany => object::delete_many(app, context, reader).await,
        Action::Put => object::put(app, context, parts, reader).await,
        Action::Copy => copy::copy(app, context, parts).await,
        Action::Get => object::get(app, context, parts, &call).await,
        Action::Tags => object::tags(app, context).await,
        Action::Delete => object::delete(app, context, parts).await,
        Action::BeginUpload => multipart::begin(app, context, parts, &call).await,
        Action::PutPart => multipart::put_part(app, context, &call, reader).await,
        Action::CopyPart => copy::copy_part(app, context, parts, &call).await,
        Action::CompleteUpload => multipart::complete(app, context, parts, &call, reader).await,
        Action::AbortUpload => multipart::abort(app, context, &call).await,
        Action::ListParts => multipart::list_parts(app, context, &call).await,
    }
}

/// Recognises the caller by its signature.
async fn enter<D: Door>(app: &App<D>, parts: &Parts) -> Result<Entered, Fault> {
    let entered = look_up(app, parts).await?;
    trust(parts.extensions.get());
    Ok(entered)
}

async fn look_up<D: Door>(app: &App<D>, parts: &Parts) -> Result<Entered, Fault> {
    let Some(gatekeeper) = &app.security.gatekeeper else {
        // Whoever reaches the port may do everything; what was signed still says how the bytes come.
        let signed = Signed::read(parts).ok();
        return Ok(Entered { principal: app.anyone.clone(), signed, chunk_key: None });
    };
    let signed = Signed::read(parts)?;
    let mut found = gatekeeper.s3_key(&signed.key_id, wall_ms());
    if found.is_none() {
        app.refresh_tokens_for_strangers().await;
        found = gatekeeper.s3_key(&signed.key_id, wall_ms());
    }
    let checked =
        found.map(|(principal, secret)| (principal, signed.check(parts, &secret, wall_ms())));
    match checked {
        Some((principal, Ok(chunk_key))) => {
            Ok(Entered { principal, signed: Some(signed), chunk_key: Some(chunk_key) })
        }
        other => {
            app.counters.denied.fetch_add(1, Ordering::Relaxed);
            let source = parts.extensions.get::<Source>().map(|source| source.address);
            let id = TokenId::parse(&signed.key_id).ok();
            let flaw = if other.is_some() { Flaw::WrongSecret } else { Flaw::Unknown };
            app.strangers.denied(source, id.as_ref().map(TokenId::as_str), flaw);
            Err(match (gatekeeper.failed(source, wall_ms()), other) {
                (Denied::TooOften, _) => problems::too_many_failures().into(),
                (Denied::Unknown, Some((_, Err(fault)))) => fault,
                (Denied::Unknown, _) => Fault::key_unknown(),
            })
        }
    }
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Fault {
        match stop {
            Stop::Problem(problem) => (*problem).into(),
            // Nobody asks this door to be redirected.
            Stop::Redirect(_) => problems::internal().into(),
        }
    }
}

#[cfg(test)]
mod guard_test;
#[cfg(test)]
mod s3_test;
