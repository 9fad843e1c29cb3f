//! What a node logs, as objects.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::fresh::{ikada, ports};

#[test]
fn log_lines_are_objects_where_asked_for_and_say_where_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = ports(2);
    let mut node = ikada()
        .args(["server", "--listen", &ports[0], "--peer-listen", &ports[1], "--data"])
        .arg(folder.path().join("data"))
        .env("IKADA_LOG_FORMAT", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a node");
    let said = BufReader::new(node.stderr.take().expect("its words")).lines();
    let leads = said.map_while(Result::ok).find_map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        (line["message"] == "role" && line["role"] == "Leader").then_some(line)
    });
    node.kill().expect("killed");
    node.wait().expect("ended");
    let line = leads.expect("a node alone leads");
    let lsn = line["lsn"].as_str().expect("a position");
    assert!(lsn.split_once('.').is_some_and(|(term, index)| {
        term.parse::<u64>().is_ok() && index.parse::<u64>().is_ok()
    }));
    assert!(line["shard"].is_u64(), "{line}");
}
