//! Outputs that a job wants at an address: brought there by the worker, with its own key, and only below what its operator
//! allows (X13).
//!
//! Promises (A4): the name at the address bears the attempt's fence, so that no two attempts write the same name, and a
//! completion names what its own attempt brought. What the result of a job lists is therefore whole and of the attempt that
//! counted; what an attempt left that did not count lies under another fence and is listed nowhere. Nothing is replaced.
//! Leaves out: removing what was left. The bytes are their owner's.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::s3::{StoreError, Upload};
use ikada_api::v1::{OutputItem, WorkInfo};

use super::fetch::{ABREAST, PAUSE_FIRST, is_worth_waiting, local_path, output_rule};
use super::stores::{UrlReader, is_store, open_store};
use crate::beneath::Beneath;
use crate::run::TaskError;

/// Size of the parts in which outputs go to an object store; five are in memory at once.
const PART_BYTES: usize = 8 << 20;
/// What the object is that tells where an output lies.
const ADDRESS_TYPE: &str = "text/plain; charset=utf-8";

/// Where the outputs of one attempt go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// What all their addresses begin with.
    beginning: String,
}

/// Outputs that are brought to addresses at one time: each may have five parts in memory.
const ABREAST_AFAR: usize = 2;

/// How many outputs of one attempt are stored at one time.
pub(crate) fn abreast_at(destination: Option<&Destination>) -> usize {
    if destination.is_some() { ABREAST_AFAR } else { ABREAST }
}

/// The bytes of an output.
pub(crate) enum Carried {
    /// In a file.
    File(UrlReader),
    /// In memory; none once they were taken.
    Bytes(Option<Bytes>),
}

impl Carried {
    /// A file that was opened.
    pub(crate) fn file(name: &str, file: File) -> Carried {
        Carried::File(UrlReader::Local(name.to_owned(), Arc::new(file), u64::MAX))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, TaskError> {
        match self {
            Carried::File(reader) => reader.next().await,
            Carried::Bytes(bytes) => Ok(bytes.take().filter(|bytes| !bytes.is_empty())),
        }
    }
}

impl Destination {
    /// Where the outputs of an attempt go, if its job says so.
    pub(crate) fn of(work: &WorkInfo, task: &str, fence: u64) -> Option<Destination> {
        let url = work.output_url.as_deref()?;
        let slash = if url.ends_with('/') { "" } else { "/" };
        let part = match &work.job {
            Some(part) => format!("{}/{}/{}", part.job, part.stage, part.index),
            None => task.to_owned(),
        };
        Some(Destination { beginning: format!("{url}{slash}{part}/{fence}/") })
    }

    /// Brings an output there, and stores the small object that tells where it lies.
    pub(crate) async fn bring(
        &self,
        client: &Client,
        allowed: &[String],
        name: &str,
        made: Carried,
    ) -> Result<OutputItem, TaskError> {
        let address = format!("{}{name}", self.beginning);
        match is_store(&address) {
            true => to_store(allowed, &address, made).await?,
            false => to_file(allowed, &address, made).await?,
        }
        let line = ObjectSource::Bytes(Bytes::from(format!("{address}\n")));
        let mut output = store(client, &line, name).await?;
        output.content_type = Some(ADDRESS_TYPE.to_owned());
        output.address = Some(address);
        Ok(output)
    }
}

/// Stores an output in the cluster; it becomes visible with the completion. Where the cluster has no room, it waits for it.
pub(crate) async fn store(
    client: &Client,
    source: &ObjectSource,
    name: &str,
) -> Result<OutputItem, TaskError> {
    let mut pause = PAUSE_FIRST;
    loop {
        match client.upload(source, &PutOptions::default()).await {
            Ok(stored) => return Ok(stored.into_output(name)),
            Err(error) if is_worth_waiting(&error, &mut pause).await => {}
            Err(error) => {
                let why = format!("output {name} could not be stored: {error}");
                return Err(TaskError::new(why));
            }
        }
    }
}

async fn to_store(allowed: &[String], address: &str, mut made: Carried) -> Result<(), TaskError> {
    output_rule(allowed, address)?;
    let (store, place) = open_store(address)?;
    let failed = |error: StoreError| TaskError::new(format!("{address}: {error}"));
    let mut upload = Upload::begin(store, place, PART_BYTES);
    let sent = async {
        while let Some(bytes) = made.next().await? {
            upload.push(bytes).await.map_err(failed)?;
        }
        upload.finish().await.map_err(failed)
    };
    let sent = sent.await;
    if sent.is_err() {
        // What is left of it has no name.
        let _ = upload.abort().await;
    }
    sent.map(|_| ())
}

async fn to_file(allowed: &[String], address: &str, mut made: Carried) -> Result<(), TaskError> {
    let (prefix, rest) = output_rule(allowed, address)?;
    let failed = |error: io::Error| TaskError::new(format!("{address}: {error}"));
    let Some(root) = local_path(prefix) else {
        return Err(TaskError::new(format!(
            "this worker brings outputs to file:///, s3://, gs:// or az:// only, not {address}"
        )));
    };
    let (root, rest) = (PathBuf::from(root), rest.to_owned());
    let mut file = apart(move || NewFile::make(&root, &rest)).await.map_err(failed)?;
    while let Some(bytes) = made.next().await? {
        file = apart(move || file.write(&bytes)).await.map_err(failed)?;
    }
    apart(move || file.keep()).await.map_err(failed)
}

/// Works with a disk on a thread that may wait for it.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// A file in the making: it goes again unless it is kept.
struct NewFile {
    /// From the allowed folder to the one that it is in.
    way: Vec<Beneath>,
    name: String,
    file: File,
    is_kept: bool,
}

impl NewFile {
    fn make(root: &Path, rest: &str) -> io::Result<NewFile> {
        let (folders, name) = rest.rsplit_once('/').unwrap_or(("", rest));
        let root = Beneath::at(root)?;
        let way = match folders {
            "" => vec![root],
            folders => root.make_way(folders)?,
        };
        let folder = way.last().ok_or(io::ErrorKind::NotFound)?;
        let file = folder.create_new(name)?;
        Ok(NewFile { way, name: name.to_owned(), file, is_kept: false })
    }

    fn write(mut self, bytes: &[u8]) -> io::Result<NewFile> {
        self.file.write_all(bytes)?;
        Ok(self)
    }

    /// Waits until all of it is on the disk, and the names that lead to it: others may have made some of them a moment ago.
    fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.way.iter().rev().try_for_each(Beneath::sync)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(folder) = self.way.last().filter(|_| !self.is_kept) {
            // A part of a file at an address of its own is of no use; where it cannot be removed, nothing names it.
            let _ = folder.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use ikada_api::v1::{WorkPart, WorkProgram};

    use super::*;

    fn work(url: Option<&str>) -> WorkInfo {
        let (name, kind) = ("copy".to_owned(), "command".to_owned());
        let job = Some(WorkPart { job: "j".to_owned(), stage: "map".to_owned(), index: 3 });
        WorkInfo {
            program: WorkProgram { name, kind, digest: None, entry: None },
            settings: Default::default(),
            inputs: Vec::new(),
            job,
            reuse: false,
            output_url: url.map(str::to_owned),
        }
    }

    #[test]
    fn b4_35_two_attempts_never_write_the_same_name() {
        let at = |url: &str, fence: u64| {
            Destination::of(&work(Some(url)), "t", fence).expect("it is told").beginning
        };
        assert_eq!(at("s3://b/out", 7), "s3://b/out/j/map/3/7/");
        assert_eq!(at("s3://b/out/", 8), "s3://b/out/j/map/3/8/");
        assert_eq!(at("file:///", 8), "file:///j/map/3/8/");
        assert_eq!(Destination::of(&work(None), "t", 7), None);
        let alone = WorkInfo { job: None, ..work(Some("az://c")) };
        let alone = Destination::of(&alone, "t", 7).expect("it is told");
        assert_eq!(alone.beginning, "az://c/t/7/");
    }

    #[tokio::test]
    async fn x_13_outputs_are_brought_below_what_is_allowed_and_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        std::fs::create_dir(folder.path().join("private")).unwrap();
        std::os::unix::fs::symlink("../private", folder.path().join("out/link")).unwrap();
        let rules = [format!("file://{root}/out")];
        let bring = async |name: &str, text: &'static str| {
            let made = Carried::Bytes(Some(Bytes::from_static(text.as_bytes())));
            to_file(&rules, &format!("file://{root}/{name}"), made).await
        };
        bring("out/j/map/0/7/a", "one").await.unwrap();
        let again = bring("out/j/map/0/7/a", "two").await.unwrap_err();
        assert!(again.message().contains("exists"), "{again:?}");
        assert_eq!(std::fs::read_to_string(folder.path().join("out/j/map/0/7/a")).unwrap(), "one");
        for bad in ["outside/a", "private/a", "out/../private/a", "out/link/a", "out/link"] {
            assert!(bring(bad, "x").await.is_err(), "{bad}");
        }
        assert_eq!(std::fs::read_dir(folder.path().join("private")).unwrap().count(), 0);
        let made = Carried::Bytes(Some(Bytes::from_static(b"x")));
        let refused = to_store(&rules, "s3://b/k", made).await.unwrap_err();
        assert!(refused.message().contains("may not bring outputs to s3://b/k"), "{refused:?}");
    }

    #[tokio::test]
    async fn a4_an_output_that_breaks_off_leaves_no_part_of_it_at_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let rules = [format!("file://{}", folder.path().display())];
        let address = format!("{}/j/map/0/7/a", rules[0]);
        // A folder cannot be read as a file: the first look at its bytes fails.
        let broken = Carried::file("a", File::open(folder.path()).unwrap());
        assert!(to_file(&rules, &address, broken).await.is_err());
        let place = folder.path().join("j/map/0/7");
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "a part of it is left");
        let whole = Carried::Bytes(Some(Bytes::from_static(b"whole")));
        to_file(&rules, &address, whole).await.unwrap();
        assert_eq!(std::fs::read(place.join("a")).unwrap(), b"whole");
    }
}
