//! A cluster as far as a worker can tell: it hands out tasks, takes reports, renews, and has bad moments.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the cluster knows.
#[derive(Default)]
pub struct State {
    /// Tasks nobody has claimed.
    pub waiting: VecDeque<String>,
    /// Claims now, and the most there ever were.
    pub held: usize,
    pub held_most: usize,
    /// Reports by task.
    pub completed: BTreeMap<String, Value>,
    pub failed: BTreeMap<String, Value>,
    /// Tasks whose claims are lost when they are renewed.
    pub lost: BTreeSet<String>,
    /// Renewals that were granted.
    pub renewed: usize,
    /// Sessions named in claims and renewals.
    pub sessions: BTreeSet<String>,
    /// So many requests go wrong, in turns: no answer, an answer that is lost, unavailable, refused.
    pub trouble: usize,
    ttl_ms: u64,
}

/// The cluster's front door.
pub struct Cluster {
    url: String,
    state: Arc<Mutex<State>>,
}

impl Cluster {
    /// A cluster with tasks `t0`, `t1`, ... whose payload is their number and whose fence is 100 more.
    pub async fn start(tasks: u64, ttl_ms: u64) -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let waiting = (0..tasks).map(|number| format!("t{number}")).collect();
        let state = Arc::new(Mutex::new(State { waiting, ttl_ms, ..State::default() }));
        let shared = state.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Cluster { url, state }
    }

    pub fn client(&self) -> Client {
        let timeout = Duration::from_millis(300);
        Client::with([&self.url], ClientOptions { timeout, ..ClientOptions::default() }).unwrap()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let (path, body) = read_request(&mut stream).await;
    let trouble = {
        let mut state = state.lock().unwrap();
        let left = state.trouble;
        state.trouble = left.saturating_sub(1);
        left
    };
    let answer = match (trouble, trouble % 4) {
        (0, _) => Some((200, answer(&path, &body, &state).await)),
        // Only reports may be carried out and then lost: a lost claim needs the keys of a real cluster.
        (_, 0) if !path.ends_with("claim") => {
            answer(&path, &body, &state).await;
            None
        }
        (_, 1) => Some((503, problem("no_leader"))),
        (_, 2) if path.ends_with("claim") => Some((403, problem("not_yet_allowed"))),
        _ => None,
    };
    if let Some((status, body)) = answer {
        let body = body.to_string();
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        // A worker that has left does not hear it.
        let _ = stream.write_all(text.as_bytes()).await;
    }
}

fn problem(code: &str) -> Value {
    json!({ "type": "t", "title": "t", "status": 503, "detail": "d", "code": code })
}

async fn answer(path: &str, body: &Value, state: &Mutex<State>) -> Value {
    if path.ends_with("claim") {
        return claim(body, state).await;
    }
    let mut state = state.lock().unwrap();
    let items = body["tasks"].as_array().unwrap();
    let outcomes: Vec<Value> = items.iter().map(|item| settle(path, item, &mut state)).collect();
    if let Some(session) = body["session"].as_str() {
        state.sessions.insert(session.to_owned());
    }
    json!({ "tasks": outcomes })
}

async fn claim(body: &Value, state: &Mutex<State>) -> Value {
    if state.lock().unwrap().waiting.is_empty() {
        tokio::time::sleep(Duration::from_millis(body["wait_ms"].as_u64().unwrap())).await;
    }
    let mut state = state.lock().unwrap();
    state.sessions.insert(body["session"].as_str().unwrap().to_owned());
    let count = state.waiting.len().min(body["count_max"].as_u64().unwrap() as usize);
    let ids: Vec<String> = state.waiting.drain(..count).collect();
    state.held += count;
    state.held_most = state.held_most.max(state.held);
    let ttl_ms = state.ttl_ms;
    let tasks = ids.iter().map(|id| {
        let number: u64 = id[1..].parse().unwrap();
        let fence = (100 + number).to_string();
        json!({ "id": id, "queue": "q", "fence": fence, "attempt": 1, "max_attempts": 5,
                "ttl_ms": ttl_ms, "payload": number })
    });
    json!({ "tasks": tasks.collect::<Vec<_>>() })
}

fn settle(path: &str, item: &Value, state: &mut State) -> Value {
    let id = item["id"].as_str().unwrap().to_owned();
    if path.ends_with("renew") {
        if state.lost.contains(&id) {
            state.held -= 1;
            return json!({ "id": id, "outcome": "refused", "problem": problem("stale_fence") });
        }
        state.renewed += 1;
        return json!({ "id": id, "outcome": "renewed", "ttl_ms": state.ttl_ms });
    }
    let done = path.ends_with("complete");
    let (reports, outcome) = match done {
        true => (&mut state.completed, "completed"),
        false => (&mut state.failed, "retrying"),
    };
    // A repeated report is answered as the first time.
    if reports.insert(id.clone(), item.clone()).is_none() {
        state.held -= 1;
    }
    json!({ "id": id, "outcome": outcome })
}

async fn read_request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                return (path, serde_json::from_str(body).unwrap());
            }
        }
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the request was cut off");
        bytes.extend_from_slice(&piece[..count]);
    }
}
