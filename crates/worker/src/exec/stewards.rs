//! Helpers that stay, for commands without walls: one is taken for a run, and given back after it.
//!
//! Promises: no more of them than runs at one time; one whose command was cut off, or met a bound of its group, is not used
//! again; all are gone with the worker. Leaves out: what they do (`sandbox::steward`), and a command whose helper was killed
//! (`strays`).

use std::fs::File;
use std::io::{self, IoSlice, PipeReader, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixStream, unix::pipe};
use tokio::process::{Child, Command};

use super::bound::{Group, Groups};
use super::process::{Ended, FORCE_AFTER, Run, Streams, end_by_force, prepare, watch};
use super::{Log, Stop};
use crate::sandbox::{STEWARD, STOP, STREAMS, Spec, Status};

/// How long a helper may take to read its order; it has nothing else to do.
const ORDER_PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Those that have nothing to do.
#[derive(Debug)]
pub(super) struct Stewards {
    helper: PathBuf,
    idle: Mutex<Vec<Steward>>,
}

/// A helper that stays.
#[derive(Debug)]
struct Steward {
    child: Child,
    control: UnixStream,
    group: Option<Group>,
}

impl Stewards {
    pub(super) fn new(helper: PathBuf) -> Stewards {
        Stewards { helper, idle: Mutex::default() }
    }

    /// Runs one command to its end.
    pub(super) async fn run(
        &self,
        run: &Run<'_>,
        groups: Option<&Groups>,
        order: &Spec,
        payload: &[u8],
        (log, mut stop): (&Log, Stop),
    ) -> io::Result<Ended> {
        let (stdout, to_stdout) = io::pipe()?;
        let (stderr, to_stderr) = io::pipe()?;
        let given = [keep(payload)?, to_stdout.into(), to_stderr.into()];
        let mut steward = self.begin(groups, order, &given).await?;
        drop(given);
        let streams = Streams::new([listen(stdout)?, listen(stderr)?], log);
        let mut answer = Vec::new();
        let cut = {
            let ending = std::pin::pin!(steward.hear(&mut answer));
            watch(ending, run, log, &mut stop).await
        };
        if cut.is_some() {
            // One that is gone needs no word.
            let _ = steward.control.write_all(&[STOP]).await;
            let patience = Duration::from_millis(run.limits.grace_ms) + FORCE_AFTER;
            let _ = tokio::time::timeout(patience, steward.hear(&mut answer)).await;
        }
        streams.end().await;
        log.close();
        let met = steward.group.as_ref().and_then(Group::met);
        let status: Option<Status> = serde_json::from_slice(&answer).ok();
        let is_quiet = cut.is_none() && met.is_none() && status.is_some();
        match is_quiet {
            true => self.give_back(steward),
            false => end_by_force(&mut steward.child).await,
        }
        let silent = || Status::NotStarted("the helper left no word".to_owned());
        Ok(Ended { status: status.unwrap_or_else(silent), cut, met, is_quiet })
    }

    /// Hands an order to one that is idle, or to a new one.
    async fn begin(
        &self,
        groups: Option<&Groups>,
        order: &Spec,
        given: &[OwnedFd; STREAMS],
    ) -> io::Result<Steward> {
        let text = serde_json::to_vec(order)?;
        loop {
            let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
            let is_new = idle.is_none();
            let mut steward = match idle {
                Some(steward) => steward,
                None => Steward::start(&self.helper, groups.map(|it| it.make(&order.limits)))?,
            };
            let ordered = tokio::time::timeout(ORDER_PATIENCE, steward.order(&text, given)).await;
            match ordered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(()) => return Ok(steward),
                // It died, or was stopped, while it had nothing to do.
                Err(_) if !is_new => end_by_force(&mut steward.child).await,
                Err(error) => return Err(error),
            }
        }
    }

    fn give_back(&self, steward: Steward) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(steward);
        }
    }
}

impl Steward {
    fn start(helper: &std::path::Path, group: Option<io::Result<Group>>) -> io::Result<Steward> {
        let (mine, its) = StdStream::pair()?;
        mine.set_nonblocking(true)?;
        let mut command: Command = prepare(helper);
        command.arg(STEWARD).stdin(Stdio::from(OwnedFd::from(its)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A run that is given up closes the control: the helper then ends its command and itself. Killed, it could not.
        command.kill_on_drop(false);
        let group = group.transpose()?;
        let child = command.spawn()?;
        // Before its first order: whatever it starts is in the group from its first moment.
        if let (Some(group), Some(process)) = (&group, child.id()) {
            group.take_in(process)?;
        }
        Ok(Steward { child, control: UnixStream::from_std(mine)?, group })
    }

    /// Sends an order and the command's streams.
    async fn order(&mut self, text: &[u8], given: &[OwnedFd; STREAMS]) -> io::Result<()> {
        let head = u32::try_from(text.len()).map_err(io::Error::other)?.to_le_bytes();
        let send = || send_with(&self.control, &head, given);
        self.control.async_io(Interest::WRITABLE, send).await?;
        self.control.write_all(text).await
    }

    /// Waits for the answer, or for the helper's end. What was heard is kept if the wait is given up.
    async fn hear(&mut self, answer: &mut Vec<u8>) {
        while !answer.ends_with(b"\n") && answer.len() < ANSWER_BYTES_MAX {
            match self.control.read_buf(answer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

fn send_with(control: &UnixStream, head: &[u8], given: &[OwnedFd; STREAMS]) -> io::Result<()> {
    let handles = given.each_ref().map(|handle| handle.as_fd());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(io::Error::other("the command's streams do not fit"));
    }
    sendmsg(control, &[IoSlice::new(head)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Standard input: bytes in memory, to be read from their beginning.
fn keep(payload: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(payload)?;
    file.rewind()?;
    Ok(file.into())
}

fn listen(stream: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(stream.into())
}
