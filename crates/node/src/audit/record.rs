//! One line of the audit log: as it is noted on a request's path, and as it is read again.
//!
//! A [`Note`] is cheap to make: it shares what the request has at hand. Its line is printed by the log's own thread.

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::sync::Arc;

use ikada_api::routes::Operation;
use ikada_api::state::{Namespace, RequestId};
use serde::{Deserialize, Serialize, Serializer};

use crate::auth::Principal;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A route.
    Route(Operation),
    /// A route that does not exist.
    Unknown,
    /// Something else than a call of the client port.
    Other(&'static str),
}

impl From<Option<Operation>> for Action {
    fn from(operation: Option<Operation>) -> Action {
        operation.map_or(Action::Unknown, Action::Route)
    }
}

impl Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Route(operation) => write!(formatter, "{operation:?}"),
            Action::Unknown => formatter.write_str("unknown"),
            Action::Other(name) => formatter.write_str(name),
        }
    }
}

/// What is noted of a request.
#[derive(Debug, Clone)]
pub struct Note {
    /// When it was answered, ms since 1970.
    pub time_ms: u64,
    /// The caller; absent for strangers.
    pub principal: Option<Arc<Principal>>,
    /// The namespace.
    pub namespace: Option<Namespace>,
    /// What was asked for.
    pub action: Action,
    /// What it was asked of: as named in the path, or else in the body.
    pub object: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The request id, if the caller gave one.
    pub request: Option<RequestId>,
    /// Where it came from.
    pub source: Option<IpAddr>,
    /// Lines that are missing before this one.
    pub missing: u64,
}

impl Note {
    /// A note of an action that was answered so.
    pub fn new(time_ms: u64, action: Action, status: u16) -> Note {
        Note {
            time_ms,
            principal: None,
            namespace: None,
            action,
            object: None,
            status,
            request: None,
            source: None,
            missing: 0,
        }
    }
}

/// A note as it is written; the fields are those of [`Record`].
#[derive(Serialize)]
struct Written<'a> {
    time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Shown<'a>>,
    action: Shown<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    missing: u64,
}

/// A value by its text, which goes straight to where it is written.
struct Shown<'a>(&'a dyn Display);

impl<'a> Shown<'a> {
    fn of<T: Display>(value: &'a T) -> Shown<'a> {
        Shown(value)
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let principal = self.principal.as_deref();
        let written = Written {
            time_ms: self.time_ms,
            principal: principal.map(|principal| principal.name.as_str()),
            token: principal.and_then(|principal| principal.token.as_ref()).map(Shown::of),
            role: principal.map(|principal| principal.role.as_str()),
            namespace: self.namespace.as_ref().map(Shown::of),
            action: Shown(&self.action),
            object: self.object.as_deref(),
            status: self.status,
            request: self.request.as_ref().map(Shown::of),
            source: self.source.as_ref().map(Shown::of),
            missing: self.missing,
        };
        written.serialize(serializer)
    }
}

/// What a line tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it was answered, ms since 1970.
    pub time_ms: u64,
    /// The caller's name; absent for strangers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The id of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was asked for: the operation of the route, `unknown`, or what was done beside the client port.
    pub action: String,
    /// What it was asked of: as named in the path, or else in the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The status of the answer; 499 if the caller hung up before there was one, so that it may have been done or not.
    pub status: u16,
    /// The request id, if the caller gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Lines that are missing before this one: too many came at once, or they could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_15_a_note_is_written_as_it_is_read() {
        let principal = Principal::anyone();
        let mut note = Note::new(7, Action::Route(Operation::Enqueue), 201);
        let bare = serde_json::to_string(&note).unwrap();
        assert_eq!(bare, "{\"time_ms\":7,\"action\":\"Enqueue\",\"status\":201}");
        note.principal = Some(Arc::new(principal));
        note.namespace = Some(Namespace::default());
        note.object = Some("a/\"b\"".to_owned());
        note.request = RequestId::parse("r1").ok();
        note.source = Some(IpAddr::from([10, 0, 0, 1]));
        note.missing = 3;
        let text = serde_json::to_string(&note).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        assert_eq!(record.principal.as_deref(), Some("anyone"));
        assert_eq!((record.source.as_deref(), record.missing), (Some("10.0.0.1"), 3));
    }
}
