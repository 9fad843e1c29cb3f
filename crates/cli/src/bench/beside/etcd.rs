//! etcd by its JSON gateway: one plain HTTP request per connection.

use std::collections::BTreeMap;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Keys of all writes begin with this.
const PREFIX: &str = "bench-";
/// The first key beyond them.
const END: &str = "bench.";
/// Keys per page.
const PAGE: u64 = 1_000;
/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

/// Puts one key.
pub(super) async fn put(address: &str, number: u64) -> io::Result<()> {
    let body = json!({ "key": key(number), "value": STANDARD.encode([b'x'; 100]) });
    ask(address, "/v3/kv/put", &body).await.map(drop)
}

/// The one server that all name as their leader.
pub(super) async fn leader(addresses: &[String]) -> Option<usize> {
    let (mut leaders, mut own) = (Vec::new(), Vec::new());
    for address in addresses {
        let status = ask(address, "/v3/maintenance/status", &json!({})).await.ok()?;
        leaders.push(status["leader"].as_str()?.to_owned());
        own.push(status["header"]["member_id"].as_str()?.to_owned());
    }
    leaders.dedup();
    let [leader] = leaders.as_slice() else { return None };
    own.iter().position(|member| member == leader)
}

/// How often each write was applied.
pub(super) async fn list(address: &str) -> io::Result<BTreeMap<u64, u64>> {
    let mut listed = BTreeMap::new();
    let mut from = PREFIX.as_bytes().to_vec();
    loop {
        let body = json!({
            "key": STANDARD.encode(&from), "range_end": STANDARD.encode(END), "limit": PAGE,
        });
        let page = ask(address, "/v3/kv/range", &body).await?;
        let kvs = page["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(last) = kvs.last() else { return Ok(listed) };
        for kv in kvs {
            let name = STANDARD.decode(kv["key"].as_str().unwrap_or_default()).unwrap_or_default();
            let number = String::from_utf8_lossy(&name);
            let number = number.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
            let times = kv["version"].as_str().and_then(|times| times.parse().ok());
            listed.insert(number.unwrap_or(u64::MAX), times.unwrap_or(1));
        }
        from = STANDARD.decode(last["key"].as_str().unwrap_or_default()).unwrap_or_default();
        from.push(0);
    }
}

fn key(number: u64) -> String {
    STANDARD.encode(format!("{PREFIX}{number:010}"))
}

async fn ask(address: &str, path: &str, body: &Value) -> io::Result<Value> {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    read(&answer)
}

/// The document of an answer that says 200.
fn read(answer: &[u8]) -> io::Result<Value> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!("etcd: {body}")));
    }
    serde_json::from_str(body).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_counts() {
        let good = read(b"HTTP/1.0 200 OK\r\na: b\r\n\r\n{\"header\": {}}").expect("good");
        assert!(good["header"].is_object());
        assert!(read(b"HTTP/1.0 503 Service Unavailable\r\n\r\n{}").is_err());
        assert!(read(b"HTTP/1.0 200 OK\r\n\r\n{\"header\":").is_err(), "cut off");
        assert!(read(b"").is_err());
    }
}
