//! Uploads: pieces go to the nodes that are up, one after the other; the name is committed when a majority has each.

use ikada_state::{
    BucketName, Command, DeleteObject, Digest, ObjectName, PutCondition, PutObject, Reply,
};
use ikada_store::blob::digest;

use super::{GRACE_MS, Mischief, UPLOADS_MAX, World};

/// Different contents of pieces: few, so that removed ones come back and uploads share them.
const CONTENTS: u8 = 12;
/// Names of objects.
const NAMES: u8 = 6;
/// The state wants whole pieces; their bytes here are fewer, which nobody checks.
const PIECE_BYTES: u64 = 1 << 20;

pub(super) struct Upload {
    name: u8,
    pieces: Vec<[u8; 32]>,
    stored: usize,
    begun_ms: u64,
    /// Who was a member then.
    members: Vec<usize>,
}

fn bucket() -> BucketName {
    BucketName::parse("b").unwrap_or_else(|error| panic!("{error}"))
}

fn object_name(number: u8) -> ObjectName {
    ObjectName::parse(&format!("o/{number}")).unwrap_or_else(|error| panic!("{error}"))
}

impl World {
    /// Copies that a committed name needs.
    pub(super) fn copies_needed(&self) -> usize {
        if self.mischief == Mischief::OneCopy { 1 } else { self.majority() }
    }

    pub(super) fn begin_upload(&mut self) {
        if self.uploads.len() >= UPLOADS_MAX {
            return;
        }
        let count = self.rng.usize(1..=3);
        let pieces = (0..count).map(|_| {
            let bytes = vec![self.rng.u8(0..CONTENTS); 40];
            let id = digest(&bytes);
            self.contents.insert(id, bytes);
            id
        });
        let pieces = pieces.collect();
        let name = self.rng.u8(0..NAMES);
        let (begun_ms, members) = (self.now_ms, self.members.clone());
        self.uploads.push(Upload { name, pieces, stored: 0, begun_ms, members });
    }

    pub(super) fn advance_upload(&mut self) {
        if self.uploads.is_empty() {
            return;
        }
        let number = self.rng.usize(0..self.uploads.len());
        // The client goes away.
        if self.rng.u8(0..20) == 0 {
            self.uploads.swap_remove(number);
            self.tally.given_up += 1;
            return;
        }
        let Upload { stored, ref pieces, .. } = self.uploads[number];
        match pieces.get(stored).copied() {
            Some(piece) => {
                if self.store(&piece) {
                    self.uploads[number].stored += 1;
                }
            }
            None => self.commit_upload(number),
        }
    }

    /// Stores a piece on the nodes that can be reached; true if these are enough.
    fn store(&mut self, piece: &[u8; 32]) -> bool {
        let mut copies = 0;
        for node in self.members.clone() {
            let reached = self.rng.u8(0..10) < 8;
            if let (true, Some(blobs)) = (reached, &self.nodes[node].blobs) {
                copies += usize::from(blobs.put(piece, &self.contents[piece], self.now_ms).is_ok());
            }
        }
        copies >= self.copies_needed()
    }

    fn commit_upload(&mut self, number: usize) {
        let age_ms = self.now_ms - self.uploads[number].begun_ms;
        let is_old = age_ms > GRACE_MS / 2 && self.mischief != Mischief::NoReconfirm;
        let is_other = self.uploads[number].members != self.members;
        let is_other = is_other && self.mischief != Mischief::NoRecount;
        self.tally.recounted += u64::from(is_other);
        // "Stored" was said too long ago, or by a majority of others.
        if (is_old || is_other) && !self.confirm_upload(number) {
            self.uploads.swap_remove(number);
            self.tally.given_up += 1;
            return;
        }
        let Upload { name, pieces, .. } = self.uploads.swap_remove(number);
        let needed = self.majority();
        for piece in &pieces {
            let promised = self.promised.entry(*piece).or_default();
            *promised = needed.max(*promised);
        }
        let put = PutObject {
            bucket: bucket(),
            name: object_name(name),
            size: pieces.len() as u64 * PIECE_BYTES,
            content_type: "x".to_owned(),
            digest: Digest(digest(&pieces.concat())),
            chunks: pieces.into_iter().map(Digest).collect::<Vec<_>>().into(),
            condition: PutCondition::Any,
            upload: None,
        };
        let reply = self.commit(1, Command::PutObject(put));
        self.tally.put += u64::from(matches!(reply, Reply::ObjectPut { .. }));
    }

    /// Has the members say again what they have of an upload; true if these are enough.
    fn confirm_upload(&mut self, number: usize) -> bool {
        self.uploads[number].begun_ms = self.now_ms;
        self.uploads[number].members = self.members.clone();
        let pieces = &self.uploads[number].pieces;
        let confirmed = |node: &&usize| {
            self.nodes[**node].blobs.as_ref().is_some_and(|blobs| {
                let has = |id| blobs.confirm(id, self.now_ms).unwrap_or(false);
                // Not `all`: every piece that is there is pinned.
                pieces.iter().filter(|id| has(id)).count() == pieces.len()
            })
        };
        let copies = self.members.iter().filter(confirmed).count();
        self.tally.reconfirmed += 1;
        copies >= self.copies_needed()
    }

    pub(super) fn delete(&mut self) {
        let name = object_name(self.rng.u8(0..NAMES));
        let (version, condition) = (None, PutCondition::Any);
        let delete = DeleteObject { bucket: bucket(), name, version, condition };
        let reply = self.commit(1, Command::DeleteObject(delete));
        self.tally.deleted += u64::from(matches!(reply, Reply::ObjectDeleted { .. }));
    }
}
