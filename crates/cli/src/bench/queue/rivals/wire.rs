//! A connection whose writes are gathered and whose reads are taken as they come.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Room asked of the kernel per read.
pub(super) const READ_BYTES: usize = 64 << 10;
/// Longest wait for a word of a server that owes one.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Wire {
    stream: TcpStream,
    /// What came and was not taken yet.
    pub(super) read: BytesMut,
    /// What goes out with the next flush.
    pub(super) out: Vec<u8>,
}

impl Wire {
    pub(super) async fn open(address: &str) -> io::Result<Wire> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, read: BytesMut::with_capacity(READ_BYTES), out: Vec::new() })
    }

    /// Halves for a writer and a reader of their own.
    pub(super) fn split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.stream.into_split()
    }

    /// Sends what was gathered.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Reads more; an error if nothing comes for a long time.
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        match self.fill_within(PATIENCE).await? {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Reads more; false if nothing comes in this time.
    pub(super) async fn fill_within(&mut self, patience: Duration) -> io::Result<bool> {
        self.read.reserve(READ_BYTES);
        match tokio::time::timeout(patience, self.stream.read_buf(&mut self.read)).await {
            Err(_) => Ok(false),
            Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read.map(|_| true),
        }
    }
}
