//! A way to a server that breaks where a test wants it to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where a connection is cut.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// When the caller says this.
    Asked(&'static str),
    /// When this many bytes have come back on one connection.
    Answered(usize),
}

/// Passes connections on; ends with the test's runtime.
pub struct Relay {
    pub url: String,
    left: Arc<AtomicUsize>,
}

impl Relay {
    /// Leads to a server, and breaks so many times.
    pub async fn start(to: &str, cut: Cut, times: usize) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (to, left) = (to.to_owned(), Arc::new(AtomicUsize::new(times)));
        let breaks = left.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let (to, breaks) = (to.clone(), breaks.clone());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(&to).await else { return };
                    let (caller_out, caller_in) = caller.into_split();
                    let (server_out, server_in) = server.into_split();
                    // The end of either way ends both: that is the cut.
                    tokio::select! {
                        () = pass(caller_out, server_in, cut, true, &breaks) => {}
                        () = pass(server_out, caller_in, cut, false, &breaks) => {}
                    }
                });
            }
        });
        Relay { url, left }
    }

    /// How many breaks are still to come.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    cut: Cut,
    is_asking: bool,
    breaks: &AtomicUsize,
) {
    let (mut buffer, mut seen) = (vec![0; 64 << 10], 0);
    // The end of what passed before: a word may come in two pieces.
    let mut tail = Vec::new();
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        seen += count;
        tail.extend_from_slice(bytes);
        let meets = match cut {
            Cut::Asked(word) => {
                is_asking && tail.windows(word.len()).any(|part| part == word.as_bytes())
            }
            Cut::Answered(limit) => !is_asking && seen >= limit,
        };
        let one_less = |left: usize| left.checked_sub(1);
        if meets && breaks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        tail.drain(..tail.len().saturating_sub(64));
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
