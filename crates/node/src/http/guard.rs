//! Keeps web pages of other sites out (X14), and keeps a panic inside its request.
//!
//! A browser sends `Origin` with every cross-site and every unsafe request, and `Sec-Fetch-Site` with all that go to a
//! place it trusts. A plain look at a name that was rebound to this machine carries neither, so nobody is taken for
//! another program by what is missing: whoever names a host must name this node, in a form that no foreign name server
//! controls (an address, `localhost`, the advertised name, a name of the setting `host`). An origin must be that host.
//! Where the browser says that another site asks, only a person who follows a link is let in.
//!
//! A program that proves who it is, where that is asked for, may use any name: what proves it, no browser adds by itself.

use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Method;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use ikada_api::Problem;

use super::problems;

/// The names under which clients reach this node, beside addresses and `localhost`.
#[derive(Debug, Default)]
pub(super) struct OwnHosts(Vec<String>);

impl OwnHosts {
    /// The advertised `host:port`, and further names.
    pub(super) fn new(advertised: &str, further: &[String]) -> OwnHosts {
        let all = further.iter().map(String::as_str).chain([advertised]);
        let names = all.map(plain_name).filter(|name| !name.is_empty());
        OwnHosts(names.collect())
    }

    fn hold(&self, host: &str) -> bool {
        let name = plain_name(host);
        name == "localhost" || name.parse::<IpAddr>().is_ok() || self.0.contains(&name)
    }
}

/// Refuses what a foreign page might send. A caller that shows what no browser adds by itself is `proved`.
pub(super) fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    own: &OwnHosts,
    proved: bool,
) -> Result<(), Problem> {
    let origin = headers.get(ORIGIN);
    let site = headers.get("sec-fetch-site");
    let is_browser = origin.is_some() || site.is_some();
    // Every browser names a host.
    if !is_browser && (proved || !headers.contains_key(HOST)) {
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !own.hold(host) {
        return Err(problems::foreign_host(host));
    }
    let is_own_page = site.is_none_or(|site| site == "same-origin" || site == "none");
    if !is_own_page && !is_followed_link(method, headers) {
        return Err(problems::foreign_origin("a page of another site may not use this node"));
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

/// A link that a person follows into a window of its own; looking changes nothing.
fn is_followed_link(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| headers.get(name).is_some_and(|value| value == word);
    method == Method::GET
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// One text for one name: no port, no capitals, no dot at the end.
fn plain_name(host: &str) -> String {
    let name = host_name(host);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
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
        check_as(pairs, false)
    }

    fn check_as(pairs: &[(&'static str, &'static str)], proved: bool) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        let own = OwnHosts::new("node1.example:7400", &["Jobs.Example".to_owned()]);
        check_origin(&Method::GET, &headers, &own, proved).is_ok()
    }

    #[test]
    fn x_14_only_our_own_pages_pass() {
        assert!(check(&[]), "a browser names a host");
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

    #[test]
    fn x_14_a_rebound_name_is_refused_without_any_header_of_a_browser() {
        for own in ["127.0.0.1:7400", "[::1]:7400", "LocalHost", "localhost.:1", "jobs.example."] {
            assert!(check(&[("host", own)]), "{own}");
        }
        for other in
            ["evil.example:7400", "localhost.evil.example", "127.0.0.1.evil.example", "1", ""]
        {
            assert!(!check(&[("host", other)]), "{other}");
            assert!(check_as(&[("host", other)], true), "{other}: a caller that proved itself");
            let page = [("host", other), ("sec-fetch-site", "same-origin")];
            assert!(!check_as(&page, true), "{other}: a browser");
        }
    }

    #[test]
    fn x_14_a_link_on_another_site_may_be_followed_and_nothing_else() {
        let from = |site, mode, dest| {
            let host = ("host", "127.0.0.1:7400");
            let told =
                [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            check(&[host, told[0], told[1], told[2]])
        };
        assert!(from("cross-site", "navigate", "document"));
        assert!(from("same-origin", "cors", "empty"));
        assert!(!from("cross-site", "no-cors", "image"));
        assert!(!from("same-site", "cors", "empty"), "another port of this machine");
        assert!(!from("cross-site", "navigate", "iframe"));
    }
}
