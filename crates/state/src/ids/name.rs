//! Validated names: `[A-Za-z0-9._-]{1,128}`, never `.` or `..` (X8). A task's handle is such a name
//! or, for a task with an ordering key, two of them as `key:id`.
//!
//! A short name (up to 23 bytes, which most are) lies in the value itself; a longer one is shared. Cloning never copies
//! to the heap, which the hot path relies on.

use std::fmt;

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};
use smol_str::{SmolStr, format_smolstr};

/// Longest word in bytes.
const WORD_BYTES_MAX: usize = 32;

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Longest name of an object in bytes.
pub const OBJECT_NAME_BYTES_MAX: usize = 1024;

/// Stands between key and id in the handle of a keyed task.
const KEY_MARK: char = ':';

/// The namespace of callers that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// How much of a refused value an error repeats, so that errors stay small.
const SHOWN_CHARS_MAX: usize = 32;

/// A value that is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} is not valid: {rule}")]
pub struct NameError {
    /// What was being parsed, such as `queue name`.
    pub what: &'static str,
    /// The refused value, cut short.
    pub value: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// Which bytes a name may hold. A table, since every name of every order is checked on every node.
const ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        allowed[byte] = value.is_ascii_alphanumeric() || matches!(value, b'.' | b'_' | b'-');
        byte += 1;
    }
    allowed
};

fn broken_rule(value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return Some("must not be empty");
    }
    if value.len() > NAME_BYTES_MAX {
        return Some("must be at most 128 bytes");
    }
    if value == "." || value == ".." {
        return Some("must not be . or ..");
    }
    if !value.as_bytes().iter().all(|byte| ALLOWED[usize::from(*byte)]) {
        return Some("may hold letters, digits, dot, underscore and hyphen only");
    }
    None
}

/// The rule that a task's handle breaks: a name, or two of them with a colon between.
fn broken_handle_rule(value: &str) -> Option<&'static str> {
    match value.split_once(KEY_MARK) {
        None => broken_rule(value),
        Some((key, id)) => broken_rule(key).or_else(|| broken_rule(id)),
    }
}

/// The rule that an object's name breaks: parts with a slash between, none of them empty or a step up.
fn broken_path_rule(value: &str) -> Option<&'static str> {
    if value.is_empty() || value.len() > OBJECT_NAME_BYTES_MAX {
        return Some("must be 1 to 1024 bytes");
    }
    if value.chars().any(char::is_control) {
        return Some("must not hold control characters");
    }
    if value.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("must have no empty part and no part . or .. between slashes");
    }
    None
}

/// The rule that a short word breaks: no dot or colon may stand in it, since it is put before other names.
fn broken_word_rule(value: &str) -> Option<&'static str> {
    if value.is_empty() || value.len() > WORD_BYTES_MAX {
        return Some("must have 1 to 32 bytes");
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!value.bytes().all(allowed)).then_some("may hold letters, digits and hyphen only")
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks and takes a name.
            pub fn parse(value: &str) -> Result<Self, NameError> {
                match $rule(value) {
                    None => Ok(Self(SmolStr::new(value))),
                    Some(rule) => Err(NameError {
                        what: $what,
                        value: value.chars().take(SHOWN_CHARS_MAX).collect(),
                        rule,
                    }),
                }
            }

            #[allow(dead_code)] // Not every kind of name stands in a short order.
            /// Checks and takes a name without a word about what is wrong with it.
            pub(crate) fn parse_quietly(value: &str) -> Option<Self> {
                $rule(value).is_none().then(|| Self(SmolStr::new(value)))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({})", stringify!($name), &self.0)
            }
        }

        impl<C> Encode<C> for $name {
            fn encode<W: Write>(
                &self,
                encoder: &mut Encoder<W>,
                _: &mut C,
            ) -> Result<(), EncodeError<W::Error>> {
                encoder.str(&self.0)?.ok()
            }
        }

        impl<'b, C> Decode<'b, C> for $name {
            fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
                let value = decoder.str()?;
                match $rule(value) {
                    None => Ok(Self(SmolStr::new(value))),
                    Some(rule) => Err(DecodeError::message(rule)),
                }
            }
        }
    };
}

name_type!(
    /// Owner of queues, tasks and requests; every key begins with it.
    Namespace,
    "namespace",
    broken_rule
);
name_type!(
    /// Name of a queue inside its namespace.
    QueueName,
    "queue name",
    broken_rule
);
name_type!(
    /// Handle of a task, unique inside its namespace: `id`, or `key:id` for a task with a key.
    TaskId,
    "task id",
    broken_handle_rule
);
name_type!(
    /// Idempotency key of a client request.
    RequestId,
    "request id",
    broken_rule
);
name_type!(
    /// Name of a worker process.
    WorkerId,
    "worker id",
    broken_rule
);

name_type!(
    /// Name of a bucket inside its namespace.
    BucketName,
    "bucket name",
    broken_rule
);
name_type!(
    /// Name of an object inside its bucket: a path such as `2026/report.csv`. It is never a path of any disk.
    ObjectName,
    "object key",
    broken_path_rule
);

name_type!(
    /// Name of a schedule inside its namespace.
    ScheduleName,
    "schedule name",
    broken_rule
);

name_type!(
    /// Name of a lease inside its namespace.
    LeaseName,
    "lease name",
    broken_rule
);

name_type!(
    /// Who holds a lease or waits for one.
    HolderName,
    "holder",
    broken_rule
);

name_type!(
    /// Public part of a token, drawn when it is made.
    TokenId,
    "token id",
    broken_word_rule
);

name_type!(
    /// Whom a token stands for.
    PrincipalName,
    "principal name",
    broken_word_rule
);

name_type!(
    /// Name of a program inside its namespace.
    ProgramName,
    "program name",
    broken_rule
);

name_type!(
    /// Id of a job inside its namespace; what its tasks and outputs are routed by.
    JobId,
    "job id",
    broken_rule
);

name_type!(
    /// Name of a stage inside its job.
    StageName,
    "stage name",
    broken_word_rule
);

name_type!(
    /// Name or value of a label.
    Label,
    "label",
    broken_rule
);

impl TaskId {
    /// The handle of a task with a key.
    pub fn keyed(key: &str, id: &str) -> Result<Self, NameError> {
        let refused = |value: &str, rule| NameError {
            what: "task key",
            value: value.chars().take(SHOWN_CHARS_MAX).collect(),
            rule,
        };
        if let Some(rule) = broken_rule(key) {
            return Err(refused(key, rule));
        }
        match broken_rule(id) {
            Some(rule) => Err(NameError { what: "task id", ..refused(id, rule) }),
            None => Ok(Self(format_smolstr!("{key}{KEY_MARK}{id}"))),
        }
    }

    /// The key, if the task has one.
    pub fn key(&self) -> Option<&str> {
        self.0.split_once(KEY_MARK).map(|(key, _)| key)
    }

    /// What decides in which shard the task lives: its key, else its id.
    pub fn routing_key(&self) -> &str {
        self.key().unwrap_or(&self.0)
    }

    /// The id without the key.
    pub fn bare_id(&self) -> &str {
        self.0.split_once(KEY_MARK).map_or(&self.0, |(_, id)| id)
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(SmolStr::new_static(DEFAULT_NAMESPACE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "A.b_c-9", "...", &"x".repeat(128)] {
            assert_eq!(TaskId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a\0", &"x".repeat(129)] {
            let error = QueueName::parse(bad).unwrap_err();
            assert_eq!(error.what, "queue name");
            assert!(error.value.len() <= SHOWN_CHARS_MAX * 4);
        }
    }

    #[test]
    fn a_handle_is_an_id_or_a_key_and_an_id() {
        let keyed = TaskId::keyed("user-7", "mail.1").unwrap();
        assert_eq!(keyed, TaskId::parse("user-7:mail.1").unwrap());
        assert_eq!((keyed.key(), keyed.bare_id()), (Some("user-7"), "mail.1"));
        assert_eq!(keyed.routing_key(), "user-7");
        let plain = TaskId::parse("mail.1").unwrap();
        assert_eq!((plain.key(), plain.bare_id(), plain.routing_key()), (None, "mail.1", "mail.1"));
        let long = "x".repeat(129);
        for bad in [":", "a:", ":a", "a:b:c", "..:a", "a:.", &format!("a:{long}")] {
            assert!(TaskId::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(TaskId::keyed("a:b", "c").unwrap_err().what, "task key");
        assert_eq!(TaskId::keyed("a", "b/c").unwrap_err().what, "task id");
        assert!(QueueName::parse("a:b").is_err());
    }

    #[test]
    fn decoding_checks_the_rule() {
        let bytes = minicbor::to_vec("a/b").unwrap();
        assert!(minicbor::decode::<TaskId>(&bytes).is_err());
        let bytes = minicbor::to_vec(TaskId::parse("a.b").unwrap()).unwrap();
        assert_eq!(minicbor::decode::<TaskId>(&bytes).unwrap().as_str(), "a.b");
    }
}
