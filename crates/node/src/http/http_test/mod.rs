//! The client door against a fake node: every route, bad input, and real sockets.

mod admission;
mod audit;
mod bad_input;
mod batches;
mod behind;
mod bodies;
mod cbor;
mod certificates;
mod cluster;
mod dashboard;
mod destroy;
mod door;
mod floods;
mod jobs;
mod leases;
mod lifecycle;
mod lists;
mod logs;
mod members;
mod namespaces;
mod objects;
mod operations;
mod origins;
mod outcomes;
mod pipe;
mod programs;
mod roles;
mod schedules;
mod socket;
mod tls;
mod tokens;
mod uploads;
mod workers;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use serde_json::Value;

use super::app::App;
use super::dispatch::answer;
use super::limits::HttpLimits;
use super::security::Security;
use crate::admission::Admission;
use door::FakeDoor;

/// A node without log or network.
pub(crate) fn fake_door() -> impl super::Door {
    FakeDoor::new()
}

/// An answer, read to its end.
struct Heard {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The code of a problem document, checked to be one.
    fn code(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        problem["code"].as_str().unwrap().to_owned()
    }
}

struct Bench {
    app: App<FakeDoor>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(HttpLimits::default())
    }

    fn with(limits: HttpLimits) -> Bench {
        Bench::guarded(limits, Security::default())
    }

    fn guarded(limits: HttpLimits, security: Security) -> Bench {
        Bench::admitting(limits, security, Admission::open())
    }

    fn admitting(limits: HttpLimits, security: Security, admission: Arc<Admission>) -> Bench {
        let (_, stopping) = tokio::sync::watch::channel(false);
        Bench { app: App::new(FakeDoor::new(), limits, security, admission, stopping) }
    }

    fn door(&self) -> &FakeDoor {
        &self.app.door
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Heard {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = answer(&self.app, request.body(Full::new(body.into())).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Heard { status: parts.status, headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Heard {
        self.send("GET", path, &[], "").await
    }

    async fn post(&self, path: &str, body: &str) -> Heard {
        self.send("POST", path, &[], body.to_owned()).await
    }
}
