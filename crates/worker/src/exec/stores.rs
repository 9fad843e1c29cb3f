//! Inputs at addresses: files of this machine, and objects of stores (`s3://bucket/key`, `gs://bucket/key`), read by the worker alone,
//! with the worker's own key, and only below what its operator allows (X13). The key comes from the environment of the worker, which
//! programs do not see.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use ikada_api::s3::{Download, Store, StorePlace, StoreSettings};

use super::fetch::{open_local, rule};
use crate::run::TaskError;

/// Whether an address is one of an object store.
pub fn is_store(url: &str) -> bool {
    url.starts_with("s3://") || url.starts_with("gs://")
}

/// Bytes read from a file at one time.
const READ_BYTES: usize = 256 << 10;

/// What lies at an address that the operator allows, read from its beginning to its end.
pub(crate) enum UrlReader {
    /// An object of a store.
    Stored(String, Box<Download>),
    /// A file of this machine.
    Local(String, Arc<File>),
}

impl UrlReader {
    /// Opens an address, if the operator allows it.
    pub(crate) async fn open(allowed: &[String], url: &str) -> Result<UrlReader, TaskError> {
        if !is_store(url) {
            return Ok(UrlReader::Local(url.to_owned(), Arc::new(open_local(allowed, url)?)));
        }
        rule(allowed, url)?;
        let place = match StorePlace::parse(url) {
            Some(Ok(place)) => place,
            Some(Err(error)) => return Err(TaskError::give_up(error.to_string())),
            None => return Err(TaskError::give_up(format!("{url} names no object"))),
        };
        let settings = StoreSettings::read(place.door, |name| std::env::var(name).ok());
        let store = settings.and_then(Store::new);
        let store =
            store.map_err(|error| TaskError::new(format!("{url}: this worker: {error}")))?;
        match Download::begin(store, place).await {
            Ok(Some(reader)) => Ok(UrlReader::Stored(url.to_owned(), Box::new(reader))),
            Ok(None) => Err(TaskError::new(format!("{url}: there is no such object"))),
            Err(error) => Err(TaskError::new(format!("{url}: {error}"))),
        }
    }

    /// The next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, TaskError> {
        match self {
            UrlReader::Stored(url, reader) => {
                reader.next().await.map_err(|error| TaskError::new(format!("{url}: {error}")))
            }
            UrlReader::Local(url, file) => {
                let file = file.clone();
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; READ_BYTES];
                    let count = (&*file).read(&mut bytes)?;
                    bytes.truncate(count);
                    Ok::<_, io::Error>(Bytes::from(bytes))
                });
                let failed =
                    |error: &dyn std::fmt::Display| TaskError::new(format!("{url}: {error}"));
                let bytes = read.await.map_err(|error| failed(&error))?;
                let bytes = bytes.map_err(|error| failed(&error))?;
                Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
            }
        }
    }

    /// The file that is read, if it is one.
    pub(super) fn file(&self) -> Option<&File> {
        match self {
            UrlReader::Stored(..) => None,
            UrlReader::Local(_, file) => Some(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(allowed: &str, url: &str) -> String {
        let opened = UrlReader::open(&[allowed.to_owned()], url).await;
        opened.err().expect("it is not opened").message().to_owned()
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
