//! The Prometheus text form. Names are stable; every number says what it is.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use ikada_api::v1::{QueueHealth, ScheduleInfo};
use ikada_replica::consensus::Role;
use ikada_replica::state::QueueView;
use ikada_replica::status::{NodeStatus, ShardStatus};

use super::{Counters, HttpCounters, SecurityFigures};
use crate::admission::{Admission, Rooms};
use crate::http::NodeInfo;
use crate::objects::BlobCounters;

/// Writes the page.
pub fn render(
    info: &NodeInfo,
    status: &NodeStatus,
    counters: &Counters,
    (http, admission, rooms, guard): (&HttpCounters, &Admission, &Rooms, &SecurityFigures),
    queues: Vec<(QueueView, QueueHealth)>,
    schedules: Vec<(String, ScheduleInfo)>,
    blobs: &BlobCounters,
) -> String {
    let mut page = Page::default();
    let labels = format!("version=\"{}\",node=\"{}\"", escape(&info.version), info.node);
    page.family("ikada_info", "gauge", "The program and the node.");
    page.sample("ikada_info", &labels, 1);
    page.one(
        "ikada_start_time_seconds",
        "gauge",
        "When the process started.",
        info.started_wall_ms / 1000,
    );
    shards(&mut page, status);
    peers(&mut page, status);
    page.one(
        "ikada_calls_waiting",
        "gauge",
        "Calls waiting for an answer.",
        status.calls_waiting as u64,
    );
    page.one(
        "ikada_claims_parked",
        "gauge",
        "Claims waiting for work.",
        status.claims_parked as u64,
    );
    page.family(
        "ikada_clock_offset_ms",
        "gauge",
        "This node's wall clock minus the voters' median.",
    );
    page.signed("ikada_clock_offset_ms", status.clock_offset_ms);
    node(&mut page, counters);
    doors(&mut page, http);
    super::load::load(&mut page, admission, rooms);
    super::queues::queues(&mut page, queues);
    super::security::security(&mut page, guard);
    super::schedules::schedules(&mut page, schedules);
    super::blobs::blobs(&mut page, blobs);
    page.text
}

/// Name, meaning and value of a number.
type Family<T> = (&'static str, &'static str, fn(&T) -> u64);

const SHARD: &[Family<ShardStatus>] = &[
    ("ikada_shard_is_leader", "Whether this node leads the shard.", |s| {
        (s.role == Role::Leader).into()
    }),
    ("ikada_shard_has_leader", "Whether a leader is known.", |s| s.leader.is_some().into()),
    ("ikada_shard_term", "Current term.", |s| s.term),
    ("ikada_shard_commit_index", "Highest committed index.", |s| s.commit),
    ("ikada_shard_applied_index", "Index of the state.", |s| s.applied.index),
    ("ikada_shard_last_index", "Last index of the log.", |s| s.last_index),
    ("ikada_shard_repairing", "Whether the log is being fetched again.", |s| s.repairing.into()),
    ("ikada_tasks_scheduled", "Tasks waiting for their time.", |s| s.scheduled),
    ("ikada_tasks_ready", "Tasks waiting for a worker.", |s| s.ready),
    ("ikada_tasks_claimed", "Tasks held by workers.", |s| s.claimed),
    ("ikada_tasks_finished_kept", "Finished tasks still listed.", |s| s.finished),
    ("ikada_shard_requests_remembered", "Requests that make no second task.", |s| s.submits),
    ("ikada_shard_oldest_request_age_seconds", "Age of the oldest request remembered.", |s| {
        s.oldest_submit_age_ms.unwrap_or(0) / 1000
    }),
];

const RISING: &[Family<Counters>] = &[
    ("ikada_log_syncs_total", "Syncs of the log.", |c| c.log_syncs),
    ("ikada_log_sync_microseconds_total", "Time spent in syncs.", |c| c.log_sync_micros),
    ("ikada_log_appended_bytes_total", "Bytes appended to the log.", |c| c.log_appended_bytes),
    ("ikada_log_appended_entries_total", "Entries appended to the log.", |c| {
        c.log_appended_entries
    }),
    ("ikada_snapshots_saved_total", "Snapshots written.", |c| c.snapshots_saved),
    ("ikada_snapshots_failed_total", "Snapshots that could not be written.", |c| {
        c.snapshots_failed
    }),
    ("ikada_peer_frames_sent_total", "Frames sent to peers.", |c| c.frames_sent),
    ("ikada_peer_frames_received_total", "Frames received from peers.", |c| c.frames_received),
    ("ikada_peer_bytes_sent_total", "Bytes sent to peers.", |c| c.bytes_sent),
    ("ikada_peer_bytes_received_total", "Bytes received from peers.", |c| c.bytes_received),
    ("ikada_peer_frames_dropped_total", "Frames dropped at a full queue.", |c| c.frames_dropped),
    (
        "ikada_peers_refused_total",
        "Connections to the peer port of nobody that belongs to this cluster, or with bytes that no node sends.",
        |c| c.peers_refused,
    ),
    ("ikada_peer_connects_total", "Connections to peers that came about.", |c| c.peer_connects),
    ("ikada_driver_turns_total", "Turns of the driver's loop.", |c| c.turns),
    ("ikada_driver_busy_microseconds_total", "Time spent in turns.", |c| c.turn_micros),
    ("ikada_calls_total", "Calls begun.", |c| c.calls),
    ("ikada_role_changes_total", "Role changes.", |c| c.role_changes),
    ("ikada_database_appends_total", "Appends that the database took.", |c| c.database_appends),
    ("ikada_database_append_microseconds_total", "Time that appends to the database took.", |c| {
        c.database_append_micros
    }),
    ("ikada_database_connects_total", "Connections to the database that were opened.", |c| {
        c.database_connects
    }),
    (
        "ikada_database_failures_total",
        "Questions that the database did not answer, or refused.",
        |c| c.database_failures,
    ),
    ("ikada_trace_spans_sent_total", "Spans that the collector took.", |c| c.spans_sent),
    ("ikada_trace_spans_dropped_total", "Spans that were dropped.", |c| c.spans_dropped),
];

fn shards(page: &mut Page, status: &NodeStatus) {
    for (name, about, value) in SHARD {
        page.family(name, "gauge", about);
        for shard in &status.shards {
            page.sample(name, &format!("shard=\"{}\"", shard.shard), value(shard));
        }
    }
}

fn peers(page: &mut Page, status: &NodeStatus) {
    page.family("ikada_peer_connected", "gauge", "Whether a connection to the peer stands.");
    for peer in &status.peers {
        page.sample(
            "ikada_peer_connected",
            &format!("peer=\"{}\"", peer.node),
            u64::from(peer.connected),
        );
    }
}

fn node(page: &mut Page, counters: &Counters) {
    page.one("ikada_log_bytes", "gauge", "Bytes of the log on disk.", counters.log_bytes);
    page.one("ikada_log_segments", "gauge", "Segments of the log on disk.", counters.log_segments);
    let about = "1 while the disk is nearly full: nothing new is taken.";
    page.one("ikada_disk_low", "gauge", about, counters.disk_low);
    let about = "The database that holds the logs: 0 well (or none), 1 away, 2 full, 3 read-only.";
    page.one("ikada_database_state", "gauge", about, counters.database_state);
    for (name, about, value) in RISING {
        page.one(name, "counter", about, value(counters));
    }
}

fn doors(page: &mut Page, http: &HttpCounters) {
    page.family("ikada_http_answers_total", "counter", "Answers to clients by class.");
    for class in 2..=5 {
        page.sample("ikada_http_answers_total", &format!("class=\"{class}xx\""), http.class(class));
    }
    let shed = http.shed.load(Ordering::Relaxed);
    page.one("ikada_http_shed_total", "counter", "Requests told to come back later.", shed);
    let denied = http.denied.load(Ordering::Relaxed);
    page.one("ikada_http_denied_total", "counter", "Calls of strangers or beyond a role.", denied);
    let refused = http.connections_refused.load(Ordering::Relaxed);
    let name = "ikada_http_connections_refused_total";
    page.one(name, "counter", "Connections turned away at a full door.", refused);
    let closed = http.strangers_closed.load(Ordering::Relaxed);
    let name = "ikada_http_strangers_closed_total";
    page.one(name, "counter", "Connections of strangers closed to make room.", closed);
    let failed = http.handshakes_failed.load(Ordering::Relaxed);
    let name = "ikada_http_handshakes_failed_total";
    page.one(
        name,
        "counter",
        "Connections to a port with TLS that never came to speak it.",
        failed,
    );
    let insecure = http.insecure.load(Ordering::Relaxed);
    let about = "Whether the node listens beyond loopback without TLS and tokens.";
    page.one("ikada_insecure", "gauge", about, insecure);
    let panics = http.panics.load(Ordering::Relaxed);
    let pipes = http.pipes.load(Ordering::Relaxed);
    page.one("ikada_http_pipes", "gauge", "Pipes that are open.", pipes);
    page.one("ikada_http_panics_total", "counter", "Handlers that met a defect.", panics);
}

/// Label values may hold anything but bare quotes, backslashes and line ends.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The page being written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    pub(super) fn family(&mut self, name: &str, kind: &str, about: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.text, "{name}{{{labels}}} {value}");
    }

    fn signed(&mut self, name: &str, value: i64) {
        let _ = writeln!(self.text, "{name} {value}");
    }

    pub(super) fn one(&mut self, name: &str, kind: &str, about: &str, value: u64) {
        self.family(name, kind, about);
        let _ = writeln!(self.text, "{name} {value}");
    }
}
