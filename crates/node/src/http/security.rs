//! Who is let in: recognises the caller, then asks the route's policy, then the namespace. One place for all shapes of
//! a call, plain or on a pipe (X4, X5).

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use ikada_api::Problem;
use ikada_api::routes::{Access, Operation, Policy, ROUTES, Route, Scope};
use ikada_api::state::Namespace;

use super::app::App;
use super::door::Door;
use super::problems;
use super::standing::Standing;
use super::trace::Audit;
use crate::auth::{Denied, Flaw, Gatekeeper, Principal, TokenText};
use crate::metrics::SecurityFigures;
use crate::places::Place;
use crate::ration::Ration;
use crate::tls::{Shown, Tls};
use crate::watch::wall_ms;

/// What stands between the network and the node. Nothing, by default: that is for loopback.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// Knows callers by their tokens; none where no tokens are asked for.
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    /// Hears of changes and denials.
    pub audit: Option<Arc<Audit>>,
    /// Certificate and key for clients; none where TLS is not spoken.
    pub tls: Option<Tls>,
    /// Names under which clients reach this node, beside the advertised one.
    pub hosts: Vec<String>,
    /// Whether the node listens beyond loopback without TLS and tokens.
    pub insecure: bool,
}

/// Where a request came from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The address.
    pub(super) address: IpAddr,
    /// The certificate that was shown; none without TLS, or without one.
    pub(super) shown: Option<Arc<Shown>>,
    /// What its connection may hold until the caller is known.
    pub(super) ration: Arc<Ration>,
    /// The place of its connection.
    pub(super) place: Arc<Place>,
}

impl Security {
    /// What an operator watches.
    pub(super) fn figures(&self) -> SecurityFigures {
        let desk = self.tls.as_ref().and_then(Tls::desk);
        SecurityFigures {
            certificate_left_s: self.tls.as_ref().map(|tls| tls.left().as_secs()),
            joins_refused: desk.map(|desk| desk.refused()),
            audit_lost: self.audit.as_ref().map(|audit| audit.log.lost()),
            tokens: self
                .gatekeeper
                .as_ref()
                .map(|keeper| keeper.ends(wall_ms()))
                .unwrap_or_default(),
        }
    }

    /// How a caller stands from here on. Whoever was let in without a token has none that could end.
    pub(super) fn standing(&self, principal: &Arc<Principal>) -> Standing {
        let gatekeeper = self.gatekeeper.clone().filter(|_| principal.token.is_some());
        Standing { gatekeeper, principal: principal.clone() }
    }
}

/// The caller of a request; from then on its connection is no stranger's.
pub(super) async fn recognise<D: Door>(
    app: &App<D>,
    headers: &HeaderMap,
    source: Option<&Source>,
) -> Result<Arc<Principal>, Problem> {
    let principal = look_up(app, headers, source).await?;
    trust(source);
    Ok(principal)
}

/// Vouches for the connection of a known caller.
pub(super) fn trust(source: Option<&Source>) {
    if let Some(source) = source
        && source.ration.trust()
    {
        source.place.vouch();
    }
}

async fn look_up<D: Door>(
    app: &App<D>,
    headers: &HeaderMap,
    source: Option<&Source>,
) -> Result<Arc<Principal>, Problem> {
    let Some(gatekeeper) = &app.security.gatekeeper else {
        return Ok(app.anyone.clone());
    };
    let address = source.map(|source| source.address);
    let (flaw, what) = if let Some(token) = read_token(headers) {
        let mut found = gatekeeper.check(&token, wall_ms());
        // It may be too young for this node to have heard of it.
        if found == Err(Flaw::Unknown) {
            app.refresh_tokens_for_strangers().await;
            found = gatekeeper.check(&token, wall_ms());
        }
        match found {
            Ok(principal) => return Ok(principal),
            Err(flaw) => (flaw, Some(token.id.to_string())),
        }
    } else if headers.contains_key(AUTHORIZATION) {
        (Flaw::NoToken, None)
    } else {
        let Some(shown) = source.and_then(|source| source.shown.as_ref()) else {
            // Asking without a token is no guess, but it is denied.
            app.counters.denied.fetch_add(1, Ordering::Relaxed);
            return Err(problems::unauthenticated());
        };
        match recognise_certificate(app, gatekeeper, shown).await {
            Ok(principal) => return Ok(principal),
            Err(flaw) => (flaw, shown.name.as_ref().map(|name| format!("cert-{}", name.name))),
        }
    };
    app.counters.denied.fetch_add(1, Ordering::Relaxed);
    app.strangers.denied(address, what.as_deref(), flaw);
    match (gatekeeper.failed(address, wall_ms()), flaw) {
        (Denied::TooOften, _) => Err(problems::too_many_failures()),
        // It was proved to be the caller's own.
        (Denied::Unknown, Flaw::Expired) => Err(problems::expired()),
        (Denied::Unknown, _) => Err(problems::unauthenticated()),
    }
}

/// The caller that a certificate stands for, if it holds now.
async fn recognise_certificate<D: Door>(
    app: &App<D>,
    gatekeeper: &Gatekeeper,
    shown: &Shown,
) -> Result<Arc<Principal>, Flaw> {
    let cluster = app.security.tls.as_ref().ok_or(Flaw::Unknown)?.name().cluster;
    // It may be too young for this node to have heard of it.
    if shown.name.is_some() && !gatekeeper.knows_certificate(shown) {
        app.refresh_tokens_for_strangers().await;
    }
    gatekeeper.check_certificate(shown, cluster, wall_ms())
}

/// The token of `Authorization: Bearer ..`; none if there is none, or not exactly one.
pub(super) fn read_token(headers: &HeaderMap) -> Option<TokenText> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| TokenText::parse(token.trim()))?
}

/// Lets a caller use a route, or tells why not.
pub(super) fn allow<D>(
    app: &App<D>,
    operation: Operation,
    policy: &Policy,
    principal: &Principal,
) -> Result<(), Problem> {
    let refused = match policy.access {
        Access::Anyone => return Ok(()),
        Access::Roles(roles) if !policy.admits(principal.role) => {
            problems::forbidden_role(operation, principal.role, roles)
        }
        Access::Roles(_) if policy.scope == Scope::Cluster && principal.is_bound() => {
            problems::forbidden_scope()
        }
        Access::Roles(_) => return Ok(()),
    };
    app.counters.denied.fetch_add(1, Ordering::Relaxed);
    Err(refused)
}

/// The namespace that a request works in: the one it names, else the caller's own.
pub(super) fn enter<D>(
    app: &App<D>,
    principal: &Principal,
    named: Option<Namespace>,
) -> Result<Namespace, Problem> {
    let namespace = named.unwrap_or_else(|| principal.home());
    if principal.may_use(&namespace) {
        return Ok(namespace);
    }
    app.counters.denied.fetch_add(1, Ordering::Relaxed);
    Err(problems::forbidden_namespace(&namespace))
}

/// The policy of an operation; all routes of one operation share it.
pub(super) fn policy_of(operation: Operation) -> Option<&'static Policy> {
    route_of(operation).map(|route| &route.policy)
}

/// The first route of an operation. Every call asks, so the table is gone through once.
pub(super) fn route_of(operation: Operation) -> Option<&'static Route> {
    static FOUND: LazyLock<Vec<Option<&Route>>> = LazyLock::new(|| {
        let last = ROUTES.iter().map(|route| route.operation as usize).max().unwrap_or(0);
        let mut found = vec![None; last + 1];
        ROUTES.iter().rev().for_each(|route| found[route.operation as usize] = Some(route));
        found
    });
    FOUND.get(operation as usize).copied().flatten()
}
