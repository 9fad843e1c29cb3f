//! Traces of tasks and jobs at a collector.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ikada_api::v1::{NewTask, TaskStateName};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster::Cluster;
use crate::programs::{WorkerProcess, push};
use crate::wait::until;

/// A collector that keeps the spans it is sent, by span id, and refuses the first document.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<BTreeMap<String, Value>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    async fn start() -> (Collector, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let collector = Collector::default();
        let kept = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(kept.clone().serve(stream));
            }
        });
        (collector, url)
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await.ok()? <= 2 {
                    break;
                }
                let lower = line.to_ascii_lowercase();
                if let Some(text) = lower.strip_prefix("content-length:") {
                    length = text.trim().parse().ok()?;
                }
                head.push_str(&lower);
            }
            if head.is_empty() {
                return None;
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.ok()?;
            let is_first = {
                let mut requests = self.requests.lock().expect("a list");
                requests.push(head);
                requests.len() == 1
            };
            let status = if is_first { "503 Service Unavailable" } else { "200 OK" };
            if !is_first {
                self.keep(&serde_json::from_slice(&body).expect("a document"));
            }
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.ok()?;
        }
    }

    fn keep(&self, document: &Value) {
        let resource = &document["resourceSpans"][0];
        assert_eq!(attribute(&resource["resource"], "service.name").as_deref(), Some("ikada"));
        let spans = resource["scopeSpans"][0]["spans"].as_array().expect("spans");
        for span in spans {
            let id = span["spanId"].as_str().expect("an id").to_owned();
            self.spans.lock().expect("a map").insert(id, span.clone());
        }
    }

    /// The spans that have this name, once there are so many.
    async fn named(&self, name: &str, count: usize) -> Vec<Value> {
        until(name, || async {
            let spans = self.spans.lock().expect("a map");
            let named = spans.values().filter(|span| span["name"] == name).cloned();
            Some(named.collect::<Vec<_>>()).filter(|found| found.len() >= count)
        })
        .await
    }
}

fn attribute(of: &Value, key: &str) -> Option<String> {
    let mut all = of["attributes"].as_array()?.iter();
    let value = &all.find(|attribute| attribute["key"] == key)?["value"];
    let text = value["stringValue"].as_str().or_else(|| value["intValue"].as_str());
    text.map(str::to_owned)
}

async fn post(url: &str, path: &str, body: &str) -> Value {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.expect("an answer");
    let (head, body) = heard.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 20"), "{heard}");
    serde_json::from_str(body).expect("JSON")
}

fn is_times_ordered(span: &Value) -> bool {
    let nanos = |key: &str| span[key].as_str().and_then(|text| text.parse::<u64>().ok());
    let (start, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
    // Nanoseconds of this century.
    start.is_some_and(|start| start > 1_500_000_000_000_000_000) && start <= end
}

/// Whether a span says which entry ended it: term and index, both from 1.
fn is_lsn(span: &Value) -> bool {
    let lsn = attribute(span, "ikada.lsn").unwrap_or_default();
    let (term, index) = lsn.split_once('.').unwrap_or_default();
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number > 0);
    is_number(term) && is_number(index)
}

/// Three nodes send what they lead: a task that fails once and is completed then, with two attempts below it. The place that a
/// worker is told for its own spans is the attempt's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_of_a_task_tell_its_attempts() {
    let (collector, url) = Collector::start().await;
    let mut cluster = Cluster::prepare(3);
    cluster.extra = vec!["--otlp".to_owned(), url];
    (1..=3).for_each(|id| cluster.launch(id));
    cluster.settle().await;
    let node = cluster.node(2).url.clone();
    let task =
        r#"{"tasks": [{"id": "traced", "queue": "mail", "backoff": {"base_ms": 1, "cap_ms": 1}}]}"#;
    post(&node, "/v1/tasks", task).await;
    let claim = r#"{"worker": "w", "queues": ["mail"], "count_max": 1, "wait_ms": 5000}"#;
    let first = post(&node, "/v1/tasks/claim", claim).await["tasks"][0].clone();
    let fence = first["fence"].as_str().expect("a fence").to_owned();
    let fail = format!(
        r#"{{"worker": "w", "tasks": [{{"id": "traced", "fence": "{fence}", "error": "no such mailbox"}}]}}"#
    );
    post(&node, "/v1/tasks/fail", &fail).await;
    let second = post(&node, "/v1/tasks/claim", claim).await["tasks"][0].clone();
    let place = second["traceparent"].as_str().expect("a place").to_owned();
    let fence = second["fence"].as_str().expect("a fence").to_owned();
    let done = format!(r#"{{"worker": "w", "tasks": [{{"id": "traced", "fence": "{fence}"}}]}}"#);
    post(&node, "/v1/tasks/complete", &done).await;

    let tasks = collector.named("task mail", 1).await;
    let attempts = collector.named("attempt mail", 2).await;
    assert_eq!((tasks.len(), attempts.len()), (1, 2), "each once");
    let task = &tasks[0];
    assert_eq!(attribute(task, "messaging.message.id").as_deref(), Some("traced"));
    assert_eq!(attribute(task, "ikada.task.state").as_deref(), Some("done"));
    assert_eq!(task["status"]["code"], 1);
    assert!(is_lsn(task), "{task}");
    for attempt in &attempts {
        assert_eq!(attempt["parentSpanId"], task["spanId"]);
        assert_eq!(attempt["traceId"], task["traceId"]);
        assert_eq!(attribute(attempt, "ikada.worker").as_deref(), Some("w"));
        assert!(is_times_ordered(attempt), "{attempt}");
    }
    assert!(is_times_ordered(task), "{task}");
    let failed = attempts.iter().find(|attempt| attempt["status"]["code"] == 2).expect("it failed");
    assert_eq!(failed["status"]["message"], "no such mailbox");
    let good = attempts.iter().find(|attempt| attempt["status"]["code"] == 1).expect("it is done");
    let (trace, span) = (task["traceId"].as_str().unwrap(), good["spanId"].as_str().unwrap());
    assert_eq!(place, format!("00-{trace}-{span}-01"));
    assert!(collector.requests.lock().unwrap()[0].starts_with("post /v1/traces "));
}

/// A job, its tasks and their attempts are one trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_37_traces_of_a_job_hang_together() {
    let (collector, url) = Collector::start().await;
    let mut cluster = Cluster::prepare(1);
    cluster.extra = vec!["--otlp".to_owned(), url];
    cluster.launch(1);
    cluster.settle().await;
    let node = cluster.node(1).url.clone();
    let job = r#"{"id": "sum", "queue": "jobs", "map": {"program": "grep", "range": {"to": 3}}}"#;
    post(&node, "/v1/jobs", job).await;
    let claim = r#"{"worker": "w", "queues": ["jobs"], "count_max": 3, "wait_ms": 5000}"#;
    let mut done = 0;
    while done < 3 {
        let claimed = post(&node, "/v1/tasks/claim", claim).await;
        for task in claimed["tasks"].as_array().expect("tasks") {
            let (id, fence) = (task["id"].as_str().unwrap(), task["fence"].as_str().unwrap());
            let body =
                format!(r#"{{"worker": "w", "tasks": [{{"id": "{id}", "fence": "{fence}"}}]}}"#);
            post(&node, "/v1/tasks/complete", &body).await;
            done += 1;
        }
    }
    let jobs = collector.named("job", 1).await;
    let tasks = collector.named("task jobs", 3).await;
    assert_eq!(attribute(&jobs[0], "ikada.job.id").as_deref(), Some("sum"));
    assert_eq!(attribute(&jobs[0], "ikada.job.state").as_deref(), Some("done"));
    assert!(is_times_ordered(&jobs[0]) && is_lsn(&jobs[0]), "{}", jobs[0]);
    for task in tasks {
        assert_eq!(task["traceId"], jobs[0]["traceId"]);
        assert_eq!(task["parentSpanId"], jobs[0]["spanId"]);
        assert_eq!(attribute(&task, "ikada.job.stage").as_deref(), Some("map"));
    }
}

/// A program that a worker runs sees its attempt's place, and so can hang its own spans below it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_reach_the_program_of_a_task() {
    let (collector, url) = Collector::start().await;
    let mut cluster = Cluster::prepare(1);
    cluster.extra = vec!["--otlp".to_owned(), url];
    cluster.launch(1);
    cluster.settle().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let script = r#"printf '"%s"' "$TRACEPARENT" > "$IKADA_RESULT""#;
    push(&client, "tell-place", script).await;
    let task = json!({"id": "placed", "queue": "placed", "program": "tell-place"});
    let task: NewTask = serde_json::from_value(task).expect("a task");
    client.enqueue(vec![task]).await.expect("taken");
    let _worker = WorkerProcess::start(&cluster, &folder, "w-1", &["--queue", "placed"]);
    let done = until("the task is done", || async {
        client.task("placed").await.ok().filter(|task| task.state == TaskStateName::Done)
    })
    .await;
    let told: String = serde_json::from_str(done.result.expect("a result").get()).expect("text");
    let attempts = collector.named("attempt placed", 1).await;
    let (trace, span) = (&attempts[0]["traceId"], &attempts[0]["spanId"]);
    let (trace, span) = (trace.as_str().expect("an id"), span.as_str().expect("an id"));
    assert_eq!(told, format!("00-{trace}-{span}-01"));
}
