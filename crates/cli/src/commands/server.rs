//! `ikada server`: gathers the settings, runs the node until it is told to stop.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;

use ikada_node::config::{RawConfig, resolve};
use ikada_node::http::Door;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::embedded::Embedded;
use crate::args::ServerArgs;
use crate::failure::Failure;
use crate::typed_url::without_password;

/// Read from the current folder when no other file is named.
const FILE_DEFAULT: &str = "ikada.toml";

pub(crate) async fn server(args: Box<ServerArgs>) -> Result<(), Failure> {
    start_logging("info");
    serve(args).await
}

/// Runs a node; what is logged was settled before.
pub(super) async fn serve(args: Box<ServerArgs>) -> Result<(), Failure> {
    if let Some(url) = &args.raw().log {
        let elsewhere = ", or the whole URL into IKADA_LOG_URL or the settings file";
        without_password("--log", url, elsewhere)?;
    }
    let config = resolve(sources(&args)?)
        .map_err(|problems| Failure::Usage { message: problems.to_string() })?;
    let signal = stop_signal(args.until_stdin_closes)?;
    let worker = Arc::new(Embedded::default());
    let leaving = worker.clone();
    let stop = async move {
        signal.await;
        leaving.leave().await;
    };
    let scheme = if config.tls { "https" } else { "http" };
    let (slots, worker_args) = (args.worker_slots, args.worker_args);
    let run = ikada_node::run(config, stop, move |started| {
        let info = started.handle.info();
        if let Some(slots) = slots {
            let url = format!("{scheme}://{}", info.client_addr);
            worker.begin(&url, slots, worker_args.as_deref());
        }
        tracing::info!(
            node = info.node,
            "serving clients at {scheme}://{}, peers at {}",
            info.client_addr,
            info.peer_addr
        );
    });
    run.await.map_err(|error| Failure::failed(error.to_string()))
}

/// Log lines go to standard error; `IKADA_LOG` chooses which, in the place of `usual`, and `IKADA_LOG_FORMAT=json` makes each an object.
pub(super) fn start_logging(usual: &str) {
    let filter = EnvFilter::try_from_env("IKADA_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let format = std::env::var("IKADA_LOG_FORMAT").unwrap_or_default();
    let started = match format.as_str() {
        "json" => lines.json().flatten_event(true).try_init(),
        _ => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    if !["", "text", "json"].contains(&format.as_str()) {
        tracing::warn!(format, "IKADA_LOG_FORMAT is neither text nor json; text is used");
    }
    if let Err(error) = started {
        eprintln!("ikada: logging could not be started: {error}");
    }
}

/// Flags, then environment, then file. All problems of all sources are told together.
fn sources(args: &ServerArgs) -> Result<Vec<RawConfig>, Failure> {
    let mut problems = Vec::new();
    let mut sources = vec![args.raw()];
    match RawConfig::from_env(
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    ) {
        Ok(raw) => sources.push(raw),
        Err(found) => problems.extend(found),
    }
    match read_file(args.config.as_deref()) {
        Ok(raw) => sources.extend(raw),
        Err(problem) => problems.push(problem),
    }
    if problems.is_empty() {
        return Ok(sources);
    }
    Err(Failure::usage(format!("the settings cannot be read:\n  - {}", problems.join("\n  - "))))
}

/// The settings file; one that was named must exist.
fn read_file(named: Option<&Path>) -> Result<Option<RawConfig>, String> {
    let path = named.unwrap_or(Path::new(FILE_DEFAULT));
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    RawConfig::from_toml(&text).map(Some).map_err(|error| format!("{shown}: {error}"))
}

/// Done when the process is asked to stop.
pub(super) fn stop_signal(until_stdin_closes: bool) -> Result<impl Future<Output = ()>, Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))
    };
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let (open, mut starter_gone) = tokio::sync::mpsc::channel::<()>(1);
    // Dropped when the starter is gone; otherwise kept, so that only signals stop the server.
    let kept = if until_stdin_closes {
        // A plain thread: a read of standard input cannot be called off, and must not hold the runtime.
        std::thread::spawn(move || {
            let mut sink = [0; 256];
            while matches!(std::io::stdin().lock().read(&mut sink), Ok(count) if count > 0) {}
            drop(open);
        });
        None
    } else {
        Some(open)
    };
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = starter_gone.recv() => {}
        }
        drop(kept);
    })
}
