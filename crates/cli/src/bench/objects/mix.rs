//! Objects beside the load: some uploads and more downloads each second, whatever else goes on (F-32, CH-32).
//!
//! Promise: each call is counted once, and every acknowledged upload is read back in the end. What a busy node turns away
//! is counted as that: of uploads it may be all (CH-18), and none of it is a failure.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::bytes_of;
use super::report::{Calls, Tally};
use super::speak::{End, Line};
use crate::failure::Failure;

/// Callers, and how long each waits between two calls.
const UPLOADERS: usize = 2;
const UPLOAD_EVERY: Duration = Duration::from_millis(250);
const DOWNLOADERS: usize = 4;
const DOWNLOAD_EVERY: Duration = Duration::from_millis(50);
/// Bytes of an object.
const BYTES: usize = 64 << 10;
/// What is downloaded, and was uploaded before all else.
const SHARED: &str = "/v1/objects/mix/shared";
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a call that must come through is tried, and the pause between two tries.
const TRIES_MAX: usize = 100;
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    uploads: Mutex<Tally>,
    downloads: Mutex<Tally>,
    /// Names of acknowledged uploads with the ETag that was told.
    written: Mutex<BTreeMap<String, String>>,
}

/// Calls under way.
pub(super) struct Mix {
    hosts: Vec<String>,
    seen: Arc<Seen>,
    callers: JoinSet<()>,
}

/// What became of them.
pub(super) struct Beside {
    pub(super) uploads: Calls,
    pub(super) downloads: Calls,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mix {
    /// Begins.
    pub(super) async fn start(hosts: &[String]) -> Result<Mix, Failure> {
        let (seen, mut callers) = (Arc::new(Seen::default()), JoinSet::new());
        if insist(&hosts[0], "PUT", SHARED, &bytes_of(1, BYTES)).await.is_none() {
            return Err(Failure::failed("the first upload did not come through"));
        }
        for number in 0..UPLOADERS + DOWNLOADERS {
            let host = hosts[number % hosts.len()].clone();
            callers.spawn(call_on(seen.clone(), host, number));
        }
        Ok(Mix { hosts: hosts.to_vec(), seen, callers })
    }

    /// What was counted since the last time.
    pub(super) fn take(&self) -> Beside {
        let uploads = std::mem::take(&mut *lock(&self.seen.uploads)).calls("upload beside");
        let downloads = std::mem::take(&mut *lock(&self.seen.downloads)).calls("download beside");
        Beside { uploads, downloads }
    }

    /// Ends, and reads every acknowledged upload back; gives how many there were, and how many of them are lost or changed.
    pub(super) async fn stop(mut self) -> (u64, u64) {
        self.seen.stop.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
        let written = std::mem::take(&mut *lock(&self.seen.written));
        let mut lost = 0;
        for (number, (name, tag)) in written.iter().enumerate() {
            let host = &self.hosts[number % self.hosts.len()];
            let found = insist(host, "GET", name, &[]).await;
            lost += u64::from(found.as_ref() != Some(tag));
        }
        (written.len() as u64, lost)
    }
}

/// One caller.
async fn call_on(seen: Arc<Seen>, host: String, number: usize) {
    let uploads = number < UPLOADERS;
    let (mut line, mut count) = (None, 0u64);
    while !seen.stop.load(Ordering::Relaxed) {
        tokio::time::sleep(if uploads { UPLOAD_EVERY } else { DOWNLOAD_EVERY }).await;
        count += 1;
        let name = format!("/v1/objects/mix/{number}-{count}");
        let body = bytes_of(number as u64 * 1_000_003 + count, if uploads { BYTES } else { 0 });
        let began = Instant::now();
        let (method, name) = if uploads { ("PUT", name.as_str()) } else { ("GET", SHARED) };
        let heard = call(&mut line, &host, method, name, &body).await;
        let end = heard.as_ref().map_or(End::Failed, |(end, _)| *end);
        let tally = if uploads { &seen.uploads } else { &seen.downloads };
        lock(tally).add(end, began.elapsed());
        if let (true, Some((End::Good, tag))) = (uploads, heard) {
            lock(&seen.written).insert(name.to_owned(), tag);
        }
    }
}

/// One call, on a fresh connection if the kept one was closed meanwhile; gives its end and the ETag.
async fn call(
    line: &mut Option<Line>,
    host: &str,
    method: &str,
    name: &str,
    body: &[u8],
) -> Option<(End, String)> {
    for kept in [line.take(), None] {
        let mut open = match kept {
            Some(open) => open,
            None => Line::open(host).await.ok()?,
        };
        if let Ok(heard) = open.call(method, name, body, PATIENCE, true).await {
            *line = (!heard.closes).then_some(open);
            return Some((heard.end(), heard.tag));
        }
    }
    None
}

/// A call that must come through, also while a node turns calls away; gives the ETag.
async fn insist(host: &str, method: &str, name: &str, body: &[u8]) -> Option<String> {
    let mut line = None;
    for _ in 0..TRIES_MAX {
        if let Some((End::Good, tag)) = call(&mut line, host, method, name, body).await {
            return Some(tag);
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}
