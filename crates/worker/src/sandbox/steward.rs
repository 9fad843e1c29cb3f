//! A helper that stays: runs one command after another, for workers that were told to isolate nothing.
//!
//! Starting this binary anew costs more than many commands take. Walls must be built anew for each program; where there
//! are none, the same helper can look after the next command as well.
//!
//! Promises: one command at a time; when its end is told, all that it started is gone; a worker that stops or dies takes
//! the command with it. Leaves out: walls (`enter`), and programs that are modules.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open};

use super::spec::{ORDER_BYTES_MAX, STREAMS, Spec, Status};
use super::supervise::{self, status_of};
use super::{EXIT_HELPER, reap, restrict};

/// How often orphans are reaped while a command runs: each of them counts against the bound of processes.
const REAP_EVERY: Duration = Duration::from_secs(1);
/// How often a command is looked at where the kernel has no handles of processes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub(super) fn steward() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(EXIT_HELPER)
        }
    }
}

/// Runs what the worker sends, until it sends no more.
fn serve() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    while let Some((spec, streams)) = receive(&mut control)? {
        let (status, stays) = run(&control, &spec, streams);
        let mut text = serde_json::to_vec(&status)?;
        text.push(b'\n');
        control.write_all(&text)?;
        if !stays {
            break;
        }
    }
    Ok(())
}

/// The next order and the command's streams; none when the worker has left.
fn receive(control: &mut UnixStream) -> io::Result<Option<(Spec, Vec<OwnedFd>)>> {
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut head)];
        recvmsg(&*control, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut streams = Vec::with_capacity(STREAMS);
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(handles) = message {
            streams.extend(handles);
        }
    }
    control.read_exact(&mut head[got.bytes..])?;
    let length = u32::from_le_bytes(head) as usize;
    if length > ORDER_BYTES_MAX {
        return Err(io::Error::other("the order of the run is too long"));
    }
    let mut text = vec![0; length];
    control.read_exact(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, streams)))
}

/// Runs one command; tells how it ended, and whether this helper is good for another.
fn run(control: &UnixStream, spec: &Spec, streams: Vec<OwnedFd>) -> (Status, bool) {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; STREAMS]>::try_from(streams) else {
        return (Status::NotStarted("its streams did not come along".to_owned()), false);
    };
    let mut command = supervise::command(spec);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let started = restrict::resources(&spec.limits).map_err(Status::NotStarted);
    // The command's streams go with it: while this process had them open, nobody would see their end.
    match started.and_then(|()| supervise::spawn(spec, command)) {
        Ok(child) => attend(control, child, Duration::from_millis(spec.limits.grace_ms)),
        Err(status) => (status, true),
    }
}

/// Stays with a command until it has ended, or until the worker wants it to.
fn attend(control: &UnixStream, child: Pid, grace: Duration) -> (Status, bool) {
    let handle = pidfd_open(child, PidfdFlags::empty()).ok();
    let mut until: Option<Instant> = None;
    loop {
        if let Some(status) = reap_until(child) {
            reap::end_descendants();
            return if until.is_some() { (Status::Stopped, false) } else { (status, true) };
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let _ = kill_process_group(child, Signal::KILL);
            reap::end_descendants();
            return (Status::Stopped, false);
        }
        let pause = left.unwrap_or(REAP_EVERY).min(REAP_EVERY);
        let listens = until.is_none().then_some(control);
        if sleep(handle.as_ref(), listens, pause) {
            let _ = kill_process_group(child, Signal::TERM);
            until = Some(Instant::now() + grace);
        }
    }
}

/// Sleeps until a process ends, the worker says something or is gone, or time is up; tells whether it was the worker.
fn sleep(handle: Option<&OwnedFd>, control: Option<&UnixStream>, pause: Duration) -> bool {
    let pause = if handle.is_some() { pause } else { pause.min(LOOK_EVERY) };
    let mut watched: Vec<PollFd<'_>> = Vec::with_capacity(2);
    watched.extend(handle.map(|handle| PollFd::new(handle, PollFlags::IN)));
    watched.extend(control.map(|control| PollFd::new(control, PollFlags::IN)));
    let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: pause.subsec_nanos().into() };
    // Woken for nothing is as good: the caller looks again.
    let _ = poll(&mut watched, Some(&pause));
    control.is_some() && watched.last().is_some_and(|last| !last.revents().is_empty())
}

/// Reaps whoever has ended; how the command did, if it has.
fn reap_until(child: Pid) -> Option<Status> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => return status_of(status),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return None,
            Err(error) => {
                return Some(Status::NotStarted(format!("its end was not seen: {error}")));
            }
        }
    }
}
