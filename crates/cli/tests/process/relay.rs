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
    /// Not at all, but once callers have sent so many bytes over all connections, nothing more of theirs passes.
    Held(usize),
}

/// Passes connections on; ends with the test's runtime.
pub struct Relay {
    pub url: String,
    left: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Relay {
    /// Leads to a server, and breaks so many times.
    pub async fn start(to: &str, cut: Cut, times: usize) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (to, left) = (to.to_owned(), Arc::new(AtomicUsize::new(times)));
        let (breaks, asked) = (left.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = asked.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let (to, breaks, counted) = (to.clone(), breaks.clone(), counted.clone());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(&to).await else { return };
                    let (caller_out, caller_in) = caller.into_split();
                    let (server_out, server_in) = server.into_split();
                    // The end of either way ends both: that is the cut.
                    tokio::select! {
                        () = pass(caller_out, server_in, cut, Some(&counted), &breaks) => {}
                        () = pass(server_out, caller_in, cut, None, &breaks) => {}
                    }
                });
            }
        });
        Relay { url, left, asked }
    }

    /// How many bytes callers have sent.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
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
    asked: Option<&AtomicUsize>,
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
                asked.is_some() && tail.windows(word.len()).any(|part| part == word.as_bytes())
            }
            Cut::Answered(limit) => asked.is_none() && seen >= limit,
            Cut::Held(_) => false,
        };
        let one_less = |left: usize| left.checked_sub(1);
        if meets && breaks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        tail.drain(..tail.len().saturating_sub(64));
        let before = asked.map_or(0, |asked| asked.fetch_add(count, Ordering::Relaxed));
        if matches!(cut, Cut::Held(limit) if asked.is_some() && before >= limit) {
            // The other way goes on, and its end ends this one.
            std::future::pending::<()>().await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
