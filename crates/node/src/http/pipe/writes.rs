//! The writes of one pipe: read, handed to the node together, and finished as its answers come.
//!
//! Promise: each write has an answer of its own, whatever became of those that were handed over with it. Dropped, all
//! open writes are forgotten by the node, and leave their lines in the audit log: what was handed over may still be done.
//!
//! Leaves out: writes that wait for more than the log, which are [`Begun::NotHere`]: those that name a program to be looked
//! up, bring outputs to be confirmed, reuse results by what their inputs hold, or ask for further tasks. Their routes do that.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ikada_api::convert::{BuiltinPrograms, FindProgram};
use ikada_api::pipe::{PipeAsk, PipeVerb};
use ikada_api::state::{Command, Namespace, ProgramName, ProgramRef};
use ikada_replica::call::{Answer, Call, CallId, Request};
use tokio::sync::{SemaphorePermit, mpsc};

use super::call::{admit, describe, encode_answer, lane_of, read_context, status_of};
use crate::admission::Lane;
use crate::auth::Principal;
use crate::driver::AnswerSender;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::judge;
use crate::http::door::Door;
use crate::http::namespaces::{admit_follow_ups, admit_tasks};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::subject::Subject;
use crate::http::tasks::{
    Enqueuing, Item, Writing, Written, read_completions, read_failures, show_report,
};
use crate::http::trace::{Trace, note, note_unanswered, subject_of};

/// One submission in so many is timed: enough for an average, and the others stay cheap.
const TIMED_EVERY: u64 = 16;

pub(super) struct Writes<'a, D: Door> {
    app: &'a App<D>,
    principal: Arc<Principal>,
    caller: Trace,
    open: HashMap<CallId, OpenWrite<'a>>,
    /// Begun and not handed over yet.
    gathered: Vec<Call>,
    answers: AnswerSender,
    /// Answers of the node.
    pub(super) answered: mpsc::UnboundedReceiver<Vec<(CallId, Answer)>>,
}

struct OpenWrite<'a> {
    /// The client's number for it.
    call: u64,
    context: Context,
    kind: Kind,
    writing: Writing,
    /// For the audit log, where there is one.
    trace: Option<Box<Trace>>,
    _permits: [SemaphorePermit<'a>; 2],
}

enum Kind {
    /// If it is timed: when it was begun, and whether it met no other.
    Enqueue(Enqueuing, Option<(Instant, bool)>),
    Report,
}

impl Kind {
    fn show(self, context: &Context, written: Written) -> Result<Reply, Stop> {
        match self {
            Kind::Enqueue(enqueuing, _) => enqueuing.show(context, written),
            Kind::Report => show_report(context, written, None),
        }
    }

    fn request(&self) -> Option<&str> {
        match self {
            Kind::Enqueue(enqueuing, _) => Some(enqueuing.request()),
            Kind::Report => None,
        }
    }
}

/// Where a write was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// Here: its answer is there, or comes.
    Here,
    /// It takes the handler of its route, and nothing of it was begun.
    NotHere,
}

/// What is known of a write that was read.
enum Read {
    Answered(Reply),
    Sent,
    NotHere,
}

/// Programs that are built in, and whether others were asked for.
#[derive(Default)]
struct Builtin {
    missed: Cell<bool>,
}

impl FindProgram for Builtin {
    fn find(&self, namespace: &Namespace, name: &ProgramName) -> Option<ProgramRef> {
        let found = BuiltinPrograms.find(namespace, name);
        self.missed.set(self.missed.get() || found.is_none());
        found
    }
}

impl<'a, D: Door> Writes<'a, D> {
    pub(super) fn new(app: &'a App<D>, principal: Arc<Principal>, caller: Trace) -> Self {
        let (answers, answered) = mpsc::unbounded_channel();
        let (open, gathered) = (HashMap::new(), Vec::new());
        Writes { app, principal, caller, open, gathered, answers, answered }
    }

    /// How many are not answered yet.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Begins a write. What can be answered at once is appended to the answers.
    pub(super) fn begin(&mut self, ask: &PipeAsk<'_>, answers: &mut Vec<u8>) -> Begun {
        let app = self.app;
        let subject = subject_of(app, ask.verb.operation());
        let answered = match contain(app, || self.prepare(ask, &subject)) {
            Ok(Read::NotHere) => return Begun::NotHere,
            Ok(Read::Sent) => return Begun::Here,
            Ok(Read::Answered(reply)) => Ok(reply),
            Err(stop) => Err(stop),
        };
        if app.security.audit.is_some() {
            note(app, &self.trace(ask, subject), status_of(&answered));
        }
        encode_answer(app, ask.call, answered, answers);
        Begun::Here
    }

    fn trace(&self, ask: &PipeAsk<'_>, subject: Subject) -> Trace {
        let mut trace = Trace { subject, ..self.caller.clone() };
        describe(&mut trace, ask);
        trace
    }

    fn prepare(&mut self, ask: &PipeAsk<'_>, subject: &Subject) -> Result<Read, Stop> {
        let permits = admit(self.app, ask)?;
        let context = read_context(self.app, &self.principal, ask, subject)?;
        let (programs, mut claims) = (Builtin::default(), false);
        let (kind, mut items) = match ask.verb {
            PipeVerb::Enqueue => {
                let mut enqueuing = Enqueuing::read(self.app, &context, ask.body, &programs)?;
                let items = std::mem::take(&mut enqueuing.items);
                let alone = self.app.rooms.under_way(Lane::Submit) <= 1;
                let timed = alone || ask.call.is_multiple_of(TIMED_EVERY);
                let begun = timed.then(|| (Instant::now(), alone));
                (Kind::Enqueue(enqueuing, begun), items)
            }
            PipeVerb::Fail => (Kind::Report, read_failures(self.app, &context, ask.body)?),
            _ => {
                let (items, claim) = read_completions(self.app, &context, ask.body, &programs)?;
                claims = claim.is_some();
                (Kind::Report, items)
            }
        };
        if claims || programs.missed.get() || items.iter().any(waits_for_more) {
            // It is judged again there, and counted then.
            self.app.admission.uncount(lane_of(ask.verb));
            return Ok(Read::NotHere);
        }
        match kind {
            Kind::Enqueue(..) => admit_tasks(self.app, &context, items.len())?,
            Kind::Report => admit_follow_ups(self.app, &context, &mut items),
        }
        let mut writing = Writing::prepare(items);
        let orders = std::mem::take(&mut writing.orders);
        if orders.is_empty() {
            return kind.show(&context, writing.finish_unasked()).map(Read::Answered);
        }
        let id = self.app.door.next_call();
        let (timeout_ms, routing) = (context.timeout.as_millis() as u64, context.routing);
        self.gathered.push(Call { id, timeout_ms, routing, request: Request::Write(orders) });
        let audit = self.app.security.audit.as_ref();
        let trace = audit.map(|_| Box::new(self.trace(ask, subject.clone())));
        let open = OpenWrite { call: ask.call, context, kind, writing, trace, _permits: permits };
        self.open.insert(id, open);
        Ok(Read::Sent)
    }

    /// Hands everything begun to the node.
    pub(super) fn send_gathered(&mut self) {
        if !self.gathered.is_empty() {
            let calls = std::mem::take(&mut self.gathered);
            self.app.door.call_many(calls, self.answers.clone());
        }
    }

    /// The frames of finished writes.
    pub(super) fn finish(&mut self, answers: Vec<(CallId, Answer)>) -> Vec<u8> {
        let mut frames = Vec::with_capacity(answers.len() * 128);
        let mut enqueued = 0;
        for (id, answer) in answers {
            let Some(open) = self.open.remove(&id) else {
                continue;
            };
            let OpenWrite { call, context, kind, writing, trace, _permits } = open;
            if let Kind::Enqueue(_, begun) = &kind {
                enqueued += 1;
                if let Some((begun, alone)) = begun {
                    let time = begun.elapsed();
                    self.app.admission.took(Lane::Submit, time);
                    self.app.admission.waited(Lane::Submit, time, *alone);
                }
            }
            let reply = contain(self.app, || {
                let written = writing.finish(judge(answer)?, kind.request())?;
                kind.show(&context, written)
            });
            if let Some(trace) = trace {
                note(self.app, &trace, status_of(&reply));
            }
            encode_answer(self.app, call, reply, &mut frames);
        }
        self.app.admission.settle(Lane::Submit, enqueued);
        frames
    }
}

impl<D: Door> Drop for Writes<'_, D> {
    fn drop(&mut self) {
        for (id, open) in &self.open {
            self.app.door.forget(*id);
            if let Some(trace) = &open.trace {
                note_unanswered(self.app, trace);
            }
        }
    }
}

/// Whether an order waits for other nodes or looks at the state before it can be proposed.
fn waits_for_more(item: &Item) -> bool {
    match item.order.as_ref().map(|order| &order.command) {
        Ok(Command::Complete(complete)) => !complete.outputs.is_empty(),
        Ok(Command::Enqueue(enqueue)) => {
            let work = enqueue.options.as_ref().and_then(|options| options.work.as_ref());
            work.is_some_and(|work| work.reuses())
        }
        _ => false,
    }
}

/// Keeps a defect in one call away from the others.
fn contain<D, T>(app: &App<D>, work: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        app.counters.panics.fetch_add(1, Ordering::Relaxed);
        Err(problems::internal().into())
    })
}
