//! Inputs in object stores: `s3://bucket/key` and `gs://bucket/key`, read by the worker alone, with the worker's own key, and only below
//! what its operator allows (X13). The key comes from the environment of the worker, which programs do not see.

use std::fs::File;
use std::io::Write;

use ikada_api::s3::{Download, Store, StoreError, StorePlace, StoreSettings};

use super::fetch::rule;
use crate::run::TaskError;

/// Whether an address is one of an object store.
pub fn is_store(url: &str) -> bool {
    url.starts_with("s3://") || url.starts_with("gs://")
}

/// Copies an object, if the operator allows its address.
pub(super) async fn copy_stored(
    allowed: &[String],
    url: &str,
    target: &mut File,
) -> Result<(), TaskError> {
    rule(allowed, url)?;
    let place = match StorePlace::parse(url) {
        Some(Ok(place)) => place,
        Some(Err(error)) => return Err(TaskError::give_up(error.to_string())),
        None => return Err(TaskError::give_up(format!("{url} names no object"))),
    };
    let settings = StoreSettings::read(place.door, |name| std::env::var(name).ok());
    let store = settings.and_then(Store::new);
    let store = store.map_err(|error| TaskError::new(format!("{url}: this worker: {error}")))?;
    let failed = |error: StoreError| TaskError::new(format!("{url}: {error}"));
    let Some(mut reader) = Download::begin(store, place).await.map_err(failed)? else {
        return Err(TaskError::new(format!("{url}: there is no such object")));
    };
    while let Some(bytes) = reader.next().await.map_err(failed)? {
        target.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(allowed: &str, url: &str) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let error = copy_stored(&[allowed.to_owned()], url, &mut file).await.unwrap_err();
        error.message().to_owned()
    }

    #[tokio::test]
    async fn x_13_an_allowed_store_ends_at_its_bucket_and_folder() {
        for (allowed, url) in [
            ("s3://texts", "s3://texts-private/a"),
            ("s3://texts/in", "s3://texts/inside/a"),
            ("s3://texts/in", "s3://texts/in/../secret"),
            ("s3://texts", "gs://texts/a"),
            ("file:///", "s3://texts/a"),
        ] {
            let said = refused(allowed, url).await;
            assert!(said.contains("may not open"), "{allowed} {url}: {said}");
        }
        assert!(refused("s3://texts", "s3://texts/in/").await.contains("not a folder"));
    }
}
