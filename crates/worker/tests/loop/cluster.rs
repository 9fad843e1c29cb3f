//! A cluster as far as a worker can tell: it hands out tasks, takes reports, renews, and has bad moments.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::cbor::from_slice;
use ikada_api::client::ClientOptions;
use ikada_api::v1::{
    ClaimRequest, CompleteItem, CompleteRequest, FailItem, FailRequest, RenewRequest,
};
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
    pub completed: BTreeMap<String, CompleteItem>,
    pub failed: BTreeMap<String, FailItem>,
    /// Tasks whose claims are lost when they are renewed.
    pub lost: BTreeSet<String>,
    /// Renewals that were granted.
    pub renewed: usize,
    /// Sessions named in claims and renewals.
    pub sessions: BTreeSet<u64>,
    /// So many requests go wrong, in turns: no answer, an answer that is lost, unavailable, refused.
    pub trouble: usize,
    /// Its nodes are of a version that takes no claims with reports.
    pub is_older: bool,
    /// Claims that came with reports, and were carried out or refused.
    pub claims_behind: usize,
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
        Client::with(
            [&self.url],
            ClientOptions { timeout, pipe: false, ..ClientOptions::default() },
        )
        .unwrap()
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
        (0, _) if is_too_new(&path, &body, &state) => Some((400, problem("unknown_field"))),
        (0, _) => Some((200, answer(&path, &body, &state, true).await)),
        // Only reports may be carried out and then lost: a lost claim needs the keys of a real cluster.
        (_, 0) if !path.ends_with("claim") => {
            answer(&path, &body, &state, false).await;
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

/// Whether an older node cannot read it.
fn is_too_new(path: &str, body: &[u8], state: &Mutex<State>) -> bool {
    let mut state = state.lock().unwrap();
    let claims = || from_slice::<CompleteRequest>(body).unwrap().claim.is_some();
    let refused = state.is_older && path.ends_with("complete") && claims();
    state.claims_behind += usize::from(refused);
    refused
}

/// `grants`: whether a claim that comes with a report is carried out.
async fn answer(path: &str, body: &[u8], state: &Mutex<State>, grants: bool) -> Value {
    match path {
        "/v1/tasks/claim" => claim(&from_slice(body).unwrap(), state).await,
        "/v1/tasks/renew" => renew(from_slice(body).unwrap(), &mut state.lock().unwrap()),
        "/v1/tasks/complete" => {
            let request: CompleteRequest = from_slice(body).unwrap();
            let outcomes: Vec<Value> = {
                let mut state = state.lock().unwrap();
                let outcomes = request.tasks.into_iter().map(|item| {
                    let id = item.id.clone();
                    // A repeated report is answered as the first time.
                    let first = state.completed.insert(id.clone(), item).is_none();
                    state.held -= usize::from(first);
                    json!({ "id": id, "outcome": "completed" })
                });
                outcomes.collect()
            };
            let Some(wish) = request.claim.filter(|_| grants) else {
                return json!({ "tasks": outcomes });
            };
            assert_eq!(wish.wait_ms, 0, "a report waits for no tasks");
            let claimed = claim(&wish, state).await;
            state.lock().unwrap().claims_behind += 1;
            json!({ "tasks": outcomes, "claimed": claimed["tasks"] })
        }
        "/v1/tasks/fail" => {
            let request: FailRequest = from_slice(body).unwrap();
            let mut state = state.lock().unwrap();
            let outcomes = request.tasks.into_iter().map(|item| {
                let id = item.id.clone();
                let first = state.failed.insert(id.clone(), item).is_none();
                state.held -= usize::from(first);
                json!({ "id": id, "outcome": "retrying" })
            });
            json!({ "tasks": outcomes.collect::<Vec<_>>() })
        }
        other => panic!("a worker has no business at {other}"),
    }
}

fn renew(request: RenewRequest, state: &mut State) -> Value {
    state.sessions.extend(request.session.map(|session| session.0));
    let outcomes = request.tasks.into_iter().map(|item| {
        if state.lost.contains(&item.id) {
            state.held -= 1;
            let problem = problem("stale_fence");
            return json!({ "id": item.id, "outcome": "refused", "problem": problem });
        }
        state.renewed += 1;
        json!({ "id": item.id, "outcome": "renewed", "ttl_ms": state.ttl_ms })
    });
    json!({ "tasks": outcomes.collect::<Vec<_>>() })
}

async fn claim(request: &ClaimRequest, state: &Mutex<State>) -> Value {
    if state.lock().unwrap().waiting.is_empty() {
        tokio::time::sleep(Duration::from_millis(request.wait_ms)).await;
    }
    let mut state = state.lock().unwrap();
    state.sessions.insert(request.session.0);
    let count = state.waiting.len().min(request.count_max as usize);
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

async fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]);
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if bytes.len() >= end + 4 + length.map_or(0, |length| length.parse().unwrap()) {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                return (path, bytes[end + 4..].to_vec());
            }
        }
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the request was cut off");
        bytes.extend_from_slice(&piece[..count]);
    }
}
