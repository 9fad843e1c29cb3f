//! How objects are kept and found, and how what is derived from them follows.

use std::sync::Arc;

use super::{Object, ObjectVersion};
use crate::hash::{RecordKind, digest_record};
use crate::shard::{Index, Shard};
use crate::{BucketName, Digest, Namespace, ObjectName};

/// Full name of an object.
pub type ObjectKey = (Namespace, BucketName, ObjectName);

impl Shard {
    /// One object.
    pub fn object(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.core.objects.get(key)
    }

    /// Stores an object, new or changed.
    pub(crate) fn put_object(&mut self, object: Object) {
        let key = (object.namespace.clone(), object.bucket.clone(), object.name.clone());
        self.core.hash.add(digest_record(RecordKind::Object, &object));
        // First what comes, then what goes: a piece that both have is never without a reference.
        let namespace = &object.namespace;
        object.versions.iter().for_each(|version| self.index.add_version(namespace, version));
        if let Some(before) = self.core.objects.insert(key, Arc::new(object)) {
            self.let_go(&before);
        }
    }

    /// Removes an object; false if there is none.
    pub(crate) fn remove_object(&mut self, key: &ObjectKey) -> bool {
        let before = self.core.objects.remove(key);
        if let Some(before) = &before {
            self.let_go(before);
        }
        before.is_some()
    }

    fn let_go(&mut self, before: &Object) {
        self.core.hash.remove(digest_record(RecordKind::Object, before));
        let namespace = &before.namespace;
        before.versions.iter().for_each(|version| self.index.remove_version(namespace, version));
    }
}

impl Index {
    /// A version came.
    pub(crate) fn add_version(&mut self, namespace: &Namespace, version: &ObjectVersion) {
        self.store_more(namespace, version.size);
        self.object_changes += 1;
        self.object_versions += 1;
        self.object_bytes += version.size;
        self.refer(version.chunks.iter());
    }

    /// Somebody refers to these blobs.
    pub(crate) fn refer<'a>(&mut self, pieces: impl Iterator<Item = &'a Digest>) {
        for digest in pieces {
            *self.references.entry(*digest).or_insert(0) += 1;
            self.reference_count += 1;
            self.object_changes += 1;
        }
    }

    /// They do no more.
    pub(crate) fn let_refer<'a>(&mut self, pieces: impl Iterator<Item = &'a Digest>) {
        for digest in pieces {
            if let Some(count) = self.references.get_mut(digest) {
                *count -= 1;
                if *count == 0 {
                    self.references.remove(digest);
                }
                self.reference_count -= 1;
                self.object_changes += 1;
            }
        }
    }

    /// A version went.
    pub(crate) fn remove_version(&mut self, namespace: &Namespace, version: &ObjectVersion) {
        self.store_less(namespace, version.size);
        self.object_changes += 1;
        self.object_versions -= 1;
        self.object_bytes -= version.size;
        self.let_refer(version.chunks.iter());
    }
}
