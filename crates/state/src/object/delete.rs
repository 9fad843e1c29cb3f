//! `DeleteObject`: removes an object with all its versions, or one version. Blobs that nothing refers to any more are
//! collected later.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::PutCondition;
use crate::hash::encode_into;
use crate::shard::Shard;
use crate::{BucketName, Namespace, ObjectName, RefusalCode, Reply};

/// Removes an object.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeleteObject {
    /// The bucket.
    #[n(0)]
    pub bucket: BucketName,
    /// The object's name.
    #[n(1)]
    pub name: ObjectName,
    /// Only this version; absent means all.
    #[n(2)]
    pub version: Option<u64>,
    /// What must be true.
    #[n(3)]
    pub condition: PutCondition,
}

impl DeleteObject {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(128);
        encode_into(self, &mut bytes);
        xxh3_64_with_seed(&bytes, 61)
    }
}

impl Shard {
    pub(crate) fn apply_delete_object(
        &mut self,
        namespace: &Namespace,
        order: DeleteObject,
    ) -> Reply {
        let key = (namespace.clone(), order.bucket, order.name);
        let Some(known) = self.core.objects.get(&key).cloned() else {
            return Reply::refused(RefusalCode::ObjectNotFound);
        };
        if !order.condition.holds(Some(&known)) {
            return Reply::refused(RefusalCode::PreconditionFailed);
        }
        let Some(wanted) = order.version else {
            self.remove_object(&key);
            return Reply::ObjectDeleted { versions: known.versions.len() as u32 };
        };
        let mut object = (*known).clone();
        object.versions.retain(|version| version.version != wanted);
        if object.versions.len() == known.versions.len() {
            return Reply::refused(RefusalCode::ObjectNotFound);
        }
        match object.versions.is_empty() {
            true => drop(self.remove_object(&key)),
            false => self.put_object(object),
        }
        Reply::ObjectDeleted { versions: 1 }
    }
}
