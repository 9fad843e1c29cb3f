//! Posts documents to a server that is no node: a collector of traces.
//!
//! Promise: a name behind `https` is believed if the machine's own authorities vouch for it; an answer is read up to a
//! bound; nothing is tried twice here.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::client::{Connector, TrustedAuthority, innermost, without_secrets};

/// How long a connection may take to come about.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a document may take, with its answer.
const POST_PATIENCE: Duration = Duration::from_secs(10);
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Status of its answer.
    pub status: u16,
    /// The beginning of its words.
    pub text: String,
}

/// A way to one server.
#[derive(Clone)]
pub struct Courier {
    url: hyper::Uri,
    headers: HeaderMap,
    http: legacy::Client<Connector, Full<Bytes>>,
}

impl Courier {
    /// A way to this URL, with headers that go with every document. Nothing is sent yet.
    pub fn new(url: &str, headers: HeaderMap) -> Result<Courier, String> {
        // What it is told as: a password in it is nobody's business.
        let told = without_secrets(url);
        let uri: hyper::Uri = url.parse().map_err(|error| format!("{told}: {error}"))?;
        let authority = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => {
                Some(TrustedAuthority::of_system().map_err(|error| format!("{told}: {error}"))?)
            }
            _ => return Err(format!("{told}: it must begin with http:// or https://")),
        };
        if uri.authority().is_none_or(|place| place.as_str().contains('@')) {
            return Err(format!("{told}: it must name a host, and no user"));
        }
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(Connector::new(authority, CONNECT_PATIENCE));
        Ok(Courier { url: uri, headers, http })
    }

    /// Posts a JSON document once.
    pub async fn post_json(&self, body: Vec<u8>) -> Result<Posted, String> {
        let posted = tokio::time::timeout(POST_PATIENCE, self.post(body)).await;
        posted.unwrap_or_else(|_| Err(format!("no answer within {} s", POST_PATIENCE.as_secs())))
    }

    async fn post(&self, body: Vec<u8>) -> Result<Posted, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        let answer = self.http.request(request).await.map_err(|error| innermost(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Posted { status, text: String::from_utf8_lossy(&body).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_leads_nowhere_is_refused() {
        for bad in ["", "collector:4318", "ftp://host", "http://", "http://me:pass@host:4318"] {
            assert!(Courier::new(bad, HeaderMap::new()).is_err(), "{bad}");
        }
        assert!(Courier::new("http://127.0.0.1:4318/v1/traces", HeaderMap::new()).is_ok());
    }

    #[test]
    fn x_6_a_refused_collector_is_told_without_its_secrets() {
        for bad in ["http://me:CANARY@host:4318", "ftp://me:CANARY@host", "ftp://host/?key=CANARY"]
        {
            let said = Courier::new(bad, HeaderMap::new()).err().expect(bad);
            assert!(said.contains("host") && !said.contains("CANARY"), "{said}");
        }
    }
}
