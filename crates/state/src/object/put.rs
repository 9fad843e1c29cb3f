//! `PutObject`: writes an object's newest version. Its bytes are on a majority of the nodes before this is proposed.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::record::check_content;
use super::{
    BUCKET_LOGS, BUCKET_UPLOADS, Digest, Digests, Object, ObjectVersion, is_owned, is_published,
};
use crate::hash::encode_into;
use crate::limits::{OBJECT_REFERENCES_MAX, OBJECT_VERSIONS_MAX, OBJECT_VERSIONS_TOTAL_MAX};
use crate::shard::Shard;
use crate::{BucketName, Namespace, ObjectName, RefusalCode, Reply, TaskId};

/// Most parts of an upload that are counted: as many as it may have, and its beginning.
const PARTS_MAX: usize = 10_001;

/// What must be true of the object for a change to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum PutCondition {
    /// Nothing.
    #[n(0)]
    #[default]
    Any,
    /// There is no such object.
    #[n(1)]
    Absent,
    /// There is one, whatever its content.
    #[n(2)]
    Present,
    /// Its newest version has this content.
    #[n(3)]
    Match(#[n(0)] Digest),
}

impl PutCondition {
    /// Whether it holds for an object, if there is one.
    pub(crate) fn holds(self, object: Option<&Object>) -> bool {
        let newest = object.and_then(Object::newest);
        match self {
            PutCondition::Any => true,
            PutCondition::Absent => newest.is_none(),
            PutCondition::Present => newest.is_some(),
            PutCondition::Match(digest) => newest.is_some_and(|version| version.digest == digest),
        }
    }
}

/// Writes an object.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PutObject {
    /// The bucket.
    #[n(0)]
    pub bucket: BucketName,
    /// The object's name.
    #[n(1)]
    pub name: ObjectName,
    /// Bytes in all.
    #[n(2)]
    pub size: u64,
    /// What the bytes are.
    #[n(3)]
    pub content_type: String,
    /// Digest of all bytes.
    #[n(4)]
    pub digest: Digest,
    /// Digest of each piece.
    #[n(5)]
    pub chunks: Digests,
    /// What must be true.
    #[n(6)]
    pub condition: PutCondition,
    /// The upload in parts that it is made of. Its parts are about to go, so they take nothing of the quota.
    #[n(7)]
    pub upload: Option<ObjectName>,
}

impl PutObject {
    /// Hash of the order as asked for: how its bytes came is no part of that.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(256);
        match self.upload {
            None => encode_into(self, &mut bytes),
            Some(_) => encode_into(&PutObject { upload: None, ..self.clone() }, &mut bytes),
        }
        xxh3_64_with_seed(&bytes, 60)
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        u32::from(self.upload.is_some())
    }
}

impl Shard {
    pub(crate) fn apply_put_object(&mut self, namespace: &Namespace, order: PutObject) -> Reply {
        match self.write_object(namespace, order) {
            Ok((version, fresh)) => Reply::ObjectPut { version, fresh },
            Err(code) => Reply::refused(code),
        }
    }

    /// A log is `<task>/<attempt>` of a task that is here and runs a program: it goes with the task.
    fn check_log(&self, namespace: &Namespace, name: &ObjectName) -> Result<(), RefusalCode> {
        let (task, attempt) = name.as_str().split_once('/').ok_or(RefusalCode::BadValue)?;
        let attempt: u16 = attempt.parse().map_err(|_| RefusalCode::BadValue)?;
        let id = TaskId::parse(task).map_err(|_| RefusalCode::BadValue)?;
        let slot = self.find_task(namespace, &id).ok_or(RefusalCode::TaskNotFound)?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        let runs = task.extras.as_ref().is_some_and(|extras| extras.work.is_some());
        match runs && attempt > 0 {
            true => Ok(()),
            false => Err(RefusalCode::BadValue),
        }
    }

    /// Bytes of the parts of an upload that are in this shard.
    fn part_bytes(&self, namespace: &Namespace, upload: &ObjectName) -> u64 {
        let Ok(bucket) = BucketName::parse(BUCKET_UPLOADS) else { return 0 };
        let parts = self.objects(namespace, &bucket, &format!("{upload}/"), None, PARTS_MAX);
        let versions = parts.objects.iter().flat_map(|part| part.versions.iter());
        versions.map(|version| version.size).fold(0, u64::saturating_add)
    }

    fn write_object(
        &mut self,
        namespace: &Namespace,
        order: PutObject,
    ) -> Result<(u64, bool), RefusalCode> {
        if is_published(&order.bucket) {
            return Err(RefusalCode::BucketReserved);
        }
        if order.bucket.as_str() == BUCKET_LOGS {
            self.check_log(namespace, &order.name)?;
        }
        check_content(order.size, &order.chunks, &order.content_type)?;
        let key = (namespace.clone(), order.bucket, order.name);
        let known = self.core.objects.get(&key);
        if !order.condition.holds(known.map(|object| &**object)) {
            return Err(RefusalCode::PreconditionFailed);
        }
        // The same content again changes nothing, and pushes no older version out.
        if let Some(newest) = known.and_then(|object| object.newest())
            && (newest.digest, newest.size) == (order.digest, order.size)
            && (&newest.chunks, &newest.content_type) == (&order.chunks, &order.content_type)
        {
            return Ok((newest.version, false));
        }
        let references = self.index.reference_count + order.chunks.len() as u64;
        if self.index.object_versions >= OBJECT_VERSIONS_TOTAL_MAX
            || references > OBJECT_REFERENCES_MAX
        {
            return Err(RefusalCode::TooManyObjects);
        }
        if !is_owned(&key.1) {
            let pushed_out = known.filter(|object| object.versions.len() >= OBJECT_VERSIONS_MAX);
            let replaced = pushed_out.map_or(0, |object| object.versions[0].size);
            let stored = self.check_stored(namespace, order.size, replaced);
            // Counted only where it matters: an upload may have many parts.
            if let (Err(_), Some(upload)) = (stored, &order.upload) {
                let parts = self.part_bytes(namespace, upload);
                self.check_stored(namespace, order.size, replaced.saturating_add(parts))?;
            } else {
                stored?;
            }
        }
        let mut object = match known {
            Some(known) => (**known).clone(),
            None => {
                let (namespace, bucket, name) = key;
                Object { namespace, bucket, name, versions: Vec::new() }
            }
        };
        let version = self.next_sequence();
        if object.versions.len() >= OBJECT_VERSIONS_MAX {
            object.versions.remove(0);
        }
        object.versions.push(ObjectVersion {
            version,
            size: order.size,
            content_type: order.content_type,
            digest: order.digest,
            chunks: order.chunks,
            created_ms: self.core.time_ms,
            address: None,
        });
        self.put_object(object);
        Ok((version, true))
    }
}
