//! Brings a program and its inputs to this machine. Programs are kept by their digest and never fetched twice.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, unique_key};
use ikada_api::v1::{ProgramManifest, WorkInput};

use super::Folder;
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
    let fetched =
        download(client, BUCKET, &format!("{kind}/{digest}"), &options, None, &fresh).await;
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
        let path = place(folder, &input.name)?;
        match (&input.bucket, &input.key, &input.url, &input.text) {
            (Some(bucket), Some(key), ..) => {
                let options = GetOptions {
                    from: input.offset.unwrap_or(0),
                    version: input.version.map(|version| version.0),
                    if_match: input.digest.clone(),
                    ..GetOptions::default()
                };
                download(client, bucket, key, &options, input.length, &path).await?;
            }
            (.., Some(url), _) => copy_url(urls, url, &path)?,
            (.., Some(text)) => fs::write(&path, text)?,
            _ => return Err(TaskError::give_up(format!("input {} has no source", input.name))),
        }
        folder.hand_over(&path)?;
    }
    Ok(())
}

/// Where an input lies; its name is a path below the folder and nowhere else.
fn place(folder: &Folder, name: &str) -> Result<PathBuf, TaskError> {
    let climbs = |part: &str| matches!(part, "" | "." | "..") || part.contains(['\\', '\0']);
    if name.split('/').any(climbs) {
        return Err(TaskError::give_up(format!("input {name:?} cannot be a file's name")));
    }
    let mut path = folder.inputs();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        if parts.peek().is_some() && !path.exists() {
            fs::create_dir(&path)?;
            folder.hand_over(&path)?;
        }
    }
    Ok(path)
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

async fn download(
    client: &Client,
    bucket: &str,
    key: &str,
    options: &GetOptions,
    length: Option<u64>,
    path: &Path,
) -> Result<(), TaskError> {
    let failed =
        |error: Error| TaskError::new(format!("object {bucket}/{key} could not be read: {error}"));
    let mut file = fs::File::create(path)?;
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

/// Copies a file of this machine, if its operator allows the address.
fn copy_url(allowed: &[String], url: &str, path: &Path) -> Result<(), TaskError> {
    let climbs = url.split('/').any(|part| part == "..");
    if climbs || !allowed.iter().any(|prefix| is_below(prefix, url)) {
        return Err(TaskError::new(format!(
            "this worker may not open {url}; its operator can allow it with --allow-url"
        )));
    }
    let Some(source) = url.strip_prefix("file://") else {
        return Err(TaskError::new(format!("this worker opens file:// addresses only, not {url}")));
    };
    fs::copy(source, path).map_err(|error| TaskError::new(format!("{url}: {error}")))?;
    Ok(())
}

/// Whether an address is the allowed one or lies below it: `file:///srv/in` is no leave for `file:///srv/inside`.
fn is_below(prefix: &str, url: &str) -> bool {
    url.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_13_an_allowed_address_ends_at_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display();
        for part in ["in", "inside"] {
            fs::create_dir(folder.path().join(part)).unwrap();
            fs::write(folder.path().join(part).join("a"), part).unwrap();
        }
        let copy = folder.path().join("copy");
        let opens = |allowed: &str, asked: &str| {
            let allowed = [format!("file://{root}{allowed}")];
            copy_url(&allowed, &format!("file://{root}{asked}"), &copy).is_ok()
        };
        assert!(opens("/in", "/in/a"));
        assert!(opens("/in/", "/in/a"));
        assert!(opens("/in/a", "/in/a"));
        assert!(opens("/", "/inside/a"));
        assert!(!opens("/in", "/inside/a"), "another folder whose name begins alike");
        assert!(!opens("/in/", "/in/../inside/a"));
        assert!(!opens("/in", "/a"));
        let foreign = copy_url(&["http://".to_owned()], "http://127.0.0.1:1/", &copy);
        assert!(foreign.unwrap_err().message().contains("file:// addresses only"));
    }
}
