//! `cargo xtask walk`: follows `docs/first-job.md` with a clock in hand, as somebody would who comes here for the first time.
//!
//! Promises: every command of the page is run as it stands, in its order, and what it promises to print is compared; the
//! build, the start and the walk are timed apart, since the page speaks of the last two alone. Leaves out: the time that
//! reading takes, and whether the figures are good enough: they are printed, not judged.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

const PAGE: &str = "docs/first-job.md";
/// A node that does not listen by then does not start.
const START_MAX: Duration = Duration::from_secs(60);

/// Settings of a walk.
#[derive(Debug, clap::Args)]
pub struct WalkArgs {
    /// Walk with this program instead of one that is built first.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A block of the page: its mark and its text.
struct Block<'a> {
    mark: &'a str,
    text: &'a str,
}

/// Builds, starts and walks; true if all went as the page says.
pub fn run(root: &Path, args: &WalkArgs) -> anyhow::Result<bool> {
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let (program, build) = match &args.program {
        Some(program) => (program.canonicalize().context("the program")?, None),
        None => build(root)?,
    };
    let folder = root.join("target").join("walk");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).context("target/walk")?;
    let walker = Walker { folder, bin: program, port: free_port()? };
    let (mut node, mut start, mut walk) = (None, Duration::ZERO, Duration::ZERO);
    let (mut said, mut count) = (String::new(), 0);
    for block in blocks(&page) {
        let began = Instant::now();
        match block.mark {
            "sh background" => {
                node = Some(walker.start(block.text)?);
                start = began.elapsed();
            }
            "sh" => {
                said = walker.run(block.text)?;
                count += 1;
                walk += began.elapsed();
                println!("{:>8.1} s  {}", began.elapsed().as_secs_f64(), title(block.text));
            }
            "output" => ensure!(said == block.text, "the page promises other words than\n{said}"),
            mark => bail!("nobody knows what to do with a block marked {mark:?}"),
        }
    }
    drop(node);
    ensure!(count > 0, "{PAGE} has no commands");
    let build =
        build.map_or("not built here".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
    println!("build {build}, start {:.1} s, walk {:.1} s", start.as_secs_f64(), walk.as_secs_f64());
    Ok(true)
}

/// The program that the page asks for, and how long it took.
fn build(root: &Path) -> anyhow::Result<(PathBuf, Option<Duration>)> {
    let began = Instant::now();
    let mut cargo = Command::new("cargo");
    let status = cargo.args(["build", "--release", "--locked"]).current_dir(root).status();
    ensure!(status.context("cargo")?.success(), "cargo build --release failed");
    Ok((root.join("target/release/ikada"), Some(began.elapsed())))
}

/// The first command of a block, for the table.
fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
    Ok(listener.local_addr()?.port())
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    // Every second part lies between two fences.
    let parts = page.split("```").skip(1).step_by(2);
    let split = |part| str::split_once(part, '\n').unwrap_or((part, ""));
    parts.map(split).map(|(mark, text)| Block { mark: mark.trim(), text }).collect()
}

/// Who follows the page: a folder, a program, and a port of its own, since somebody else may have the usual one.
struct Walker {
    folder: PathBuf,
    bin: PathBuf,
    port: u16,
}

/// The node of the page, ended with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Walker {
    fn shell(&self, script: &str) -> Command {
        let beside = self.bin.parent().unwrap_or(&self.bin).display();
        let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).current_dir(&self.folder).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IKADA_") {
                shell.env_remove(name);
            }
        }
        shell.env("PATH", path).env("HOME", &self.folder);
        shell.env("IKADA_URL", format!("http://127.0.0.1:{}", self.port));
        shell
    }

    /// Starts the node and waits until it listens.
    fn start(&self, script: &str) -> anyhow::Result<Running> {
        let mut shell = self.shell(&format!("exec {} --port {}", script.trim(), self.port));
        let mut node = Running(shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let end = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            ensure!(node.0.try_wait()?.is_none(), "the node ended: {script}");
            ensure!(Instant::now() < end, "nobody listens: {script}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(node)
    }

    /// Runs a block that must end well; gives what it printed.
    fn run(&self, script: &str) -> anyhow::Result<String> {
        let output = self.shell(script).output().context("sh")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{script}{complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_marks_are_read() {
        let page = "a\n```sh background\nikada dev\n```\nb\n```output\nx\ty\n```\n";
        let read: Vec<_> = blocks(page).iter().map(|block| (block.mark, block.text)).collect();
        assert_eq!(read, [("sh background", "ikada dev\n"), ("output", "x\ty\n")]);
    }

    #[test]
    fn a_command_that_fails_ends_the_walk_with_its_words() {
        let folder = std::env::temp_dir();
        let walker = Walker { folder, bin: PathBuf::from("/bin/sh"), port: 1 };
        assert_eq!(walker.run("echo well").unwrap(), "well\n");
        let told = walker.run("echo here; echo why >&2; false").unwrap_err().to_string();
        assert!(told.contains("why"), "{told}");
    }
}
