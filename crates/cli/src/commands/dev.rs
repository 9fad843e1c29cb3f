//! `ikada dev`: a node and a worker in one process, for daily use on one machine.

use std::path::Path;

use clap::Parser;
use ikada_worker::exec::closed_way;

use super::server::server;
use super::worker::work;
use crate::args::{Cli, Command, DevArgs};
use crate::failure::Failure;

pub(crate) async fn dev(args: DevArgs) -> Result<(), Failure> {
    let url = format!("http://127.0.0.1:{}", args.port);
    let folder = args.data.display();
    let listen = format!("127.0.0.1:{}", args.port);
    let peer_listen = format!("127.0.0.1:{}", args.port + 1);
    let data = format!("{folder}/node");
    // Node and tasks share this machine: a busy processor is no reason to turn anyone away.
    let served = read(&[
        "server",
        "--data",
        &data,
        "--listen",
        &listen,
        "--peer-listen",
        &peer_listen,
        "--shed",
        "off",
    ])?;
    let (slots, queues) = (args.slots.to_string(), args.queue.join(","));
    let work_dir = work_dir(&args.data)?;
    let worked = read(&[
        "worker",
        "--url",
        &url,
        "--slots",
        &slots,
        "--queue",
        &queues,
        "--work-dir",
        &work_dir,
        "--isolation",
        "best",
        "--allow-command",
        "*",
        "--drain-s",
        "2",
        "--name",
        "dev",
    ])?;
    let (Command::Server(server_args), Command::Worker(worker_args)) =
        (served.command, worked.command)
    else {
        return Err(Failure::failed("the parts of dev are not what they should be"));
    };
    let serving = server(server_args);
    tokio::pin!(serving);
    eprintln!("ikada dev at {url}, data in {folder}; Ctrl-C ends it");
    tokio::select! {
        ended = &mut serving => ended,
        ended = work(&worked.shared, *worker_args) => {
            ended?;
            serving.await
        }
    }
}

/// Where attempts have their folders: beside the data, or among temporary files where root's programs, which run as
/// other users, could not come to the data's folder.
fn work_dir(data: &Path) -> Result<String, Failure> {
    let beside = std::path::absolute(data.join("work"))
        .map_err(|error| Failure::usage(format!("data folder {}: {error}", data.display())))?;
    let is_root = rustix::process::geteuid().is_root();
    match closed_way(&beside).filter(|_| is_root) {
        Some(_) => Ok(std::env::temp_dir().join("ikada-dev-work").display().to_string()),
        None => Ok(beside.display().to_string()),
    }
}

/// A command line of our own.
fn read(words: &[&str]) -> Result<Cli, Failure> {
    let line = std::iter::once("ikada").chain(words.iter().copied());
    Cli::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))
}
