//! What the windows hold: hashes of names and bodies, a time, and a small outcome.

use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use super::RingEntry;
use crate::hash::{RecordKind, digest_bytes, encode_into};
use crate::{Fence, RefusalCode, Reply};

/// First outcome of a remembered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Outcome {
    /// A task was created, or existed with the same body.
    #[n(0)]
    Enqueued {
        /// Whether it was created.
        #[n(0)]
        created: bool,
    },
    /// A task was cancelled.
    #[n(1)]
    Cancelled,
    /// Settings were stored.
    #[n(2)]
    QueueSet {
        /// Their version.
        #[n(0)]
        version: u64,
    },
    /// The order was refused for good.
    #[n(3)]
    Refused {
        /// Why.
        #[n(0)]
        code: RefusalCode,
    },
    /// A task was given fresh attempts.
    #[n(20)]
    Retried,
    /// A finished task was removed.
    #[n(21)]
    Dropped,
    /// One step of a sweep was done.
    #[n(22)]
    Swept {
        /// Tasks changed.
        #[n(0)]
        count: u32,
        /// Where the next step begins.
        #[n(1)]
        next: Option<u32>,
    },
    /// A schedule was stored.
    #[n(40)]
    ScheduleSet {
        /// Version of its settings.
        #[n(0)]
        version: u64,
    },
    /// A schedule was removed.
    #[n(41)]
    ScheduleDeleted,
    /// An object was written.
    #[n(60)]
    ObjectPut {
        /// Its version.
        #[n(0)]
        version: u64,
        /// Whether the version was new.
        #[n(1)]
        fresh: bool,
    },
    /// An object was removed.
    #[n(61)]
    ObjectDeleted {
        /// How many versions went.
        #[n(0)]
        versions: u32,
    },
    /// The cluster began to grow.
    #[n(90)]
    Growing {
        /// Shards in the end.
        #[n(0)]
        shards: u16,
        /// Slots that will move.
        #[n(1)]
        slots: u16,
    },
    /// A lease was given back.
    #[n(100)]
    LeaseReleased,
    /// A job was accepted, or existed with the same body.
    #[n(110)]
    JobSubmitted {
        /// Whether it was new.
        #[n(0)]
        created: bool,
    },
    /// A job was cancelled.
    #[n(111)]
    JobCancelled,
}

impl Outcome {
    /// Its kind and what is told with it, for the hash of the state.
    pub(crate) fn words(self) -> (u64, u64) {
        match self {
            Outcome::Enqueued { created } => (0, u64::from(created)),
            Outcome::Cancelled => (1, 0),
            Outcome::QueueSet { version } => (2, version),
            Outcome::Refused { code } => (3, code as u64),
            Outcome::Retried => (20, 0),
            Outcome::Dropped => (21, 0),
            Outcome::ScheduleSet { version } => (40, version),
            Outcome::ScheduleDeleted => (41, 0),
            Outcome::ObjectPut { version, fresh } => (60, version << 1 | u64::from(fresh)),
            Outcome::ObjectDeleted { versions } => (61, u64::from(versions)),
            Outcome::Growing { shards, slots } => (90, u64::from(shards) << 16 | u64::from(slots)),
            Outcome::LeaseReleased => (100, 0),
            Outcome::JobSubmitted { created } => (110, u64::from(created)),
            Outcome::JobCancelled => (111, 0),
            Outcome::Swept { count, next } => {
                let next = next.map_or(0, |slot| u64::from(slot) + 1);
                (22, u64::from(count) << 40 | next)
            }
        }
    }

    /// What to remember of a reply; none if it is not to be remembered.
    pub(crate) fn of(reply: &Reply) -> Option<Outcome> {
        match reply {
            Reply::Enqueued { created, .. } => Some(Outcome::Enqueued { created: *created }),
            Reply::Cancelled => Some(Outcome::Cancelled),
            Reply::QueueSet { version } => Some(Outcome::QueueSet { version: *version }),
            Reply::Retried => Some(Outcome::Retried),
            Reply::Dropped => Some(Outcome::Dropped),
            Reply::Swept { count, next } => Some(Outcome::Swept { count: *count, next: *next }),
            Reply::ScheduleSet { version } => Some(Outcome::ScheduleSet { version: *version }),
            Reply::ScheduleDeleted => Some(Outcome::ScheduleDeleted),
            Reply::ObjectPut { version, fresh } => {
                Some(Outcome::ObjectPut { version: *version, fresh: *fresh })
            }
            Reply::ObjectDeleted { versions } => {
                Some(Outcome::ObjectDeleted { versions: *versions })
            }
            Reply::LeaseReleased => Some(Outcome::LeaseReleased),
            Reply::Growing { shards, slots } => {
                Some(Outcome::Growing { shards: *shards, slots: *slots })
            }
            Reply::JobSubmitted { created } => Some(Outcome::JobSubmitted { created: *created }),
            Reply::JobCancelled => Some(Outcome::JobCancelled),
            Reply::Refused { code } if !code.is_transient() => {
                Some(Outcome::Refused { code: *code })
            }
            _ => None,
        }
    }
}

/// A remembered request as readers see it. The task's id is that of the request, or derived from
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Log time of the first application.
    pub time_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// One task handed out by a remembered claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct GrantMark {
    #[n(0)]
    pub(crate) slot: u32,
    #[n(1)]
    pub(crate) fence: Fence,
}

/// The tasks handed out by one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grants(Arc<Vec<GrantMark>>);

impl From<Vec<GrantMark>> for Grants {
    fn from(marks: Vec<GrantMark>) -> Self {
        Self(Arc::new(marks))
    }
}

impl std::ops::Deref for Grants {
    type Target = [GrantMark];
    fn deref(&self) -> &[GrantMark] {
        &self.0
    }
}

impl<C> Encode<C> for Grants {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        self.0.as_ref().encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for Grants {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        Ok(Self(Arc::new(Vec::decode(decoder, context)?)))
    }
}

/// One remembered claim.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ClaimEntry {
    #[n(0)]
    pub(crate) key: [u64; 2],
    #[n(1)]
    pub(crate) body_hash: u64,
    #[n(2)]
    pub(crate) time_ms: u64,
    #[n(3)]
    pub(crate) grants: Grants,
}

impl RingEntry for ClaimEntry {
    fn key(&self) -> [u64; 2] {
        self.key
    }
    fn weight(&self) -> u64 {
        self.grants.len() as u64
    }
    fn digest(&self, number: u64) -> u64 {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(&number.to_le_bytes());
        encode_into(self, &mut bytes);
        digest_bytes(RecordKind::Claim, &bytes)
    }
    fn time_ms(&self) -> u64 {
        self.time_ms
    }
}
