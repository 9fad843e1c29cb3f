//! Secrets that were sent somewhere, and everything that was told anywhere: what to look through for them (X6).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ikada_api::routes::{ROUTES, Verb};

/// Longest wait for more of an answer; streams of events never end by themselves.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most that is read of one answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// More than the longest secret has.
const SECRET_BYTES_MAX: usize = 256;

/// Secrets by kind, and everything that was told anywhere.
#[derive(Default)]
pub struct Secrets {
    all: Vec<(String, String)>,
    /// The bytes behind a secret's text, where nodes keep them.
    raw: Vec<(String, Vec<u8>)>,
    told: Vec<(String, Vec<u8>)>,
}

/// Folders of a node that hold the cluster's state: the secrets of S3 keys lie there as they are, and in a backup, as the
/// threat model says.
const STATE_FOLDERS: [&str; 3] = ["wal", "snap", "blob"];
const BACKUP: &str = "GET /v1/cluster/backup";

fn holds_state(place: &str) -> bool {
    let is_state = |part| STATE_FOLDERS.iter().any(|folder| part == *folder);
    place == BACKUP || Path::new(place).iter().any(is_state)
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    let mut rest = text;
    while let Some(place) = rest.iter().position(|byte| *byte == wanted[0]) {
        rest = &rest[place..];
        if rest.starts_with(wanted) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

impl Secrets {
    pub fn add(&mut self, kind: &str, secret: &str) {
        assert!(secret.len() >= 16, "{kind} is too short to be looked for");
        self.all.push((kind.to_owned(), secret.to_owned()));
    }

    /// A secret whose text is hexadecimal digits of what the cluster keeps.
    pub fn add_hex(&mut self, kind: &str, secret: &str) {
        self.add(kind, secret);
        let digits: Vec<u8> =
            secret.chars().map(|digit| digit.to_digit(16).expect("a digit") as u8).collect();
        let bytes = digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect();
        self.raw.push((format!("the bytes of {kind}"), bytes));
    }

    pub fn tell(&mut self, place: &str, bytes: &[u8]) {
        // Files that took their room beforehand end in zeros; a secret may end in a few.
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let end = (end + SECRET_BYTES_MAX).min(bytes.len());
        self.told.push((place.to_owned(), bytes[..end].to_vec()));
    }

    /// Runs a command and keeps what it says, but standard output where that is where the secret belongs.
    pub fn run(&mut self, command: &mut Command, gives_secret: bool) -> String {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let place = format!("ikada {}", words.join(" "));
        let ran = command.stdin(Stdio::null()).output().expect("it runs");
        self.tell(&place, &ran.stderr);
        if !gives_secret {
            self.tell(&place, &ran.stdout);
        }
        String::from_utf8(ran.stdout).expect("text").trim().to_owned()
    }

    /// Command lines of all processes, as anybody on the machine sees them.
    pub fn look_at_processes(&mut self) {
        for entry in fs::read_dir("/proc").expect("processes").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            self.tell("a command line", &line);
        }
    }

    /// All files below a folder but those that hold a secret by design.
    pub fn look_at_files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().expect("a name"));
            if path.is_dir() {
                self.look_at_files(&path);
            } else if !matches!(name.as_str(), "admin-token" | "join-token")
                && !name.ends_with(".key")
            {
                self.tell(&path.display().to_string(), &fs::read(&path).unwrap_or_default());
            }
        }
    }

    /// Every route without a name in its path, asked by the holder of a token or by nobody.
    pub fn look_at_routes(&mut self, address: &str, token: Option<&str>) {
        let plain =
            ROUTES.iter().filter(|route| route.verb == Verb::Get && !route.path.contains('{'));
        let files = ["/dashboard/main.js", "/dashboard/lib/session.js", "/nowhere"];
        for path in plain.map(|route| route.path).chain(files) {
            let header = token
                .map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
            self.ask(address, path, &header);
        }
    }

    /// One call, and what came back.
    pub fn ask(&mut self, address: &str, path: &str, headers: &str) {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let lines =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(lines.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // A stream ends by the limit of time.
        let _ = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 "), "{path}: {}", String::from_utf8_lossy(&answer));
        self.tell(&format!("GET {path}"), &answer);
    }

    #[track_caller]
    pub fn assert_untold(&self, least: usize) {
        assert!(
            self.all.len() >= least,
            "{} secrets were sent, {least} are wanted",
            self.all.len()
        );
        for (place, text) in &self.told {
            for (kind, secret) in &self.all {
                assert!(!contains(text, secret.as_bytes()), "{kind} was told by {place}");
            }
            for (kind, secret) in self.raw.iter().filter(|_| !holds_state(place)) {
                assert!(!contains(text, secret), "{kind} were told by {place}");
            }
        }
        // The look can find what is there.
        for (kind, secret) in &self.raw {
            let mut state = self.told.iter().filter(|(place, _)| holds_state(place));
            assert!(state.any(|(_, text)| contains(text, secret)), "{kind} are not kept at all");
        }
    }
}
