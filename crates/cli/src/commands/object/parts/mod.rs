//! One large file, sent in parts, so that a run that was cut short is gone on with by the next.
//!
//! Promise: only parts that the cluster lacks travel, whoever was interrupted, this command or a node. Nothing is kept on
//! this machine: the id of an upload is made of the object's name and the file's content, so the same command finds it
//! again, and another file is another upload. What cannot become an object, for its size, the quota or a condition, is
//! refused before a byte of it travels. Parts are given up only when no later run could use them.
//!
//! Leaves out: small files, which are one request (`put.rs`).

mod plan;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ikada_api::client::{Error, ObjectSource, PutOptions};
use ikada_api::v1::{FinishUpload, NewUpload, ObjectInfo};
use ikada_api::{Client, Problem};
use tokio::task::JoinSet;

use self::plan::Plan;
use super::place::last_part;
use super::put::BEAT;
use super::tally::Counted;
use crate::failure::Failure;

/// Files of at least this size are sent in parts.
pub(crate) const PARTED_FROM_BYTES: u64 = 16 << 20;
/// Parts on their way at a time.
const PARTS_UNDER_WAY_MAX: usize = 3;
/// What to do when the cluster is out of reach.
const RUN_AGAIN: &str = "run the command again: it goes on where it stopped";

/// Sends a file in parts, or what is missing of it; none if the cluster does not know of parts.
pub(crate) async fn put(
    client: &Client,
    (bucket, key): (&str, &str),
    source: &ObjectSource,
    options: &PutOptions,
    counted: &Counted,
) -> Result<Option<ObjectInfo>, Failure> {
    let known = client.object(bucket, key).await?;
    check_condition(options, known.as_ref())?;
    let plan = read(source, key, counted).await?;
    let is_asked = options.if_absent || options.if_match.is_some();
    if !is_asked && let Some(known) = known.filter(|known| plan.is_that_of(known)) {
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
        size: Some(plan.size),
    };
    let upload = plan.upload(&wanted);
    let begun = match client.begin_upload(&upload, &wanted).await {
        // The server of a version before this one.
        Err(Error::Refused(problem)) if matches!(problem.status, 404 | 405) => return Ok(None),
        begun => begun.map_err(interrupted)?,
    };
    let missing = plan.missing(&begun.parts);
    let (all, there) = (plan.parts.len(), plan.parts.len() - missing.len());
    if there > 0 {
        eprintln!("going on: {there} of {all} parts are there already");
    }
    let stored = match send(client, &upload, key, source, &plan, missing, counted).await {
        Ok(()) => finish(client, &upload, (bucket, key), &plan, options, counted).await,
        Err(error) => Err(error),
    };
    match stored {
        Ok(stored) => Ok(Some(stored)),
        Err(error) => settle(client, &upload, (bucket, key), &plan, error).await.map(Some),
    }
}

/// Refuses what the object as it is forbids: its condition is judged again at the end, when all bytes have travelled.
fn check_condition(options: &PutOptions, known: Option<&ObjectInfo>) -> Result<(), Failure> {
    let digest = known.map(|known| known.digest.as_str());
    let why = match (options.if_absent, options.if_match.as_deref()) {
        (true, _) if known.is_some() => "the object is there already",
        (_, Some(wanted)) if digest != Some(wanted) => "the object has another digest, or is gone",
        _ => return Ok(()),
    };
    let detail = format!("{why}; nothing was sent");
    Err(Failure::refused(&Problem::new(412, "precondition_failed", "precondition failed", detail)))
}

/// Reads a file for its digests.
async fn read(source: &ObjectSource, key: &str, counted: &Counted) -> Result<Plan, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{key}: {error}"));
    let (_, length) = source.reader().map_err(failed)?;
    let (source, progress) = (source.clone(), Arc::new(AtomicU64::new(0)));
    let done = progress.clone();
    let mut reading = tokio::task::spawn_blocking(move || Plan::of(&source, &done));
    let bar = counted.side_bar(length, &format!("read {}", last_part(key)));
    let plan = loop {
        tokio::select! {
            plan = &mut reading => break plan,
            () = tokio::time::sleep(BEAT) => bar.set_position(progress.load(Ordering::Relaxed)),
        }
    };
    bar.finish_and_clear();
    plan.map_err(io::Error::other).flatten().map_err(failed)
}

/// Sends the missing parts, a few at a time.
async fn send(
    client: &Client,
    upload: &str,
    key: &str,
    source: &ObjectSource,
    plan: &Plan,
    missing: Vec<u32>,
    counted: &Counted,
) -> Result<(), Error> {
    let to_send: u64 = missing.iter().map(|number| plan.range(*number).1).sum();
    let mut tally = counted.tally(plan.size, last_part(key));
    let there = plan.size - to_send;
    tally.begin(there);
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
                Some(Ok(Err(error))) => {
                    tally.end();
                    return Err(error);
                }
                Some(Err(error)) => return Err(Error::Protocol { detail: error.to_string() }),
            },
            () = tokio::time::sleep(BEAT) => {}
        }
        let sent: u64 = counters.iter().map(|sent| sent.load(Ordering::Relaxed)).sum();
        // What was sent twice counts once.
        tally.set((there + sent).min(plan.size));
    }
    tally.end();
    Ok(())
}

/// Has the parts become the object. A node reads them all, so it takes a while.
async fn finish(
    client: &Client,
    upload: &str,
    (bucket, key): (&str, &str),
    plan: &Plan,
    options: &PutOptions,
    counted: &Counted,
) -> Result<ObjectInfo, Error> {
    let wanted = FinishUpload {
        parts: plan.parts.len() as u32,
        digest: Some(plan.digest.clone()),
        if_absent: options.if_absent,
        if_match: options.if_match.clone(),
        bucket: Some(bucket.to_owned()),
        key: Some(key.to_owned()),
    };
    let turning = counted.spinner(format!("{}: a node puts the parts together", last_part(key)));
    let finished = client.finish_upload(upload, &wanted, plan.size).await;
    turning.finish_and_clear();
    finished
}

/// What becomes of an upload that did not come to its end here.
async fn settle(
    client: &Client,
    upload: &str,
    (bucket, key): (&str, &str),
    plan: &Plan,
    error: Error,
) -> Result<ObjectInfo, Failure> {
    let Error::Refused(problem) = &error else { return Err(interrupted(error)) };
    if is_going(problem) {
        // Another run of this command was first, or an answer got lost.
        let known = client.object(bucket, key).await?;
        return known.filter(|known| plan.is_that_of(known)).ok_or_else(|| {
            let message =
                format!("the upload was ended before this command came to its end: {error}");
            Failure::failed_next(message, "run the command again")
        });
    }
    if is_hopeless(problem) {
        // What cannot be removed now goes after a week.
        let _ = client.end_upload(upload).await;
    }
    Err(interrupted(error))
}

/// Whether the upload is gone, or about to go.
fn is_going(problem: &Problem) -> bool {
    let codes = ["upload_not_found", "upload_finished", "upload_incomplete"];
    codes.contains(&problem.code.as_ref())
}

/// Whether no later run could use what has arrived. A full disk gets room again, a quota too.
fn is_hopeless(problem: &Problem) -> bool {
    matches!(problem.code.as_ref(), "wrong_digest" | "precondition_failed" | "too_large")
}

/// What is told when an upload is not over.
fn interrupted(error: Error) -> Failure {
    let message = error.to_string();
    match error {
        Error::Refused(problem) => match problem.code.as_ref() {
            "wrong_digest" => {
                let message = "the file changed while it was sent";
                Failure::failed_next(message, "run the command again when nobody writes to it")
            }
            "no_route" => {
                let message = "a node of an older version does not know of uploads in parts";
                Failure::failed_next(message, "name only upgraded nodes with --url")
            }
            "too_large" => {
                let next = Some("split the file, and put each part under a name of its own".into());
                Failure::Refused { message, next }
            }
            "disk_full" => {
                let next = Some(format!("make room on the nodes' disks; then {RUN_AGAIN}"));
                Failure::Refused { message, next }
            }
            "namespace_objects_full" => {
                let next = Some(format!("make room: ikada object delete; then {RUN_AGAIN}"));
                Failure::Refused { message, next }
            }
            _ => Failure::refused(&problem),
        },
        Error::Unavailable { .. } | Error::Unknown { .. } => {
            Failure::Unavailable { message, next: RUN_AGAIN.to_owned() }
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, code: &'static str) -> Box<Problem> {
        Box::new(Problem::new(status, code, "t", "d"))
    }

    // CH-1, F-12: what the nodes had no room for today is gone on with tomorrow.
    #[test]
    fn ch_1_parts_are_given_up_only_when_they_can_never_be_used() {
        for (status, code, hopeless) in [
            (400, "wrong_digest", true),
            (412, "precondition_failed", true),
            (413, "too_large", true),
            (507, "disk_full", false),
            (429, "namespace_objects_full", false),
            (409, "upload_incomplete", false),
            (403, "forbidden", false),
            (409, "idempotency_conflict", false),
        ] {
            assert_eq!(is_hopeless(&problem(status, code)), hopeless, "{code}");
        }
        for code in ["disk_full", "namespace_objects_full"] {
            let told = interrupted(Error::Refused(problem(507, code)));
            assert!(told.next().is_some_and(|next| next.ends_with(RUN_AGAIN)), "{told:?}");
        }
        let large = interrupted(Error::Refused(problem(413, "too_large")));
        assert!(large.next().is_some_and(|next| next.contains("split")), "{large:?}");
    }

    // CH-9
    #[test]
    fn ch_9_a_condition_that_does_not_hold_is_told_before_anything_is_sent() {
        let known: ObjectInfo = serde_json::from_str(
            r#"{"bucket": "b", "key": "k", "version": "1", "size": 1, "digest": "aa", "content_type": "x", "modified_ms": 1}"#,
        )
        .unwrap();
        let absent = PutOptions { if_absent: true, ..PutOptions::default() };
        let matching = |digest: &str| PutOptions {
            if_match: Some(digest.to_owned()),
            ..PutOptions::default()
        };
        let holds = |options: &PutOptions, known| check_condition(options, known).is_ok();
        assert!(holds(&PutOptions::default(), Some(&known)) && holds(&absent, None));
        assert!(holds(&matching("aa"), Some(&known)));
        assert!(!holds(&absent, Some(&known)) && !holds(&matching("aa"), None));
        let told = check_condition(&matching("bb"), Some(&known)).unwrap_err();
        assert!(told.to_string().starts_with("precondition_failed: "), "{told}");
    }
}
