//! A pgbouncer of the test's own in transaction mode, before a Postgres of the test's own.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::missing::{is_postgres_needed, judge_missing};
use crate::server::Server;

/// How long it may take to start.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// A running pooler. Ends when dropped.
pub struct Pooler {
    port: u16,
    child: Child,
}

impl Pooler {
    /// Starts one before a server; nothing, with a word on what to install, where there is none and nobody relies on it.
    pub fn start(server: &Server) -> Option<Pooler> {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let folder = server.folder();
        let users = folder.join("pooler-users");
        std::fs::write(&users, "\"ikada\" \"\"\n").expect("the users");
        let settings = folder.join("pooler.ini");
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} dbname=postgres user=ikada\n
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\nauth_file = {}\n
             unix_socket_dir =\npool_mode = transaction\ndefault_pool_size = 6\nmax_client_conn = 100\n",
            server.port(),
            users.display()
        );
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
        std::fs::write(&settings, text).expect("the settings");
        let mut command = server.command_at("/usr/sbin/pgbouncer");
        command.arg("--quiet").arg(&settings).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().ok();
        let missing = child.is_none().then_some("pgbouncer (apt-get install pgbouncer)");
        if judge_missing(missing, "a pooler before the database", is_postgres_needed()) {
            return None;
        }
        let child = child?;
        let until = Instant::now() + START_PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "pgbouncer did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Pooler { port, child })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("postgres://ikada@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
