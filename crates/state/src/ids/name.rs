//! Validated names: `[A-Za-z0-9._-]{1,128}`, never `.` or `..` (X8).
//!
//! A short name (up to 23 bytes, which most are) lies in the value itself; a longer one is shared. Cloning never copies
//! to the heap, which the hot path relies on.

use std::fmt;

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};
use smol_str::SmolStr;

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 128;

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

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks and takes a name.
            pub fn parse(value: &str) -> Result<Self, NameError> {
                match broken_rule(value) {
                    None => Ok(Self(SmolStr::new(value))),
                    Some(rule) => Err(NameError {
                        what: $what,
                        value: value.chars().take(SHOWN_CHARS_MAX).collect(),
                        rule,
                    }),
                }
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
                match broken_rule(value) {
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
    "namespace"
);
name_type!(
    /// Name of a queue inside its namespace.
    QueueName,
    "queue name"
);
name_type!(
    /// Name of a task, unique inside its namespace.
    TaskId,
    "task id"
);
name_type!(
    /// Idempotency key of a client request.
    RequestId,
    "request id"
);
name_type!(
    /// Name of a worker process.
    WorkerId,
    "worker id"
);

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
    fn decoding_checks_the_rule() {
        let bytes = minicbor::to_vec("a/b").unwrap();
        assert!(minicbor::decode::<TaskId>(&bytes).is_err());
        let bytes = minicbor::to_vec(TaskId::parse("a.b").unwrap()).unwrap();
        assert_eq!(minicbor::decode::<TaskId>(&bytes).unwrap().as_str(), "a.b");
    }
}
