//! A small file that is in memory, fetched over and over: by `wrk`, from one of our nodes and from nginx in turn.
//!
//! The same program asks both, at the same time of day, so that only the servers differ. Needs `wrk` and `nginx` in the
//! path. nginx serves the file from its folder with `sendfile` and one process per core.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bytes_of;
use super::report::{Figure, ObjectsReport};
use super::speak::Line;
use crate::args::ObjectsBenchArgs;
use crate::failure::Failure;
use crate::local::{Nodes, free_ports};
use crate::render::bar;

/// Bytes of the file.
const FILE_BYTES: usize = 64 << 10;
const ROUNDS: usize = 3;
const ROUND: &str = "5s";
const CONNECTIONS: &str = "16";
const PATH: &str = "/v1/objects/bench/small?consistency=stale";
const PATIENCE: Duration = Duration::from_secs(30);
const TRIES: usize = 100;

/// Ended when it goes out of scope.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // Asked first: the process that is killed cannot end those that it started.
        let pid = self.0.id().to_string();
        let asked = Command::new("kill").args(["-QUIT", &pid]).status();
        if !asked.is_ok_and(|asked| asked.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

pub(super) async fn measure(
    args: &ObjectsBenchArgs,
    nodes: &Nodes,
) -> Result<ObjectsReport, Failure> {
    let urls = nodes.urls();
    let file = bytes_of(7, FILE_BYTES);
    let host = urls[0].trim_start_matches("http://").to_owned();
    let failed = |error: std::io::Error| Failure::failed(format!("node 1: {error}"));
    let mut line = Line::open(&host).await.map_err(failed)?;
    let put = line.call("PUT", "/v1/objects/bench/small", &file, PATIENCE, true).await;
    if put.map_err(failed)?.status != 201 {
        return Err(Failure::failed("the file could not be stored"));
    }
    let folder = nodes.folder().join("nginx");
    let port = free_ports(1)?.pop().ok_or_else(|| Failure::failed("no free port"))?;
    let address = format!("127.0.0.1:{port}");
    let _nginx = start_nginx(&folder, &address, &file)?;
    wait_for(&address).await?;
    let (ours, theirs) = (format!("{}{PATH}", urls[0]), format!("http://{address}/small"));
    let (mut node, mut nginx) = (Vec::new(), Vec::new());
    let bar = bar(2 * ROUNDS as u64, "rounds of wrk");
    for _ in 0..ROUNDS {
        bar.tick();
        node.push(wrk(&ours)?);
        bar.inc(1);
        nginx.push(wrk(&theirs)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (node, nginx) = (middle(node), middle(nginx));
    let share = node * 100.0 / nginx.max(f64::MIN_POSITIVE);
    let line = |what: &str, value: String| Figure { what: what.to_owned(), value };
    let figures = vec![
        line("downloads of 64 KiB from a node", format!("{node:.0}/s")),
        line("downloads of 64 KiB from nginx", format!("{nginx:.0}/s")),
        line("the node's share", format!("{share:.0} % of nginx")),
    ];
    let about = format!("{} nodes, wrk, {CONNECTIONS} connections, one file in memory", args.nodes);
    let (calls, missed) = (Vec::new(), Vec::new());
    Ok(ObjectsReport { about, calls, figures, checked: 0, lost: 0, missed })
}

fn start_nginx(folder: &Path, address: &str, file: &[u8]) -> Result<Nginx, Failure> {
    let failed = |what: &str, error: std::io::Error| {
        Failure::failed(format!("{what}: {error}; install nginx to compare with it"))
    };
    // Its workers would otherwise be somebody who may not read our folder.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    let user = if is_root { "user root;\n" } else { "" };
    let conf = format!(
        "{user}worker_processes auto;\ndaemon off;\npid nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 512; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=16;\n\
         client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
         server {{ listen {address}; root {}; }} }}\n",
        folder.display()
    );
    std::fs::create_dir_all(folder).map_err(|error| failed("folder of nginx", error))?;
    std::fs::write(folder.join("small"), file).map_err(|error| failed("its file", error))?;
    std::fs::write(folder.join("conf"), conf).map_err(|error| failed("its settings", error))?;
    let child = Command::new("nginx")
        .arg("-p")
        .arg(folder)
        .args(["-c", "conf", "-e", "stderr"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    child.map(Nginx).map_err(|error| failed("nginx", error))
}

async fn wait_for(address: &str) -> Result<(), Failure> {
    for _ in 0..TRIES {
        if let Ok(mut line) = Line::open(address).await
            && let Ok(heard) = line.call("GET", "/small", &[], PATIENCE, false).await
            && heard.length == FILE_BYTES
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(Failure::failed("nginx does not serve the file"))
}

/// Requests per second as `wrk` saw them; none may have failed.
fn wrk(url: &str) -> Result<f64, Failure> {
    let ran = Command::new("wrk").args(["-t", "1", "-c", CONNECTIONS, "-d", ROUND, url]).output();
    let ran = ran.map_err(|error| Failure::failed(format!("wrk: {error}; install wrk")))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    read_rate(&said).ok_or_else(|| Failure::failed(format!("wrk on {url} said: {said}")))
}

fn read_rate(said: &str) -> Option<f64> {
    if said.contains("Non-2xx") {
        return None;
    }
    let line = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"))?;
    line.trim().parse().ok()
}

fn middle(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_failures_are_no_rates() {
        let good = "  2 threads\nRequests/sec:  22553.71\nTransfer/sec:  1.38GB\n";
        assert_eq!(read_rate(good), Some(22_553.71));
        assert_eq!(read_rate(&format!("Non-2xx or 3xx responses: 9\n{good}")), None);
        assert_eq!(read_rate("unable to connect"), None);
        assert_eq!(middle(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
