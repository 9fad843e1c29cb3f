//! Fresh ports, and one server that is expected to refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ports below those that the system hands out for outgoing connections: a node that was killed finds its own free.
const PORTS: std::ops::Range<u16> = 12_000..20_000;

/// Ports that nobody listens on, each given out once.
pub fn ports(count: usize) -> Vec<String> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let span = u64::from(PORTS.end - PORTS.start);
    let mut found = Vec::new();
    while found.len() < count {
        let port = PORTS.start + (RandomState::new().hash_one(0) % span) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port) {
            found.push(format!("127.0.0.1:{port}"));
        }
    }
    found
}

/// The binary under test, without the caller's settings.
pub fn ikada() -> Command {
    let mut command = without_settings(Command::new(env!("CARGO_BIN_EXE_ikada")));
    // Tests keep the machine busy; what that does to a node has tests of its own.
    command.env("IKADA_SHED", "off");
    command
}

/// A command that does not inherit the caller's settings.
pub fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("IKADA_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command that should refuse: gives what it said. Fails if it goes on, or ends well.
pub fn refusal(command: &mut Command) -> String {
    let mut child = command
        // Held open: some are told to stop when it closes.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().expect("killed");
                let said = child.wait_with_output().expect("output").stderr;
                panic!("it did not refuse, but said: {}", String::from_utf8_lossy(&said));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let said = child.wait_with_output().expect("output").stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!status.success(), "it ended well, saying: {said}");
    said
}

/// Every file below a folder, with a hash of its bytes.
pub fn fingerprint(folder: &Path) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("below").display().to_string();
            if path.is_dir() {
                all.insert(name, 0);
                folders.push(path);
            } else {
                let mut hasher = DefaultHasher::new();
                hasher.write(&std::fs::read(&path).expect("a file"));
                all.insert(name, hasher.finish());
            }
        }
    }
    all
}
