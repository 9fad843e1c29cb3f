//! `ikada dev`: a node and a worker in one process, for daily use on one machine.

use std::path::Path;

use clap::Parser;
use ikada_worker::exec::closed_way;

use super::server::{serve, start_logging};
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
    let server = ["server", "--data", &data, "--listen", &listen, "--peer-listen", &peer_listen];
    // A new node has a number that one can read aloud; a folder from before keeps its own.
    let first: &[&str] = if Path::new(&data).exists() { &[] } else { &["--node-id", "1"] };
    let served = read(&[&server, first, &["--shed", "off"]].concat())?;
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
        "--near",
        &data,
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
    // What a node says of its elections would bury what somebody at a terminal wants to know.
    start_logging("warn");
    let serving = serve(server_args);
    tokio::pin!(serving);
    eprintln!("{}", welcome(&args, &url));
    tokio::select! {
        ended = &mut serving => ended,
        ended = work(&worked.shared, *worker_args) => {
            ended?;
            serving.await
        }
    }
}

/// What there is now, and what to do with it.
fn welcome(args: &DevArgs, url: &str) -> String {
    let elsewhere = match url.ends_with(":7400") {
        true => String::new(),
        false => format!("  in the other terminal first: export IKADA_URL={url}\n"),
    };
    format!(
        "ikada dev: open {url}/ in a browser, or another terminal for commands\n{elsewhere}  \
         try: ikada job run --map wordcount --input 'texts/*.txt' --reduce merge\n  \
         a worker takes up to {} tasks at a time from queue {}; IKADA_LOG=info shows more\n  \
         data is in {}: run this again to go on with it; Ctrl-C ends it",
        args.slots,
        args.queue.join(", "),
        args.data.display()
    )
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
