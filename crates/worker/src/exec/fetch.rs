//! Brings a program and its inputs to this machine. Programs are kept by their digest and never fetched twice.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, unique_key};
use ikada_api::v1::{ProgramManifest, WorkInput};

use super::folder::{Folder, INPUTS};
use super::stores::{copy_stored, is_store};
use crate::beneath::Beneath;
use crate::run::TaskError;

/// Largest manifest.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// First pause before asking again; it doubles.
pub(super) const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The bucket of programs.
const BUCKET: &str = "programs";

/// What a program consists of, by the digest that the task names.
pub(super) async fn manifest(
    client: &Client,
    store: &Path,
    digest: &str,
) -> Result<ProgramManifest, TaskError> {
    let path = program(client, store, "manifest", digest).await?;
    if fs::metadata(&path)?.len() > MANIFEST_BYTES_MAX {
        return Err(TaskError::give_up("the program's manifest is too large"));
    }
    Ok(serde_json::from_slice(&fs::read(&path)?)?)
}

/// A file of a program, fetched once.
pub(super) async fn program(
    client: &Client,
    store: &Path,
    kind: &str,
    digest: &str,
) -> Result<PathBuf, TaskError> {
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(TaskError::give_up("the program has no good digest"));
    }
    let path = store.join(digest);
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(store)?;
    fs::set_permissions(store, Permissions::from_mode(0o711))?;
    let fresh = store.join(format!("fresh-{}", unique_key()));
    let options = GetOptions { if_match: Some(digest.to_owned()), ..GetOptions::default() };
    let mut file = File::create(&fresh)?;
    let fetched =
        download(client, BUCKET, &format!("{kind}/{digest}"), &options, None, &mut file).await;
    if let Err(error) = fetched {
        // What came is not whole; nobody will ask for it by this name.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    // Other users read and run it, nobody but the worker writes it.
    fs::set_permissions(&fresh, Permissions::from_mode(0o755))?;
    fs::rename(&fresh, &path)?;
    Ok(path)
}

/// Puts all inputs into the attempt's folder.
pub(super) async fn inputs(
    client: &Client,
    urls: &[String],
    inputs: &[WorkInput],
    folder: &Folder,
) -> Result<(), TaskError> {
    for input in inputs {
        let mut file = place(folder, &input.name)?;
        match (&input.bucket, &input.key, &input.url, &input.text) {
            (Some(bucket), Some(key), ..) => {
                let options = GetOptions {
                    from: input.offset.unwrap_or(0),
                    version: input.version.map(|version| version.0),
                    if_match: input.digest.clone(),
                    ..GetOptions::default()
                };
                download(client, bucket, key, &options, input.length, &mut file).await?;
            }
            (.., Some(url), _) if is_store(url) => copy_stored(urls, url, &mut file).await?,
            (.., Some(url), _) => copy_url(urls, url, &mut file)?,
            (.., Some(text)) => file.write_all(text.as_bytes())?,
            _ => return Err(TaskError::give_up(format!("input {} has no source", input.name))),
        }
        folder.hand_over_open(&file)?;
    }
    Ok(())
}

/// The file of an input; its name is a path below the folder and nowhere else.
fn place(folder: &Folder, name: &str) -> Result<File, TaskError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => {
            TaskError::give_up(format!("input {name:?} cannot be a file's name: {error}"))
        }
        _ => TaskError::new(format!("input {name:?}: {error}")),
    };
    let inputs = folder.handle().folder(INPUTS).map_err(failed)?;
    if let Some((folders, _)) = name.rsplit_once('/') {
        let hand_over = |made: &Beneath| folder.hand_over_open(made);
        inputs.make_folder(folders, hand_over).map_err(failed)?;
    }
    inputs.create(name).map_err(failed)
}

/// Waits before asking again, if nodes are out of reach or too busy: work that is done must not be lost to a busy
/// minute. Whoever waits stops when the claim is lost.
pub(super) async fn is_worth_waiting(error: &Error, pause: &mut Duration) -> bool {
    if !matches!(error, Error::Unavailable { .. } | Error::Unknown { .. }) {
        return false;
    }
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(PAUSE_MAX);
    true
}

pub(super) async fn download(
    client: &Client,
    bucket: &str,
    key: &str,
    options: &GetOptions,
    length: Option<u64>,
    file: &mut File,
) -> Result<(), TaskError> {
    let failed =
        |error: Error| TaskError::new(format!("object {bucket}/{key} could not be read: {error}"));
    let mut left = length.unwrap_or(u64::MAX);
    let mut pause = PAUSE_FIRST;
    let mut reader = loop {
        match client.get_object(bucket, key, options).await {
            Ok(reader) => break reader,
            Err(error) if is_worth_waiting(&error, &mut pause).await => {}
            Err(error) => return Err(failed(error)),
        }
    };
    while left > 0
        && let Some(bytes) = reader.next().await.map_err(failed)?
    {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&bytes[..taken])?;
        left -= taken as u64;
    }
    Ok(())
}

/// The widest rule of the operator that allows an address, and what the address adds to it.
pub(super) fn rule<'a>(
    allowed: &'a [String],
    url: &'a str,
) -> Result<(&'a str, &'a str), TaskError> {
    let climbs = url.split('/').any(|part| part == "..");
    let rules = allowed.iter().filter_map(|prefix| Some((prefix, below(prefix, url)?)));
    // The widest rule: a link may lead anywhere below it.
    let rule = rules.min_by_key(|(prefix, _)| prefix.len());
    let allowed = rule.filter(|_| !climbs).map(|(prefix, rest)| (prefix.as_str(), rest));
    allowed.ok_or_else(|| {
        TaskError::new(format!(
            "this worker may not open {url}; its operator can allow it with --allow-url"
        ))
    })
}

/// Copies a file of this machine, if its operator allows the address.
fn copy_url(allowed: &[String], url: &str, target: &mut File) -> Result<(), TaskError> {
    let (prefix, rest) = rule(allowed, url)?;
    let Some(root) = local_path(prefix) else {
        return Err(TaskError::new(format!(
            "this worker opens addresses that begin with file:///, s3:// or gs:// only, not {url}"
        )));
    };
    let failed = |error: io::Error| TaskError::new(format!("{url}: {error}"));
    let mut source = open_source(root, rest).map_err(failed)?;
    let mode = source.metadata().map_err(failed)?.permissions().mode() & 0o777;
    io::copy(&mut source, target).map_err(failed)?;
    target.set_permissions(Permissions::from_mode(mode)).map_err(failed)
}

/// The operator's own path is followed wherever it leads; what a task adds to it stays below.
fn open_source(root: &str, rest: &str) -> io::Result<File> {
    match rest {
        "" => Beneath::open_own(Path::new(root)),
        rest => Beneath::at(Path::new(root))?.open_through_links(rest),
    }
}

/// The path of an address that has no host.
pub fn local_path(url: &str) -> Option<&str> {
    url.strip_prefix("file://").filter(|path| path.starts_with('/'))
}

/// What an address adds to an allowed one: `file:///srv/in` is no leave for `file:///srv/inside`.
fn below<'url>(prefix: &str, url: &'url str) -> Option<&'url str> {
    let rest = url.strip_prefix(prefix)?;
    match prefix.ends_with('/') || rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

#[cfg(test)]
#[path = "fetch_test.rs"]
mod fetch_test;
