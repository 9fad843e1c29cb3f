//! What headers and query say: who, how long, how fresh, under which key.

use std::sync::Arc;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::http::request::Parts;
use ikada_api::Problem;
use ikada_api::cbor::CBOR_TYPE;
use ikada_api::convert::Form;
use ikada_api::routes::{Route, read_query};
use ikada_api::state::{Namespace, RequestId, WorkerId};
use ikada_api::v1::{
    IDEMPOTENCY_KEY, NAMESPACE_HEADER, ROUTING_HEADER, TIMEOUT_HEADER, parse_positions,
};
use ikada_replica::call::{Consistency, Routing};

use crate::admission::Lane;
use crate::auth::Principal;
use crate::http::limits::HttpLimits;
use crate::http::problems::bad_parameter;
use crate::http::subject::Subject;

/// The header in which the reader of a stream says where it was.
const LAST_EVENT: &str = "last-event-id";

/// A request's context, checked.
#[derive(Debug, Clone)]
pub(in crate::http) struct Context {
    /// Names in the path, in order.
    pub(in crate::http) names: Vec<String>,
    /// Who asks.
    pub(in crate::http) principal: Arc<Principal>,
    /// The namespace as the caller named it, until it is entered.
    pub(in crate::http) named: Option<Namespace>,
    /// Owner of what is asked for.
    pub(in crate::http) namespace: Namespace,
    /// How long the caller waits.
    pub(in crate::http) timeout: Duration,
    /// Whether it said so itself.
    timeout_given: bool,
    /// What to do when another node leads.
    pub(in crate::http) routing: Routing,
    /// The caller's key, if it gave one.
    pub(in crate::http) key: Option<RequestId>,
    /// How fresh a read must be.
    pub(in crate::http) consistency: Consistency,
    /// The form of the request's body.
    pub(in crate::http) form_given: Form,
    /// The form wanted for the answer: as asked for, else as given.
    pub(in crate::http) form_wanted: Form,
    /// Whether a live stream is wanted.
    pub(in crate::http) wants_stream: bool,
    /// Where the reader of a stream was when its last one broke off, in the words of that stream.
    last_event: Option<String>,
    /// What it is about, where the path does not say.
    pub(in crate::http) subject: Subject,
    query: Vec<(String, String)>,
}

impl Context {
    /// The same request about something else; its own query was read already.
    pub(in crate::http) fn about(&self, names: Vec<String>) -> Context {
        Context { names, query: Vec::new(), ..self.clone() }
    }

    /// Reads the context of a request on a route.
    pub(in crate::http) fn read(
        route: &Route,
        names: Vec<String>,
        parts: &Parts,
        limits: &HttpLimits,
        principal: Arc<Principal>,
    ) -> Result<Context, Problem> {
        let query = read_query(parts.uri.query().unwrap_or(""))
            .ok_or_else(|| bad_parameter("query", "the query has a broken escape"))?;
        for (position, (name, _)) in query.iter().enumerate() {
            if !route.query.iter().any(|known| known.name == name) {
                return Err(bad_parameter(name, format!("unknown query parameter {name:?}")));
            }
            if query[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(bad_parameter(name, "given twice"));
            }
        }
        let accept = header(parts, "accept")?;
        let form_given = match header(parts, "content-type")? {
            Some(given) if names_cbor(given) => Form::Cbor,
            _ => Form::Json,
        };
        let mut context = Context {
            names,
            principal,
            named: None,
            namespace: Namespace::default(),
            timeout: limits.timeout_default,
            timeout_given: false,
            routing: Routing::Forward,
            key: None,
            consistency: Consistency::Linearizable,
            form_given,
            form_wanted: form_wanted(&parts.headers),
            wants_stream: accept.is_some_and(|accept| accept.contains("text/event-stream")),
            last_event: header(parts, LAST_EVENT)?.map(str::to_owned),
            subject: Subject::default(),
            query,
        };
        context.read_namespace(parts)?;
        context.read_timeout(parts, limits)?;
        context.read_consistency()?;
        match header(parts, ROUTING_HEADER)? {
            None | Some("forward") => {}
            Some("redirect") => context.routing = Routing::Redirect,
            Some(_) => return Err(bad_parameter(ROUTING_HEADER, "must be forward or redirect")),
        }
        if let Some(key) = header(parts, IDEMPOTENCY_KEY)? {
            let key = RequestId::parse(key)
                .map_err(|error| bad_parameter(IDEMPOTENCY_KEY, error.to_string()))?;
            context.key = Some(key);
        }
        Ok(context)
    }

    /// The context of a call on a pipe.
    pub(in crate::http) fn of_pipe(
        principal: Arc<Principal>,
        namespace: Namespace,
        timeout: Duration,
        key: Option<RequestId>,
    ) -> Context {
        Context {
            names: Vec::new(),
            principal,
            named: None,
            namespace,
            timeout,
            timeout_given: true,
            routing: Routing::Forward,
            key,
            consistency: Consistency::Linearizable,
            form_given: Form::Cbor,
            form_wanted: Form::Cbor,
            wants_stream: false,
            last_event: None,
            subject: Subject::default(),
            query: Vec::new(),
        }
    }

    /// The context of a call at the S3 door.
    pub(in crate::http) fn of_s3(
        principal: Arc<Principal>,
        namespace: Namespace,
        names: Vec<String>,
        timeout: Duration,
    ) -> Context {
        let form = Form::Json;
        let pipe = Context::of_pipe(principal, namespace, timeout, None);
        Context { names, form_given: form, form_wanted: form, timeout_given: false, ..pipe }
    }

    /// How long the caller waits for its answer; none where that bounds only the end of a transfer.
    pub(in crate::http) fn left(&self, lane: Lane) -> Option<Duration> {
        (lane != Lane::Upload || self.timeout_given).then_some(self.timeout)
    }

    /// The worker of this caller under a name.
    pub(in crate::http) fn worker(&self, worker: WorkerId) -> Result<WorkerId, Problem> {
        self.principal.worker(worker).ok_or_else(|| {
            let detail = format!(
                "is too long: {} is put before it, and both together may have 128 bytes",
                self.principal.name
            );
            bad_parameter("worker", detail)
        })
    }

    /// The value of a query parameter.
    pub(in crate::http) fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A query parameter as a number or other parsed value.
    pub(in crate::http) fn query_as<T: std::str::FromStr>(
        &self,
        name: &str,
        rule: &str,
    ) -> Result<Option<T>, Problem> {
        match self.query(name) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| bad_parameter(name, rule)),
        }
    }

    /// Where the reader of a stream was.
    pub(in crate::http) fn last_event_as<T: std::str::FromStr>(
        &self,
        rule: &str,
    ) -> Result<Option<T>, Problem> {
        let place = self.last_event.as_deref().map(str::parse).transpose();
        place.map_err(|_| bad_parameter(LAST_EVENT, rule))
    }

    fn read_namespace(&mut self, parts: &Parts) -> Result<(), Problem> {
        let by_header = header(parts, NAMESPACE_HEADER)?;
        let text = match (self.query("namespace"), by_header) {
            (Some(query), Some(header)) if query != header => {
                return Err(bad_parameter(
                    "namespace",
                    "query and header name different namespaces",
                ));
            }
            (query, header) => query.or(header),
        };
        if let Some(text) = text {
            let named = Namespace::parse(text)
                .map_err(|error| bad_parameter("namespace", error.to_string()))?;
            self.named = Some(named);
        }
        Ok(())
    }

    fn read_timeout(&mut self, parts: &Parts, limits: &HttpLimits) -> Result<(), Problem> {
        let Some(text) = header(parts, TIMEOUT_HEADER)? else {
            return Ok(());
        };
        let max_ms = limits.timeout_max.as_millis() as u64;
        match text.parse() {
            Ok(ms) if (1..=max_ms).contains(&ms) => {
                (self.timeout, self.timeout_given) = (Duration::from_millis(ms), true);
                Ok(())
            }
            _ => Err(bad_parameter(TIMEOUT_HEADER, format!("must be 1 to {max_ms}"))),
        }
    }

    fn read_consistency(&mut self) -> Result<(), Problem> {
        let level = match self.query("consistency") {
            None | Some("linearizable") => Consistency::Linearizable,
            Some("stale") => Consistency::Stale,
            Some(_) => {
                return Err(bad_parameter("consistency", "must be linearizable or stale"));
            }
        };
        self.consistency = match self.query("min_lsn") {
            None => level,
            Some(_) if self.query("consistency").is_some() => {
                return Err(bad_parameter("min_lsn", "give min_lsn or consistency, not both"));
            }
            Some(text) => Consistency::AtLeast(
                parse_positions(text)
                    .map_err(|error| bad_parameter("min_lsn", error.to_string()))?,
            ),
        };
        Ok(())
    }
}

/// The form in which a caller wants its answer: by `Accept`, else by what it sent.
pub(in crate::http) fn form_wanted(headers: &HeaderMap) -> Form {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let named = match text("accept") {
        Some(accept) if accept.contains("json") => return Form::Json,
        Some(accept) if names_cbor(accept) => return Form::Cbor,
        _ => text("content-type"),
    };
    if named.is_some_and(names_cbor) { Form::Cbor } else { Form::Json }
}

fn names_cbor(media_types: &str) -> bool {
    media_types.to_ascii_lowercase().contains(CBOR_TYPE)
}

/// A header as text; refused if it is not text or given twice.
fn header<'a>(parts: &'a Parts, name: &'static str) -> Result<Option<&'a str>, Problem> {
    let mut values = parts.headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() && name != "accept" {
        return Err(bad_parameter(name, "given twice"));
    }
    value.to_str().map(Some).map_err(|_| bad_parameter(name, "is not plain text"))
}
