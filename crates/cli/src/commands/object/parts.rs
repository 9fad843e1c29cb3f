//! One large file, sent in parts, so that a run that was cut short is gone on with by the next.
//!
//! Promise: only parts that the cluster lacks travel, whoever was interrupted, this command or a node. Nothing is kept on
//! this machine: the id of an upload is made of the object's name and the file's content, so the same command finds it
//! again, and another file is another upload.
//!
//! Leaves out: small files, which are one request (`put.rs`).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ikada_api::Client;
use ikada_api::client::{Error, ObjectSource, PutOptions};
use ikada_api::v1::{FinishUpload, NewUpload, ObjectInfo, UploadPart};
use tokio::task::JoinSet;

use super::bytes_bar;
use super::place::last_part;
use super::put::BEAT;
use crate::failure::Failure;

/// Files of at least this size are sent in parts.
pub(super) const PARTED_FROM_BYTES: u64 = 16 << 20;
/// Bytes of a part: what an interruption costs at most, for each part that is on its way. Whole pieces of the store.
const PART_BYTES: u64 = 8 << 20;
/// Parts on their way at a time.
const PARTS_UNDER_WAY_MAX: usize = 3;
/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;
/// What to do when the cluster is out of reach.
const RUN_AGAIN: &str = "run the command again: it goes on where it stopped";

/// What is to be sent.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    size: u64,
    /// Digest of all bytes.
    digest: String,
    /// Digest of each part.
    parts: Vec<String>,
}

impl Plan {
    /// Reads a source to its end.
    fn of(source: &ObjectSource) -> io::Result<Plan> {
        let (mut reader, _) = source.reader()?;
        let (mut whole, mut part) = (blake3::Hasher::new(), blake3::Hasher::new());
        let (mut size, mut parts) = (0, Vec::new());
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let left = PART_BYTES - size % PART_BYTES;
            let room = buffer.len().min(left as usize);
            let count = reader.read(&mut buffer[..room])?;
            if count == 0 {
                break;
            }
            whole.update(&buffer[..count]);
            part.update(&buffer[..count]);
            size += count as u64;
            if size.is_multiple_of(PART_BYTES) {
                parts.push(part.finalize().to_hex().to_string());
                part.reset();
            }
        }
        if !size.is_multiple_of(PART_BYTES) {
            parts.push(part.finalize().to_hex().to_string());
        }
        Ok(Plan { size, digest: whole.finalize().to_hex().to_string(), parts })
    }

    /// The id of this content's upload into an object: 32 hex digits.
    fn upload(&self, wanted: &NewUpload) -> String {
        let kind = wanted.content_type.as_deref().unwrap_or("");
        let size = self.size.to_string();
        let mut hasher = blake3::Hasher::new();
        let names = [wanted.bucket.as_str(), wanted.key.as_str()];
        for word in names.into_iter().chain([kind, &size, &self.digest]) {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(32).collect()
    }

    /// Where a part begins, and how long it is.
    fn range(&self, number: u32) -> (u64, u64) {
        let from = u64::from(number - 1) * PART_BYTES;
        (from, PART_BYTES.min(self.size - from))
    }

    /// Numbers of the parts that have not arrived as they are here.
    fn missing(&self, there: &[UploadPart]) -> Vec<u32> {
        let there: BTreeMap<u32, &str> =
            there.iter().map(|part| (part.part, part.digest.as_str())).collect();
        let parts = (1..).zip(&self.parts);
        let lacks = |(number, digest): (u32, &String)| {
            (there.get(&number) != Some(&digest.as_str())).then_some(number)
        };
        parts.filter_map(lacks).collect()
    }
}

/// Sends a file in parts, or what is missing of it; none if the cluster does not know of parts.
pub(super) async fn put(
    client: &Client,
    (bucket, key): (&str, &str),
    source: &ObjectSource,
    options: &PutOptions,
) -> Result<Option<ObjectInfo>, Failure> {
    let read = source.clone();
    let plan = tokio::task::spawn_blocking(move || Plan::of(&read)).await;
    let plan = plan.map_err(io::Error::other).flatten();
    let plan = plan.map_err(|error| Failure::failed(format!("{key}: {error}")))?;
    let is_asked = options.if_absent || options.if_match.is_some();
    if !is_asked && let Some(known) = find(client, bucket, key, &plan).await {
        let kind = options.content_type.as_ref();
        if kind.is_none_or(|kind| *kind == known.content_type) {
            eprintln!("{bucket}/{key} has this content already");
            return Ok(Some(known));
        }
    }
    let wanted = NewUpload {
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        content_type: options.content_type.clone(),
    };
    let upload = plan.upload(&wanted);
    let begun = match client.begin_upload(&upload, &wanted).await {
        // The server of a version before this one.
        Err(Error::Refused(problem)) if matches!(problem.status, 404 | 405) => return Ok(None),
        begun => begun?,
    };
    let missing = plan.missing(&begun.parts);
    let (all, there) = (plan.parts.len(), plan.parts.len() - missing.len());
    if there > 0 {
        eprintln!("going on: {there} of {all} parts are there already");
    }
    send(client, &upload, key, source, &plan, missing).await?;
    finish(client, &upload, (bucket, key), &plan, options).await.map(Some)
}

/// The object, if it has this content.
async fn find(client: &Client, bucket: &str, key: &str, plan: &Plan) -> Option<ObjectInfo> {
    let page = client.objects(bucket, key, None, false).await.ok()?;
    let is_same = |object: &ObjectInfo| {
        object.key == key && object.digest == plan.digest && object.size == plan.size
    };
    page.objects.into_iter().find(is_same)
}

/// Sends the missing parts, a few at a time.
async fn send(
    client: &Client,
    upload: &str,
    key: &str,
    source: &ObjectSource,
    plan: &Plan,
    missing: Vec<u32>,
) -> Result<(), Failure> {
    let to_send: u64 = missing.iter().map(|number| plan.range(*number).1).sum();
    let bar = bytes_bar(plan.size, last_part(key));
    let there = plan.size - to_send;
    bar.set_position(there);
    // Time left is reckoned by what is sent, not by what was there.
    bar.reset_eta();
    let mut counters = Vec::with_capacity(missing.len());
    let (mut missing, mut under_way) = (missing.into_iter(), JoinSet::new());
    loop {
        while under_way.len() < PARTS_UNDER_WAY_MAX
            && let Some(number) = missing.next()
        {
            let (from, length) = plan.range(number);
            let part = ObjectSource::Part { of: Box::new(source.clone()), from, length };
            let sent = Arc::new(AtomicU64::new(0));
            counters.push(sent.clone());
            let digest = Some(plan.parts[number as usize - 1].clone());
            let options = PutOptions { digest, progress: Some(sent), ..PutOptions::default() };
            let (client, upload) = (client.clone(), upload.to_owned());
            under_way.spawn(async move { client.put_part(&upload, number, &part, &options).await });
        }
        tokio::select! {
            sent = under_way.join_next() => match sent {
                None => break,
                Some(Ok(Ok(_))) => {}
                Some(Ok(Err(error))) => return Err(interrupted(error)),
                Some(Err(error)) => return Err(Failure::failed(format!("{key}: {error}"))),
            },
            () = tokio::time::sleep(BEAT) => {}
        }
        let sent: u64 = counters.iter().map(|sent| sent.load(Ordering::Relaxed)).sum();
        bar.set_position(there + sent);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Has the parts become the object.
async fn finish(
    client: &Client,
    upload: &str,
    (bucket, key): (&str, &str),
    plan: &Plan,
    options: &PutOptions,
) -> Result<ObjectInfo, Failure> {
    let wanted = FinishUpload {
        parts: plan.parts.len() as u32,
        digest: Some(plan.digest.clone()),
        if_absent: options.if_absent,
        if_match: options.if_match.clone(),
    };
    let error = match client.finish_upload(upload, &wanted, plan.size).await {
        Ok(stored) => return Ok(stored),
        Err(error) => error,
    };
    if let Error::Refused(problem) = &error {
        // An answer got lost: it was done, and the parts are gone.
        if problem.code == "upload_not_found"
            && let Some(stored) = find(client, bucket, key, plan).await
        {
            return Ok(stored);
        }
        // It will not be wanted again; what cannot be removed now goes after a week.
        let _ = client.end_upload(upload).await;
    }
    Err(interrupted(error))
}

/// What is told when an upload is not over.
fn interrupted(error: Error) -> Failure {
    let message = error.to_string();
    match error {
        Error::Refused(problem) if problem.code == "wrong_digest" => {
            let message = "the file changed while it was sent";
            Failure::failed_next(message, "run the command again when nobody writes to it")
        }
        Error::Refused(problem) if problem.code == "no_route" => {
            let message = "a node of an older version does not know of uploads in parts";
            Failure::failed_next(message, "name only upgraded nodes with --url")
        }
        Error::Unavailable { .. } | Error::Unknown { .. } => {
            Failure::Unavailable { message, next: RUN_AGAIN.to_owned() }
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: u64) -> ObjectSource {
        let bytes: Vec<u8> = (0..length).map(|place| (place / 4_096 + place) as u8).collect();
        ObjectSource::Bytes(bytes.into())
    }

    fn wanted(key: &str) -> NewUpload {
        NewUpload { bucket: "b".into(), key: key.into(), content_type: None }
    }

    #[test]
    fn ch_1_parts_cover_the_file_and_have_the_digests_of_their_bytes() {
        for size in [PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 7] {
            let source = bytes(size);
            let plan = Plan::of(&source).unwrap();
            assert_eq!((plan.size, plan.parts.len() as u64), (size, size.div_ceil(PART_BYTES)));
            let mut whole = blake3::Hasher::new();
            for number in 1..=plan.parts.len() as u32 {
                let (from, length) = plan.range(number);
                let part = ObjectSource::Part { of: Box::new(source.clone()), from, length };
                let (mut reader, told) = part.reader().unwrap();
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                assert_eq!((bytes.len() as u64, told), (length, length));
                let digest = blake3::hash(&bytes).to_hex();
                assert_eq!(plan.parts[number as usize - 1], digest.as_str());
                whole.update(&bytes);
            }
            assert_eq!(plan.digest, whole.finalize().to_hex().as_str());
        }
    }

    #[test]
    fn ch_1_only_parts_that_are_not_there_are_missing() {
        let plan = Plan::of(&bytes(3 * PART_BYTES + 1)).unwrap();
        let part = |part: u32, digest: &str| UploadPart { part, size: 1, digest: digest.into() };
        assert_eq!(plan.missing(&[]), [1, 2, 3, 4]);
        let there = [part(2, &plan.parts[1]), part(3, "other"), part(4, &plan.parts[3])];
        assert_eq!(plan.missing(&there), [1, 3]);
    }

    #[test]
    fn ch_1_another_file_or_name_is_another_upload() {
        let (one, other) = (Plan::of(&bytes(10)).unwrap(), Plan::of(&bytes(11)).unwrap());
        let id = one.upload(&wanted("k"));
        assert_eq!(id, Plan::of(&bytes(10)).unwrap().upload(&wanted("k")), "found again");
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let typed = NewUpload { content_type: Some("text/csv".into()), ..wanted("k") };
        for different in [other.upload(&wanted("k")), one.upload(&wanted("l")), one.upload(&typed)]
        {
            assert_ne!(id, different);
        }
    }
}
