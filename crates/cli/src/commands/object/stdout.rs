//! An object on standard output.
//!
//! Promise: a download that breaks off goes on behind the last byte that was written, and what was written is checked at its
//! end: bytes that are not the object's make the command fail, though whoever reads along has them by then.

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectReader};

use super::get::{Idle, other_bytes};
use crate::failure::Failure;
use crate::render::{Terminal, put};

/// What was written so far.
struct Written {
    terminal: Terminal,
    hasher: blake3::Hasher,
    bytes: u64,
}

/// Puts an object on standard output; a terminal gets what it may have of it.
pub(crate) async fn to_stdout(
    client: &Client,
    bucket: &str,
    key: &str,
    mut options: GetOptions,
) -> Result<(), Failure> {
    let mut reader = client.get_object(bucket, key, &options).await?;
    let digest = reader.digest.clone();
    let hasher = blake3::Hasher::new();
    let mut written = Written { terminal: Terminal::of_stdout(), hasher, bytes: 0 };
    let mut idle = Idle::default();
    loop {
        match copy(&mut reader, &mut written).await {
            Ok(()) => break,
            Err(Failure::Unavailable { message, .. }) => {
                idle.judge(message, written.bytes, || "run the command again".to_owned())?;
            }
            Err(failure) => return Err(failure),
        }
        let if_match = Some(digest.clone());
        options = GetOptions { from: written.bytes, if_match, ..options };
        reader = match client.get_object(bucket, key, &options).await {
            Ok(reader) => reader,
            // All is written, and more cannot be asked for.
            Err(Error::Refused(problem)) if problem.status == 416 => break,
            Err(error) => return Err(error.into()),
        };
    }
    match written.hasher.finalize().to_hex().as_str() == digest {
        true => Ok(()),
        false => Err(other_bytes(bucket, key)),
    }
}

/// Writes what comes, to its end. A reader of the pipe that has seen enough ends it all.
async fn copy(reader: &mut ObjectReader, written: &mut Written) -> Result<(), Failure> {
    while let Some(bytes) = reader.next().await? {
        put(&written.terminal.show(&bytes))?;
        written.hasher.update(&bytes);
        written.bytes += bytes.len() as u64;
    }
    Ok(())
}
