//! Damaged input for everything that is read before a caller is known, and for the files that a node reads (X9, F-41).
//!
//! Each target takes the corpus in `crates/node/corpus`, damages it by a seeded generator, and expects an answer or a
//! refusal, never a panic. A short run is part of every verification; `IKADA_FUZZ_ROUNDS` sets the length of a long
//! one, `IKADA_FUZZ_SEED` repeats one. Coverage does not guide it: that would need a nightly compiler.

use std::path::Path;

use ikada_api::pipe::PipeAsk;
use ikada_api::routes::{find, read_query};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::audit::verify;
use crate::auth::TokenText;
use crate::config::RawConfig;
use crate::http::{HttpLimits, Security};
use crate::peers::{Opening, Welcome, decode, read_frame};
use crate::tls::{JoinAnswer, JoinAsk, JoinToken, Name};

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Damaged copies of the corpus.
struct Damaged {
    corpus: Vec<Vec<u8>>,
    draw: fastrand::Rng,
}

impl Damaged {
    fn new(corpus: Vec<Vec<u8>>) -> Damaged {
        Damaged { corpus, draw: fastrand::Rng::with_seed(number("IKADA_FUZZ_SEED", 7)) }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.corpus[self.draw.usize(..self.corpus.len())].clone();
        for _ in 0..self.draw.usize(1..6) {
            let length = bytes.len();
            let at = self.draw.usize(..=length);
            match self.draw.u8(..7) {
                0 if at < length => bytes[at] ^= 1 << self.draw.u8(..8),
                1 if at < length => bytes[at] = self.draw.u8(..),
                2 => bytes.truncate(at),
                3 => bytes.insert(at, self.draw.u8(..)),
                4 => {
                    let end = self.draw.usize(at..=length);
                    bytes.drain(at..end);
                }
                5 if length < 1 << 12 => {
                    let end = self.draw.usize(at..=length);
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
                _ => {
                    let other = &self.corpus[self.draw.usize(..self.corpus.len())];
                    let from = self.draw.usize(..=other.len());
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        bytes
    }
}

#[test]
fn x_9_pre_auth_texts_are_read_or_refused() {
    let mut damaged = Damaged::new(corpus("tokens"));
    for _ in 0..number("IKADA_FUZZ_ROUNDS", 100_000) {
        let bytes = damaged.next();
        let text = String::from_utf8_lossy(&bytes);
        if let Some(token) = TokenText::parse(&text) {
            assert_eq!(token.reveal().reveal(), text.as_ref(), "one token, one text");
        }
        if let Some(name) = Name::parse(&text) {
            assert_eq!(name.to_string(), text.as_ref(), "one node, one text");
        }
        let _ = JoinToken::parse(&text);
        let _ = find(&text, &text);
        let _ = read_query(&text);
    }
}

#[tokio::test]
async fn x_9_pre_auth_frames_are_read_or_refused() {
    let mut damaged = Damaged::new(corpus("frames"));
    for _ in 0..number("IKADA_FUZZ_ROUNDS", 100_000) {
        let bytes = damaged.next();
        let _ = decode::<Opening>(&bytes);
        let _ = decode::<Welcome>(&bytes);
        let _ = minicbor::decode::<JoinAsk>(&bytes);
        let _ = minicbor::decode::<JoinAnswer>(&bytes);
        let _ = minicbor::decode::<PipeAsk<'_>>(&bytes);
        let _ = read_frame(&mut bytes.as_slice(), 1 << 16).await;
    }
}

#[test]
fn x_9_files_are_read_or_refused() {
    let mut damaged = Damaged::new(corpus("config"));
    for _ in 0..number("IKADA_FUZZ_ROUNDS", 20_000) {
        let bytes = damaged.next();
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(raw) = RawConfig::from_toml(&text) {
            let _ = crate::config::resolve(vec![raw]);
        }
        let _ = verify(&text);
    }
}

#[tokio::test]
async fn x_9_pre_auth_requests_harm_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = crate::http::fake_door();
    let security = Security { gatekeeper: Some(Default::default()), ..Security::default() };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let open = crate::admission::Admission::open();
    let serving = tokio::spawn(crate::http::serve(
        door,
        listener,
        HttpLimits::default(),
        security,
        open,
        async { drop(stopped.await) },
    ));
    let mut damaged = Damaged::new(corpus("http"));
    for _ in 0..number("IKADA_FUZZ_ROUNDS", 1_000) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(&damaged.next()).await;
        let _ = stream.shutdown().await;
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        let said = String::from_utf8_lossy(&said);
        assert!(!said.contains(" 500 "), "{said}");
        assert!(!said.starts_with("HTTP/1.1 2") || said.ends_with("ok\n"), "{said}");
    }
    drop(stop);
    serving.await.unwrap();
}
