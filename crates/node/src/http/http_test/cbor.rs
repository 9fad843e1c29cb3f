//! CBOR on every route that answers with a document (TQ-27): whole, and without a trace of how JSON is kept.

use std::collections::BTreeSet;

use ikada_api::cbor;
use ikada_api::routes::{Found, ROUTES, find};
use ikada_api::v1::{JobResult, ScheduleInfo};
use serde_json::{Value, json};

use super::{Bench, Heard};

const UPLOAD: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "ffeeddccbbaa99887766554433221100";
/// A payload that is JSON, which is what goes wrong where a form is forgotten.
const PAYLOAD: &str = r#"{"to": [1, "ann"]}"#;

/// Calls with CBOR wanted, and which routes they were.
struct Asker {
    bench: Bench,
    asked: BTreeSet<(&'static str, &'static str)>,
}

impl Asker {
    /// A call that must go well and be answered in CBOR.
    async fn ask(&mut self, method: &str, path: &str, body: impl Into<bytes::Bytes>) -> Heard {
        let heard = self.bench.send(method, path, &[("accept", "application/cbor")], body).await;
        let said = String::from_utf8_lossy(&heard.body).into_owned();
        assert!(heard.status.is_success(), "{method} {path}: {} {said}", heard.status);
        assert_eq!(heard.header("content-type"), "application/cbor", "{method} {path}");
        assert!(!said.contains("$serde_json"), "{method} {path} tells how JSON is kept: {said}");
        let mut reader = minicbor::Decoder::new(&heard.body);
        reader.skip().unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert_eq!(reader.position(), heard.body.len(), "{method} {path}: one document");
        let route = path.split('?').next().unwrap();
        let Found::Route(route, _) = find(method, route) else { panic!("{path} is no route") };
        self.asked.insert((route.verb.as_str(), route.path));
        heard
    }

    async fn get(&mut self, path: &str) -> Heard {
        self.ask("GET", path, "").await
    }

    async fn post(&mut self, path: &str, body: Value) -> Heard {
        self.ask("POST", path, body.to_string()).await
    }

    async fn put(&mut self, path: &str, body: Value) -> Heard {
        self.ask("PUT", path, body.to_string()).await
    }

    async fn delete(&mut self, path: &str) -> Heard {
        self.ask("DELETE", path, "").await
    }

    /// Bytes without a name, as JSON tells of them.
    async fn upload(&self, bytes: &'static [u8]) -> Value {
        self.bench.send("POST", "/v1/uploads", &[], bytes).await.json()
    }

    /// Claims a task in JSON, for its fence.
    async fn claim(&self, queue: &str) -> Value {
        let body = json!({"worker": "w", "queues": [queue]}).to_string();
        self.bench.post("/v1/tasks/claim", &body).await.json()["tasks"][0].clone()
    }

    async fn tasks(&mut self) {
        for id in ["a", "b", "c", "d", "e"] {
            let body = format!(r#"{{"id": "{id}", "queue": "q-{id}", "payload": {PAYLOAD}}}"#);
            self.ask("POST", "/v1/tasks", body).await;
        }
        let many = json!({"tasks": [{"id": "f", "queue": "q-f", "payload": [1]}]});
        self.post("/v1/tasks", many).await;
        self.get("/v1/tasks/f/explain").await;
        self.post("/v1/tasks/claim", json!({"worker": "w", "queues": ["q-f"]})).await;
        let held = self.claim("q-a").await;
        let note = json!({"id": "a", "fence": held["fence"], "progress": {"permille": 5}});
        self.post("/v1/tasks/renew", json!({"worker": "w", "tasks": [note]})).await;
        let kept = self.upload(b"half").await;
        let kept =
            json!({"worker": "w", "fence": held["fence"], "size": 4, "digest": kept["digest"]});
        self.post("/v1/tasks/a/checkpoint", kept).await;
        let done = json!({"id": "a", "fence": held["fence"], "result": {"n": [1]}});
        self.post("/v1/tasks/complete", json!({"worker": "w", "tasks": [done]})).await;
        let held = self.claim("q-b").await;
        let failed = json!({"id": "b", "fence": held["fence"], "error": "no", "retry": false});
        self.post("/v1/tasks/fail", json!({"worker": "w", "tasks": [failed]})).await;
        self.get("/v1/tasks").await;
        self.get("/v1/tasks/a").await;
        self.post("/v1/tasks/c/cancel", json!({})).await;
        self.post("/v1/tasks/b/retry", json!({})).await;
        self.delete("/v1/tasks/c").await;
    }

    async fn queues(&mut self) {
        self.put("/v1/queues/q-d", json!({"ttl_ms": 5000})).await;
        for verb in ["pause", "resume", "retry", "drop", "purge"] {
            self.post(&format!("/v1/queues/q-d/{verb}"), json!({})).await;
        }
        self.get("/v1/queues").await;
        self.get("/v1/queues/q-d").await;
    }

    async fn schedules(&mut self) {
        let then = format!(r#"{{"queue": "after", "payload": {PAYLOAD}}}"#);
        let task = format!(r#"{{"queue": "q", "payload": {PAYLOAD}, "then": [{then}]}}"#);
        let body = format!(r#"{{"every_ms": 60000, "task": {task}}}"#);
        self.ask("PUT", "/v1/schedules/s", body).await;
        let shown = self.get("/v1/schedules/s").await;
        let shown: ScheduleInfo = cbor::from_slice(&shown.body).unwrap();
        let payloads = [&shown.task, &shown.task.then[0]].map(|task| task.payload_bytes.clone());
        assert_eq!(payloads.map(|bytes| bytes.unwrap().0), [PAYLOAD.as_bytes(); 2]);
        self.get("/v1/schedules").await;
        self.post("/v1/schedules/s/pause", json!({})).await;
        self.post("/v1/schedules/s/resume", json!({})).await;
        self.delete("/v1/schedules/s").await;
    }

    async fn workers_and_leases(&mut self) {
        self.put("/v1/workers/w-1", json!({"session": "7", "slots": 2, "queues": ["q"]})).await;
        self.get("/v1/workers").await;
        self.get("/v1/workers/w-1").await;
        self.post("/v1/workers/w-1/drain", json!({})).await;
        self.delete("/v1/workers/w-1").await;
        let taken = json!({"holder": "h", "wait_ms": 0});
        self.post("/v1/leases/l/acquire", taken.clone()).await;
        let again = self.bench.post("/v1/leases/l/acquire", &taken.to_string()).await.json();
        let mine = json!({"holder": "h", "fence": again["fence"]});
        self.post("/v1/leases/l/renew", mine.clone()).await;
        self.get("/v1/leases").await;
        self.get("/v1/leases/l").await;
        self.post("/v1/leases/l/release", mine).await;
    }

    async fn objects(&mut self) {
        self.ask("PUT", "/v1/objects/texts/a.txt", "abc").await;
        self.get("/v1/objects").await;
        self.get("/v1/objects/texts").await;
        self.delete("/v1/objects/texts/a.txt").await;
        self.ask("POST", "/v1/uploads", "abc").await;
        let target = json!({"bucket": "b", "key": "k"});
        self.put(&format!("/v1/uploads/{UPLOAD}"), target.clone()).await;
        self.ask("PUT", &format!("/v1/uploads/{UPLOAD}/parts/1"), "abc").await;
        self.get("/v1/uploads").await;
        self.get(&format!("/v1/uploads/{UPLOAD}")).await;
        self.post(&format!("/v1/uploads/{UPLOAD}/finish"), json!({"parts": 1})).await;
        self.put(&format!("/v1/uploads/{OTHER}"), target).await;
        self.delete(&format!("/v1/uploads/{OTHER}")).await;
        let file = self.upload(b"print(1)").await;
        let argv = json!(["python3", "{file}"]);
        let program = json!({"name": "p", "kind": "command", "argv": argv, "file": file});
        self.post("/v1/programs", program).await;
        self.get("/v1/programs").await;
        self.get("/v1/programs/p").await;
        self.delete("/v1/programs/p").await;
    }

    async fn jobs(&mut self) {
        let map = json!({"program": "wordcount", "range": {"from": 0, "to": 1}});
        self.post("/v1/jobs", json!({"id": "j", "queue": "jobs", "map": map})).await;
        let held = self.claim("jobs").await;
        let done = json!({"id": held["id"], "fence": held["fence"], "result": {"n": [1]}});
        self.post("/v1/tasks/complete", json!({"worker": "w", "tasks": [done]})).await;
        self.get("/v1/jobs").await;
        self.get("/v1/jobs/j").await;
        self.get("/v1/jobs/j/tasks").await;
        self.get("/v1/jobs/j/events").await;
        let result = self.get("/v1/jobs/j/result").await;
        let result: JobResult = cbor::from_slice(&result.body).unwrap();
        assert_eq!(result.result_bytes.unwrap().0, br#"{"n":[1]}"#);
        self.post("/v1/jobs", json!({"id": "k", "queue": "jobs", "map": map})).await;
        self.post("/v1/jobs/k/cancel", json!({})).await;
    }

    async fn callers(&mut self) {
        self.get("/v1/requests/r").await;
        self.post("/v1/requests/r/void", json!({})).await;
        self.post("/v1/tokens", json!({"name": "ann", "role": "viewer"})).await;
        let listed = self.bench.get("/v1/tokens").await.json();
        let id = listed["tokens"][0]["id"].as_str().unwrap().to_owned();
        self.get("/v1/tokens").await;
        self.delete(&format!("/v1/tokens/{id}")).await;
        self.get("/v1/whoami").await;
        self.put("/v1/namespaces/team", json!({"pending_max": 5})).await;
        self.get("/v1/namespaces").await;
        self.get("/v1/namespaces/team").await;
        self.get("/v1/quota").await;
    }

    async fn cluster(&mut self) {
        self.get("/v1/cluster").await;
        self.get("/v1/cluster/events").await;
        self.get("/v1/cluster/autoscale").await;
        self.get("/v1/nodes/self").await;
        self.post("/v1/cluster/transfer", json!({"shard": 0, "to": "2"})).await;
        self.put("/v1/cluster/nodes/2", json!({"cordoned": true})).await;
        self.put("/v1/cluster/elections", json!({"timeout_ms": 5000})).await;
        self.bench.door().add_stranger("10.0.0.4:7401", super::members::waits(4));
        self.post("/v1/cluster/nodes", json!({"peer_addr": "10.0.0.4:7401"})).await;
    }
}

#[tokio::test]
async fn tq_27_every_route_that_answers_with_a_document_answers_in_cbor() {
    let mut asker = Asker { bench: Bench::new(), asked: BTreeSet::new() };
    asker.tasks().await;
    asker.queues().await;
    asker.schedules().await;
    asker.workers_and_leases().await;
    asker.objects().await;
    asker.jobs().await;
    asker.callers().await;
    asker.cluster().await;
    // One change of the cluster at a time: these have clusters of their own.
    let mut smaller = Asker { bench: Bench::new(), asked: BTreeSet::new() };
    smaller.bench.door().change_status(|status| status.peers[1].connected = false);
    smaller.delete("/v1/cluster/nodes/3").await;
    let mut larger = Asker { bench: Bench::new(), asked: BTreeSet::new() };
    larger.post("/v1/cluster/growth", json!({"shards": 2})).await;
    asker.asked.extend(smaller.asked.into_iter().chain(larger.asked));
    let documents = ROUTES.iter().filter(|route| route.answer.is_some());
    let missed: Vec<_> = documents
        .map(|route| (route.verb.as_str(), route.path))
        .filter(|route| !asker.asked.contains(route))
        .collect();
    assert!(missed.is_empty(), "nobody asked for CBOR: {missed:?}");
}
