//! Serving one pipe: a loop that starts calls and finishes them, and a writer that sends whatever answers there are in
//! one go.
//!
//! Writes (enqueue, complete, fail) are handed to the node together, as many as one read brought, and finished in this
//! loop: no task, no lock and no wake-up per call. Claims and renewals run as tasks of their own, and so do the few writes
//! that wait for more than the log (`writes.rs`).
//!
//! Calls begin only while the client takes its answers (`outlet.rs`).

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use ikada_api::pipe::{FrontFrame, LENGTH_BYTES, PipeAsk, PipeVerb, front_frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;

use super::call::{answer_frame, encode_problem, read_call_number};
use super::outlet::{Outlet, UNSENT_BYTES_MAX, outlet, write_answers};
use super::writes::{Begun, Writes};
use crate::auth::Principal;
use crate::http::app::App;
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::trace::Trace;

/// Calls in flight on one pipe; further ones wait unread, which slows the sender down.
const CALLS_MAX: usize = 4_096;
/// Room asked of the kernel per read.
const READ_BYTES: usize = 64 << 10;
/// What a frame may hold besides its body.
const FRAME_EXTRA_BYTES: usize = 1 << 10;

/// Serves until the client goes away, sends nonsense, or the door closes.
pub(super) async fn serve<D, S>(app: &Arc<App<D>>, stream: S, caller: Trace)
where
    D: Door,
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = tokio::io::split(stream);
    let (out, answers) = outlet();
    let writing = tokio::spawn(write_answers(writer, answers));
    let principal = caller.principal.clone().unwrap_or_else(|| app.anyone.clone());
    let writes = Writes::new(app, principal.clone(), caller.clone());
    let mut pipe = Pipe { app, principal, caller, out, writes, calls: JoinSet::new() };
    pipe.run(reader).await;
    drop(pipe);
    let _ = writing.await;
}

struct Pipe<'a, D: Door> {
    app: &'a Arc<App<D>>,
    principal: Arc<Principal>,
    caller: Trace,
    /// Encoded answers on their way to the writer.
    out: Outlet,
    writes: Writes<'a, D>,
    /// All other calls. Dropped with the pipe, which ends them: a claim under way is given back.
    calls: JoinSet<()>,
}

impl<D: Door> Pipe<'_, D> {
    async fn run(&mut self, mut reader: impl AsyncRead + Unpin) {
        let mut stopping = self.app.stopping.clone();
        let standing = self.app.security.standing(&self.principal);
        let revoked = standing.ended();
        tokio::pin!(revoked);
        let mut buffer = BytesMut::with_capacity(READ_BYTES);
        loop {
            if !self.take_frames(&mut buffer) {
                return;
            }
            let room = self.has_room();
            buffer.reserve(READ_BYTES);
            tokio::select! {
                read = reader.read_buf(&mut buffer), if room => {
                    if !matches!(read, Ok(count) if count > 0) {
                        return;
                    }
                }
                Some(answers) = self.writes.answered.recv() => {
                    self.out.send(self.writes.finish(answers));
                }
                Some(_) = self.calls.join_next() => {}
                // Without room nothing is read, so that only the writer can tell that the client is gone.
                here = self.out.fell(), if !room => if !here { return },
                // Calls that wait end with the pipe, and what they were granted goes back.
                () = &mut revoked => return,
                () = told_to_stop(&mut stopping) => return self.end_in_order().await,
            }
        }
    }

    fn has_room(&self) -> bool {
        self.writes.len() + self.calls.len() < CALLS_MAX && !self.out.is_full()
    }

    /// Starts the calls of all whole frames, as far as there is room; false if the client sends nonsense.
    fn take_frames(&mut self, buffer: &mut BytesMut) -> bool {
        let frame_bytes_max = self.app.limits.batch_body_bytes_max + FRAME_EXTRA_BYTES;
        let mut answers = Vec::new();
        while self.has_room() && answers.len() < UNSENT_BYTES_MAX {
            let length = match front_frame(buffer, frame_bytes_max) {
                FrontFrame::Whole(message) => message.len(),
                FrontFrame::Part => break,
                FrontFrame::TooLong(_) => return false,
            };
            buffer.advance(LENGTH_BYTES);
            let frame = buffer.split_to(length).freeze();
            if !self.take_frame(&frame, &mut answers) {
                return false;
            }
        }
        self.writes.send_gathered();
        self.out.send(answers);
        true
    }

    fn take_frame(&mut self, frame: &Bytes, answers: &mut Vec<u8>) -> bool {
        match minicbor::decode::<PipeAsk<'_>>(frame) {
            Ok(ask) => match ask.verb {
                PipeVerb::Enqueue | PipeVerb::Complete | PipeVerb::Fail => {
                    if self.writes.begin(&ask, answers) == Begun::NotHere {
                        self.spawn_call(frame.clone());
                    }
                }
                PipeVerb::Claim | PipeVerb::Renew => self.spawn_call(frame.clone()),
            },
            Err(error) => {
                let Some(call) = read_call_number(frame) else {
                    return false;
                };
                let refused = problems::bad_cbor(format!("pipe frame: {error}"), None);
                answers.extend(encode_problem(self.app, call, &refused));
            }
        }
        true
    }

    /// Has a call carried out by the handler of its route, beside all others.
    fn spawn_call(&mut self, frame: Bytes) {
        let (app, out) = (self.app.clone(), self.out.clone());
        let (principal, caller) = (self.principal.clone(), self.caller.clone());
        self.calls.spawn(async move {
            if let Some(answer) = answer_frame(&app, &principal, caller, &frame).await {
                out.send(answer);
            }
        });
    }

    /// The door closes: what was asked is still answered, within the grace time.
    async fn end_in_order(&mut self) {
        let grace = self.app.limits.stop_grace;
        let all = async {
            while self.writes.len() > 0 {
                let Some(answers) = self.writes.answered.recv().await else { break };
                self.out.send(self.writes.finish(answers));
            }
            while self.calls.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(grace, all).await;
    }
}
