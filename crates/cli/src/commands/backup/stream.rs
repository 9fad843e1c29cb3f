//! Bytes from async code for a thread that reads them: backups are read and written by plain code.

use std::io::{self, Read};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces of a stream that wait for the thread, each of some 64 KiB.
pub(super) const PIECES_AHEAD: usize = 64;

/// The reading end of a stream.
#[derive(Debug)]
pub(super) struct StreamReader {
    from: mpsc::Receiver<Bytes>,
    now: Bytes,
}

impl StreamReader {
    pub(super) fn new(from: mpsc::Receiver<Bytes>) -> StreamReader {
        StreamReader { from, now: Bytes::new() }
    }
}

impl Read for StreamReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.from.blocking_recv() {
                Some(bytes) => self.now = bytes,
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.now.len());
        into[..count].copy_from_slice(&self.now.split_to(count));
        Ok(count)
    }
}
