//! Requests become the right orders, and bad ones name their field.

use proptest::prelude::*;

use ikada_state::{Command, Enqueue, Namespace, RequestId, RequestKey, WorkerId, derive_task_id};

use super::super::{BuiltinPrograms, enqueue_order};
use super::*;
use crate::cbor::{from_slice, to_vec};
use crate::v1::{Body, NewTask, Number, QueueSettingsBody, RawBytes};

fn key(item: u32) -> RequestKey {
    RequestKey { id: RequestId::parse("r1").unwrap(), item }
}

fn new_task(json: &str) -> NewTask {
    serde_json::from_str(json).unwrap()
}

fn enqueue(json: &str) -> Result<Enqueue, FieldError> {
    match enqueue_order(&Namespace::default(), key(3), &new_task(json), &BuiltinPrograms)?.command {
        Command::Enqueue(enqueue) => Ok(enqueue),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bare_task_gets_a_derived_id_and_the_default_queue() {
    let order = enqueue("{}").unwrap();
    assert_eq!(order.id, derive_task_id(&Namespace::default(), &key(3)));
    assert_eq!(order.queue.as_str(), "default");
    assert!(order.payload.is_empty());
}

// TQ-1
#[test]
fn tq_1_a_key_and_an_id_make_a_handle() {
    let handle = |json: &str| enqueue(json).unwrap().id.to_string();
    assert_eq!(handle("{\"key\": \"u7\", \"id\": \"a\"}"), "u7:a");
    assert_eq!(handle("{\"id\": \"u7:a\"}"), "u7:a");
    assert_eq!(handle("{\"key\": \"u7\", \"id\": \"u7:a\"}"), "u7:a");
    let derived = derive_task_id(&Namespace::default(), &key(3));
    assert_eq!(handle("{\"key\": \"u7\"}"), format!("u7:{derived}"));
}

#[test]
fn follow_ups_take_their_parents_key() {
    let then = |json: &str| {
        let options = enqueue(json).unwrap().options.unwrap();
        ikada_state::decode_then(&options.then.unwrap()).unwrap()
    };
    let tasks =
        then("{\"id\": \"p\", \"then\": [{\"id\": \"a\", \"then\": [{\"id\": \"p:b\"}]}, {}]}");
    assert_eq!(tasks[0].id.as_str(), "p:a");
    let below = tasks[0].options.as_ref().unwrap().then.clone().unwrap();
    assert_eq!(ikada_state::decode_then(&below).unwrap()[0].id.as_str(), "p:b");
    assert_eq!(tasks[1].id.key(), Some("p"));
    assert_eq!(then("{\"id\": \"k:p\", \"then\": [{\"id\": \"a\"}]}")[0].id.as_str(), "k:a");
    let deep = (0..5).fold("{}".to_owned(), |below, _| format!("{{\"then\": [{below}]}}"));
    let many = format!("{{\"then\": [{}]}}", vec!["{}"; 17].join(","));
    for json in [deep, many] {
        let error = enqueue(&json).unwrap_err();
        assert_eq!(error.code, "too_large");
        assert!(error.field.ends_with("then"), "{error}");
    }
}

// TQ-27
#[test]
fn tq_27_payloads_keep_their_bytes() {
    assert_eq!(&enqueue("{\"payload\": {\"a\":  1.0}}").unwrap().payload[..], b"{\"a\":  1.0}");
    assert_eq!(&enqueue("{\"payload_base64\": \"AHz/\"}").unwrap().payload[..], b"\0|\xff");
    assert!(enqueue("{\"payload\": null}").unwrap().payload.is_empty());
}

/// Ids as the rules allow them.
const ID: &str = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}";

proptest! {
    // TQ-27: whatever bytes a payload and a result have, they come through every door and the log as they were.
    #[test]
    fn tq_27_any_bytes_come_through_every_door_and_the_log(
        id in ID,
        payload in proptest::collection::vec(any::<u8>(), 0..300),
        text in "\\PC{0,40}",
    ) {
        for bytes in [payload.as_slice(), text.as_bytes(), format!("{text:?}").as_bytes()] {
            let body = Body::of(bytes);
            let in_json = NewTask { id: Some(id.clone()), payload: body.json, payload_base64: body.base64, ..NewTask::default() };
            let raw = Some(RawBytes(bytes.to_vec()));
            let in_cbor = NewTask { id: Some(id.clone()), payload_bytes: raw, ..NewTask::default() };
            let json: NewTask = serde_json::from_slice(&serde_json::to_vec(&in_json).unwrap()).unwrap();
            let cbor: NewTask = from_slice(&to_vec(&in_cbor).unwrap()).unwrap();
            for task in [json, cbor] {
                let order = enqueue_order(&Namespace::default(), key(0), &task, &BuiltinPrograms).unwrap();
                let logged: Order = minicbor::decode(&minicbor::to_vec(&order).unwrap()).unwrap();
                let Command::Enqueue(enqueue) = logged.command else { panic!("{logged:?}") };
                prop_assert_eq!(enqueue.id.as_str(), id.as_str());
                // A JSON null is no payload at all.
                let expected = if bytes == b"null" { b"" } else { bytes };
                prop_assert_eq!(&enqueue.payload[..], expected);
            }
        }
    }

    // TQ-27: what is no request is told so, and nothing panics.
    #[test]
    fn tq_27_no_bytes_break_the_readers(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let read = [serde_json::from_slice::<NewTask>(&bytes).ok(), from_slice::<NewTask>(&bytes).ok()];
        for task in read.into_iter().flatten() {
            let _ = enqueue_order(&Namespace::default(), key(0), &task, &BuiltinPrograms);
        }
    }
}

#[test]
fn bad_values_name_their_field() {
    let big = format!("{{\"payload\": \"{}\"}}", "x".repeat(1 << 20));
    let table = [
        ("{\"id\": \"a/b\"}", "id", "bad_name"),
        ("{\"id\": \"..\"}", "id", "bad_name"),
        ("{\"queue\": \"\"}", "queue", "bad_name"),
        ("{\"payload\": 1, \"payload_base64\": \"AA==\"}", "payload_base64", "bad_value"),
        ("{\"payload_base64\": \"?\"}", "payload_base64", "bad_value"),
        ("{\"priority\": 10}", "priority", "bad_value"),
        ("{\"run_at_ms\": 1, \"delay_ms\": 1}", "delay_ms", "bad_value"),
        ("{\"delay_ms\": 18446744073709551615}", "delay_ms", "bad_value"),
        ("{\"max_attempts\": 0}", "max_attempts", "bad_value"),
        ("{\"ttl_ms\": 1}", "ttl_ms", "bad_value"),
        ("{\"backoff\": {\"base_ms\": 2, \"cap_ms\": 1}}", "backoff.cap_ms", "bad_value"),
        (big.as_str(), "payload", "too_large"),
        ("{\"key\": \"a b\"}", "key", "bad_name"),
        ("{\"key\": \"a\", \"id\": \"b/c\"}", "id", "bad_name"),
        ("{\"key\": \"a\", \"id\": \"b:c\"}", "key", "key_conflict"),
        ("{\"key\": \"a\", \"id\": \"a:b:c\"}", "id", "bad_name"),
        ("{\"key_limit\": 1}", "key_limit", "bad_value"),
        ("{\"key\": \"a\", \"key_limit\": 1001}", "key_limit", "bad_value"),
        ("{\"labels\": {\"a\": \"\"}}", "labels.a", "bad_name"),
        ("{\"timeout_ms\": 4294967295}", "timeout_ms", "bad_value"),
        ("{\"deadline_ms\": 0}", "deadline_ms", "bad_value"),
        ("{\"deadline_ms\": 5, \"run_at_ms\": 5}", "deadline_ms", "bad_value"),
        ("{\"deadline_ms\": 5, \"deadline_in_ms\": 5}", "deadline_ms", "bad_value"),
        ("{\"deadline_in_ms\": 18446744073709551615}", "deadline_in_ms", "bad_value"),
        ("{\"id\": \"p\", \"then\": [{\"key\": \"q\"}]}", "then[0].key", "key_conflict"),
        ("{\"id\": \"p\", \"then\": [{}, {\"id\": \"q:x\"}]}", "then[1].id", "key_conflict"),
        ("{\"then\": [{\"then\": [{\"priority\": 10}]}]}", "then[0].then[0].priority", "bad_value"),
    ];
    for (json, field, code) in table {
        let error = enqueue(json).unwrap_err();
        assert_eq!((error.field.as_str(), error.code), (field, code), "{error}");
    }
}

#[test]
fn unknown_fields_are_refused_by_name() {
    let error = serde_json::from_str::<NewTask>("{\"prio\": 1}").unwrap_err().to_string();
    assert!(error.contains("prio"), "{error}");
}

#[test]
fn failures_are_cut_on_a_character_and_leave_the_spread_to_the_leader() {
    let worker = WorkerId::parse("w").unwrap();
    let item = FailItem {
        id: "a".into(),
        fence: Number(1),
        error: "ä".repeat(1000),
        retry: true,
        delay_ms: None,
    };
    let order = fail_order(&Namespace::default(), &worker, &item).unwrap();
    let Command::Fail(fail) = order.command else { panic!() };
    assert_eq!(fail.error.len(), 1024);
    assert!(std::str::from_utf8(&fail.error).is_ok());
    assert_eq!(fail.jitter_permille, 0);
}

#[test]
fn claims_and_settings_are_bounded() {
    let claim = |json: &str| claim_names(&serde_json::from_str(json).unwrap());
    assert!(claim("{\"worker\":\"w\",\"queues\":[\"a\"]}").is_ok());
    assert_eq!(claim("{\"worker\":\"w\",\"queues\":[]}").unwrap_err().field, "queues");
    assert_eq!(
        claim("{\"worker\":\"w\",\"queues\":[\"a\",\" \"]}").unwrap_err().field,
        "queues[1]"
    );
    let none = "{\"worker\":\"w\",\"queues\":[\"a\"],\"count_max\":0}";
    assert_eq!(claim(none).unwrap_err().field, "count_max");
    let body = QueueSettingsBody { ttl_ms: Some(0), ..QueueSettingsBody::default() };
    let refused = set_queue_order(&Namespace::default(), key(0), "q", &body).unwrap_err();
    assert_eq!(refused.field, "ttl_ms");
    let body = QueueSettingsBody { jitter_permille: Some(501), ..QueueSettingsBody::default() };
    let refused = set_queue_order(&Namespace::default(), key(0), "q", &body).unwrap_err();
    assert_eq!(refused.field, "jitter_permille");
}

#[test]
fn b4_35_parts_of_addresses_and_addresses_of_outputs_are_read_and_shown() {
    let input = r#"{"name": "a", "url": "s3://b/k", "offset": 7, "length": 9, "etag": "\"v\""}"#;
    let task = enqueue(&format!("{{\"program\": \"wordcount\", \"inputs\": [{input}]}}")).unwrap();
    let work = task.options.unwrap().work.unwrap();
    let shown = super::super::program::show_work(&work);
    assert_eq!(
        serde_json::to_value(&shown.inputs[0]).unwrap(),
        serde_json::from_str::<serde_json::Value>(input).unwrap()
    );
    for bad in [
        r#"{"name": "a", "text": "x", "etag": "v"}"#,
        r#"{"name": "a", "url": "s3://b/k", "etag": ""}"#,
        r#"{"name": "a", "url": "s3://b/k", "etag": "a b"}"#,
    ] {
        let refused = enqueue(&format!("{{\"program\": \"wordcount\", \"inputs\": [{bad}]}}"));
        assert_eq!(refused.unwrap_err().field, "inputs[0].etag", "{bad}");
    }
    let job = |more: &str| {
        let text = format!(
            r#"{{"id": "j", "map": {{"program": "wordcount", "range": {{"from": 0, "to": 1}}}}, {more}}}"#
        );
        let job = serde_json::from_str(&text).unwrap();
        super::super::submit_job_order(&Namespace::default(), key(0), &job, &BuiltinPrograms)
    };
    for good in ["s3://b", "gs://b/k/", "az://c/k", "file:///", "file:///srv/out"] {
        let order = job(&format!("\"output_url\": \"{good}\"")).unwrap();
        let Command::SubmitJob(submit) = order.command else { panic!("another order") };
        assert_eq!(submit.spec.output_url.as_deref(), Some(good));
    }
    let long = format!("s3://b/{}", "k".repeat(510));
    for bad in ["http://a/b", "s3://", "file://host/a", "out/", "s3://b/../c", long.as_str()] {
        let error = job(&format!("\"output_url\": \"{bad}\"")).unwrap_err();
        assert_eq!((error.field.as_str(), error.code), ("output_url", "bad_url"), "{bad}");
    }
    let both = job("\"output_url\": \"s3://b\", \"reuse\": true").unwrap_err();
    assert_eq!(both.field, "output_url");
}

#[test]
fn b4_35_an_address_that_no_worker_opens_is_refused_at_submission() {
    let input = |url: &str| {
        let input = format!("{{\"name\": \"a\", \"url\": \"{url}\"}}");
        enqueue(&format!("{{\"program\": \"wordcount\", \"inputs\": [{input}]}}"))
    };
    for good in ["s3://b/k", "gs://b/k", "az://c/b", "file:///a"] {
        assert!(input(good).is_ok(), "{good}");
    }
    for bad in ["azure://b/k", "ABFS://b/k", "abfss://b@c/k"] {
        let error = input(bad).unwrap_err();
        assert_eq!((error.field.as_str(), error.code), ("inputs[0].url", "bad_url"), "{bad}");
        assert!(error.detail.contains("az://container/blob"), "{}", error.detail);
    }
}
