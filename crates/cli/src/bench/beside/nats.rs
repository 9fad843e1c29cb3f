//! NATS JetStream by its text protocol: one connection per write, one for the list.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::servers::name;

/// The stream, and its only subject.
const STREAM: &str = "BENCH";
const SUBJECT: &str = "bench";
/// What every message holds, after its number.
const PAYLOAD: &str =
    concat!("0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789");
/// How long an answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// Longest message that is read.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Publishes one message under its id; the stream keeps one of each.
pub(super) async fn publish(address: &str, number: u64) -> io::Result<()> {
    let head = format!("NATS/1.0\r\nNats-Msg-Id: {number}\r\n\r\n");
    let mut link = Link::open(address, &format!("w{number}")).await?;
    let body = format!("{number} {PAYLOAD}");
    let answer = link.request(SUBJECT, &head, &body).await?;
    match (answer["seq"].is_u64(), &answer["error"]) {
        (true, Value::Null) => Ok(()),
        _ => Err(io::Error::other(format!("nats: {answer}"))),
    }
}

/// Makes the stream, with three replicas on disk.
pub(super) async fn make_stream(addresses: &[String]) -> Option<()> {
    let wish = json!({
        "name": STREAM, "subjects": [SUBJECT], "storage": "file", "num_replicas": addresses.len(),
    });
    let mut link = Link::open(&addresses[0], "make").await.ok()?;
    let subject = format!("$JS.API.STREAM.CREATE.{STREAM}");
    let answer = link.request(&subject, "", &wish.to_string()).await.ok()?;
    answer["config"].is_object().then_some(())
}

/// The server that leads the stream, once all its replicas are whole.
pub(super) async fn leader(addresses: &[String]) -> Option<usize> {
    // Every server must answer: one that was killed counts only when it is back.
    let mut seen = None;
    for address in addresses {
        let mut link = Link::open(address, "look").await.ok()?;
        let subject = format!("$JS.API.STREAM.INFO.{STREAM}");
        seen = Some(link.request(&subject, "", "").await.ok()?);
    }
    let cluster = &seen.as_ref()?["cluster"];
    let replicas = cluster["replicas"].as_array()?;
    let is_whole = |replica: &Value| replica["current"] == true && replica["offline"] != true;
    let whole = replicas.len() + 1 == addresses.len() && replicas.iter().all(is_whole);
    let leader = cluster["leader"].as_str().filter(|_| whole)?;
    (0..addresses.len()).find(|server| name(*server) == leader)
}

/// How often each message is there.
pub(super) async fn list(address: &str) -> io::Result<BTreeMap<u64, u64>> {
    let mut link = Link::open(address, "list").await?;
    let subject = format!("$JS.API.STREAM.INFO.{STREAM}");
    let info = link.request(&subject, "", "").await?;
    let bound = |name: &str| info["state"][name].as_u64().ok_or(io::ErrorKind::InvalidData);
    let (first, last) = (bound("first_seq")?, bound("last_seq")?);
    let subject = format!("$JS.API.STREAM.MSG.GET.{STREAM}");
    let mut listed = BTreeMap::new();
    for sequence in first..=last {
        let answer = link.request(&subject, "", &json!({ "seq": sequence }).to_string()).await?;
        if answer["error"].is_object() {
            return Err(io::Error::other(format!("nats: message {sequence}: {answer}")));
        }
        let data = STANDARD.decode(answer["message"]["data"].as_str().unwrap_or_default());
        let text = String::from_utf8_lossy(&data.unwrap_or_default()).into_owned();
        let number = text.split(' ').next().and_then(|number| number.parse().ok());
        *listed.entry(number.unwrap_or(u64::MAX)).or_default() += 1;
    }
    Ok(listed)
}

/// A connection to one server.
struct Link {
    stream: BufReader<TcpStream>,
    inbox: String,
}

impl Link {
    async fn open(address: &str, who: &str) -> io::Result<Link> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let inbox = format!("_INBOX.{who}.{:08x}", fastrand::u32(..));
        let mut link = Link { stream: BufReader::new(stream), inbox };
        let mut info = String::new();
        link.stream.read_line(&mut info).await?;
        let settings = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "protocol": 1,
            "lang": "ikada", "version": "1",
        });
        let hello = format!("CONNECT {settings}\r\nSUB {}.> 1\r\n", link.inbox);
        link.stream.get_mut().write_all(hello.as_bytes()).await?;
        Ok(link)
    }

    fn inbox(&self, what: &str) -> String {
        format!("{}.{what}", self.inbox)
    }

    async fn send(&mut self, subject: &str, to: &str, head: &str, body: &str) -> io::Result<()> {
        let reply = self.inbox(to);
        let (head_length, length) = (head.len(), head.len() + body.len());
        let text = match head.is_empty() {
            true => format!("PUB {subject} {reply} {length}\r\n{body}\r\n"),
            false => format!("HPUB {subject} {reply} {head_length} {length}\r\n{head}{body}\r\n"),
        };
        self.stream.get_mut().write_all(text.as_bytes()).await
    }

    async fn request(&mut self, subject: &str, head: &str, body: &str) -> io::Result<Value> {
        self.send(subject, "answer", head, body).await?;
        // A server that has no leader yet drops what it is asked.
        let answer = tokio::time::timeout(ANSWER_PATIENCE, self.next()).await;
        let (_, body) = answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        serde_json::from_str(&body).map_err(io::Error::other)
    }

    /// The next message: where to, and its text without headers.
    async fn next(&mut self) -> io::Result<(String, String)> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first().copied() {
                Some("PING") => self.stream.get_mut().write_all(b"PONG\r\n").await?,
                Some("-ERR") => return Err(io::Error::other(line.trim().to_owned())),
                Some(kind @ ("MSG" | "HMSG")) => {
                    let number = |back: usize| {
                        let word = words.len().checked_sub(back).and_then(|at| words.get(at));
                        word.and_then(|word| word.parse::<usize>().ok()).unwrap_or(0)
                    };
                    let length = number(1).min(MESSAGE_BYTES_MAX);
                    let head = if kind == "HMSG" { number(2).min(length) } else { 0 };
                    let to = words.get(1).copied().unwrap_or_default().to_owned();
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes).await?;
                    return Ok((to, String::from_utf8_lossy(&bytes[head..length]).into_owned()));
                }
                _ => {}
            }
        }
    }
}
