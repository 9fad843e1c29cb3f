//! What the audit log hears of a request (X15).
//!
//! Promise: a call that is noted leaves its line also when nobody waits for its answer any more: what it began goes on, and
//! a caller cannot keep it out of the log by hanging up.

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ikada_api::routes::{Class, Operation, Route, Verb};
use ikada_api::state::{Namespace, RequestId};

use super::app::App;
use super::security::route_of;
use super::subject::Subject;
use crate::audit::{Action, AuditLog, Note};
use crate::auth::Principal;
use crate::watch::wall_ms;

/// Stands for the answer to a caller that hung up before it: whether anything was done is not known here.
const UNANSWERED: u16 = 499;

/// The audit log, and how much of it is wanted.
#[derive(Debug)]
pub struct Audit {
    /// Where lines go.
    pub log: Arc<AuditLog>,
    /// Also submissions, claims and reports, and not only what operators do and what was denied.
    pub all: bool,
}

/// What is known of a request so far.
#[derive(Debug, Default, Clone)]
pub(super) struct Trace {
    pub(super) operation: Option<Operation>,
    pub(super) principal: Option<Arc<Principal>>,
    pub(super) namespace: Option<Namespace>,
    pub(super) object: Option<String>,
    /// The same, from a handler.
    pub(super) subject: Subject,
    /// What the handler says stands for what the path names, not beside it.
    pub(super) subject_is_all: bool,
    pub(super) request: Option<RequestId>,
    pub(super) source: Option<IpAddr>,
}

/// The trace of a call that is under way. Dropped without an answer it leaves its line all the same.
pub(super) struct Line<'a, D> {
    app: &'a App<D>,
    trace: Trace,
    answered: bool,
}

impl<'a, D> Line<'a, D> {
    pub(super) fn new(app: &'a App<D>, trace: Trace) -> Line<'a, D> {
        Line { app, trace, answered: false }
    }

    /// Notes the answer.
    pub(super) fn note(mut self, status: u16) {
        self.answered = true;
        note(self.app, &self.trace, status);
    }

    /// Notes the answer. What operators do is on the disk before it goes out.
    pub(super) async fn note_down(mut self, status: u16) {
        self.answered = true;
        note_down(self.app, &self.trace, status).await;
    }
}

impl<D> Deref for Line<'_, D> {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

impl<D> DerefMut for Line<'_, D> {
    fn deref_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }
}

impl<D> Drop for Line<'_, D> {
    fn drop(&mut self) {
        if !self.answered {
            note_unanswered(self.app, &self.trace);
        }
    }
}

/// Notes a call whose caller hung up. Who was not recognised yet has done nothing.
pub(super) fn note_unanswered<D>(app: &App<D>, trace: &Trace) {
    if trace.principal.is_some() {
        note(app, trace, UNANSWERED);
    }
}

/// Notes an answered request, if it is one that is noted. What operators do is on the disk before its answer goes out.
async fn note_down<D>(app: &App<D>, trace: &Trace, status: u16) {
    let is_rare = trace.operation.and_then(route_of).is_some_and(is_rare) || is_grave(trace);
    if note(app, trace, status)
        && is_rare
        && !is_denial(trace, status)
        && let Some(audit) = &app.security.audit
    {
        audit.log.synced().await;
    }
}

/// Whether a caller was not let in. Strangers who fail too often are told 429.
fn is_denial(trace: &Trace, status: u16) -> bool {
    matches!(status, 401 | 403) || (trace.principal.is_none() && status == 429)
}

/// Notes an answered request, if it is one that is noted; says whether it is.
pub(super) fn note<D>(app: &App<D>, trace: &Trace, status: u16) -> bool {
    let Some(audit) = &app.security.audit else { return false };
    let denied = is_denial(trace, status);
    let route = trace.operation.and_then(route_of);
    let wanted = route.is_some_and(|route| is_wanted(audit, route));
    // Of what is noted only sometimes, the handler says that this is such a time.
    let is_grave = is_grave(trace);
    if !denied && !wanted && !is_grave {
        return false;
    }
    let object = match (trace.object.as_deref(), trace.subject.said()) {
        (Some(_), Some(said)) if is_grave || trace.subject_is_all => Some(said.to_owned()),
        // Where both tell something, the path names an upload, and the handler the object that it is for.
        (Some(named), Some(said)) => Some(format!("{said} (upload {named})")),
        (named, said) => named.or(said).map(str::to_owned),
    };
    audit.log.add(Note {
        principal: trace.principal.clone(),
        namespace: trace.namespace.clone(),
        object,
        request: trace.request.clone(),
        source: trace.source,
        ..Note::new(wall_ms(), Action::from(trace.operation), status)
    });
    true
}

/// A place for what a call is about; none where no line could come of it.
pub(super) fn subject_of<D>(app: &App<D>, operation: Operation) -> Subject {
    let audit = app.security.audit.as_ref();
    let wanted = audit
        .zip(route_of(operation))
        .is_some_and(|(audit, route)| is_wanted(audit, route) || may_be_grave(operation));
    Subject::heard(wanted)
}

/// Whether its handler says that this call is one of those who run the cluster.
fn is_grave(trace: &Trace) -> bool {
    trace.operation.is_some_and(may_be_grave) && trace.subject.said().is_some()
}

/// Whether a call of this operation may be one of those who run the cluster, although its route is for all: a lease that is taken
/// from its holder.
fn may_be_grave(operation: Operation) -> bool {
    operation == Operation::ReleaseLease
}

fn is_wanted(audit: &Audit, route: &Route) -> bool {
    let is_noted = changes(route) || gives_secrets_away(route);
    is_noted && (audit.all || is_rare(route))
}

/// Whether a route changes something that is kept.
fn changes(route: &Route) -> bool {
    route.verb != Verb::Get && route.policy.class != Class::Renew
}

/// A look that takes everything along, keys of the S3 door included.
fn gives_secrets_away(route: &Route) -> bool {
    route.operation == Operation::Backup
}

fn is_rare(route: &Route) -> bool {
    route.policy.class == Class::Operate
}
