//! The client of object stores against a store that speaks Azure's protocol, as its description has it: every request is
//! refused unless its signature is the one that the store computes by itself from what it received (B4-35).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ikada_api::s3::xml::element;
use ikada_api::s3::{Download, Store, StorePlace, StoreSettings, Upload};
use ring::hmac;

const ACCOUNT: &str = "acc1";
const KEY: &str = "YSBrZXkgb2YgdGhlIHRlc3Q=";
const TOKEN: &str = "sv=2021-08-06&sp=rl&sig=abc%3D";

/// What the store holds.
#[derive(Default)]
struct Held {
    blobs: BTreeMap<String, Vec<u8>>,
    /// Blocks that wait to be put together, by blob and name.
    blocks: BTreeMap<(String, String), Vec<u8>>,
    /// Requests that are answered with "busy" before the rest.
    busy: usize,
    /// First lines of requests.
    asked: Vec<String>,
}

/// One request as it came.
struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut TcpStream) -> Option<Request> {
        let mut bytes = Vec::new();
        let mut piece = [0; 65_536];
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            match stream.read(&mut piece) {
                Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
                _ => return None,
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut body = bytes.split_off(end + 4);
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "the body ended early");
            body.extend_from_slice(&piece[..count]);
        }
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (name.to_owned(), plain(value))).collect();
        Some(Request { method, path: path.to_owned(), query, headers, body })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn asks(&self, name: &str, value: &str) -> bool {
        self.query.get(name).is_some_and(|given| given == value)
    }

    /// The signature, from the description: twelve lines, the store's own headers, account and path, parameters.
    fn signature(&self) -> String {
        let mut text = self.method.clone();
        for name in ["content-encoding", "content-language", "content-length"] {
            let value = self.header(name);
            text.push_str(&format!("\n{}", if value == "0" { "" } else { value }));
        }
        for name in [
            "content-md5",
            "content-type",
            "date",
            "if-modified-since",
            "if-match",
            "if-none-match",
            "if-unmodified-since",
            "range",
        ] {
            text.push_str(&format!("\n{}", self.header(name)));
        }
        for (name, value) in self.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")) {
            text.push_str(&format!("\n{name}:{value}"));
        }
        text.push_str(&format!("\n/{ACCOUNT}{}", self.path));
        for (name, value) in &self.query {
            text.push_str(&format!("\n{name}:{value}"));
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(KEY).unwrap());
        STANDARD.encode(hmac::sign(&key, text.as_bytes()))
    }
}

/// Undoes percent escapes.
fn plain(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
        plain.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
    }
    String::from_utf8(plain).unwrap()
}

type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

fn refused(status: u16, code: &str) -> Answer {
    let body = format!(
        "\u{feff}<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no.\nRequestId:1</Message></Error>"
    );
    (status, Vec::new(), body.into_bytes())
}

/// A page of the names that begin so; two on a page.
fn list(held: &Held, request: &Request) -> Answer {
    let prefix = request.query.get("prefix").map_or("", String::as_str);
    let after = request.query.get("marker").map_or("", String::as_str);
    let root = format!("{}/", request.path);
    let names = held.blobs.keys().filter_map(|path| path.strip_prefix(&root));
    let mut names =
        names.map(plain).filter(|name| name.starts_with(prefix) && name.as_str() > after);
    let page: Vec<String> = names.by_ref().take(2).collect();
    let next = names.next().and_then(|_| page.last().cloned()).unwrap_or_default();
    let blobs: String =
        page.iter().map(|name| format!("<Blob>{}</Blob>", element("Name", name))).collect();
    let text = format!("<Blobs>{blobs}</Blobs><NextMarker>{next}</NextMarker>");
    (200, Vec::new(), text.into_bytes())
}

fn put(held: &mut Held, request: Request) -> Answer {
    let path = request.path.clone();
    if request.asks("comp", "block") {
        held.blocks.insert((path, request.query["blockid"].clone()), request.body);
        return (201, Vec::new(), Vec::new());
    }
    if request.header("if-none-match") == "*" && held.blobs.contains_key(&path) {
        return refused(409, "BlobAlreadyExists");
    }
    let whole = match request.asks("comp", "blocklist") {
        true => {
            let text = String::from_utf8(request.body).unwrap();
            let names = text.split("<Latest>").skip(1).filter_map(|rest| rest.split_once('<'));
            let blocks =
                names.map(|(name, _)| held.blocks[&(path.clone(), name.to_owned())].clone());
            blocks.collect::<Vec<_>>().concat()
        }
        false => {
            assert_eq!(request.header("x-ms-blob-type"), "BlockBlob");
            request.body
        }
    };
    held.blobs.insert(path, whole);
    (201, Vec::new(), Vec::new())
}

fn get(held: &Held, request: &Request) -> Answer {
    let Some(bytes) = held.blobs.get(&request.path) else {
        return refused(404, "BlobNotFound");
    };
    let tag = format!("\"0x{}\"", bytes.len());
    if !["", tag.as_str()].contains(&request.header("if-match")) {
        return refused(412, "ConditionNotMet");
    }
    let range = request.header("range").strip_prefix("bytes=").unwrap();
    let (from, to) = range.split_once('-').unwrap();
    let from: usize = from.parse().unwrap();
    if from >= bytes.len() {
        return refused(416, "InvalidRange");
    }
    let to = to.parse().unwrap_or(usize::MAX).min(bytes.len() - 1);
    let range = format!("bytes {from}-{to}/{}", bytes.len());
    (206, vec![("content-range", range), ("etag", tag)], bytes[from..=to].to_vec())
}

fn answer(held: &Mutex<Held>, request: Request) -> Answer {
    let mut held = held.lock().unwrap();
    held.asked.push(format!("{} {}", request.method, request.path));
    let signed = format!("SharedKey {ACCOUNT}:{}", request.signature());
    let has_token = request.asks("sig", "abc=") && request.header("authorization").is_empty();
    let is_dated = has_token || request.header("x-ms-date").ends_with(" GMT");
    if !has_token && request.header("authorization") != signed || !is_dated {
        return refused(403, "AuthenticationFailed");
    }
    if held.busy > 0 {
        held.busy -= 1;
        return refused(503, "ServerBusy");
    }
    match request.method.as_str() {
        "GET" if request.asks("comp", "list") => list(&held, &request),
        "GET" => get(&held, &request),
        _ => put(&mut held, request),
    }
}

/// A store, and its address.
fn serve() -> (String, Arc<Mutex<Held>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/{ACCOUNT}", listener.local_addr().unwrap());
    let held = Arc::new(Mutex::new(Held::default()));
    let shared = held.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let shared = shared.clone();
            std::thread::spawn(move || {
                let Some(request) = Request::read(&mut stream) else { return };
                let (status, headers, body) = answer(&shared, request);
                let mut head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n",
                    body.len()
                );
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                // Who has gone need not be told.
                let _ = stream.write_all(&[head.as_bytes(), b"\r\n", &body].concat());
            });
        }
    });
    (address, held)
}

fn place(text: &str) -> StorePlace {
    StorePlace::parse(text).unwrap().unwrap()
}

fn store(address: &str, right: (&str, &str)) -> Store {
    let settings = StoreSettings::read(place("az://c/k").door, |name| {
        let known =
            [("AZURE_STORAGE_ACCOUNT", ACCOUNT), ("AZURE_STORAGE_ENDPOINT", address), right];
        known.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned())
    });
    Store::new(settings.unwrap()).unwrap()
}

async fn read(mut download: Download) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(some) = download.next().await.unwrap() {
        bytes.extend_from_slice(&some);
    }
    bytes
}

async fn write(store: &Store, at: &str, bytes: Vec<u8>) -> Result<u64, String> {
    let mut upload = Upload::begin(store.clone(), place(at), 5 << 20);
    upload.push(Bytes::from(bytes)).await.map_err(|error| error.to_string())?;
    upload.finish().await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn b4_35_blobs_are_written_listed_and_read_in_ranges() {
    let (address, held) = serve();
    let store = store(&address, ("AZURE_STORAGE_KEY", KEY));
    let small = "az://texts/in/a b&c.txt";
    assert_eq!(write(&store, small, b"one two".to_vec()).await, Ok(7));
    let large: Vec<u8> = (0..12_000_000u32).map(|number| (number % 251) as u8).collect();
    // A part that meets a busy store is sent again.
    held.lock().unwrap().busy = 1;
    assert_eq!(write(&store, "az://texts/in/large", large.clone()).await, Ok(12_000_000));
    assert_eq!(write(&store, "az://texts/in/empty", Vec::new()).await, Ok(0));
    let again = write(&store, small, b"three".to_vec()).await.unwrap_err();
    assert!(again.contains("BlobAlreadyExists: no.") && !again.contains("RequestId"), "{again}");

    let whole = Download::begin(store.clone(), place("az://texts/in/large")).await.unwrap();
    let whole = whole.expect("it is there");
    assert_eq!(whole.tag(), Some("\"0x12000000\""));
    assert_eq!(read(whole.part(11_999_990, Some(7))).await, &large[11_999_990..11_999_997]);
    assert_eq!(read(whole.part(11_999_990, None)).await, &large[11_999_990..]);
    assert!(read(whole.part(20_000_000, Some(1))).await.is_empty());
    assert!(read(whole).await == large, "every block, in order");
    let empty = Download::begin(store.clone(), place("az://texts/in/empty")).await.unwrap();
    assert_eq!(empty.expect("it is there").size(), 0);
    let none = Download::begin(store.clone(), place("az://texts/in/none")).await.unwrap();
    assert!(none.is_none());

    let beginning = StorePlace::parse_beginning("az://texts/in/").unwrap().unwrap();
    let first = store.list(&beginning, None).await.unwrap();
    assert_eq!(first.keys, ["in/a b&c.txt", "in/empty"]);
    let last = store.list(&beginning, first.next.as_deref()).await.unwrap();
    assert_eq!((last.keys, last.next), (vec!["in/large".to_owned()], None));
}

#[tokio::test]
async fn x_13_a_token_stands_in_addresses_and_a_wrong_key_is_told_without_showing_it() {
    let (address, held) = serve();
    let by_token = store(&address, ("AZURE_STORAGE_SAS_TOKEN", TOKEN));
    assert_eq!(write(&by_token, "az://c/k", b"x".to_vec()).await, Ok(1));
    let canary = STANDARD.encode("canary");
    let wrong = store(&address, ("AZURE_STORAGE_KEY", &canary));
    let said = wrong.look(&place("az://c/k")).await.unwrap_err().to_string();
    assert!(said.contains("AuthenticationFailed") && !said.contains(&canary), "{said}");
    assert!(!said.contains("SharedKey"), "{said}");
    let nobody = store("http://127.0.0.1:1/acc1", ("AZURE_STORAGE_SAS_TOKEN", TOKEN));
    let said = nobody.look(&place("az://c/k")).await.unwrap_err().to_string();
    assert!(said.contains("cannot be reached") && !said.contains("abc"), "{said}");
    // A refusal is for good: it is asked once.
    assert_eq!(held.lock().unwrap().asked, ["PUT /acc1/c/k", "GET /acc1/c/k"]);
}
