//! Requests become the right orders, and bad ones name their field.

use ikada_state::{Command, Namespace, RequestId, RequestKey, WorkerId, derive_task_id};

use super::*;
use crate::v1::{Number, QueueSettingsBody};

fn key(item: u32) -> RequestKey {
    RequestKey { id: RequestId::parse("r1").unwrap(), item }
}

fn new_task(json: &str) -> NewTask {
    serde_json::from_str(json).unwrap()
}

fn enqueue(json: &str) -> Result<Enqueue, FieldError> {
    match enqueue_order(&Namespace::default(), key(3), &new_task(json))?.command {
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

// TQ-27
#[test]
fn payloads_keep_their_bytes() {
    assert_eq!(&enqueue("{\"payload\": {\"a\":  1.0}}").unwrap().payload[..], b"{\"a\":  1.0}");
    assert_eq!(&enqueue("{\"payload_base64\": \"AHz/\"}").unwrap().payload[..], b"\0|\xff");
    assert!(enqueue("{\"payload\": null}").unwrap().payload.is_empty());
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
fn failures_are_cut_on_a_character_and_jittered_within_bounds() {
    let worker = WorkerId::parse("w").unwrap();
    for draw in [0, 1, 100, 200, 201, u64::MAX] {
        let item = FailItem {
            id: "a".into(),
            fence: Number(1),
            error: "ä".repeat(1000),
            retry: true,
            delay_ms: None,
        };
        let order = fail_order(&Namespace::default(), &worker, &item, draw).unwrap();
        let Command::Fail(fail) = order.command else { panic!() };
        assert_eq!(fail.error.len(), 1024);
        assert!(std::str::from_utf8(&fail.error).is_ok());
        assert!(fail.jitter_permille.abs() <= JITTER_PERMILLE);
    }
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
}
