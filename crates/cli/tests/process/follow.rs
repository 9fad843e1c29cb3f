//! Follows a page of the documentation as a reader would.
//!
//! A block marked `sh` is run and must end well; one marked `sh background` is started and ended with the page; what stands
//! in a block marked `output` is what the block before it must have printed; one marked with a language and a file's name
//! becomes that file. What needs more than one machine is marked `elsewhere:` and the name of the test that does the same.
//! Only ports differ from the page, since tests run side by side.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::fresh::{ports, without_settings};
use crate::wait::until;

/// Ports that pages use, above their first: three nodes, their peers, and the door for S3.
const USED: [u16; 8] = [0, 1, 2, 3, 10, 11, 20, 21];
/// What all ports of pages begin with.
const BEGINNING: &str = "74";
/// Languages of blocks that say something and do nothing.
const TOLD: [&str; 6] = ["text", "http", "sql", "rust", "toml", "python"];

/// A block of a page: what it is marked with, and its text.
pub struct Block<'a> {
    pub mark: &'a str,
    pub text: &'a str,
}

impl Block<'_> {
    /// The test that does the same.
    pub fn elsewhere(&self) -> Option<&str> {
        self.mark.split_once(" elsewhere:").map(|(_, test)| test)
    }
}

pub fn blocks(page: &str) -> Vec<Block<'_>> {
    // Every second part lies between two fences.
    let parts = page.split("```").skip(1).step_by(2);
    let split = |part| str::split_once(part, '\n').unwrap_or((part, ""));
    parts.map(split).map(|(mark, text)| Block { mark: mark.trim(), text }).collect()
}

/// A reader: a folder, a first port, and what runs.
pub struct Reader {
    folder: tempfile::TempDir,
    first: u16,
    settings: Vec<(&'static str, String)>,
    running: Vec<Background>,
}

/// A process and all that it started, ended with the page.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// The first of ports that lie to each other as those of the pages, all free.
fn first_port() -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let first = |address: String| address.rsplit(':').next().and_then(|port| port.parse().ok());
    std::iter::repeat_with(|| ports(1).remove(0))
        .filter_map(first)
        .find(|first: &u16| USED.iter().all(|port| is_free(first + port)))
        .expect("endless")
}

/// A page with other ports.
fn with_ports(page: &str, first: u16) -> String {
    let mut words = String::new();
    let mut rest = page;
    while let Some(place) = rest.find(BEGINNING) {
        let (before, after) = (&rest[..place], &rest[place + BEGINNING.len()..]);
        let is_digit = |text: Option<char>| text.is_some_and(|one| one.is_ascii_digit());
        let last: Option<u16> = after.get(..2).and_then(|two| two.parse().ok());
        let stands_alone = !is_digit(before.chars().last())
            && !is_digit(after.get(2..).and_then(|text| text.chars().next()));
        words.push_str(before);
        match last.filter(|_| stands_alone) {
            Some(last) => {
                words.push_str(&(first + last).to_string());
                rest = &after[2..];
            }
            None => {
                words.push_str(BEGINNING);
                rest = after;
            }
        }
    }
    words + rest
}

impl Reader {
    pub fn new() -> Reader {
        let folder = tempfile::tempdir().expect("a folder");
        Reader { folder, first: first_port(), settings: Vec::new(), running: Vec::new() }
    }

    /// Sets a variable of the reader's shells; `@` is the folder.
    pub fn with(mut self, name: &'static str, value: &str) -> Reader {
        self.settings.push((name, value.replace('@', &self.folder.path().display().to_string())));
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A shell in the reader's place, with the binary in its path.
    fn shell(&self, script: &str) -> Command {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_ikada"));
        let beside = binary.parent().expect("a folder").display().to_string();
        let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
        let mut command = without_settings(Command::new("sh"));
        command.args(["-euc", script]).current_dir(self.folder()).stdin(Stdio::null());
        command.env("PATH", path).env("HOME", self.folder()).env("IKADA_SHED", "off");
        command.env("IKADA_URL", format!("http://127.0.0.1:{}", self.first));
        command.env("IKADA_LISTEN", format!("127.0.0.1:{}", self.first));
        command.env("IKADA_PEER_LISTEN", format!("127.0.0.1:{}", self.first + 1));
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a script that must end well; gives what it printed.
    pub fn run(&self, script: &str) -> String {
        let output = self.shell(script).output().expect("a shell");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}{complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts something that stays, and waits until it answers if it is a node.
    pub async fn start(&mut self, script: &str) {
        let mut script = format!("exec {}", script.split(" #").next().unwrap_or_default().trim());
        if script.starts_with("exec ikada dev") {
            script += &format!(" --port {}", self.first);
        }
        let mut command = self.shell(&script);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn();
        self.running.push(Background(child.expect("a shell")));
        let worker = script.split("ikada worker --name ").nth(1).map(str::split_whitespace);
        if let Some(name) = worker.and_then(|mut words| words.next()) {
            let look = format!("ikada worker-pool show {name}");
            until("the page's worker is known", || async {
                let mut shell = self.shell(&look);
                let known = shell.stdout(Stdio::null()).stderr(Stdio::null()).status();
                known.is_ok_and(|status| status.success()).then_some(())
            })
            .await;
        }
        if !script.contains("ikada dev") && !script.contains("ikada server") {
            return;
        }
        let own = script.split("--listen 127.0.0.1:").nth(1).map(str::split_whitespace);
        let port = own.and_then(|mut words| words.next()?.parse().ok()).unwrap_or(self.first);
        until("the page's node listens", || async {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .await;
        if script.contains("--auth") {
            let file = self.folder().join("data/admin-token");
            until("the first token is written", || async { std::fs::read(&file).ok() }).await;
        }
    }

    /// Follows a page from its first block to its last; says how many were run and compared.
    pub async fn follow(&mut self, page: &str) -> (usize, usize) {
        let page = with_ports(page, self.first);
        let (mut said, mut run, mut compared) = (String::new(), 0, 0);
        for block in blocks(&page) {
            let mut words = block.mark.split(' ');
            match (words.next().unwrap_or_default(), words.next()) {
                (_, Some(test)) if test.starts_with("elsewhere:") => {}
                ("sh", Some("background")) => self.start(block.text).await,
                ("sh", None) => (said, run) = (self.run(block.text), run + 1),
                ("output", None) => {
                    assert_eq!(said, block.text, "the page promises something else");
                    compared += 1;
                }
                (language, Some(file)) if TOLD.contains(&language) => {
                    std::fs::write(self.folder().join(file), block.text).expect("written");
                }
                (language, None) if TOLD.contains(&language) => {}
                _ => panic!("a block is marked {:?}: nobody knows whether it is true", block.mark),
            }
        }
        (run, compared)
    }
}

#[test]
fn ports_of_a_page_are_moved_and_nothing_else() {
    let page = "a 127.0.0.1:7400, localhost:7421; 17400 and 74000 and 7.4 and 740";
    let moved = "a 127.0.0.1:15000, localhost:15021; 17400 and 74000 and 7.4 and 740";
    assert_eq!(with_ports(page, 15_000), moved);
}
