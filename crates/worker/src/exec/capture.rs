//! What a program says: kept up to a bound, counted beyond it, and read for progress.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Lines that begin so tell of progress instead of going into the log.
const PROGRESS: &[u8] = b"ikada:progress ";
/// A line longer than this is cut into pieces.
const LINE_MAX: usize = 16 << 10;
/// Longest words beside a figure.
const WORDS_MAX: usize = 200;

/// How far a program is, in its own words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Between 0 and 1.
    pub share: f64,
    /// What it says beside the figure; may be empty.
    pub words: String,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    total: u64,
    left_out: u64,
    progress: Option<Progress>,
    last_line: Vec<u8>,
}

/// The log of one attempt; clones share it.
#[derive(Debug, Clone)]
pub struct Log {
    kept: Arc<Mutex<Kept>>,
    bytes_max: usize,
}

impl Log {
    /// An empty one.
    pub fn new(bytes_max: usize) -> Log {
        Log { kept: Arc::default(), bytes_max }
    }

    /// What is kept from this place on.
    pub fn since(&self, from: usize) -> Vec<u8> {
        self.look(|kept| kept.bytes.get(from..).unwrap_or_default().to_vec())
    }

    /// Bytes that were written, kept or not.
    pub fn total(&self) -> u64 {
        self.look(|kept| kept.total)
    }

    /// The newest word about progress.
    pub fn progress(&self) -> Option<Progress> {
        self.look(|kept| kept.progress.clone())
    }

    /// Writes the newest progress into the log, for whoever reads along.
    pub(super) fn note_progress(&self) {
        if let Some(Progress { share, words }) = self.progress() {
            let line = format!("[{:.0} % {words}", share * 100.0);
            self.line(format!("{}]\n", line.trim_end()).as_bytes());
        }
    }

    /// The newest line that is not empty, for the reason of a failure.
    pub(super) fn last_line(&self) -> String {
        self.look(|kept| {
            let line = String::from_utf8_lossy(&kept.last_line);
            line.trim().chars().take(WORDS_MAX).collect()
        })
    }

    /// Says at the end how much is missing.
    pub(super) fn close(&self) {
        self.look(|kept| {
            if kept.left_out > 0 {
                let note = format!("[{} bytes more were left out]\n", kept.left_out);
                kept.bytes.extend(note.into_bytes());
                kept.left_out = 0;
            }
        });
    }

    fn look<T>(&self, see: impl FnOnce(&mut Kept) -> T) -> T {
        // Nobody panics while holding it; if somebody did, the bytes are still good.
        see(&mut self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn line(&self, line: &[u8]) {
        self.look(|kept| {
            if let Some(text) = line.strip_prefix(PROGRESS)
                && let Some(progress) = read_progress(text)
            {
                kept.progress = Some(progress);
                return;
            }
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                kept.last_line = line[..line.len().min(1_024)].to_vec();
            }
            let room = self.bytes_max.saturating_sub(kept.bytes.len());
            let taken = if kept.left_out > 0 { 0 } else { line.len().min(room) };
            kept.bytes.extend_from_slice(&line[..taken]);
            kept.left_out += (line.len() - taken) as u64;
        });
    }
}

fn read_progress(text: &[u8]) -> Option<Progress> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (figure, words) = text.split_once(' ').unwrap_or((text, ""));
    let share: f64 = figure.parse().ok()?;
    let words = words.trim().chars().take(WORDS_MAX).collect();
    (0.0..=1.0).contains(&share).then_some(Progress { share, words })
}

/// Reads a stream to its end, line by line so that two streams do not cut each other's lines.
pub(super) async fn drain(mut stream: impl AsyncRead + Unpin, log: Log) {
    let mut part = vec![0; LINE_MAX];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let count = match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        log.look(|kept| kept.total += count as u64);
        for piece in part[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") || line.len() >= LINE_MAX {
                log.line(&line);
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        line.push(b'\n');
        log.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_kept_to_a_bound_and_progress_is_read() {
        let log = Log::new(20);
        let said = b"one\nikada:progress 0.5 half\nikada:progress 7\ntwo two two two\nend";
        drain(&said[..], log.clone()).await;
        assert_eq!(log.since(0), b"one\nikada:progress 7");
        assert_eq!(log.progress(), Some(Progress { share: 0.5, words: "half".to_owned() }));
        assert_eq!((log.total(), log.last_line().as_str()), (said.len() as u64, "end"));
        log.close();
        assert_eq!(log.since(20), b"[21 bytes more were left out]\n");
    }
}
