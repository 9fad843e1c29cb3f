//! The batchers against a server that refuses, loses answers and takes its time (TQ-20, TQ-21).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::client::{
    BatchOptions, Client, ClientOptions, Completer, Enqueuer, ItemError, unique_key,
};
use ikada_api::state::{Namespace, RequestId, RequestKey, derive_task_id};
use ikada_api::v1::{CompleteItem, ItemOutcome, NewTask, Number, OutcomeKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// One request as the server saw it.
#[derive(Debug, Clone)]
struct Seen {
    path: String,
    key: String,
    body: Value,
}

impl Seen {
    fn ids(&self) -> Vec<String> {
        let tasks = self.body["tasks"].as_array().expect("a list");
        tasks.iter().map(|task| task["id"].as_str().unwrap_or("-").to_owned()).collect()
    }
}

/// An answer, or none: the connection is closed.
type Say = Option<(u16, Value)>;

/// A server that answers by a rule, each answer after a permit.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    permits: Arc<Semaphore>,
}

impl Server {
    async fn start(rule: impl Fn(usize, &Seen) -> Say + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let permits = Arc::new(Semaphore::new(0));
        let (log, gate, rule) = (seen.clone(), permits.clone(), Arc::new(rule));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (log, gate, rule) = (log.clone(), gate.clone(), rule.clone());
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    let number = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        log.len() - 1
                    };
                    gate.acquire().await.unwrap().forget();
                    if let Some((status, body)) = rule(number, &request) {
                        let body = body.to_string();
                        let length = body.len();
                        let answer = format!(
                            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                        );
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Server { url, seen, permits }
    }

    /// A server that never hesitates.
    async fn open(rule: impl Fn(usize, &Seen) -> Say + Send + Sync + 'static) -> Server {
        let server = Server::start(rule).await;
        server.permits.add_permits(1_000);
        server
    }

    fn client(&self, timeout_ms: u64) -> Client {
        let timeout = Duration::from_millis(timeout_ms);
        Client::with(
            [&self.url],
            ClientOptions { timeout, pipe: false, ..ClientOptions::default() },
        )
        .unwrap()
    }

    fn enqueuer(&self, flights_max: usize) -> Enqueuer {
        Enqueuer::with(self.client(10_000), BatchOptions { flights_max, ..BatchOptions::default() })
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until so many requests have arrived.
    async fn arrived(&self, count: usize) -> Vec<Seen> {
        for _ in 0..10_000 {
            let seen = self.seen();
            if seen.len() >= count {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("only {} of {count} requests arrived", self.seen().len());
    }
}

async fn read_request(stream: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let (head, body) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 4..]);
            let field = |name: &str| {
                head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").to_owned()
            };
            if body.len() >= field("content-length: ").parse().unwrap_or(0) {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                let body = ikada_api::cbor::from_slice(body).unwrap();
                return Seen { path, key: field("idempotency-key: "), body };
            }
        }
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the request was cut off");
        bytes.extend_from_slice(&piece[..count]);
    }
}

/// The answer in which every item has the outcome that `kind` gives for its id.
fn answer(request: &Seen, kind: impl Fn(&str) -> Value) -> Say {
    let ids = request.ids();
    let tasks: Vec<Value> = ids
        .iter()
        .map(|id| {
            let mut item = json!({ "id": id });
            item.as_object_mut().unwrap().extend(kind(id).as_object().unwrap().clone());
            item
        })
        .collect();
    Some((200, json!({ "request": request.key, "tasks": tasks })))
}

fn created(request: &Seen) -> Say {
    answer(request, |_| json!({ "outcome": "created" }))
}

fn problem(status: u16, code: &str) -> Value {
    json!({ "type": "t", "title": "t", "status": status, "detail": "d", "code": code })
}

fn task(id: &str) -> NewTask {
    NewTask { id: Some(id.to_owned()), ..NewTask::default() }
}

type Outcome = Result<ItemOutcome, ItemError>;

/// Submits in the background, and returns once the item is in line.
async fn submit(enqueuer: &Enqueuer, task: NewTask) -> JoinHandle<Outcome> {
    let enqueuer = enqueuer.clone();
    let caller = tokio::spawn(async move { enqueuer.enqueue(task).await });
    tokio::task::yield_now().await;
    caller
}

/// Submits in the background what shall travel in one batch.
fn together<const N: usize>(enqueuer: &Enqueuer, tasks: [NewTask; N]) -> [JoinHandle<Outcome>; N] {
    tasks.map(|task| {
        let enqueuer = enqueuer.clone();
        tokio::spawn(async move { enqueuer.enqueue(task).await })
    })
}

async fn kind(caller: JoinHandle<Outcome>) -> (String, OutcomeKind) {
    let item = caller.await.unwrap().unwrap();
    (item.id, item.outcome)
}

#[tokio::test]
async fn the_first_goes_at_once_and_the_rest_gather_meanwhile() {
    let server = Server::start(|_, request| created(request)).await;
    let enqueuer = server.enqueuer(1);
    let first = submit(&enqueuer, task("first")).await;
    assert_eq!(server.arrived(1).await[0].ids(), ["first"]);
    let ids: Vec<String> = (0..99).map(|number| format!("t{number}")).collect();
    let mut rest = Vec::new();
    for id in &ids {
        rest.push(submit(&enqueuer, task(id)).await);
    }
    server.permits.add_permits(2);
    assert_eq!(kind(first).await, ("first".to_owned(), OutcomeKind::Created));
    for (caller, id) in rest.into_iter().zip(&ids) {
        assert_eq!(kind(caller).await, (id.clone(), OutcomeKind::Created));
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].ids(), ids, "in the order of the callers");
    assert_ne!(seen[0].key, seen[1].key);
}

#[tokio::test]
async fn callers_that_begin_together_travel_together() {
    let server = Server::open(|_, request| created(request)).await;
    let enqueuer = server.enqueuer(4);
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let enqueuer = enqueuer.clone();
            tokio::spawn(async move { enqueuer.enqueue(task(&format!("t{number}"))).await })
        })
        .collect();
    for caller in callers {
        kind(caller).await;
    }
    // One thread runs all callers: each flight starts after the last of them has joined the line.
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn each_caller_gets_the_outcome_of_its_own_item() {
    let server = Server::start(|_, request| {
        answer(request, |id| match id {
            "old" => json!({ "outcome": "existing" }),
            "bad" => json!({ "outcome": "refused", "problem": problem(409, "conflict") }),
            _ => json!({ "outcome": "created" }),
        })
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let warm = submit(&enqueuer, task("warm")).await;
    server.arrived(1).await;
    let old = submit(&enqueuer, task("old")).await;
    let bad = submit(&enqueuer, task("bad")).await;
    let new = submit(&enqueuer, task("new")).await;
    server.permits.add_permits(2);
    kind(warm).await;
    assert_eq!(kind(old).await.1, OutcomeKind::Existing);
    assert_eq!(bad.await.unwrap().unwrap_err().code(), Some("conflict"));
    assert_eq!(kind(new).await.1, OutcomeKind::Created);
    assert_eq!(server.seen().len(), 2);
}

fn derived(key: &str, item: u32) -> String {
    let key = RequestKey { id: RequestId::parse(key).unwrap(), item };
    derive_task_id(&Namespace::default(), &key).to_string()
}

#[tokio::test]
async fn a_list_that_is_refused_for_one_item_goes_again_without_it() {
    let server = Server::start(|_, request| {
        if request.ids().iter().any(|id| id == "not a name") {
            return Some((400, problem(400, "bad_name")));
        }
        created(request)
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let warm = submit(&enqueuer, task("warm")).await;
    server.arrived(1).await;
    let before = submit(&enqueuer, NewTask::default()).await;
    let bad = submit(&enqueuer, task("not a name")).await;
    let after = submit(&enqueuer, NewTask::default()).await;
    server.permits.add_permits(3);
    kind(warm).await;
    let seen = server.arrived(3).await;
    let (first, second) = (derived(&seen[1].key, 0), derived(&seen[1].key, 2));
    assert_eq!(kind(before).await.0, first, "it keeps the id of its first place");
    assert_eq!(kind(after).await.0, second);
    let error = bad.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("bad_name"));
    assert!(error.to_string().contains("not a name"), "{error}");
    assert_eq!(server.seen().len(), 3);
    assert_ne!(seen[1].key, seen[2].key, "another list needs another key");
}

#[tokio::test]
async fn an_item_that_only_the_server_dislikes_is_found_by_halving() {
    let server = Server::start(|_, request| {
        if request.ids().iter().any(|id| id == "odd") {
            return Some((413, problem(413, "too_large")));
        }
        created(request)
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let warm = submit(&enqueuer, task("warm")).await;
    server.arrived(1).await;
    let mut good = Vec::new();
    for number in 0..5 {
        good.push(submit(&enqueuer, task(&format!("good{number}"))).await);
    }
    let odd = submit(&enqueuer, task("odd")).await;
    server.permits.add_permits(1_000);
    kind(warm).await;
    for caller in good {
        assert_eq!(kind(caller).await.1, OutcomeKind::Created);
    }
    assert_eq!(odd.await.unwrap().unwrap_err().code(), Some("too_large"));
    let mut sent: Vec<String> = Vec::new();
    for request in server.seen().iter().filter(|seen| !seen.ids().contains(&"odd".to_owned())) {
        sent.extend(request.ids());
    }
    sent.sort();
    assert_eq!(sent, ["good0", "good1", "good2", "good3", "good4", "warm"], "taken once each");
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_key_and_items() {
    let server = Server::open(|number, request| match number {
        0 => None,
        1 => Some((504, problem(504, "unknown"))),
        _ => created(request),
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let [one, two] = together(&enqueuer, [NewTask::default(), task("two")]);
    kind(one).await;
    kind(two).await;
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        assert_eq!((&request.key, &request.body), (&seen[0].key, &seen[0].body));
    }
}

#[tokio::test]
async fn an_item_that_is_not_settled_holds_up_nobody() {
    let server = Server::open(|_, request| {
        answer(request, |id| match id {
            "slow" => json!({ "outcome": "unavailable", "problem": problem(429, "queue_full") }),
            _ => json!({ "outcome": "created" }),
        })
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let [slow, quick] = together(&enqueuer, [task("slow"), task("quick")]);
    assert_eq!(kind(quick).await.1, OutcomeKind::Created);
    // The only flight is free again while the slow one is being sent again.
    let later = submit(&enqueuer, task("later")).await;
    assert_eq!(kind(later).await.1, OutcomeKind::Created);
    assert!(!slow.is_finished());
    let seen = server.arrived(4).await;
    let repeats = seen.iter().filter(|request| request.ids() == ["slow", "quick"]);
    let keys: std::collections::BTreeSet<&String> = repeats.map(|request| &request.key).collect();
    assert_eq!(keys.len(), 1, "the same list under the same key");
    slow.abort();
}

#[tokio::test]
async fn what_was_left_open_is_settled_by_a_resend() {
    let server = Server::open(|number, request| {
        answer(request, |id| match id {
            "a" if number < 2 => json!({ "outcome": "unknown" }),
            _ => json!({ "outcome": "created" }),
        })
    })
    .await;
    let enqueuer = server.enqueuer(1);
    let [a, b] = together(&enqueuer, [task("a"), task("b")]);
    assert_eq!(kind(b).await.1, OutcomeKind::Created);
    assert_eq!(kind(a).await.1, OutcomeKind::Created);
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn an_unknown_outcome_names_the_task_and_where_to_ask() {
    let server = Server::open(|_, _| None).await;
    let enqueuer = Enqueuer::new(server.client(300));
    let [named, derived_id] = together(&enqueuer, [task("named"), NewTask::default()]);
    let errors = [named.await.unwrap().unwrap_err(), derived_id.await.unwrap().unwrap_err()];
    let key = server.seen()[0].key.clone();
    for (item, error) in (0..).zip(errors) {
        let ItemError::Unknown { id, place: Some(place), .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((&place.request, place.item), (&key, item));
        assert_eq!(id, if item == 0 { "named".to_owned() } else { derived(&key, 1) });
    }
    // Doubt is not forgotten when a later answer says that it was not done this time.
    let server = Server::open(|number, request| {
        let word = if number == 0 { "unknown" } else { "unavailable" };
        answer(request, |id| json!({ "outcome": if id == "a" { word } else { "created" } }))
    })
    .await;
    let enqueuer = Enqueuer::new(server.client(300));
    let [a, b] = together(&enqueuer, [task("a"), task("b")]);
    kind(b).await;
    let error = a.await.unwrap().unwrap_err();
    assert!(matches!(&error, ItemError::Unknown { id, .. } if id == "a"), "{error:?}");
}

#[tokio::test]
async fn callers_that_go_away_do_no_harm() {
    let server = Server::start(|_, request| created(request)).await;
    let enqueuer = server.enqueuer(1);
    let sent = submit(&enqueuer, task("sent")).await;
    server.arrived(1).await;
    sent.abort();
    let gone = submit(&enqueuer, task("gone")).await;
    let stays = submit(&enqueuer, task("stays")).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    server.permits.add_permits(2);
    kind(stays).await;
    assert_eq!(server.seen()[1].ids(), ["stays"], "what was not sent went with its caller");
}

#[tokio::test]
async fn batches_and_the_line_are_bounded() {
    let server = Server::start(|_, request| created(request)).await;
    let options = BatchOptions {
        items_max: 3,
        bytes_max: 1_000,
        flights_max: 1,
        waiting_max: 6,
        ..BatchOptions::default()
    };
    let enqueuer = Enqueuer::with(server.client(10_000), options);
    let large = |id: &str| NewTask { payload_base64: Some("A".repeat(2_000)), ..task(id) };
    let first = submit(&enqueuer, task("first")).await;
    server.arrived(1).await;
    let mut callers = vec![first];
    for id in ["a", "b", "c", "d"] {
        callers.push(submit(&enqueuer, task(id)).await);
    }
    callers.push(submit(&enqueuer, large("large")).await);
    callers.push(submit(&enqueuer, task("e")).await);
    let refused = enqueuer.enqueue(task("too many")).await.unwrap_err();
    assert!(matches!(refused, ItemError::Unavailable { .. }), "{refused:?}");
    server.permits.add_permits(1_000);
    for caller in callers {
        kind(caller).await;
    }
    let lists: Vec<Vec<String>> = server.seen().iter().map(Seen::ids).collect();
    assert_eq!(lists, [vec!["first"], vec!["a", "b", "c"], vec!["d"], vec!["large"], vec!["e"]]);
}

#[tokio::test]
async fn completions_gather_and_a_bad_result_fails_alone() {
    let server = Server::start(|_, request| {
        let ids = request.ids();
        if ids.len() > 1 && ids.iter().any(|id| id == "huge") {
            return Some((413, problem(413, "too_large")));
        }
        answer(request, |id| match id {
            "lost" => json!({ "outcome": "refused", "problem": problem(409, "stale_fence") }),
            _ => json!({ "outcome": "completed" }),
        })
    })
    .await;
    let options = BatchOptions { flights_max: 1, ..BatchOptions::default() };
    let completer = Completer::with(server.client(10_000), "w1", options);
    let submit = |id: &str, bytes: usize| {
        let item = CompleteItem {
            outputs: Vec::new(),
            then: Vec::new(),
            id: id.to_owned(),
            fence: Number(7),
            result: None,
            result_base64: Some("A".repeat(bytes)),
            result_bytes: None,
        };
        let completer = completer.clone();
        tokio::spawn(async move { completer.complete(item).await })
    };
    let warm = submit("warm", 4);
    server.arrived(1).await;
    let good = submit("good", 4);
    let lost = submit("lost", 4);
    let huge = submit("huge", 100_000);
    server.permits.add_permits(1_000);
    assert_eq!(kind(warm).await.1, OutcomeKind::Completed);
    assert_eq!(kind(good).await.1, OutcomeKind::Completed);
    assert_eq!(lost.await.unwrap().unwrap_err().code(), Some("stale_fence"));
    assert_eq!(huge.await.unwrap().unwrap_err().code(), Some("too_large"));
    let seen = server.seen();
    assert_eq!(seen[1].ids(), ["good", "lost", "huge"]);
    assert_eq!(seen[2].ids(), ["good", "lost"]);
    assert!(seen.iter().all(|request| request.path == "/v1/tasks/complete"));
    assert!(seen.iter().all(|request| request.body["worker"] == "w1"));
}

#[test]
fn a_runtime_that_ends_leaves_nobody_waiting() {
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = first.block_on(Server::start(|_, request| created(request)));
    let enqueuer = server.enqueuer(1);
    let mut waiting = Box::pin(enqueuer.enqueue(task(&unique_key())));
    first.block_on(async {
        let _ = tokio::time::timeout(Duration::from_millis(5), &mut waiting).await;
    });
    drop(first);
    let outcome = second.block_on(waiting);
    assert_eq!(outcome, Err(ItemError::Abandoned));
}
