//! A Postgres of the test's own: private folder, private port, ended with the test. Uses the installed binaries.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::missing::{is_postgres_needed, judge_missing};

/// How long the server may take to start.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// A running server. Ends when dropped.
pub struct Server {
    folder: tempfile::TempDir,
    binaries: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Makes a fresh database and starts it; nothing, with a word on what to install, where Postgres is missing and nobody relies on it.
    pub fn start() -> Option<Server> {
        let binaries = binaries();
        let missing = binaries.is_none().then_some("Postgres (apt-get install postgresql)");
        if judge_missing(missing, "logs in a database", is_postgres_needed()) {
            return None;
        }
        let binaries = binaries?;
        let folder = tempfile::tempdir().expect("a folder");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let mut server = Server { folder, binaries, port, child: None };
        server.own_folder();
        let made = server
            .command("initdb")
            .args([
                "--auth=trust",
                "--username=ikada",
                "--encoding=UTF8",
                "--no-locale",
                "--pgdata",
            ])
            .arg(server.data())
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb").success(), "initdb failed");
        server.resume();
        Some(server)
    }

    /// Starts the stopped server again.
    pub fn resume(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-c", "listen_addresses=127.0.0.1"]);
        command.arg("-c").arg(format!("port={}", self.port));
        command.arg("-c").arg(format!("unix_socket_directories={}", self.folder.path().display()));
        command.args(["-c", "max_connections=60", "-c", "shared_buffers=32MB"]);
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log file");
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("postgres starts"));
        let until = Instant::now() + START_PATIENCE;
        while !self.is_ready() {
            assert!(Instant::now() < until, "Postgres did not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server at once, as a crash would.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let quit = rustix::process::Signal::QUIT;
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, quit);
            let _ = child.wait();
        }
    }

    /// Its address, without a password.
    pub fn url(&self) -> String {
        format!("postgres://ikada@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs one statement with psql; gives its output.
    pub fn sql(&self, statement: &str) -> String {
        let mut command = self.command("psql");
        command.args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", &self.url()]);
        let done = command.args(["--command", statement]).output().expect("psql");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of everything that belongs to it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stands the server still with all its connections.
    pub fn pause(&self) {
        self.signal_all("STOP");
    }

    /// Lets a paused server go on.
    pub fn unpause(&self) {
        self.signal_all("CONT");
    }

    fn signal_all(&self, name: &str) {
        let Some(child) = &self.child else { return };
        let mut all = vec![child.id()];
        all.extend(children(child.id()));
        signal(&all, name);
    }

    /// Writes everything into a file of this name.
    pub fn dump(&self, name: &str) {
        let mut command = self.command("pg_dump");
        command.args(["--format=custom", "--dbname", &self.url(), "--file"]);
        let done = command.arg(self.folder.path().join(name)).output().expect("pg_dump");
        assert!(done.status.success(), "pg_dump: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Brings everything back as it was when the file was written.
    pub fn restore(&self, name: &str) {
        let mut command = self.command("pg_restore");
        command.args(["--clean", "--single-transaction", "--dbname", &self.url()]);
        let done = command.arg(self.folder.path().join(name)).output().expect("pg_restore");
        assert!(done.status.success(), "pg_restore: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// A program of somebody else's that runs as the server does.
    pub fn command_at(&self, path: &str) -> Command {
        self.as_other(Command::new(path))
    }

    /// What the server wrote.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        let mut command = self.command("pg_isready");
        command.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Postgres refuses to run as root: then it runs as a user of its own, or as nobody.
    fn command(&self, name: &str) -> Command {
        self.as_other(Command::new(self.binaries.join(name)))
    }

    fn as_other(&self, mut command: Command) -> Command {
        if let Some(user) = other_user() {
            command.uid(user).gid(user).current_dir(self.folder.path());
        }
        command
    }

    fn own_folder(&self) {
        if let Some(user) = other_user() {
            chown(self.folder.path(), Some(user), Some(user)).expect("the folder's owner");
            let everyone = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(self.folder.path(), everyone).expect("the folder's mode");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.unpause();
        self.stop();
    }
}

/// The processes that a process has started.
fn children(of: u32) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name of the program, in brackets, may hold spaces.
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1) == Some(&of.to_string())
    };
    pids.filter(is_child).collect()
}

fn signal(pids: &[u32], name: &str) {
    for pid in pids {
        // One that has ended meanwhile is no harm.
        let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    }
}

/// Somebody who is not root, if we are.
fn other_user() -> Option<u32> {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let words = Command::new("id").args(["-u", "postgres"]).output().ok();
    let id = words.and_then(|out| String::from_utf8(out.stdout).ok()?.trim().parse().ok());
    Some(id.unwrap_or(NOBODY))
}

/// The newest installed version's folder.
fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .filter(|(_, path)| path.join("initdb").exists())
        .collect();
    found.sort();
    let elsewhere = Path::new("/usr/bin");
    let elsewhere = elsewhere.join("initdb").exists().then(|| elsewhere.to_owned());
    found.pop().map(|(_, path)| path).or(elsewhere)
}
