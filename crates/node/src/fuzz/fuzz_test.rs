//! Every target reads its whole corpus, fresh seeds, and damaged copies of both (X9, F-41).
//!
//! A short run is part of every verification. `IKADA_FUZZ_ROUNDS` sets the length of a long one, `IKADA_FUZZ_SEED` draws
//! other damage; a failure names the input that caused it. Coverage does not guide it: `cargo xtask fuzz` does that.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{TARGETS, Target, seeds_test};
use crate::http::{HttpLimits, Security};

/// The largest seed in the repository, and all of them together.
const SEED_BYTES_MAX: u64 = 8 << 10;
const CORPUS_BYTES_MAX: u64 = 1 << 20;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The workspace of the programs that libFuzzer drives.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = folder().join("corpus").join(target);
    names_in(&folder).iter().map(|name| std::fs::read(folder.join(name)).unwrap()).collect()
}

/// Damaged copies of a corpus.
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

/// Says which input a target panicked on.
struct Blame<'a>(&'a str, &'a [u8]);

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} panicked on b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("the target is listed");
    let mut inputs = corpus(name);
    assert!(!inputs.is_empty(), "a target has a corpus");
    inputs.extend(seeds_test::seeds(name).into_iter().map(|(_, bytes)| bytes));
    let run = |input: &[u8]| {
        let _blame = Blame(name, input);
        (target.run)(input);
    };
    inputs.iter().for_each(|input| run(input));
    let mut damaged = Damaged::new(inputs);
    for _ in 0..number("IKADA_FUZZ_ROUNDS", target.rounds) {
        run(&damaged.next());
    }
}

macro_rules! replayed {
    ($($test:ident: $target:literal,)*) => {
        const REPLAYED: &[&str] = &[$($target),*];
        $(#[test]
        fn $test() {
            replay($target);
        })*
    };
}

replayed! {
    x_9_pre_auth_texts: "pre_auth_texts",
    x_9_pre_auth_http: "pre_auth_http",
    x_9_pre_auth_s3: "pre_auth_s3",
    x_9_pre_auth_pipe: "pre_auth_pipe",
    x_9_pre_auth_bodies: "pre_auth_bodies",
    x_9_pre_auth_frames: "pre_auth_frames",
    x_9_pre_auth_links: "pre_auth_links",
    x_9_pre_auth_join: "pre_auth_join",
    x_9_pre_auth_gossip: "pre_auth_gossip",
    x_9_pre_auth_certificates: "pre_auth_certificates",
    x_9_log: "log",
    x_9_snapshot: "snapshot",
    x_9_entries: "entries",
    x_9_backup: "backup",
    x_9_config: "config",
    x_9_audit: "audit",
    x_9_schedules: "schedules",
}

#[test]
fn x_9_every_target_has_a_test_a_corpus_and_a_program() {
    let mut names: Vec<&str> = TARGETS.iter().map(|target: &Target| target.name).collect();
    assert_eq!(REPLAYED, names);
    names.sort_unstable();
    assert_eq!(names_in(&folder().join("corpus")), names);
    let programs: Vec<String> = names.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in(&folder().join("targets")), programs);
    let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name}");
        let program = std::fs::read_to_string(folder().join(format!("targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("ikada_node::fuzz::{name}(bytes)")), "{name}");
    }
}

#[test]
fn x_9_corpora_are_small() {
    let mut together = 0;
    for target in TARGETS {
        for seed in corpus(target.name) {
            assert!(seed.len() as u64 <= SEED_BYTES_MAX, "{}", target.name);
            together += seed.len() as u64;
        }
    }
    assert!(together <= CORPUS_BYTES_MAX);
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
    let mut damaged = Damaged::new(corpus("pre_auth_http"));
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
