//! Turning calls away through the door: what the caller is told, what is left unread, what still passes (CH-16 to CH-25).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::channel::Channel;

use super::{Bench, HttpLimits, Security};
use crate::admission::{Admission, CpuReading, Lane, Reason, Rules, Source, watch};

/// A machine whose CPU and memory are all in use.
struct Busy(u64);

async fn put(bench: &Bench, path: &str, body: &str) -> u16 {
    bench.send("PUT", path, &[], body.to_owned()).await.status.as_u16()
}

impl Source for Busy {
    fn cpu(&mut self) -> Option<CpuReading> {
        self.0 += 100;
        Some(CpuReading { busy: self.0, total: self.0 })
    }

    fn memory(&mut self) -> Option<u16> {
        Some(10_000)
    }
}

async fn busy(rules: &[&str]) -> (Bench, Arc<Admission>) {
    let words: Vec<String> = rules.iter().map(|word| (*word).to_owned()).collect();
    let admission = Arc::new(Admission::new(Rules::parse(&words).unwrap(), 1));
    watch(&admission, Busy(0)).unwrap();
    while admission.load().cpu < 10_000 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let bench = Bench::admitting(HttpLimits::default(), Security::default(), admission.clone());
    (bench, admission)
}

const COMPLETE: &str = r#"{"worker":"w","session":"1","completions":[{"task":"t","fence":"1"}]}"#;

// CH-17, CH-24
#[tokio::test]
async fn ch_17_new_work_is_refused_and_results_come_home() {
    let (bench, admission) = busy(&[]).await;
    for (method, path) in [
        ("POST", "/v1/tasks"),
        ("PUT", "/v1/objects/b/k"),
        ("GET", "/v1/objects/b/k"),
        ("GET", "/v1/tasks/t"),
        ("GET", "/v1/tasks"),
    ] {
        let heard = bench.send(method, path, &[], "{}").await;
        assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_memory"), "{path}");
        assert_eq!(heard.header("retry-after"), "1");
    }
    assert_eq!(bench.get("/healthz").await.status, 200);
    assert_ne!(bench.post("/v1/tasks/complete", COMPLETE).await.status, 503);
    let claim = r#"{"worker":"w","session":"1","queues":["q"],"slots":1,"wait_ms":0}"#;
    assert_ne!(bench.post("/v1/tasks/claim", claim).await.status, 503);
    assert_eq!(admission.shed(Lane::Submit, Reason::Memory), 1);
}

// CH-18, CH-25: told by the head alone.
#[tokio::test]
async fn ch_18_an_upload_is_shed_before_its_body_is_read() {
    let (bench, _) = busy(&["memory=100"]).await;
    let heard = bench.send("PUT", "/v1/objects/b/k", &[], vec![0; 1 << 20]).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_priority"));
    // A busy CPU alone keeps nobody from submitting.
    assert_eq!(bench.post("/v1/tasks", r#"{"id":"t","queue":"q"}"#).await.status, 201);
}

// CH-22: what is in memory is served while the CPU is busy; what is not may have to wait.
#[tokio::test]
async fn ch_22_a_busy_node_serves_from_memory_and_sheds_what_is_not_in_it() {
    let rules = ["memory=100", "upload=off", "download=off", "miss=90:100"];
    let (bench, admission) = busy(&rules).await;
    assert_eq!(put(&bench, "/v1/objects/b/x", "in memory").await, 201);
    assert_eq!(bench.get("/v1/objects/b/x").await.body, "in memory");
    crate::http::Door::shelf(bench.door()).forget_all();
    let heard = bench.get("/v1/objects/b/x").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_miss"));
    assert_eq!(heard.header("retry-after"), "1");
    assert_eq!(bench.send("HEAD", "/v1/objects/b/x", &[], "").await.status, 200, "no bytes");
    assert_eq!(admission.shed(Lane::Download, Reason::Miss), 1);
    assert_eq!(admission.admitted(Lane::Download), 2, "counted once, as shed");
}

// F-32: one more in the line is told so at once; results and renewals are not in it.
#[tokio::test]
async fn f_32_whoever_would_stand_in_line_is_told_at_once() {
    let (bench, admission) = busy(&["memory=100", "list=off"]).await;
    let held: Vec<_> = (0..4).map(|_| bench.app.rooms.enter(Lane::Submit).unwrap()).collect();
    assert_eq!(bench.post("/v1/tasks", r#"{"id":"a"}"#).await.status, 201, "there is no line");
    admission.put_in_line(Lane::Submit);
    let heard = bench.post("/v1/tasks", r#"{"id":"b"}"#).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_wait"));
    assert_eq!(heard.header("retry-after"), "1");
    assert_ne!(bench.post("/v1/tasks/complete", COMPLETE).await.status, 503);
    assert_eq!(admission.shed(Lane::Submit, Reason::Wait), 1);
    assert_eq!(admission.admitted(Lane::Submit), 1, "counted once, as shed");
    let metrics = String::from_utf8(bench.get("/metrics").await.body.to_vec()).unwrap();
    assert!(metrics.contains("ikada_shed_total{lane=\"submit\",reason=\"wait\"} 1"), "{metrics}");
    drop(held);
    assert_eq!(bench.post("/v1/tasks", r#"{"id":"b"}"#).await.status, 201, "the line is gone");
}

// CH-23: whoever waited for a place is judged again, by the time that is left.
#[tokio::test]
async fn ch_23_a_transfer_is_judged_again_when_its_turn_comes() {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let limits = HttpLimits { uploads_max: 1, ..HttpLimits::default() };
    let bench = Arc::new(Bench::admitting(limits, Security::default(), admission.clone()));
    let place = bench.app.rooms.uploads.enter(std::time::Duration::ZERO).await.unwrap();
    let waiting = bench.clone();
    let waiting = tokio::spawn(async move {
        let patient = [("ikada-timeout-ms", "60000")];
        waiting.send("PUT", "/v1/objects/b/k", &patient, "late").await
    });
    while bench.app.rooms.uploads.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    // It was let in when uploads were fast. Now none could be done within its minute.
    admission.took(Lane::Upload, std::time::Duration::from_secs(3_600));
    drop(place);
    let heard = waiting.await.unwrap();
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_deadline"));
    assert_eq!(admission.shed(Lane::Upload, Reason::Deadline), 1);
    assert_eq!(admission.admitted(Lane::Upload), 0, "counted once");
    assert_eq!(bench.get("/v1/objects/b").await.json()["objects"], serde_json::json!([]));
    assert_eq!(put(&bench, "/v1/objects/b/k", "no deadline").await, 201, "its place is free again");
}

// CH-32: on demand.
#[tokio::test]
async fn ch_32_shedding_can_be_shown_on_demand() {
    let (bench, admission) = busy(&["memory=100", "submit=0:50", "list=off"]).await;
    let mut shed = 0;
    for number in 0..200 {
        let body = format!(r#"{{"id":"t{number}","queue":"q"}}"#);
        let heard = bench.post("/v1/tasks", &body).await;
        shed += u64::from(heard.status == 503 && heard.code() == "shed_cpu");
    }
    assert!((60..=140).contains(&shed), "{shed} of 200");
    assert_eq!(admission.shed(Lane::Submit, Reason::Cpu), shed);
    let metrics = String::from_utf8(bench.get("/metrics").await.body.to_vec()).unwrap();
    let line = format!("ikada_shed_total{{lane=\"submit\",reason=\"cpu\"}} {shed}");
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("ikada_load_cpu_basis_points 10000"));
    let cluster = bench.get("/v1/cluster").await.json();
    let members = cluster["members"].as_array().unwrap();
    let own = members.iter().find(|member| member["node"] == cluster["answered_by"]);
    let load = own.map(|member| &member["load"]).unwrap();
    assert_eq!(load["cpu_percent"], 100.0);
    assert_eq!(load["shed_last_minute"], shed);
}

// CH-21
#[tokio::test]
async fn ch_21_a_deadline_that_cannot_be_met_is_refused_at_once() {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let bench = Bench::admitting(HttpLimits::default(), Security::default(), admission.clone());
    admission.took(Lane::Submit, std::time::Duration::from_millis(300));
    let body = r#"{"id":"t","queue":"q"}"#;
    let hasty = [("ikada-timeout-ms", "299")];
    let heard = bench.send("POST", "/v1/tasks", &hasty, body).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_deadline"));
    let patient = [("ikada-timeout-ms", "301")];
    assert_eq!(bench.send("POST", "/v1/tasks", &patient, body).await.status, 201);
}

// CH-21: times are known per piece, and an upload says how many it has.
#[tokio::test]
async fn ch_21_a_large_upload_needs_as_much_time_as_it_has_pieces() {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let bench = Bench::admitting(HttpLimits::default(), Security::default(), admission.clone());
    admission.took(Lane::Upload, std::time::Duration::from_millis(300));
    let large = vec![0; 3 << 20];
    let length = large.len().to_string();
    let hasty = [("ikada-timeout-ms", "899"), ("content-length", &length)];
    let heard = bench.send("PUT", "/v1/objects/b/k", &hasty, large.clone()).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "shed_deadline"));
    let patient = [("ikada-timeout-ms", "60000"), ("content-length", &length)];
    assert_eq!(bench.send("PUT", "/v1/objects/b/k", &patient, large).await.status, 201);
}

// CH-16, CH-23: whoever fills the places for uploads keeps no result from coming home.
#[tokio::test]
async fn ch_16_outputs_of_tasks_have_places_of_their_own() {
    let limits = HttpLimits { uploads_max: 1, ..HttpLimits::default() };
    let bench = Bench::with(limits);
    let place = bench.app.rooms.uploads.enter(std::time::Duration::ZERO).await.unwrap();
    let hasty = [("ikada-timeout-ms", "50")];
    let refused = bench.send("PUT", "/v1/objects/b/k", &hasty, "new").await;
    assert_eq!(refused.status, 429);
    assert_eq!(bench.send("POST", "/v1/uploads", &hasty, "output").await.status, 201);
    drop(place);
    assert_eq!(bench.send("PUT", "/v1/objects/b/k", &hasty, "new").await.status, 201);
}

// CH-16: a reader has its place until the last bytes have left, however few they are.
#[tokio::test]
async fn ch_16_a_download_holds_its_place_until_it_is_read() {
    let limits = HttpLimits { downloads_max: 1, ..HttpLimits::default() };
    let bench = Bench::with(limits);
    let large = vec![7; (2 << 20) + 1];
    assert_eq!(bench.send("PUT", "/v1/objects/b/large", &[], large.clone()).await.status, 201);
    assert_eq!(put(&bench, "/v1/objects/b/small", "small").await, 201);
    let hasty = [("ikada-timeout-ms", "50")];
    for key in ["small", "large"] {
        let path = format!("/v1/objects/b/{key}");
        let request =
            hyper::Request::get(&path).body(http_body_util::Full::<bytes::Bytes>::default());
        let unread = crate::http::dispatch::answer(&bench.app, request.unwrap()).await;
        assert_eq!(unread.status(), 200);
        assert_eq!(bench.send("GET", &path, &hasty, "").await.status, 429, "{key}");
        drop(unread);
        assert_eq!(bench.send("HEAD", &path, &hasty, "").await.status, 200);
        assert_eq!(bench.send("GET", "/v1/objects/b/large", &[], "").await.body, large);
    }
}

// F-32: a sender that is slow says nothing about how fast the node is, alone in its lane or not.
#[tokio::test]
async fn f_32_the_time_of_a_call_begins_when_its_body_is_there() {
    let admission = Arc::new(Admission::new(Rules::default(), 1));
    let bench = Bench::admitting(HttpLimits::default(), Security::default(), admission.clone());
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
    let request = hyper::Request::post("/v1/tasks").header("content-type", "application/json");
    let answering = crate::http::dispatch::answer(&bench.app, request.body(body).unwrap());
    let sending = async {
        sender.send_data(Bytes::from_static(b"{\"id\":")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let there = Instant::now();
        sender.send_data(Bytes::from_static(b"\"a\"}")).await.unwrap();
        drop(sender);
        there
    };
    let (heard, there) = tokio::join!(answering, sending);
    assert_eq!(heard.status(), 201);
    let (took, at_most) = (admission.expected(Lane::Submit), there.elapsed());
    assert!(took <= at_most, "{took:?} of {at_most:?}");
    // What a call writes on all disks is no measure of the others.
    let wanted = r#"{"bucket": "b", "key": "k"}"#;
    let begun = put(&bench, "/v1/uploads/00112233445566778899aabbccddeeff", wanted).await;
    assert_eq!((begun, admission.expected(Lane::Submit)), (201, took));
}
