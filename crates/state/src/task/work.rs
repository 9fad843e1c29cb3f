//! What a task runs, if its submitter says so: a program, its settings and its inputs. A plain task carries none.
//!
//! Promise: work never changes once the task exists, and every attempt is handed the same (B4-13). Left out: what a
//! program is and where its bytes are; whoever submits resolves that first.

use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use crate::limits::{
    ENTRY_BYTES_MAX, OUTPUT_URL_BYTES_MAX, SETTING_NAME_BYTES_MAX, WORK_BYTES_MAX, WORK_INPUTS_MAX,
    WORK_SETTINGS_MAX,
};
use crate::{BucketName, Digest, JobId, ObjectName, ProgramName, RefusalCode, StageName};

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum ProgramKind {
    /// A function inside the worker.
    #[n(0)]
    Handler = 0,
    /// A command line.
    #[n(1)]
    Command = 1,
    /// A WebAssembly module.
    #[n(2)]
    Wasm = 2,
}

impl ProgramKind {
    /// All kinds.
    pub const ALL: [ProgramKind; 3] =
        [ProgramKind::Handler, ProgramKind::Command, ProgramKind::Wasm];

    /// The kind as public text.
    pub fn as_str(self) -> &'static str {
        match self {
            ProgramKind::Handler => "handler",
            ProgramKind::Command => "command",
            ProgramKind::Wasm => "wasm",
        }
    }
}

/// Which program, exactly.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ProgramRef {
    /// Its name when the task was submitted.
    #[n(0)]
    pub name: ProgramName,
    /// How it is run.
    #[n(1)]
    pub kind: ProgramKind,
    /// Digest of what was stored under the name then; none for a handler.
    #[n(2)]
    pub digest: Option<Digest>,
    /// What to call inside it; none for its default.
    #[n(3)]
    pub entry: Option<String>,
}

/// Where an input's bytes come from.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum InputSource {
    /// An object, or a part of it. Outputs of earlier tasks are objects of the bucket `jobs`.
    #[n(0)]
    Object {
        /// Its bucket.
        #[n(0)]
        bucket: BucketName,
        /// Its name in the bucket.
        #[n(1)]
        key: ObjectName,
        /// Which version; none for the newest.
        #[n(2)]
        version: Option<u64>,
        /// Digest that the whole object must have, if it is known.
        #[n(3)]
        digest: Option<Digest>,
        /// First byte.
        #[n(4)]
        offset: u64,
        /// Number of bytes; none for all that follow.
        #[n(5)]
        length: Option<u64>,
    },
    /// An address that the worker opens itself, if it is allowed to; or a part of what lies there. What is none leaves no
    /// trace in encodings.
    #[n(1)]
    Url {
        /// The address.
        #[n(0)]
        url: String,
        /// First byte; none for the beginning.
        #[n(1)]
        offset: Option<u64>,
        /// Number of bytes; none for all that follow.
        #[n(2)]
        length: Option<u64>,
        /// The store's mark of the version that was cut; none if any will do.
        #[n(3)]
        etag: Option<String>,
    },
    /// The bytes themselves: a line, or an index.
    #[n(2)]
    Text(#[n(0)] String),
}

/// One input: a file in the task's folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Input {
    /// Name of the file.
    #[n(0)]
    pub name: ObjectName,
    /// Where its bytes come from.
    #[n(1)]
    pub source: InputSource,
}

impl Input {
    /// Bytes that count against the bounds of work.
    pub(crate) fn weight(&self) -> usize {
        let source = match &self.source {
            InputSource::Object { bucket, key, .. } => {
                bucket.as_str().len() + key.as_str().len() + 64
            }
            InputSource::Url { url, etag, .. } => {
                url.len() + etag.as_ref().map_or(0, |etag| etag.len())
            }
            InputSource::Text(text) => text.len(),
        };
        self.name.as_str().len() + source + 16
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let is_cut = match &self.source {
            InputSource::Url { offset, length, etag, .. } => {
                offset.is_some() || length.is_some() || etag.is_some()
            }
            InputSource::Object { .. } | InputSource::Text(_) => false,
        };
        u32::from(is_cut)
    }
}

/// Which part of a job a task is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobPart {
    /// The job.
    #[n(0)]
    pub job: JobId,
    /// The stage.
    #[n(1)]
    pub stage: StageName,
    /// Place in the stage, from 0.
    #[n(2)]
    pub index: u32,
    /// Whether it runs beside the task of that place, which was slow; none is no.
    #[n(3)]
    pub twin: Option<bool>,
}

impl JobPart {
    /// Whether it runs beside the task of that place.
    pub fn is_twin(&self) -> bool {
        self.twin == Some(true)
    }
}

/// What a task runs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Work {
    /// The program.
    #[n(0)]
    pub program: ProgramRef,
    /// Settings for it, sorted by name, each name once.
    #[n(1)]
    pub settings: Vec<(String, String)>,
    /// What it reads.
    #[n(2)]
    pub inputs: Vec<Input>,
    /// Which part of a job it is; none for a plain task.
    #[n(3)]
    pub job: Option<JobPart>,
    /// Whether the result of the same work may be used instead of running it; none is no, and leaves no trace in
    /// encodings that older programs made.
    #[n(4)]
    pub reuse: Option<bool>,
    /// An address below which the worker brings the outputs; none for objects of the cluster.
    #[n(5)]
    pub output_url: Option<String>,
}

impl Work {
    /// Whether the result of the same work may be used instead of running it.
    pub fn reuses(&self) -> bool {
        self.reuse == Some(true)
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let inputs = self.inputs.iter().map(Input::level).max().unwrap_or(0);
        inputs.max(u32::from(self.reuse.is_some() || self.output_url.is_some()))
    }

    /// Bytes that count as the task's payload does.
    pub(crate) fn weight(&self) -> usize {
        let settings: usize =
            self.settings.iter().map(|(name, value)| name.len() + value.len()).sum();
        let inputs: usize = self.inputs.iter().map(Input::weight).sum();
        let output = self.output_url.as_ref().map_or(0, |url| url.len());
        self.program.name.as_str().len() + settings + inputs + output + 64
    }

    /// Checks every bound.
    pub(crate) fn check(&self) -> Result<(), RefusalCode> {
        if self.settings.len() > WORK_SETTINGS_MAX
            || self.inputs.len() > WORK_INPUTS_MAX
            || self.weight() > WORK_BYTES_MAX
        {
            return Err(RefusalCode::TooLarge);
        }
        let sorted = self.settings.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let named = |name: &str| {
            !name.is_empty() && name.len() <= SETTING_NAME_BYTES_MAX && !name.contains(['=', '\0'])
        };
        let entry = self.program.entry.as_ref();
        let fits = sorted
            && self.output_url.as_deref().is_none_or(is_output_url)
            && self.settings.iter().all(|(name, value)| named(name) && !value.contains('\0'))
            && entry.is_none_or(|entry| (1..=ENTRY_BYTES_MAX).contains(&entry.len()));
        if fits { Ok(()) } else { Err(RefusalCode::BadValue) }
    }
}

/// Whether outputs can be brought below such an address.
fn is_output_url(url: &str) -> bool {
    (1..=OUTPUT_URL_BYTES_MAX).contains(&url.len()) && !url.contains(char::is_control)
}

/// Work that many hold and nobody changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedWork(Arc<Work>);

impl From<Work> for SharedWork {
    fn from(work: Work) -> Self {
        Self(Arc::new(work))
    }
}

impl Deref for SharedWork {
    type Target = Work;
    fn deref(&self) -> &Work {
        &self.0
    }
}

impl<C> Encode<C> for SharedWork {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        self.0.as_ref().encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for SharedWork {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        Ok(Self(Arc::new(Work::decode(decoder, context)?)))
    }
}
