//! Seeds: inputs that are whole, made by the product's own encoders, so that damage begins behind the first check.
//!
//! The corpora in the repository began with them. After a format has changed, `write_seeds` writes them anew; what a
//! fuzzer found stays beside them.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::Request;
use ikada_api::cbor::to_vec;
use ikada_api::pipe::{PipeAsk, PipeVerb, push_frame};
use ikada_api::s3::sign::{Credentials, digest_of, sign_request};
use ikada_api::state::{PrincipalName, Role};
use ikada_replica::consensus::{Conf, Config, Consensus, Message, Outbox, Recovered, Start};
use ikada_replica::founding::{Candidate, FoundingMessage, Plan};
use ikada_replica::peer::{
    Ask, Framer, HashReport, Header, Hint, PeerMessage, SnapshotMessage, Told,
};
use ikada_replica::state::{
    BatchBuilder, Digest, Lsn, Namespace, Order, QueueName, RequestId, RequestKey,
};
use ikada_store::{Chunk, Manifest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::TARGETS;
use super::fuzz_test::folder;
use super::log::{FILES, SEALED, whole};
use super::states::genesis;
use crate::audit;
use crate::backup::{write_end, write_states};
use crate::gossip::{Fact, ShardLag};
use crate::http::fuzz::{CBOR, DOCUMENTS, SECRET, SIGNED_MS};

use crate::objects::{BlobAsk, BlobTold};
use crate::peers::wire::head;
use crate::peers::{Opening, Welcome, encode};
use crate::tls::{Authority, ClientName, ClientPapers, Name, Papers};

type Seeds = Vec<(String, Vec<u8>)>;

/// Seeds of a target, by name.
pub(super) fn seeds(target: &str) -> Seeds {
    match target {
        "pre_auth_texts" => texts(),
        "pre_auth_http" => requests(),
        "pre_auth_s3" => signed(),
        "pre_auth_pipe" => pipe(),
        "pre_auth_bodies" => bodies(),
        "pre_auth_frames" => openings(),
        "pre_auth_links" => links(),
        "pre_auth_join" => join(),
        "pre_auth_gossip" => gossip(),
        "pre_auth_certificates" => certificates(),
        "log" => logs(),
        "snapshot" => snapshots(),
        "entries" => named([("entries", entries())]),
        "backup" => named([("backup", backup())]),
        "config" => config(),
        "audit" => named([("audit", audit::sample().into_bytes())]),
        "schedules" => schedules(),
        other => panic!("{other} has no seeds"),
    }
}

#[test]
#[ignore = "writes seeds into fuzz/corpus; run by hand after a format has changed"]
fn write_seeds() {
    for target in TARGETS {
        let folder = folder().join("corpus").join(target.name);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in seeds(target.name) {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

fn named<const N: usize>(seeds: [(&str, Vec<u8>); N]) -> Seeds {
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

fn numbered(seeds: impl IntoIterator<Item = Vec<u8>>) -> Seeds {
    let seeds = seeds.into_iter().enumerate();
    seeds.map(|(number, bytes)| (format!("seed-{number:02}"), bytes)).collect()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&head(message)[..], message].concat()
}

fn texts() -> Seeds {
    let [ones, twos] = ["1", "2"].map(|digit| digit.repeat(64));
    numbered(
        [
            format!("ikada_0123456789ab_{ones}"),
            format!("ikada-join_{ones}_node_0123456789ab_{twos}"),
            Name { cluster: 0xabc, node: 7 }.to_string(),
            "ikada://0000000000000abc/client/viewer/ann".to_owned(),
            "/v1/objects/bucket/a%2Fb/..%2e".to_owned(),
            "queue=a&limit=5&after=%F0%9F%98%80".to_owned(),
            "20261126T150405Z".to_owned(),
            "s3://bucket/prefix/name".to_owned(),
        ]
        .map(String::into_bytes),
    )
}

fn requests() -> Seeds {
    let request = |line: &str, headers: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("{line} HTTP/1.1\r\nhost: a\r\n{headers}content-length: {length}\r\n\r\n");
        [head.as_bytes(), body].concat()
    };
    let task = br#"{"queue": "q", "payload": {"a": [1]}, "then": []}"#;
    let one = request("POST /v1/tasks", "content-type: application/json\r\n", task);
    let token = "authorization: Bearer ikada_0123456789ab_00\r\nikada-namespace: blue\r\n";
    let two = request("GET /v1/tasks?queue=a&limit=5&consistency=stale", token, b"");
    let cbor = "content-type: application/cbor\r\nikada-timeout-ms: 5\r\nidempotency-key: k\r\n";
    let three = request("POST /v1/tasks/claim", cbor, &documents(2)[1][1..]);
    let both = [one.clone(), two.clone()].concat();
    let chunked = "PUT /v1/queues/q HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\
                   e\r\n{\"paused\":true\r\n1\r\n}\r\n0\r\n\r\n";
    numbered([one, two, three, both, chunked.as_bytes().to_vec()])
}

fn signed() -> Seeds {
    let credentials =
        Credentials { key_id: "ikada".to_owned(), secret: SECRET.to_owned(), session_token: None };
    let chunks = "4\r\nabcd\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n";
    let delete = "<Delete><Object><Key>a&amp;b</Key></Object></Delete>";
    let whole = digest_of(b"hello");
    let calls = [
        ("PUT", "/bucket/some/key", whole.as_str(), "hello"),
        ("PUT", "/bucket/key", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", chunks),
        (
            "PUT",
            "/bucket/key?partNumber=1&uploadId=0",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            chunks,
        ),
        ("POST", "/bucket?delete", "UNSIGNED-PAYLOAD", delete),
        ("GET", "/bucket?list-type=2&prefix=a%20b&max-keys=5", "UNSIGNED-PAYLOAD", ""),
    ];
    let write = |(method, uri, digest, body): (&str, &str, &str, &str)| {
        let request = Request::builder().method(method).uri(uri).header("host", "a");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        sign_request(&mut parts, &credentials, "us-east-1", digest, SIGNED_MS).unwrap();
        let mut text = format!("{method} {uri} HTTP/1.1\r\n");
        for (name, value) in &parts.headers {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        text.into_bytes()
    };
    let presigned = "GET /b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=k%2F20261126%2Fr%2Fs3%2Faws4_request\
                     &X-Amz-Date=20261126T150405Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=";
    let presigned = format!("{presigned}{} HTTP/1.1\r\nhost: a\r\n\r\n", "0".repeat(64));
    numbered(calls.into_iter().map(write).chain([presigned.into_bytes()]))
}

fn pipe() -> Seeds {
    let verbs = [
        (PipeVerb::Enqueue, 1),
        (PipeVerb::Claim, 2),
        (PipeVerb::Complete, 3),
        (PipeVerb::Fail, 4),
        (PipeVerb::Renew, 5),
    ];
    let mut together = Vec::new();
    let mut seeds = Vec::new();
    for (call, (verb, document)) in verbs.into_iter().enumerate() {
        let body = &documents(document)[1][1..];
        let (key, namespace) = (Some("key"), Some("blue"));
        let ask =
            PipeAsk { call: call as u64, verb, timeout_ms: 500, key, namespace, body: body.into() };
        let mut frame = Vec::new();
        push_frame(&mut frame, &ask);
        together.extend_from_slice(&frame);
        seeds.push(frame);
    }
    seeds.push(together);
    numbered(seeds)
}

/// A document in JSON and in CBOR, each behind the byte that names it.
fn documents(place: usize) -> [Vec<u8>; 2] {
    let task = json!({
        "queue": "q", "key": "k", "payload_base64": "aGk=", "priority": 3, "labels": {"gpu": "a"},
        "program": "wordcount", "settings": {"a": "b"}, "inputs": [{"name": "text", "text": "t"}],
        "backoff": {"base_ms": 10, "cap_ms": 99}, "max_attempts": 3, "ttl_ms": 30_000,
        "then": [{"queue": "next", "then": [{"queue": "last"}]}],
    });
    let stage = json!({
        "name": "map", "program": "wordcount", "inputs": [{"name": "text", "bucket": "b", "key": "n"}],
    });
    let documents: [Value; DOCUMENTS.len()] = [
        task.clone(),
        json!({"tasks": [task, {"queue": "r", "delay_ms": 9}]}),
        json!({"worker": "w", "session": 9, "queues": ["q", "r"], "count_max": 2, "wait_ms": 10}),
        json!({"worker": "w", "tasks": [
            {"id": "a", "fence": 7, "result_base64": "aGk=", "then": [{"queue": "q"}]},
        ]}),
        json!({"worker": "w", "tasks": [{"id": "a", "fence": 7, "error": "why", "delay_ms": 5}]}),
        json!({"worker": "w", "session": 9, "tasks": [{"id": "a", "fence": 7}]}),
        json!({"paused": true, "max_attempts": 5, "ttl_ms": 30_000, "alerts": {"dead_percent": 5}}),
        json!({"cron": "*/5 * * * *", "zone": "Europe/Berlin", "task": {"queue": "q"}}),
        json!({"name": "job", "stages": [stage], "settings": {"a": "b"}, "retention_ms": 60_000}),
        json!({"pending_max": 10, "bytes_max": 1 << 30, "rate_max": 5}),
        json!({"holder": "h", "ttl_ms": 5_000, "wait_ms": 10, "task": {"id": "a", "fence": 7}}),
        json!({"session": 7, "slots": 4, "busy": 1, "queues": ["q"], "version": "0.1.0"}),
        json!({"name": "p", "kind": "command", "argv": ["/bin/sh", "-c", "true"]}),
        json!({"name": "ann", "role": "viewer", "namespaces": ["blue"], "ttl_ms": 1_000}),
        json!({"peer_addr": "127.0.0.1:7500"}),
        json!({"shard": 3, "to": 2}),
        json!({"cordoned": true, "priority": 4}),
        json!({"bucket": "b", "key": "k/e", "content_type": "text/plain"}),
        json!({"parts": 3, "digest": "ab".repeat(32), "if_absent": true}),
        json!({"worker": "w", "fence": "7", "size": 9, "digest": "ab".repeat(32), "chunks": ["cd".repeat(32)]}),
        json!({"shards": 8}),
        json!({"timeout_ms": 1_500}),
        json!({"holder": "h", "fence": "7"}),
        json!({"holder": "h", "fence": "7"}),
    ];
    let document = &documents[place];
    let json = [&[place as u8][..], &serde_json::to_vec(document).unwrap()].concat();
    [json, [&[place as u8 | CBOR][..], &to_vec(document).unwrap()].concat()]
}

fn bodies() -> Seeds {
    numbered((0..DOCUMENTS.len()).flat_map(documents))
}

fn candidate(node: u64) -> Candidate {
    let (peer_addr, client_addr) = (format!("10.0.0.{node}:7401"), format!("10.0.0.{node}:7400"));
    Candidate { node, incarnation: node << 40, peer_addr, client_addr }
}

fn openings() -> Seeds {
    let plan = Plan { cluster: 7, members: (1..4).map(candidate).collect(), shards: 4 };
    let hello = crate::peers::link_hello(7, 1, 99);
    let messages = [
        FoundingMessage::Hello {
            me: candidate(1),
            expect: 3,
            shards: 4,
            known: vec![candidate(2)],
        },
        FoundingMessage::Propose(plan.clone()),
        FoundingMessage::Founded(plan.clone()),
        FoundingMessage::Join(candidate(9)),
        FoundingMessage::Waiting { me: candidate(9), protocol: 1, level: 3 },
    ];
    let mut seeds: Vec<Vec<u8>> = vec![
        encode(&Opening::Link(hello)),
        encode(&Opening::Blobs(hello)),
        encode(&Welcome::Refused("no".to_owned())),
        encode(&Welcome::Founding(FoundingMessage::Removed { node: 3 })),
        plan.encode(),
    ];
    seeds.extend(messages.into_iter().map(|message| encode(&Opening::Founding(message))));
    let together: Vec<u8> = seeds.iter().flat_map(|seed| framed(seed)).collect();
    numbered(seeds.into_iter().chain([together]))
}

/// Two nodes talk until entries were committed; what they say.
fn consensus() -> Vec<Message> {
    let mut nodes: Vec<Consensus> =
        (1..3).map(|node| Consensus::new(Config::new(node, node))).collect();
    for node in &mut nodes {
        node.open(3, Recovered::bootstrap(Conf::of_voters([1, 2])), 0).unwrap();
    }
    let (mut said, mut out) = (Vec::new(), Outbox::default());
    for now_ms in (0..20_000).step_by(50) {
        for place in 0..nodes.len() {
            nodes[place].tick(now_ms);
            if now_ms % 5_000 == 0 {
                let _ = nodes[place].propose(3, Bytes::from_static(b"an entry"));
            }
            nodes[place].poll(&mut out);
            if let Some(io) = &out.io {
                nodes[place].persisted(io.seq);
            }
            for (to, _, message) in std::mem::take(&mut out.send) {
                nodes[to as usize - 1].receive(place as u64 + 1, message.clone(), now_ms);
                said.push(message);
            }
        }
    }
    said
}

fn links() -> Seeds {
    let header = Header {
        cluster: 7,
        from: 1,
        from_incarnation: 2,
        to: 3,
        to_incarnation: 0,
        wall_ms: SIGNED_MS,
    };
    let frame = |messages: &[PeerMessage]| {
        let mut framer = Framer::new();
        messages.iter().for_each(|message| framer.push(message));
        framer.finish(&header).to_vec()
    };
    let said = consensus();
    let mut kinds: Vec<&Message> = Vec::new();
    for message in &said {
        let like = |known: &&Message| {
            (known.kind(), known.entry_count()) == (message.kind(), message.entry_count())
        };
        if !kinds.iter().any(like) {
            kinds.push(message);
        }
    }
    let order = orders().remove(0);
    let start = Start { index: 9, term: 2 };
    let asks = [
        PeerMessage::Ask { leg: 1, shard: 2, ask: Ask::Write(orders()) },
        PeerMessage::Ask { leg: 2, shard: 2, ask: Ask::Claim(Box::new(order)) },
        PeerMessage::Ask { leg: 3, shard: 0, ask: Ask::Transfer { to: Some(2) } },
        PeerMessage::Told { leg: 1, told: Told::NotLeader { leader: Some(3) } },
        PeerMessage::Told { leg: 4, told: Told::Index(77) },
        PeerMessage::Hint(Hint {
            program: None,
            shard: 2,
            namespace: Namespace::default(),
            queue: queue(),
            ready: 1,
        }),
        PeerMessage::Hash(HashReport { shard: 2, index: 1_000, hash: 7 }),
        PeerMessage::DiskStill,
        PeerMessage::Level(3),
    ];
    let steps = [
        SnapshotMessage::Want { shard: 1, start, chunk: 4 },
        SnapshotMessage::Chunk { shard: 1, start, chunk: 4, bytes: Bytes::from_static(b"chunk") },
        SnapshotMessage::Offer {
            shard: 1,
            start,
            manifest: manifest().encode().into(),
            message: kinds[0].clone(),
        },
        SnapshotMessage::End { shard: 1, ok: true },
    ];
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for message in &kinds {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        seeds.push(bytes);
    }
    let rafts: Vec<PeerMessage> = kinds.into_iter().cloned().map(PeerMessage::Raft).collect();
    let steps = steps.map(PeerMessage::Snapshot);
    seeds.extend([frame(&rafts), frame(&asks), frame(&steps)]);
    numbered(seeds)
}

fn join() -> Seeds {
    // As `JoinAsk` is written, whose fields only its own file sees.
    let key = minicbor::bytes::ByteVec::from(vec![7; 65]);
    let ask =
        minicbor::to_vec((Some(("0123456789ab", "22")), 2u64, key, vec!["10.0.0.2"])).unwrap();
    let given = crate::tls::JoinAnswer::Given("ca".to_owned(), "node".to_owned());
    numbered([framed(&ask), ask, minicbor::to_vec(given).unwrap()])
}

fn gossip() -> Seeds {
    let fact = |node| Fact {
        node,
        life_ms: SIGNED_MS,
        sequence: 9,
        cpu: 1_000,
        memory: 2_000,
        admitted_last_minute: 5,
        shed_last_minute: 1,
        cache_hit_permille: 900,
        cache_bytes: 1 << 20,
        lags: vec![ShardLag { shard: 3, term: 4, last_index: 90, behind: vec![(2, 7)] }],
    };
    let digest = Digest([7; 32]);
    let facts: Vec<Fact> = (1..5).map(fact).collect();
    numbered([
        encode(&BlobAsk::Gossip(facts.clone())),
        encode(&BlobAsk::Store(digest)),
        encode(&BlobAsk::Confirm(vec![digest, Digest([8; 32])].into())),
        encode(&BlobTold::Gossip(facts)),
        encode(&BlobTold::Confirmed(vec![digest].into())),
        encode(&BlobTold::Failed { why: "full".to_owned(), full: true }),
    ])
}

fn certificates() -> Seeds {
    let folder = tempfile::tempdir().unwrap();
    let name = Name { cluster: 7, node: 1 };
    let papers = Papers::found(folder.path(), name, &["127.0.0.1".to_owned()], 2).unwrap();
    let (authority, _, _) = Authority::make(7).unwrap();
    let client =
        ClientName { cluster: 7, role: Role::Viewer, name: PrincipalName::parse("ann").unwrap() };
    let until = SystemTime::now() + Duration::from_secs(60);
    let client = ClientPapers::make(&authority, &client, until).unwrap();
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
    named([
        ("authority", der(&papers.authority_pem)),
        ("node", der(&papers.node_pem)),
        ("client", der(client.reveal().0)),
    ])
}

fn logs() -> Seeds {
    let mut seeds = Vec::new();
    for (place, (_, bytes)) in whole().iter().enumerate() {
        for form in [place as u8, place as u8 | SEALED] {
            seeds.push([&[form][..], bytes].concat());
        }
    }
    assert_eq!(seeds.len(), FILES.len() * 2);
    numbered(seeds)
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

/// The orders of all documents that become one.
fn orders() -> Vec<Order> {
    use ikada_api::convert::{
        AnyProgram, cancel_order, complete_order, enqueue_order, fail_order, set_queue_order,
        set_quota_order, set_schedule_order, submit_job_order,
    };
    fn read<T: serde::de::DeserializeOwned>(place: usize) -> T {
        serde_json::from_slice(&documents(place)[0][1..]).unwrap()
    }
    let home = Namespace::default();
    let key = |item| RequestKey { id: RequestId::parse("r").unwrap(), item };
    let worker = ikada_api::state::WorkerId::parse("w").unwrap();
    let complete: ikada_api::v1::CompleteRequest = read(3);
    let fail: ikada_api::v1::FailRequest = read(4);
    vec![
        enqueue_order(&home, key(0), &read(0), &AnyProgram).unwrap(),
        complete_order(&home, &worker, &complete.tasks[0], &AnyProgram).unwrap(),
        fail_order(&home, &worker, &fail.tasks[0]).unwrap(),
        set_queue_order(&home, key(1), "q", &read(6)).unwrap(),
        set_schedule_order(&home, key(2), "s", &read(7), &AnyProgram).unwrap(),
        submit_job_order(&home, key(3), &read(8), &AnyProgram).unwrap(),
        set_quota_order("blue", &read(9), 1).unwrap(),
        cancel_order(&home, key(4), "a").unwrap(),
    ]
}

/// Log entries with one order each, and one with all.
fn entry_list() -> Vec<Vec<u8>> {
    let orders = orders();
    let mut lists: Vec<&[Order]> = orders.chunks(1).collect();
    lists.push(&orders);
    let times = (1..).map(|turn| SIGNED_MS + turn * 1_000);
    let write = |(orders, time_ms): (&[Order], u64)| {
        let mut batch = BatchBuilder::new();
        orders.iter().for_each(|order| batch.push(order));
        batch.finish(time_ms)
    };
    lists.into_iter().zip(times).map(write).collect()
}

fn entries() -> Vec<u8> {
    let behind_length = |entry: Vec<u8>| [&(entry.len() as u16).to_le_bytes()[..], &entry].concat();
    entry_list().into_iter().flat_map(behind_length).collect()
}

fn manifest() -> Manifest {
    let chunk = Chunk { length: 100, hash: [7; 32] };
    let (conf, chunks) = (vec![1, 2, 3], vec![chunk; 2]);
    Manifest { cluster: 7, shard: 3, index: 99, term: 4, state_hash: 5, conf, chunks }
}

/// A state that has been through some entries.
fn state() -> ikada_replica::state::Shard {
    let mut shard = genesis();
    let first = shard.applied().index + 1;
    for (index, entry) in (first..).zip(entry_list()) {
        shard.apply(Lsn { term: 2, index }, &entry);
    }
    shard
}

fn snapshots() -> Seeds {
    let behind = |form: u8, bytes: Vec<u8>| [&[form][..], &bytes].concat();
    let content: Vec<u8> = state().freeze().chunks().flatten().collect();
    named([
        ("manifest", behind(0, manifest().encode())),
        ("manifest-sealed", behind(1, manifest().encode())),
        ("content", behind(2, content)),
    ])
}

fn backup() -> Vec<u8> {
    write_states(7, vec![state().freeze()]).chain([write_end()]).flatten().collect()
}

fn config() -> Seeds {
    let one = "data = \"d\"\nlisten = \"127.0.0.1:7400\"\npeer = [\"a:1\", \"b:2\"]\nexpect = 3\n\
               shards = 4\ntls = true\naudit = \"all\"\n";
    numbered([one.as_bytes().to_vec()])
}

fn schedules() -> Seeds {
    let texts = [
        "Europe/Berlin\n*/15 2-4 * * mon-fri\n1795705445000 86400000",
        "America/New_York\n30 2 29 2 *\n0 1795705445000",
        "UTC\n@hourly\n1 2",
        "Pacific/Apia\n0 0 1,15 jan,dec 7\n1325203200000 5",
    ];
    numbered(texts.map(|text| text.as_bytes().to_vec()))
}
