//! Serving one pipe: a reader that starts calls, and a writer that sends whatever answers there are in one go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use ikada_api::cbor::to_vec;
use ikada_api::pipe::{FrontFrame, LENGTH_BYTES, PipeAnswer, PipeAsk, front_frame, push_frame};
use ikada_api::state::{Namespace, RequestId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::http::answer::Stop;
use crate::http::app::{App, BODY_UNIT_BYTES};
use crate::http::connection::told_to_stop;
use crate::http::dispatch::run;
use crate::http::door::Door;
use crate::http::guard::Contained;
use crate::http::problems;
use crate::http::request::Context;

/// Calls in flight on one pipe; further ones wait unread, which slows the sender down.
const CALLS_MAX: usize = 4_096;
/// Room asked of the kernel per read.
const READ_BYTES: usize = 64 << 10;
/// Answers sent with one write.
const ANSWERS_PER_WRITE: usize = 1_024;
/// What a frame may hold besides its body.
const FRAME_EXTRA_BYTES: usize = 1 << 10;

/// One encoded answer; its permit is given back once it is written.
type Encoded = (Vec<u8>, OwnedSemaphorePermit);

/// Serves until the client goes away, sends nonsense, or the door closes.
pub(super) async fn serve<D, S>(app: &Arc<App<D>>, stream: S)
where
    D: Door,
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = tokio::io::split(stream);
    let (answers, encoded) = mpsc::unbounded_channel();
    let writing = tokio::spawn(write_answers(writer, encoded));
    let mut stopping = app.stopping.clone();
    let mut calls = JoinSet::new();
    tokio::select! {
        () = read_calls(app, reader, &answers, &mut calls) => calls.abort_all(),
        () = told_to_stop(&mut stopping) => {
            // What was asked is still answered.
            let all = async { while calls.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(app.limits.stop_grace, all).await;
        }
    }
    drop((answers, calls));
    let _ = writing.await;
}

async fn read_calls<D: Door>(
    app: &Arc<App<D>>,
    mut reader: impl AsyncRead + Unpin,
    answers: &mpsc::UnboundedSender<Encoded>,
    calls: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(CALLS_MAX));
    let frame_bytes_max = app.limits.batch_body_bytes_max + FRAME_EXTRA_BYTES;
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        loop {
            let length = match front_frame(&buffer, frame_bytes_max) {
                FrontFrame::Whole(message) => message.len(),
                FrontFrame::Part => break,
                FrontFrame::TooLong(_) => return,
            };
            buffer.advance(LENGTH_BYTES);
            let frame = buffer.split_to(length).freeze();
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let (app, answers) = (app.clone(), answers.clone());
            calls.spawn(async move {
                if let Some(answer) = answer_frame(&app, &frame).await {
                    // A writer that is gone means that the client is.
                    let _ = answers.send((answer, place));
                }
            });
        }
        // Calls that have ended are collected as others come.
        while calls.try_join_next().is_some() {}
        buffer.reserve(READ_BYTES);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

async fn write_answers(
    mut writer: impl AsyncWrite + Unpin,
    mut encoded: mpsc::UnboundedReceiver<Encoded>,
) {
    let mut batch = Vec::with_capacity(ANSWERS_PER_WRITE);
    let mut bytes = Vec::new();
    while encoded.recv_many(&mut batch, ANSWERS_PER_WRITE).await > 0 {
        bytes.clear();
        for (answer, _) in &batch {
            bytes.extend_from_slice(answer);
        }
        let written = writer.write_all(&bytes).await;
        batch.clear();
        if written.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

/// Carries out one call; none if its frame has no call number to answer to.
async fn answer_frame<D: Door>(app: &App<D>, frame: &Bytes) -> Option<Vec<u8>> {
    let ask: PipeAsk<'_> = match minicbor::decode(frame) {
        Ok(ask) => ask,
        Err(error) => {
            let call = read_call_number(frame)?;
            let refused = problems::bad_cbor(format!("pipe frame: {error}"), None);
            return Some(encode_problem(app, call, &refused));
        }
    };
    let answered = Contained(Box::pin(carry_out(app, &ask))).await.unwrap_or_else(|_| {
        app.counters.panics.fetch_add(1, Ordering::Relaxed);
        Err(problems::internal().into())
    });
    Some(match answered {
        Ok((status, body)) => {
            app.counters.count(status);
            let mut encoded = Vec::with_capacity(body.len() + 32);
            let body = (&*body).into();
            push_frame(&mut encoded, &PipeAnswer { call: ask.call, status, body });
            encoded
        }
        Err(Stop::Problem(problem)) => encode_problem(app, ask.call, &problem),
        // A pipe never asks to be redirected.
        Err(Stop::Redirect(_)) => encode_problem(app, ask.call, &problems::internal()),
    })
}

async fn carry_out<D: Door>(app: &App<D>, ask: &PipeAsk<'_>) -> Result<(u16, Bytes), Stop> {
    let _permit = app.requests.try_acquire().map_err(|_| problems::door_full("requests"))?;
    let units = ask.body.len().div_ceil(BODY_UNIT_BYTES) as u32;
    let _memory = app.bodies.try_acquire_many(units).map_err(|_| problems::door_full("bodies"))?;
    let context = read_context(app, ask)?;
    let reply = run(app, ask.verb.operation(), &context, ask.body).await?;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok((status, body))
}

fn read_context<D: Door>(app: &App<D>, ask: &PipeAsk<'_>) -> Result<Context, Stop> {
    let max_ms = app.limits.timeout_max.as_millis() as u32;
    if !(1..=max_ms).contains(&ask.timeout_ms) {
        let rule = format!("must be 1 to {max_ms}");
        return Err(problems::bad_parameter("timeout_ms", rule).into());
    }
    let bad = |name: &'static str| {
        move |error: ikada_api::state::NameError| {
            Stop::from(problems::bad_parameter(name, error.to_string()))
        }
    };
    let namespace = match ask.namespace {
        Some(text) => Namespace::parse(text).map_err(bad("namespace"))?,
        None => Namespace::default(),
    };
    let key = ask.key.map(RequestId::parse).transpose().map_err(bad("key"))?;
    Ok(Context::of_pipe(namespace, Duration::from_millis(u64::from(ask.timeout_ms)), key))
}

fn encode_problem<D>(app: &App<D>, call: u64, problem: &ikada_api::Problem) -> Vec<u8> {
    app.counters.count(problem.status);
    let body = to_vec(problem).unwrap_or_default();
    let mut encoded = Vec::with_capacity(body.len() + 32);
    let body = body.as_slice().into();
    push_frame(&mut encoded, &PipeAnswer { call, status: problem.status, body });
    encoded
}

/// The call number of a frame that is otherwise broken.
fn read_call_number(frame: &[u8]) -> Option<u64> {
    let mut decoder = minicbor::Decoder::new(frame);
    decoder.array().ok()?;
    decoder.u64().ok()
}
