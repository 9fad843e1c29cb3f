//! Pages of the documentation whose commands are run as they stand.
//!
//! A block marked `sh` is run and must end well; one marked `sh background` is started and ended with the test; what
//! stands in a block marked `output` is what the block before it must have printed. Only the port differs from the page,
//! since tests run side by side.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ikada_api::Client;

use crate::fresh::{ports, without_settings};
use crate::wait::until;

/// A block of a page: what it is marked with, and its text.
struct Block<'a> {
    mark: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    // Every second part lies between two fences.
    let parts = page.split("```").skip(1).step_by(2);
    let split = |part| str::split_once(part, '\n').unwrap_or((part, ""));
    parts.map(split).map(|(mark, text)| Block { mark: mark.trim(), text }).collect()
}

/// A shell in the reader's place, with the binary in its path.
fn shell(folder: &Path, url: &str, script: &str) -> Command {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_ikada"));
    let beside = binary.parent().expect("a folder").display().to_string();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = without_settings(Command::new("sh"));
    command.args(["-euc", script]).current_dir(folder).stdin(Stdio::null());
    command.env("PATH", path).env("IKADA_URL", url).env("IKADA_SHED", "off");
    command
}

/// An address whose next port is free as well: the node takes that for its peers.
fn free_pair() -> String {
    let next_is_free = |address: &String| {
        let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        port.is_some_and(|port| TcpListener::bind(("127.0.0.1", port + 1)).is_ok())
    };
    std::iter::repeat_with(|| ports(1).remove(0)).find(next_is_free).expect("endless")
}

/// Ended with the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn start(folder: &Path, url: &str, script: &str) -> Background {
    let port = url.rsplit(':').next().unwrap_or_default();
    let script = format!("exec {} --port {port}", script.trim());
    let child = shell(folder, url, &script).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let background = Background(child.expect("a shell"));
    let client = Client::new([url]).expect("an address");
    until("the node of the page serves", || async { client.cluster().await.ok() }).await;
    background
}

/// Follows a page from its first block to its last; says how many were run and compared.
async fn follow(page: &str) -> (usize, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}", free_pair());
    let (mut running, mut said) = (Vec::new(), String::new());
    let (mut run, mut compared) = (0, 0);
    for block in blocks(page) {
        match block.mark {
            "sh background" => running.push(start(folder.path(), &url, block.text).await),
            "sh" => {
                let output = shell(folder.path(), &url, block.text).output().expect("a shell");
                let complaint = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}{complaint}", block.text);
                said = String::from_utf8_lossy(&output.stdout).into_owned();
                run += 1;
            }
            "output" => {
                assert_eq!(said, block.text, "the page promises something else");
                compared += 1;
            }
            other => panic!("a block is marked {other:?}: nobody would know whether it is true"),
        }
    }
    (run, compared)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_job_goes_as_its_page_says() {
    let page = include_str!("../../../../docs/first-job.md");
    assert_eq!(follow(page).await, (7, 2), "blocks run and compared");
}
