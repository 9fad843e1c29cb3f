//! One run of a helper: started, listened to, told to end, and its last word.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bound::Group;
use super::capture::drain;
use super::folder::usage;
use super::{Folder, Log, Stop};
use crate::sandbox::{ENTER, GO, Limits, STOP, Status};

/// How often the folder and the amount of output are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Longer than the grace time by this, a helper is ended by force.
pub(super) const FORCE_AFTER: Duration = Duration::from_secs(1);
/// How long outputs may stay open after the end: only what escaped could hold them.
const STREAMS_AFTER: Duration = Duration::from_millis(500);

/// A program's output.
type Stream = Box<dyn AsyncRead + Unpin + Send>;

/// Why a run was ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// The worker no longer wants it.
    Told,
    /// It took too long.
    Late(Duration),
    /// It wrote too much.
    TooMuch(String),
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Status,
    pub(super) cut: Option<Cut>,
    /// The bound of its group that it met.
    pub(super) met: Option<&'static str>,
    /// Whether it ended by itself and whoever looked after it said so: then nobody of it lives.
    pub(super) is_quiet: bool,
}

/// What is run, and within which bounds.
pub(super) struct Run<'a> {
    pub(super) helper: &'a Path,
    /// The order lies in it.
    pub(super) folder: &'a Folder,
    pub(super) user: Option<u32>,
    pub(super) limits: &'a Limits,
    pub(super) wall: Duration,
    /// Bounds the whole tree, where there are control groups.
    pub(super) group: Option<Group>,
}

/// The helper's command line, without its words.
pub(super) fn prepare(helper: &Path) -> Command {
    let mut command = Command::new(helper);
    command.env_clear().current_dir("/").process_group(0).kill_on_drop(true);
    // The supervisor lives under the program's own limit of memory: its allocator must not take more than it needs.
    command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    command
}

/// What is read of a program while it runs.
pub(super) struct Streams([JoinHandle<()>; 2]);

impl Streams {
    pub(super) fn new<S>(streams: [S; 2], log: &Log) -> Streams
    where
        S: AsyncRead + Unpin + Send + 'static,
    {
        Streams(streams.map(|stream| tokio::spawn(drain(stream, log.clone()))))
    }

    /// Reads the rest; only what escaped could still hold them open.
    pub(super) async fn end(self) {
        for stream in self.0 {
            let abort = stream.abort_handle();
            if tokio::time::timeout(STREAMS_AFTER, stream).await.is_err() {
                abort.abort();
            }
        }
    }
}

/// Starts the helper and stays until all is over.
pub(super) async fn run(run: &Run<'_>, log: &Log, mut stop: Stop) -> std::io::Result<Ended> {
    let mut command = prepare(run.helper);
    command.arg(ENTER).arg(run.folder.order());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(user) = run.user {
        command.uid(user).gid(user);
    }
    let mut child = command.spawn()?;
    let mut control = child.stdin.take();
    let stdout = child.stdout.take().map(|stream| Box::new(stream) as Stream);
    let stderr = child.stderr.take().map(|stream| Box::new(stream) as Stream);
    let none = || Box::new(tokio::io::empty()) as Stream;
    let streams = Streams::new([stdout.unwrap_or_else(none), stderr.unwrap_or_else(none)], log);
    // Before it is told to go: whatever it starts is in the group from its first moment.
    if let (Some(group), Some(process)) = (&run.group, child.id())
        && let Err(error) = group.take_in(process)
    {
        end_by_force(&mut child).await;
        return Err(error);
    }
    say(&mut control, GO).await;
    let cut = {
        let ending = std::pin::pin!(async { drop(child.wait().await) });
        watch(ending, run, log, &mut stop).await
    };
    if cut.is_some() {
        say(&mut control, STOP).await;
        let patience = Duration::from_millis(run.limits.grace_ms) + FORCE_AFTER;
        if tokio::time::timeout(patience, child.wait()).await.is_err() {
            end_by_force(&mut child).await;
        }
    }
    streams.end().await;
    log.close();
    let met = run.group.as_ref().and_then(Group::met);
    let word = run.folder.read_status().ok().and_then(|text| serde_json::from_slice(&text).ok());
    let is_quiet = cut.is_none() && word.is_some();
    let status = match word {
        Some(status) => status,
        None => no_word(&mut child).await,
    };
    Ok(Ended { status, cut, met, is_quiet })
}

/// Says a word; a helper that is gone needs none.
async fn say(control: &mut Option<ChildStdin>, word: u8) {
    if let Some(pipe) = control {
        let _ = pipe.write_all(&[word]).await;
        let _ = pipe.flush().await;
    }
}

/// Waits for the end, or for a reason to end it.
pub(super) async fn watch(
    mut ending: impl Future<Output = ()> + Unpin,
    run: &Run<'_>,
    log: &Log,
    stop: &mut Stop,
) -> Option<Cut> {
    let Run { folder, limits, wall, .. } = *run;
    let until = Instant::now() + wall;
    loop {
        tokio::select! {
            () = &mut ending => return None,
            () = stop.told() => return Some(Cut::Told),
            () = tokio::time::sleep_until(until) => return Some(Cut::Late(wall)),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if log.total() > limits.output_bytes {
            let most = limits.output_bytes;
            return Some(Cut::TooMuch(format!("more than {most} bytes of output")));
        }
        let (task, most) = (folder.handle().clone(), limits.disk_entries);
        let measured = tokio::task::spawn_blocking(move || usage(&task, most)).await;
        if let Ok((bytes, entries)) = measured {
            if bytes > limits.disk_bytes {
                return Some(Cut::TooMuch(format!("{bytes} bytes of files")));
            }
            if entries > limits.disk_entries {
                return Some(Cut::TooMuch(format!("more than {} files", limits.disk_entries)));
            }
        }
    }
}

pub(super) async fn end_by_force(child: &mut Child) {
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id as i32));
    if let Some(group) = group {
        // The helpers share a group; what they supervise dies with them.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait().await;
}

async fn no_word(child: &mut Child) -> Status {
    let code = child.wait().await;
    let code = code.map_or_else(|error| error.to_string(), |code| code.to_string());
    Status::NotStarted(format!("the helper left no word ({code})"))
}
