//! What the audit log hears of a request (X15).

use std::net::IpAddr;
use std::sync::Arc;

use ikada_api::routes::{Class, Operation, ROUTES, Route, Verb};
use ikada_api::state::Namespace;

use super::app::App;
use crate::audit::{AuditLog, Record};
use crate::auth::Principal;
use crate::watch::wall_ms;

/// The audit log, and how much of it is wanted.
#[derive(Debug)]
pub struct Audit {
    /// Where lines go.
    pub log: AuditLog,
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
    pub(super) request: Option<String>,
    pub(super) source: Option<IpAddr>,
}

/// Notes an answered request, if it is one that is noted.
pub(super) fn note<D>(app: &App<D>, trace: &Trace, status: u16) {
    let Some(audit) = &app.security.audit else { return };
    // Strangers who fail too often are told 429.
    let denied = matches!(status, 401 | 403) || (trace.principal.is_none() && status == 429);
    let route = trace.operation.and_then(route_of);
    let changes = route.is_some_and(|route| changes(route) && (audit.all || is_rare(route)));
    if !denied && !changes {
        return;
    }
    let principal = trace.principal.as_ref();
    audit.log.add(Record {
        time_ms: wall_ms(),
        principal: principal.map(|principal| principal.name.clone()),
        token: principal.and_then(|principal| principal.token.as_ref()).map(ToString::to_string),
        role: principal.map(|principal| principal.role.as_str().to_owned()),
        namespace: trace.namespace.as_ref().map(ToString::to_string),
        action: trace.operation.map_or_else(|| "unknown".to_owned(), |what| format!("{what:?}")),
        object: trace.object.clone(),
        status,
        request: trace.request.clone(),
        source: trace.source.map(|source| source.to_string()),
        missing: 0,
    });
}

fn route_of(operation: Operation) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.operation == operation)
}

/// Whether a route changes something that is kept.
pub(super) fn changes(route: &Route) -> bool {
    route.verb != Verb::Get && route.policy.class != Class::Renew
}

fn is_rare(route: &Route) -> bool {
    route.policy.class == Class::Operate
}
