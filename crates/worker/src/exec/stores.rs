//! Inputs at addresses: files of this machine, and objects of stores (`s3://bucket/key`, `gs://bucket/key`, `az://container/blob`), read by the
//! worker alone, with the worker's own key, and only below what its operator allows (X13). The key comes from the environment of the worker, which
//! programs do not see.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use ikada_api::s3::{Download, Store, StorePlace, StoreSettings};
use ikada_api::v1::WorkInput;

use super::fetch::{open_local, rule};
use crate::run::TaskError;

/// Whether an address is one of an object store.
pub fn is_store(url: &str) -> bool {
    ["s3://", "gs://", "az://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Bytes read from a file at one time.
const READ_BYTES: usize = 256 << 10;

/// Which bytes of an address are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// The first.
    from: u64,
    /// How many; none for all that follow.
    length: Option<u64>,
    /// The version that they must be of.
    etag: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// What an input wants.
    pub(crate) fn of(input: &'a WorkInput) -> Wanted<'a> {
        let etag = input.etag.as_deref();
        Wanted { from: input.offset.unwrap_or(0), length: input.length, etag }
    }

    /// Where they end, if so many bytes are there. A part that is not whole is none: lines would be missing.
    fn check(self, url: &str, size: u64) -> Result<(), TaskError> {
        let end = self.from.saturating_add(self.length.unwrap_or(0));
        match end <= size {
            true => Ok(()),
            false => Err(TaskError::new(format!(
                "{url} has {size} bytes, and its part would end at {end}: it was cut when it was longer"
            ))),
        }
    }
}

/// What lies at an address that the operator allows, read from its beginning to its end, or a part of it.
pub(crate) enum UrlReader {
    /// An object of a store.
    Stored(String, Box<Download>),
    /// A file of this machine, and how many of its bytes are still wanted.
    Local(String, Arc<File>, u64),
}

/// The store of an object, with this worker's own key.
pub(super) fn open_store(url: &str) -> Result<(Store, StorePlace), TaskError> {
    let place = match StorePlace::parse(url) {
        Some(Ok(place)) => place,
        Some(Err(error)) => return Err(TaskError::give_up(error.to_string())),
        None => return Err(TaskError::give_up(format!("{url} names no object"))),
    };
    let settings = StoreSettings::read(place.door, |name| std::env::var(name).ok());
    let store = settings.and_then(Store::new);
    let store = store.map_err(|error| TaskError::new(format!("{url}: this worker: {error}")))?;
    Ok((store, place))
}

impl UrlReader {
    /// Opens an address, if the operator allows it.
    pub(crate) async fn open(
        allowed: &[String],
        url: &str,
        wanted: Wanted<'_>,
    ) -> Result<UrlReader, TaskError> {
        if !is_store(url) {
            return UrlReader::open_file(open_local(allowed, url)?, url, wanted);
        }
        rule(allowed, url)?;
        let (store, place) = open_store(url)?;
        let whole = match Download::begin(store, place).await {
            Ok(Some(whole)) => whole,
            Ok(None) => return Err(TaskError::new(format!("{url}: there is no such object"))),
            Err(error) => return Err(TaskError::new(format!("{url}: {error}"))),
        };
        if wanted.etag.is_some_and(|etag| whole.tag() != Some(etag)) {
            return Err(TaskError::give_up(format!("{url} was replaced since the job was made")));
        }
        wanted.check(url, whole.size())?;
        let part = whole.part(wanted.from, wanted.length);
        Ok(UrlReader::Stored(url.to_owned(), Box::new(part)))
    }

    fn open_file(mut file: File, url: &str, wanted: Wanted<'_>) -> Result<UrlReader, TaskError> {
        let failed = |error: io::Error| TaskError::new(format!("{url}: {error}"));
        wanted.check(url, file.metadata().map_err(failed)?.len())?;
        file.seek(SeekFrom::Start(wanted.from)).map_err(failed)?;
        let left = wanted.length.unwrap_or(u64::MAX);
        Ok(UrlReader::Local(url.to_owned(), Arc::new(file), left))
    }

    /// The next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, TaskError> {
        match self {
            UrlReader::Stored(url, reader) => {
                reader.next().await.map_err(|error| TaskError::new(format!("{url}: {error}")))
            }
            UrlReader::Local(url, file, left) => {
                let file = file.clone();
                let count_max = usize::try_from(*left).unwrap_or(usize::MAX).min(READ_BYTES);
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; count_max];
                    let count = (&*file).read(&mut bytes)?;
                    bytes.truncate(count);
                    Ok::<_, io::Error>(Bytes::from(bytes))
                });
                let failed =
                    |error: &dyn std::fmt::Display| TaskError::new(format!("{url}: {error}"));
                let bytes = read.await.map_err(|error| failed(&error))?;
                let bytes = bytes.map_err(|error| failed(&error))?;
                *left -= bytes.len() as u64;
                Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
            }
        }
    }

    /// The file that is read, if it is one.
    pub(super) fn file(&self) -> Option<&File> {
        match self {
            UrlReader::Stored(..) => None,
            UrlReader::Local(_, file, _) => Some(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(allowed: &str, url: &str) -> String {
        let opened = UrlReader::open(&[allowed.to_owned()], url, Wanted::default()).await;
        opened.err().expect("it is not opened").message().to_owned()
    }

    #[tokio::test]
    async fn x_13_an_allowed_store_ends_at_its_bucket_and_folder() {
        for (allowed, url) in [
            ("s3://texts", "s3://texts-private/a"),
            ("s3://texts/in", "s3://texts/inside/a"),
            ("s3://texts/in", "s3://texts/in/../secret"),
            ("s3://texts", "gs://texts/a"),
            ("s3://texts", "az://texts/a"),
            ("az://texts/in", "az://texts/inside/a"),
            ("file:///", "s3://texts/a"),
        ] {
            let said = refused(allowed, url).await;
            assert!(said.contains("may not open"), "{allowed} {url}: {said}");
        }
        assert!(refused("s3://texts", "s3://texts/in/").await.contains("not a folder"));
    }

    #[tokio::test]
    async fn b4_35_a_part_of_a_file_is_read_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "one\ntwo\nthree\n").unwrap();
        let rules = [format!("file://{}", folder.path().display())];
        let url = format!("{}/a", rules[0]);
        for (offset, length, expected) in [
            (None, None, Ok("one\ntwo\nthree\n")),
            (Some(4), Some(4), Ok("two\n")),
            (Some(8), None, Ok("three\n")),
            (Some(14), Some(0), Ok("")),
            (Some(8), Some(7), Err("it was cut when it was longer")),
            (Some(15), None, Err("it was cut when it was longer")),
        ] {
            let input = WorkInput { offset, length, ..WorkInput::default() };
            let read = async {
                let mut reader = UrlReader::open(&rules, &url, Wanted::of(&input)).await?;
                let mut bytes = Vec::new();
                while let Some(some) = reader.next().await? {
                    bytes.extend_from_slice(&some);
                }
                Ok::<_, TaskError>(String::from_utf8(bytes).unwrap())
            };
            match (read.await, expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(error), Err(words)) => assert!(error.message().contains(words), "{error:?}"),
                (read, expected) => panic!("{read:?} instead of {expected:?}"),
            }
        }
    }
}
