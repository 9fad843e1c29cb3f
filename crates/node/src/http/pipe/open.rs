//! From an HTTP request to a pipe.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use ikada_api::pipe::{PIPE_PATH, PIPE_PROTOCOL};
use ikada_api::routes::Operation;

use super::serve::serve;
use crate::http::answer::{Reply, problem, text};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::passage::check_site;
use crate::http::problems;
use crate::http::security::{Source, allow, policy_of, recognise};
use crate::http::trace::{Trace, note};
use crate::places::Place;

/// Whether a request wants to become a pipe. Without the upgrade header it is answered as any other route.
pub(in crate::http) fn is_wanted(request: &Request<Incoming>) -> bool {
    request.method() == Method::GET
        && request.uri().path() == PIPE_PATH
        && names(request.headers(), UPGRADE.as_str(), PIPE_PROTOCOL)
        && names(request.headers(), CONNECTION.as_str(), "upgrade")
}

fn names(headers: &HeaderMap, header: &str, word: &str) -> bool {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|given| given.trim().eq_ignore_ascii_case(word))
}

/// Answers 101 and serves the connection from then on. The connection's place is held until the pipe ends.
pub(in crate::http) async fn accept<D: Door>(
    app: &Arc<App<D>>,
    mut request: Request<Incoming>,
    place: Arc<Place>,
) -> Reply {
    let source = request.extensions().get::<Source>().cloned();
    let mut trace = Trace {
        operation: Some(Operation::Pipe),
        source: source.as_ref().map(|source| source.address),
        ..Trace::default()
    };
    let headers = request.headers();
    let site = check_site(app, request.method(), request.uri(), headers, source.as_ref());
    let known = match site {
        Ok(()) => recognise(app, headers, source.as_ref()).await,
        Err(foreign) => Err(foreign),
    };
    let entered = match known {
        Ok(principal) => {
            trace.principal = Some(principal.clone());
            match policy_of(Operation::Pipe) {
                Some(policy) => allow(app, Operation::Pipe, policy, &principal),
                None => Err(problems::internal()),
            }
        }
        Err(refused) => Err(refused),
    };
    if let Err(refused) = entered {
        app.counters.count(refused.status);
        note(app, &trace, refused.status);
        return problem(&refused);
    }
    let upgraded = hyper::upgrade::on(&mut request);
    let app_of_pipe = app.clone();
    tokio::spawn(async move {
        // A client that breaks off before the switch harms nobody but itself.
        if let Ok(stream) = upgraded.await {
            app_of_pipe.counters.pipes.fetch_add(1, Ordering::Relaxed);
            serve(&app_of_pipe, TokioIo::new(stream), trace).await;
            app_of_pipe.counters.pipes.fetch_sub(1, Ordering::Relaxed);
        }
        drop(place);
    });
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "text/plain", "");
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PIPE_PROTOCOL));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}
