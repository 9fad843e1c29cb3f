//! One call of a pipe, carried out by the handler of its route.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use ikada_api::Problem;
use ikada_api::cbor::to_vec;
use ikada_api::pipe::{PipeAnswer, PipeAsk, PipeVerb, push_frame};
use ikada_api::state::{NameError, Namespace, RequestId};
use tokio::sync::SemaphorePermit;

use crate::admission::Lane;
use crate::auth::Principal;
use crate::http::answer::{Reply, Stop};
use crate::http::app::{App, BODY_UNIT_BYTES};
use crate::http::dispatch::run;
use crate::http::door::Door;
use crate::http::guard::Contained;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::security::{allow, enter, policy_of};
use crate::http::subject::Subject;
use crate::http::trace::{Line, Trace, subject_of};

/// Carries out one call; none if its frame cannot be read.
pub(super) async fn answer_frame<D: Door>(
    app: &App<D>,
    principal: &Arc<Principal>,
    mut caller: Trace,
    frame: &Bytes,
) -> Option<Vec<u8>> {
    let ask: PipeAsk<'_> = minicbor::decode(frame).ok()?;
    caller.subject = subject_of(app, ask.verb.operation());
    describe(&mut caller, &ask);
    let line = Line::new(app, caller);
    let call = Box::pin(carry_out(app, principal, &ask, &line.subject));
    let answered = Contained(call).await.unwrap_or_else(|_| {
        app.counters.panics.fetch_add(1, Ordering::Relaxed);
        Err(problems::internal().into())
    });
    line.note(status_of(&answered));
    let mut encoded = Vec::new();
    encode_answer(app, ask.call, answered, &mut encoded);
    Some(encoded)
}

async fn carry_out<D: Door>(
    app: &App<D>,
    principal: &Arc<Principal>,
    ask: &PipeAsk<'_>,
    subject: &Subject,
) -> Result<Reply, Stop> {
    let _permits = admit(app, ask)?;
    let context = read_context(app, principal, ask, subject)?;
    run(app, ask.verb.operation(), &context, ask.body).await
}

/// What a call is about.
pub(super) fn describe(trace: &mut Trace, ask: &PipeAsk<'_>) {
    trace.operation = Some(ask.verb.operation());
    trace.request = ask.key.and_then(|key| RequestId::parse(key).ok());
    let home = || trace.principal.as_ref().map(|principal| principal.home());
    trace.namespace = match ask.namespace {
        Some(text) => Namespace::parse(text).ok(),
        None => home(),
    };
}

/// The status of an answer.
pub(super) fn status_of(answered: &Result<Reply, Stop>) -> u16 {
    match answered {
        Ok(reply) => reply.status().as_u16(),
        Err(Stop::Problem(problem)) => problem.status,
        Err(Stop::Redirect(_)) => 500,
    }
}

/// The lane of a verb.
pub(super) fn lane_of(verb: PipeVerb) -> Lane {
    match verb {
        PipeVerb::Enqueue => Lane::Submit,
        PipeVerb::Claim => Lane::Claim,
        PipeVerb::Complete | PipeVerb::Fail => Lane::Settle,
        PipeVerb::Renew => Lane::Renew,
    }
}

/// Permits for a call and its body; held until it is answered.
pub(super) fn admit<'a, D: Door>(
    app: &'a App<D>,
    ask: &PipeAsk<'_>,
) -> Result<[SemaphorePermit<'a>; 2], Stop> {
    let left = Some(Duration::from_millis(u64::from(ask.timeout_ms)));
    let place = app.admit(lane_of(ask.verb), left)?;
    let units = ask.body.len().div_ceil(BODY_UNIT_BYTES) as u32;
    let memory = app.bodies.try_acquire_many(units).map_err(|_| problems::door_full("bodies"))?;
    Ok([place, memory])
}

/// The context of a call, checked.
pub(super) fn read_context<D: Door>(
    app: &App<D>,
    principal: &Arc<Principal>,
    ask: &PipeAsk<'_>,
    subject: &Subject,
) -> Result<Context, Stop> {
    let operation = ask.verb.operation();
    let policy = policy_of(operation).ok_or_else(problems::internal)?;
    allow(app, operation, policy, principal)?;
    let max_ms = app.limits.timeout_max.as_millis() as u32;
    if !(1..=max_ms).contains(&ask.timeout_ms) {
        let rule = format!("must be 1 to {max_ms}");
        return Err(problems::bad_parameter("timeout_ms", rule).into());
    }
    let bad = |name: &'static str| {
        move |error: NameError| Stop::from(problems::bad_parameter(name, error.to_string()))
    };
    let named = ask.namespace.map(Namespace::parse).transpose().map_err(bad("namespace"))?;
    let namespace = enter(app, principal, named)?;
    let key = ask.key.map(RequestId::parse).transpose().map_err(bad("key"))?;
    let timeout = Duration::from_millis(u64::from(ask.timeout_ms));
    let mut context = Context::of_pipe(principal.clone(), namespace, timeout, key);
    context.subject = subject.clone();
    Ok(context)
}

/// Appends the frame of an answer, and counts it.
pub(super) fn encode_answer<D>(
    app: &App<D>,
    call: u64,
    answered: Result<Reply, Stop>,
    frames: &mut Vec<u8>,
) {
    match answered {
        Ok(reply) => {
            let status = reply.status().as_u16();
            app.counters.count(status);
            let body = body_of(reply);
            let body = (&*body).into();
            push_frame(frames, &PipeAnswer { call, status, body });
        }
        Err(Stop::Problem(problem)) => frames.extend(encode_problem(app, call, &problem)),
        // A pipe never asks to be redirected.
        Err(Stop::Redirect(_)) => frames.extend(encode_problem(app, call, &problems::internal())),
    }
}

/// The bytes of an answer whose body is in memory, as all documents are.
fn body_of(reply: Reply) -> Bytes {
    let mut collecting = std::pin::pin!(reply.into_body().collect());
    match collecting.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(Ok(body)) => body.to_bytes(),
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => Bytes::new(),
    }
}

/// The frame of a problem.
pub(super) fn encode_problem<D>(app: &App<D>, call: u64, problem: &Problem) -> Vec<u8> {
    app.counters.count(problem.status);
    let body = to_vec(problem).unwrap_or_default();
    let mut encoded = Vec::with_capacity(body.len() + 32);
    let body = body.as_slice().into();
    push_frame(&mut encoded, &PipeAnswer { call, status: problem.status, body });
    encoded
}

/// The call number of a frame that is otherwise broken.
pub(super) fn read_call_number(frame: &[u8]) -> Option<u64> {
    let mut decoder = minicbor::Decoder::new(frame);
    decoder.array().ok()?;
    decoder.u64().ok()
}
