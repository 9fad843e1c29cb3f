//! Keeps web pages of other sites out (X14), and keeps a panic inside its request.
//!
//! A browser sends `Origin` with every cross-site and every unsafe request, and `Sec-Fetch-Site` with all. A request
//! that carries either must name this node as host in a form that no foreign name server controls (an address,
//! `localhost`, or the advertised name), and its origin must be that host. Other programs send neither and pass.

use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::header::{HOST, HeaderMap, ORIGIN};
use ikada_api::Problem;

use super::problems;

/// Refuses what a foreign page might send. `advertised` is this node's own `host:port`.
pub(super) fn check_origin(headers: &HeaderMap, advertised: &str) -> Result<(), Problem> {
    let origin = headers.get(ORIGIN);
    if origin.is_none() && !headers.contains_key("sec-fetch-site") {
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !is_own_host(host, advertised) {
        return Err(problems::foreign_origin(
            "a browser may reach this node only by address, localhost or its advertised name",
        ));
    }
    let Some(origin) = origin else { return Ok(()) };
    let authority = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")));
    if authority != Some(host) {
        return Err(problems::foreign_origin("a page of another site may not use this node"));
    }
    Ok(())
}

fn is_own_host(host: &str, advertised: &str) -> bool {
    let name = host_name(host);
    name == "localhost"
        || name.parse::<IpAddr>().is_ok()
        || (!name.is_empty() && name == host_name(advertised))
}

/// The host without port and without the brackets of an IPv6 address.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or("");
    }
    host.split(':').next().unwrap_or("")
}

/// A future whose panic becomes a value.
pub(super) struct Contained<F>(pub(super) Pin<Box<F>>);

/// The future panicked.
#[derive(Debug)]
pub(super) struct Panicked;

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The future is never polled again after a panic, so no broken state is seen.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        check_origin(&headers, "node1.example:7400").is_ok()
    }

    // X14
    #[test]
    fn only_our_own_pages_pass() {
        assert!(check(&[("host", "anything:1")]), "programs send no origin");
        assert!(check(&[("host", "127.0.0.1:7400"), ("origin", "http://127.0.0.1:7400")]));
        assert!(check(&[("host", "[::1]:7400"), ("origin", "http://[::1]:7400")]));
        assert!(check(&[("host", "localhost:7400"), ("sec-fetch-site", "none")]));
        assert!(check(&[("host", "node1.example:7400"), ("origin", "http://node1.example:7400")]));
        assert!(!check(&[("host", "127.0.0.1:7400"), ("origin", "http://evil.example")]));
        assert!(!check(&[("host", "127.0.0.1:7400"), ("origin", "null")]));
        // A rebound name is same-origin for the browser, yet not ours.
        assert!(!check(&[("host", "evil.example:7400"), ("origin", "http://evil.example:7400")]));
        assert!(!check(&[("host", "evil.example:7400"), ("sec-fetch-site", "same-origin")]));
        assert!(!check(&[("origin", "http://127.0.0.1:7400")]));
    }
}
