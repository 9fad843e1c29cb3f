//! A sandbox of the test's own, and what a run in it came to.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use ikada_api::client::OpenSource;
use ikada_worker::exec::{Attempt, Code, ExecConfig, FoundOutput, GroupRule, Log, Sandbox};
use ikada_worker::sandbox::{Isolation, Limits};
use ikada_worker::{Stop, TaskError, TaskResult};
use tempfile::TempDir;

/// What is left of a good run.
#[derive(Debug)]
pub struct Good {
    pub result: TaskResult,
    /// Names and contents.
    pub outputs: Vec<(String, String)>,
}

/// How a run ended, and what it said.
#[derive(Debug)]
pub struct Ran {
    pub end: Result<Good, TaskError>,
    pub log: String,
}

impl Ran {
    /// The reason of the failure.
    #[track_caller]
    pub fn error(&self) -> String {
        self.end.as_ref().expect_err("it failed").message().to_owned()
    }

    /// The run was good.
    #[track_caller]
    pub fn good(&self) -> &Good {
        match &self.end {
            Ok(good) => good,
            Err(error) => panic!("{}: {}", error.message(), self.log),
        }
    }
}

/// A sandbox with short limits.
pub struct Bench {
    pub folder: TempDir,
    pub sandbox: Sandbox,
}

/// Limits under which hostile programs are tried.
pub fn limits() -> Limits {
    Limits {
        memory_bytes: 256 << 20,
        processes: 64,
        open_files: 64,
        file_bytes: 16 << 20,
        disk_bytes: 64 << 20,
        disk_entries: 1_000,
        output_bytes: 4 << 20,
        log_bytes: 64 << 10,
        wall_ms: 20_000,
        module_steps: u64::MAX,
        grace_ms: 300,
    }
}

pub fn config(folder: &TempDir) -> ExecConfig {
    ExecConfig {
        work_dir: folder.path().join("work"),
        commands: vec!["*".to_owned()],
        readable: Vec::new(),
        network: false,
        isolation: Isolation::Full,
        limits: limits(),
        groups: GroupRule::Best,
        helper: PathBuf::from(env!("CARGO_BIN_EXE_ikada-sandbox-helper")),
    }
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(|_| {})
    }

    /// With other settings.
    pub fn with(change: impl FnOnce(&mut ExecConfig)) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config(&folder);
        change(&mut config);
        Bench { sandbox: Sandbox::open(config).expect("this machine isolates"), folder }
    }

    /// An attempt that runs this command.
    pub fn attempt(code: Code) -> Attempt {
        Attempt {
            id: "t1".to_owned(),
            queue: "q".to_owned(),
            payload: Vec::new(),
            fence: 7,
            attempt: 2,
            timeout: None,
            settings: Vec::new(),
            traceparent: None,
            code,
        }
    }

    /// Runs lines of a shell, which the test names itself.
    pub async fn shell(&self, lines: &str) -> Ran {
        self.run(Bench::attempt(shell(lines)), None).await
    }

    /// Runs lines of Python.
    pub async fn python(&self, lines: &str) -> Ran {
        let argv = ["/usr/bin/python3", "-c", lines].map(str::to_owned);
        self.run(Bench::attempt(Code::Command { argv: argv.to_vec(), file: None }), None).await
    }

    /// Runs an attempt, stopped after a while if asked.
    pub async fn run(&self, attempt: Attempt, stop_after: Option<Duration>) -> Ran {
        let log = Log::new(self.sandbox.config().limits.log_bytes);
        let (stopper, stop) = Stop::pair();
        let stopping = async {
            match stop_after {
                Some(pause) => {
                    tokio::time::sleep(pause).await;
                    stopper.stop();
                }
                None => std::future::pending().await,
            }
            std::future::pending::<()>().await
        };
        let running = self.sandbox.run(
            attempt,
            &log,
            stop,
            async |folder| {
                folder.write(&folder.inputs().join("letter"), b"dear reader\n")?;
                Ok(())
            },
            async |finish| {
                let read = |one: FoundOutput| {
                    let text = std::io::read_to_string(one.open().expect("an output"));
                    let text = text.expect("letters");
                    (one.name, text)
                };
                let outputs = finish.outputs.into_iter().map(read).collect();
                Ok(Good { result: finish.result, outputs })
            },
        );
        let end = tokio::select! { end = running => end, () = stopping => unreachable!() };
        Ran { end, log: String::from_utf8_lossy(&log.since(0)).into_owned() }
    }

    /// A file in the bench's folder that every user can read and run.
    pub fn share(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let open = |path: &std::path::Path| {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("rights");
        };
        open(self.folder.path());
        let file = self.folder.path().join(name);
        std::fs::write(&file, bytes).expect("a file");
        open(&file);
        file
    }

    /// Nothing of any attempt is left on the disk. Without walls an emptied folder stays for the next.
    #[track_caller]
    pub fn assert_empty(&self) {
        let attempts = self.folder.path().join("work/attempts");
        if self.sandbox.config().isolation == Isolation::None {
            let left = files(&attempts);
            let is_kept = |file: &PathBuf| file.ends_with("task/settings.json") || is_spare(file);
            let own = |file: &&PathBuf| is_kept(file) || is_lock(file);
            let strange = left.iter().find(|file| !own(file));
            return assert_eq!(strange, None, "a file of an attempt is left");
        }
        let homes = std::fs::read_dir(attempts).expect("a folder").flatten();
        let left = homes.flat_map(|home| std::fs::read_dir(home.path()).expect("a folder"));
        let left = left.map(|entry| entry.expect("an entry").path()).find(|path| !is_lock(path));
        assert_eq!(left, None, "folders of attempts are left");
    }
}

/// Whether this is what says that the worker lives.
fn is_lock(path: &std::path::Path) -> bool {
    path.file_name().is_some_and(|name| name == "lock")
}

/// Whether this is a file that the worker keeps beside the task's folder, for an input of a later attempt.
fn is_spare(path: &std::path::Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("spare-") && path.with_file_name("task").is_dir()
}

/// All files below a folder.
fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

pub fn shell(lines: &str) -> Code {
    Code::Command { argv: ["/bin/sh", "-c", lines].map(str::to_owned).to_vec(), file: None }
}
