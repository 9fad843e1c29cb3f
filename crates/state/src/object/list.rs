//! Looking at many objects: a page of a bucket, and the buckets there are.

use std::sync::Arc;

use super::Object;
use crate::shard::Shard;
use crate::{BucketName, Namespace, ObjectName};

/// A page of objects in order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPage {
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// The last name of the page, if there are more.
    pub next: Option<ObjectName>,
}

impl Shard {
    /// Objects of a bucket whose names begin with a text, after a name.
    pub fn objects(
        &self,
        namespace: &Namespace,
        bucket: &BucketName,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> ObjectPage {
        let from = after.map_or(prefix, |after| after.max(prefix));
        let start = (namespace, bucket, from);
        let objects = self
            .core
            .objects
            .iter_after(|(namespace, bucket, name)| (namespace, bucket, name.as_str()) < start);
        let mut wanted = objects
            .take_while(|((owner, home, name), _)| {
                (owner, home) == (namespace, bucket) && name.as_str().starts_with(prefix)
            })
            .filter(|((_, _, name), _)| after.is_none_or(|after| name.as_str() > after))
            .map(|(_, object)| object);
        let objects: Vec<Arc<Object>> = wanted.by_ref().take(limit).cloned().collect();
        let more = wanted.next().is_some();
        let last = objects.last().map(|object| object.name.clone());
        ObjectPage { objects, next: last.filter(|_| more) }
    }

    /// Names of the namespace's buckets in this shard, after a name, in order.
    pub fn buckets(
        &self,
        namespace: &Namespace,
        after: Option<&BucketName>,
        limit: usize,
    ) -> Vec<BucketName> {
        let mut found: Vec<BucketName> = Vec::new();
        let mut passed = after.cloned();
        while found.len() < limit {
            let mut next = self.core.objects.iter_after(|(owner, bucket, _)| {
                owner < namespace
                    || (owner == namespace && passed.as_ref().is_some_and(|p| bucket <= p))
            });
            match next.next() {
                Some(((owner, bucket, _), _)) if owner == namespace => {
                    found.push(bucket.clone());
                    passed = Some(bucket.clone());
                }
                _ => break,
            }
        }
        found
    }
}
