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

/// Secrets by kind, and everything that was told anywhere.
#[derive(Default)]
pub struct Secrets {
    all: Vec<(String, String)>,
    told: Vec<(String, String)>,
}

impl Secrets {
    pub fn add(&mut self, kind: &str, secret: &str) {
        assert!(secret.len() >= 16, "{kind} is too short to be looked for");
        self.all.push((kind.to_owned(), secret.to_owned()));
    }

    pub fn tell(&mut self, place: &str, bytes: &[u8]) {
        self.told.push((place.to_owned(), String::from_utf8_lossy(bytes).into_owned()));
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
        let files = ["/dashboard/app.js", "/dashboard/style.css", "/nowhere"];
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
                assert!(!text.contains(secret.as_str()), "{kind} was told by {place}");
            }
        }
    }
}
