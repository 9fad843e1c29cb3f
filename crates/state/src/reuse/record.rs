//! What is remembered of one completion, and how it is kept: by digest, the oldest first to go.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::limits::{
    OBJECT_REFERENCES_MAX, OUTPUTS_MAX, REMEMBERED_BYTES_MAX, REMEMBERED_EACH_BYTES_MAX,
    REMEMBERED_MAX, REMEMBERED_MS_MAX, REMEMBERED_STORED_BYTES_MAX,
};
use crate::object::check_content;
use crate::shard::{Index, Shard};
use crate::task::Output;
use crate::{Digest, Namespace, SharedBytes};

/// Owner and digest of work.
pub(crate) type RememberedKey = (Namespace, Digest);

/// Bytes of a record beside its parts, roughly.
const RECORD_BYTES: usize = 256;

/// Most records that one entry lets go for their age.
const FORGET_PER_ENTRY: usize = 64;

/// What a task brought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Stored {
    /// Its result.
    #[n(0)]
    pub result: Option<SharedBytes>,
    /// Its files.
    #[n(1)]
    pub outputs: Vec<Output>,
}

impl Stored {
    /// Bytes in memory, roughly.
    pub(crate) fn weight(&self) -> usize {
        let output =
            |output: &Output| RECORD_BYTES + output.name.as_str().len() + 32 * output.chunks.len();
        let result = self.result.as_ref().map_or(0, |result| result.len());
        RECORD_BYTES + result + self.outputs.iter().map(output).sum::<usize>()
    }

    /// The blobs that its files consist of.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Digest> {
        self.outputs.iter().flat_map(|output| output.chunks.iter())
    }

    /// Whether it may be remembered at all.
    pub(crate) fn fits(&self) -> bool {
        let sound = |output: &Output| {
            check_content(output.size, &output.chunks, &output.content_type).is_ok()
        };
        self.weight() <= REMEMBERED_EACH_BYTES_MAX
            && self.outputs.len() <= OUTPUTS_MAX
            && self.outputs.iter().all(sound)
    }

    fn stored_bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.size).fold(0, u64::saturating_add)
    }
}

/// One remembered completion.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Remembered {
    /// Whose work it was.
    #[n(0)]
    pub(crate) namespace: Namespace,
    /// Digest of the work.
    #[n(1)]
    pub(crate) key: Digest,
    /// What it brought.
    #[n(2)]
    pub(crate) stored: Stored,
    /// Place in line: the lowest leaves first.
    #[n(3)]
    pub(crate) place: u64,
    /// Log time at which it came here.
    #[n(4)]
    pub(crate) since_ms: u64,
}

impl Remembered {
    pub(crate) fn name(&self) -> RememberedKey {
        (self.namespace.clone(), self.key)
    }

    /// Whether a decoded record obeys its bounds.
    pub(crate) fn is_valid(&self, sequence: u64) -> bool {
        self.stored.fits() && self.place <= sequence
    }
}

impl Shard {
    /// What is remembered of some work.
    pub fn remembered(&self, namespace: &Namespace, key: &Digest) -> Option<&Stored> {
        let known = self.core.remembered.get(&(namespace.clone(), *key))?;
        let fresh = known.since_ms.saturating_add(REMEMBERED_MS_MAX) > self.core.time_ms;
        fresh.then_some(&known.stored)
    }

    /// How many results are remembered.
    pub fn remembered_count(&self) -> usize {
        self.core.remembered.len()
    }

    /// Remembers what some work brought, unless it is known; makes room.
    pub(crate) fn keep_result(&mut self, namespace: &Namespace, key: Digest, stored: &Stored) {
        if self.remembered(namespace, &key).is_some() || !stored.fits() {
            return;
        }
        self.forget_result(&(namespace.clone(), key));
        let (bytes, size) = (stored.weight() as u64, stored.stored_bytes());
        let pieces = stored.pieces().count() as u64;
        if size > REMEMBERED_STORED_BYTES_MAX
            || self.index.reference_count + pieces > OBJECT_REFERENCES_MAX
        {
            return;
        }
        while self.core.remembered.len() >= REMEMBERED_MAX
            || self.index.remembered_bytes + bytes > REMEMBERED_BYTES_MAX
            || self.index.remembered_stored.saturating_add(size) > REMEMBERED_STORED_BYTES_MAX
        {
            let Some((_, oldest)) = self.index.remembered_line.first_key_value() else {
                return;
            };
            let oldest = oldest.clone();
            self.forget_result(&oldest);
        }
        let place = self.next_sequence();
        let (namespace, stored, since_ms) = (namespace.clone(), stored.clone(), self.core.time_ms);
        let record = Remembered { namespace, key, stored, place, since_ms };
        self.core.hash.add(digest_record(RecordKind::Remembered, &record));
        self.index.link_remembered(&record);
        self.core.remembered.insert(record.name(), Arc::new(record));
    }

    /// Forgets what is too old, a few at a time.
    pub(crate) fn forget_results(&mut self) {
        for _ in 0..FORGET_PER_ENTRY {
            let Some((_, oldest)) = self.index.remembered_line.first_key_value() else {
                return;
            };
            let oldest = oldest.clone();
            if self.remembered(&oldest.0, &oldest.1).is_some() {
                return;
            }
            self.forget_result(&oldest);
        }
    }

    fn forget_result(&mut self, key: &RememberedKey) {
        if let Some(record) = self.core.remembered.remove(key) {
            self.core.hash.remove(digest_record(RecordKind::Remembered, &*record));
            self.index.unlink_remembered(&record);
        }
    }
}

impl Index {
    /// A result came.
    pub(crate) fn link_remembered(&mut self, record: &Remembered) {
        self.remembered_line.insert(record.place, record.name());
        self.remembered_bytes += record.stored.weight() as u64;
        self.remembered_stored += record.stored.stored_bytes();
        self.refer(record.stored.pieces());
    }

    fn unlink_remembered(&mut self, record: &Remembered) {
        self.remembered_line.remove(&record.place);
        self.remembered_bytes -= record.stored.weight() as u64;
        self.remembered_stored -= record.stored.stored_bytes();
        self.let_refer(record.stored.pieces());
    }
}
