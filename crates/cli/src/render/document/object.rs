//! Objects and buckets.

use ikada_api::v1::{BucketPage, ObjectInfo, ObjectPage, ObjectRemoved};

use super::{Document, Grid, pretty};
use crate::render::time::moment;

const HEADINGS: &[&str] = &["bucket", "key", "size", "version", "modified", "type", "digest"];
/// Enough of a digest to tell contents apart.
const DIGEST_SHOWN: usize = 16;

fn row(object: &ObjectInfo) -> Vec<String> {
    vec![
        object.bucket.clone(),
        object.key.clone(),
        object.size.to_string(),
        object.version.0.to_string(),
        moment(object.modified_ms),
        object.content_type.clone(),
        object.digest.chars().take(DIGEST_SHOWN).collect(),
    ]
}

impl Document for ObjectInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: vec![row(self)] }]
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.bucket, self.key)]
    }
}

impl Document for ObjectPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: self.objects.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.objects.iter().map(|object| format!("{}/{}", object.bucket, object.key)).collect()
    }
}

impl Document for BucketPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.buckets.iter().map(|bucket| vec![bucket.clone()]).collect();
        vec![Grid { headings: &["bucket"], rows }]
    }

    fn names(&self) -> Vec<String> {
        self.buckets.clone()
    }
}

impl Document for ObjectRemoved {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![self.bucket.clone(), self.key.clone(), self.versions.to_string()];
        vec![Grid { headings: &["bucket", "key", "versions removed"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.bucket, self.key)]
    }
}
