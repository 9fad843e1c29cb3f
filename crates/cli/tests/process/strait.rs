//! A way to a server on which everything that is sent can be held back for a while: it arrives later, whatever became of its
//! sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// How often a held connection looks whether it may go on.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Passes connections on; ends with the test's runtime.
pub struct Strait {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    is_held: AtomicBool,
    /// What is counted among the held.
    word: &'static [u8],
    /// How many pieces with that word wait, and how many arrived late.
    waiting: AtomicU64,
    late: AtomicU64,
}

impl Strait {
    /// Leads to a port of this machine.
    pub async fn start(to: u16, word: &'static str) -> Strait {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            is_held: AtomicBool::new(false),
            word: word.as_bytes(),
            waiting: AtomicU64::new(0),
            late: AtomicU64::new(0),
        });
        let pass = shared.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let shared = pass.clone();
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
                    let (from_caller, to_caller) = caller.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(answers(from_server, to_caller));
                    questions(from_caller, to_server, &shared).await;
                });
            }
        });
        Strait { port, shared }
    }

    /// Holds back whatever is sent from now on.
    pub fn hold(&self) {
        self.shared.is_held.store(true, Ordering::SeqCst);
    }

    /// Lets everything arrive.
    pub fn release(&self) {
        self.shared.is_held.store(false, Ordering::SeqCst);
    }

    /// How many pieces with the word are held back now.
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    /// How many of them have arrived after having been held back.
    pub fn late(&self) -> u64 {
        self.shared.late.load(Ordering::SeqCst)
    }
}

/// The end of the caller does not take back what it has sent.
async fn questions(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        let has_word = bytes.windows(shared.word.len()).any(|part| part == shared.word);
        let is_late = shared.is_held.load(Ordering::SeqCst) && has_word;
        shared.waiting.fetch_add(u64::from(is_late), Ordering::SeqCst);
        while shared.is_held.load(Ordering::SeqCst) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
        shared.late.fetch_add(u64::from(is_late), Ordering::SeqCst);
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        // Nobody may be there to hear it any more.
        let _ = to.write_all(&buffer[..count]).await;
    }
}
