//! Commands that try to get out, look around, stay on, or use everything up (X12). Each probe exits with 0 only if its
//! attack worked; the bombs must end by the limits, and others must not notice.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use ikada_worker::exec::{ExecConfig, Exposure, Sandbox};
use ikada_worker::sandbox::Isolation;

use crate::bench::{Bench, Ran, shell};
use crate::report::{Probe, note};

/// A machine with things worth attacking.
struct Prey {
    bench: Bench,
    secret: String,
    port: u16,
    _listener: TcpListener,
    /// A service's door, which lets everyone in, and one for single messages.
    socket: String,
    _socket: UnixListener,
    letters: String,
    _letters: UnixDatagram,
    worker: u32,
}

impl Prey {
    fn new() -> Prey {
        Prey::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ExecConfig)) -> Prey {
        let bench = Bench::with(change);
        let open = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("rights");
        };
        // Readable for everyone as far as the file system goes: only the walls stand before it.
        open(bench.folder.path(), 0o755);
        let secret = bench.folder.path().join("node.key");
        std::fs::write(&secret, "canary").expect("a secret");
        open(&secret, 0o666);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = bench.folder.path().join("admin.sock");
        let door = UnixListener::bind(&socket).expect("a socket");
        let letters = bench.folder.path().join("log.sock");
        let slot = UnixDatagram::bind(&letters).expect("a socket");
        // Open to everyone, as a message bus, a log or a database has it: nothing but the walls is in the way.
        open(&socket, 0o666);
        open(&letters, 0o666);
        Prey {
            secret: secret.to_string_lossy().into_owned(),
            port: listener.local_addr().expect("an address").port(),
            _listener: listener,
            socket: socket.to_string_lossy().into_owned(),
            _socket: door,
            letters: letters.to_string_lossy().into_owned(),
            _letters: slot,
            worker: std::process::id(),
            bench,
        }
    }

    fn fill(&self, lines: &str) -> String {
        lines
            .replace("@SECRET", &self.secret)
            .replace("@PORT", &self.port.to_string())
            .replace("@SOCKET", &self.socket)
            .replace("@LETTERS", &self.letters)
            .replace("@WORKER", &self.worker.to_string())
    }

    async fn all_denied(&self, wall: &'static str, probes: &[(&str, &str)]) {
        for (name, lines) in probes {
            let began = Instant::now();
            let ran = self.bench.shell(&self.fill(lines)).await;
            let contained = ran.end.is_err() && !ran.log.contains("canary");
            noted(wall, name, &ran, contained, began);
            assert!(contained, "{name} got through: {}", ran.log);
            assert!(!ran.error().contains("not started"), "{name} never ran: {}", ran.error());
        }
        assert_eq!(std::fs::read_to_string(&self.secret).expect("it is there"), "canary");
        self.bench.assert_empty();
    }

    async fn all_denied_in_python(&self, wall: &'static str, probes: &[(&str, &str)]) {
        for (name, lines) in probes {
            let began = Instant::now();
            let ran = self.bench.python(&self.fill(lines)).await;
            noted(wall, name, &ran, ran.end.is_err(), began);
            assert!(ran.end.is_err(), "{name} got through: {}", ran.log);
            assert!(!ran.error().contains("SyntaxError"), "{name} is no probe: {}", ran.log);
            assert!(!ran.error().contains("not started"), "{name} never ran: {}", ran.error());
        }
        self.bench.assert_empty();
    }
}

/// A line of the report.
fn noted(wall: &'static str, tried: &str, ran: &Ran, contained: bool, began: Instant) {
    let ended = ran.end.as_ref().map_or_else(|error| error.message(), |_| "it ended well");
    let took = began.elapsed();
    note(&Probe { kind: "command", wall, tried, ended, contained, took });
}

#[tokio::test]
async fn x_12_files_of_others_cannot_be_read_or_written() {
    let probes = [
        ("read a key", "cat @SECRET"),
        ("overwrite a key", "echo gone > @SECRET"),
        ("append to a key", "echo more >> @SECRET"),
        ("remove a key", "rm @SECRET"),
        ("rename a key", "mv @SECRET $IKADA_OUT/key"),
        ("link a key", "ln @SECRET $IKADA_OUT/key"),
        ("read through a link", "ln -s @SECRET l && cat l"),
        ("publish through a link", "ln -s @SECRET $IKADA_OUT/l"),
        ("list other attempts", "ls $(dirname $(dirname $HOME)) | grep ."),
        ("write the helper's word", "echo '{\"exited\":0}' > ../status.json"),
        ("change the order", "echo x >> ../order.json"),
        ("write into /tmp", "echo x > /tmp/ikada-x12"),
        ("write into /etc", "echo x >> /etc/hosts"),
        ("write into /usr", "touch /usr/bin/ikada-x12"),
        ("read the shadow file", "cat /etc/shadow"),
        ("list home folders", "ls /root /home | grep ."),
        ("climb out", "cd ../../../.. && ls | grep ."),
        ("make a device", "mknod d b 8 0"),
        ("write to devices", "echo x > /dev/vda || echo x > /dev/sda"),
        ("change the kernel", "echo 0 > /proc/sys/kernel/randomize_va_space"),
        ("trigger sysrq", "echo h > /proc/sysrq-trigger"),
    ];
    Prey::new().all_denied("files", &probes).await;
}

// Where the unit of systemd has it, and with the rights that a shell gives: only Landlock stands before it.
#[tokio::test]
async fn x_12_the_workers_token_beside_the_machines_settings_cannot_be_read() {
    let place = tempfile::Builder::new().prefix("ikada-x12-").tempdir_in("/etc");
    let Ok(place) = place else {
        eprintln!("SKIPPED: this user may not write to /etc");
        return;
    };
    let token = place.path().join("worker-token");
    std::fs::write(&token, "canary").expect("a token");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("rights");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).expect("rights");
    let prey = Prey::new();
    // Whoever is not kept out reads it.
    let mut outside = std::process::Command::new("/bin/cat");
    let outside = outside.arg(&token).uid(65_534).gid(65_534).output().expect("it runs");
    assert_eq!(outside.stdout, b"canary");
    assert!(matches!(prey.bench.sandbox.exposure(&token), Exposure::Open(_)), "a second wall");
    let (shown, folder) = (token.display(), place.path().display());
    let probes = [
        ("read the worker's token", format!("cat {shown}")),
        ("find the worker's token", format!("ls {folder} | grep .")),
        ("search the settings for it", "grep -rs canary /etc".to_owned()),
        ("copy it by its folder", format!("cp -r {folder} $IKADA_OUT/all")),
    ];
    let probes: Vec<(&str, &str)> = probes.iter().map(|(name, line)| (*name, &**line)).collect();
    prey.all_denied("files", &probes).await;
    // What programs need of the settings is there.
    for needed in [
        "getent passwd root",
        "cat /etc/nsswitch.conf",
        "head -c1 /etc/ssl/certs/ca-certificates.crt",
    ] {
        prey.bench.shell(needed).await.good();
    }
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("rights");
    assert_eq!(prey.bench.sandbox.exposure(&token), Exposure::Closed);
}

#[tokio::test]
async fn x_12_processes_of_others_are_out_of_sight_and_reach() {
    let probes = [
        (
            "see the worker",
            "test -e /proc/@WORKER/stat && grep -q @WORKER /proc/@WORKER/stat && grep -q programs /proc/@WORKER/comm",
        ),
        ("signal the worker", "kill -0 @WORKER"),
        ("end the parent", "kill -KILL $PPID; sleep 0.5; ! kill -0 $PPID"),
        ("end everyone", "kill -KILL -1; ! kill -0 $PPID"),
        ("read an environment", "cat /proc/@WORKER/environ | grep PATH"),
        ("see other processes", "test $(ls /proc | grep -c '^[0-9]') -gt 8"),
        ("enter the parent's world", "nsenter -t 1 -m true"),
        ("make a world", "unshare -Ur true"),
        ("mount something", "mount -t tmpfs none $HOME/tmp"),
        ("give root a file", "cp /bin/sh s && chown 0 s"),
        ("raise a limit", "ulimit -n 4096"),
    ];
    Prey::new().all_denied("processes", &probes).await;
}

#[tokio::test]
async fn x_12_nobody_becomes_root() {
    // By the calls themselves, which need no program to be installed.
    let probes = [
        ("become root", "import os; os.setuid(0)"),
        ("become root in all ways", "import os; os.setresuid(0, 0, 0)"),
        ("join root's group", "import os; os.setgid(0)"),
        ("join groups", "import os; os.setgroups([0])"),
        ("be another user's", "import os; os.setresuid(65534, 65534, 65534)"),
    ];
    let prey = Prey::new();
    prey.all_denied_in_python("rights", &probes).await;
    let own = "import os, sys; sys.exit(0 if os.getuid() == os.geteuid() != 0 else 9)";
    prey.bench.python(own).await.good();
}

#[tokio::test]
async fn x_12_a_set_user_id_file_gives_nothing() {
    let system = Bench::new();
    // Owned by root, since the test is; what it prints is who it is taken for.
    let file = system.share("whoami", &std::fs::read("/usr/bin/id").expect("a program"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4755)).expect("rights");
    let outside = std::process::Command::new(&file).arg("-u").uid(65_534).gid(65_534).output();
    let outside = outside.expect("it runs");
    // Else nothing would be shown by what follows: a disk may be mounted without such files.
    if outside.stdout != b"0\n" {
        eprintln!("skipped: set-user-id files do nothing on this disk");
        return;
    }
    let bench = Bench::with(|config| config.readable = vec![system.folder.path().to_owned()]);
    let ran = bench.shell(&format!("test \"$({} -u)\" = 0", file.display())).await;
    let began = Instant::now();
    noted("rights", "gain by a set-user-id file", &ran, ran.end.is_err(), began);
    assert!(ran.end.is_err(), "it got through: {}", ran.log);
    let told = bench.shell(&format!("{} -u", file.display())).await;
    told.good();
    assert_ne!(told.log.trim(), "0");
}

#[tokio::test]
async fn x_12_the_network_is_not_there() {
    let probes = [
        ("a peer's port", "import socket; socket.create_connection(('127.0.0.1', @PORT), 2)"),
        (
            "the cloud's metadata",
            "import socket; socket.create_connection(('169.254.169.254', 80), 2)",
        ),
        ("a name", "import socket; socket.getaddrinfo('example.com', 80)"),
        (
            "a datagram",
            "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @PORT))",
        ),
        ("a raw packet", "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
        (
            "the routing table",
            "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        ),
        (
            "a listening port",
            "import socket; s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen()",
        ),
        ("a local door", "import socket; socket.socket(socket.AF_UNIX).connect('@SOCKET')"),
        (
            "a local door for messages",
            "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '@LETTERS')",
        ),
        (
            "a local door by a pair of sockets",
            "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '@LETTERS')",
        ),
        (
            "a local door by a raw pair of sockets",
            "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b'x', '@LETTERS')",
        ),
        (
            "a local door by a connected pair",
            "import socket; socket.socketpair()[0].connect('@SOCKET')",
        ),
        ("crypto sockets", "import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)"),
    ];
    let prey = Prey::new();
    // They are open as far as the file system goes: a user without rights comes in.
    for (kind, door) in [("STREAM", &prey.socket), ("DGRAM", &prey.letters)] {
        let lines =
            format!("import socket; socket.socket(1, socket.SOCK_{kind}).connect('{door}')");
        let mut outside = std::process::Command::new("/usr/bin/python3");
        let ran = outside.args(["-c", &lines]).uid(65_534).gid(65_534).output().expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    prey.all_denied_in_python("network", &probes).await;
    // What programs speak to their own children by.
    let own = "import socket; a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'";
    prey.bench.python(own).await.good();
}

#[tokio::test]
async fn x_12_with_the_network_the_doors_of_this_machine_stay_shut() {
    let prey = Prey::with(|config| config.network = true);
    let probes = [
        ("a local door", "import socket; socket.socket(socket.AF_UNIX).connect('@SOCKET')"),
        (
            "a local door by a pair of sockets",
            "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '@LETTERS')",
        ),
        (
            "the routing table",
            "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        ),
    ];
    prey.all_denied_in_python("network that is allowed", &probes).await;
    let allowed = "import socket; socket.create_connection(('127.0.0.1', @PORT), 2)";
    prey.bench.python(&prey.fill(allowed)).await.good();
}

/// Calls by the number that the call has for programs with short pointers; good unless that is not permitted.
#[cfg(target_arch = "x86_64")]
fn second_number(number: i64) -> String {
    let second = number | 0x4000_0000;
    format!(
        "import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); \
         r = c.syscall({second}, 0, 0); sys.exit(9 if r < 0 and ctypes.get_errno() == 1 else 0)"
    )
}

#[tokio::test]
async fn x_12_calls_that_no_task_needs_are_refused() {
    // By number, as an attacker would: the C library's checks are not in the way.
    let call = |number: i64, arguments: &str| {
        format!(
            "import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); \
             r = c.syscall({number}{arguments}); sys.exit(0 if r >= 0 or ctypes.get_errno() not in (1, 38) else 9)"
        )
    };
    let calls = [
        ("ptrace", call(libc::SYS_ptrace, ", 0, 0, 0, 0")),
        ("bpf", call(libc::SYS_bpf, ", 0, 0, 0")),
        ("io_uring", call(libc::SYS_io_uring_setup, ", 1, 0")),
        ("keyctl", call(libc::SYS_keyctl, ", 0, -3, 0")),
        ("userfaultfd", call(libc::SYS_userfaultfd, ", 0")),
        ("perf", call(libc::SYS_perf_event_open, ", 0, 0, -1, -1, 0")),
        ("kexec", call(libc::SYS_kexec_load, ", 0, 0, 0, 0")),
        ("modules", call(libc::SYS_init_module, ", 0, 0, 0")),
        ("setns", call(libc::SYS_setns, ", 0, 0")),
        ("reboot", call(libc::SYS_reboot, ", 0, 0, 0, 0")),
        ("handles", call(libc::SYS_open_by_handle_at, ", 0, 0, 0")),
        ("memory of others", call(libc::SYS_process_vm_readv, ", 1, 0, 0, 0, 0, 0")),
        ("new users by clone", call(libc::SYS_clone, ", 0x10000000, 0, 0, 0, 0")),
        ("clone3", call(libc::SYS_clone3, ", 0, 0")),
        // A kernel that has no second numbers says that it does not know the call; the wall says that it is not permitted.
        #[cfg(target_arch = "x86_64")]
        ("a call by its second number", second_number(libc::SYS_getpid)),
        #[cfg(target_arch = "x86_64")]
        ("a refused call by its second number", second_number(libc::SYS_setns)),
    ];
    let probes: Vec<(&str, &str)> =
        calls.iter().map(|(name, lines)| (*name, lines.as_str())).collect();
    Prey::new().all_denied_in_python("system calls", &probes).await;
}

#[tokio::test]
async fn x_12_bombs_end_by_their_limits_and_others_go_on() {
    let prey = Prey::new();
    let bombs = [
        ("memory", "a = bytearray(1 << 30); print(len(a))"),
        ("memory in pieces", "a = []\nwhile True: a.append(bytearray(1 << 20))"),
        ("open files", "f = [open('/dev/null') for _ in range(10000)]"),
        ("a huge file", "f = open('big', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()"),
        ("recursion", "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()"),
        (
            "threads",
            "import threading, time\nfor _ in range(10000): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        ),
        ("many files", "for n in range(10**7): open('n%d' % n, 'w').close()"),
        ("a full disk", "for n in range(1000): open('n%d' % n, 'wb').write(b'x' * (8 << 20))"),
        ("endless output", "import sys\nwhile True: sys.stdout.write('x' * 65536)"),
        ("endless lines", "while True: print('again')"),
    ];
    for (name, lines) in bombs {
        let begun = Instant::now();
        let (ran, other) = tokio::join!(prey.bench.python(lines), prey.bench.shell("echo fine"));
        noted("bombs", name, &ran, ran.end.is_err() && other.log == "fine\n", begun);
        assert!(ran.end.is_err(), "{name} met no limit");
        assert!(begun.elapsed() < Duration::from_secs(25), "{name} took {:?}", begun.elapsed());
        assert!(ran.log.len() <= (64 << 10) + 100, "{name} kept {} bytes", ran.log.len());
        assert_eq!(other.log, "fine\n", "{name} disturbed another attempt");
    }
    prey.bench.assert_empty();
}

#[tokio::test]
async fn x_12_a_fork_bomb_is_bounded_and_leaves_nobody() {
    let bench = Bench::new();
    // Every process stays; the limit of 64 is what ends the doubling, and the stop ends them all.
    let attempt = Bench::attempt(shell("b() { b | b & }; b; sleep 30"));
    let began = Instant::now();
    let ran = bench.run(attempt, Some(Duration::from_secs(2))).await;
    let other = bench.shell("echo fine").await;
    noted("bombs", "a fork bomb", &ran, ran.end.is_err() && other.log == "fine\n", began);
    assert!(ran.end.is_err());
    assert_eq!(other.log, "fine\n");
    bench.assert_empty();
}

#[tokio::test]
async fn x_12_a_tree_of_processes_is_bounded_as_one() {
    let bench = Bench::new();
    if let Err(why) = bench.sandbox.groups() {
        eprintln!("SKIPPED: no control groups here: {why}");
        return;
    }
    // Each is far below the limit of 256 MiB; all of them are far above it.
    let lines = "
import os, sys, time
for _ in range(24):
    if os.fork() == 0:
        a = b'x' * (40 << 20)
        time.sleep(3)
        os._exit(0)
for _ in range(24):
    if os.wait()[1] != 0: sys.exit(7)
";
    let began = Instant::now();
    let ran = bench.python(lines).await;
    let ended = ran.end.as_ref().map_or_else(|error| error.message(), |_| "it met no bound");
    let contained = ended.contains("more memory than it may");
    noted("bombs", "memory by many processes", &ran, contained, began);
    assert!(contained, "{ended}: {}", ran.log);
    assert_eq!(bench.shell("echo fine").await.log, "fine\n");
    bench.assert_empty();
}

#[tokio::test]
async fn x_12_a_machine_without_walls_runs_nothing_unless_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = crate::bench::config(&folder);
    config.helper = folder.path().join("helper");
    let told = r#"{"namespaces":false,"landlock":true,"seccomp":true,"missing":["namespaces: forbidden"]}"#;
    std::fs::write(&config.helper, format!("#!/bin/sh\necho '{told}'\n")).expect("a helper");
    std::fs::set_permissions(&config.helper, std::fs::Permissions::from_mode(0o755))
        .expect("rights");
    let refused = Sandbox::open(config.clone()).expect_err("walls are missing").to_string();
    assert!(
        refused.contains("namespaces: forbidden") && refused.contains("--isolation best"),
        "{refused}"
    );
    config.isolation = Isolation::Best;
    let walls = Sandbox::open(config).expect("asked for by name");
    assert!(!walls.walls().is_full());
}

#[tokio::test]
async fn x_12_whoever_stays_behind_is_ended_with_the_command() {
    let bench = Bench::new();
    let begun = Instant::now();
    let ran = bench.shell("setsid sh -c 'sleep 4712.5 & sleep 4712.5' & exit 0").await;
    let stayed = crate::commands::is_running("4712.5");
    noted("processes", "stay behind as a daemon", &ran, !stayed, begun);
    ran.good();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(!stayed, "a daemon stayed");
}

#[tokio::test]
async fn x_12_no_secret_of_the_worker_is_in_the_environment() {
    let bench = Bench::new();
    let began = Instant::now();
    let ran = bench
        .shell("env | grep -vE '^(IKADA_|PATH=|LANG=|HOME=|TMPDIR=|PWD=|OLDPWD=|SHLVL=|_=)'")
        .await;
    noted(
        "processes",
        "find the worker's secrets in its environment",
        &ran,
        ran.log.is_empty(),
        began,
    );
    assert_eq!(ran.log, "");
    assert_eq!(ran.error(), "exit code 1");
}
