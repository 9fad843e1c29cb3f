//! The table of next steps, held against every code that a node can give and against the commands that there are.

use std::collections::BTreeSet;
use std::path::Path;

use ikada_api::state::RefusalCode;

use super::*;

/// Codes whose own words tell what to do, or about which a person at a shell can do nothing: they are met only by what speaks HTTP itself.
const PLAIN: &[&str] = &[
    "already_leader",
    "bad_cbor",
    "bad_command",
    "bad_count",
    "bad_entry",
    "bad_json",
    "bad_method",
    "bad_name",
    "bad_parameter",
    "bad_shard_count",
    "bad_url",
    "bad_value",
    "blob_referenced",
    "body_incomplete",
    "bucket_reserved",
    "change_refused",
    "dead_full",
    "deadline_passed",
    "database_away",
    "database_full",
    "database_read_only",
    "disk_full",
    "fence_exhausted",
    "foreign_origin",
    "growth_unsupported",
    "internal",
    "json_too_deep",
    "key_conflict",
    "last_admin",
    "lease_not_held",
    "lease_terms",
    "log_not_found",
    "members_unsupported",
    "no_elections",
    "no_majority_left",
    "no_route",
    "no_successor",
    "node_exists",
    "node_removed",
    "node_too_old",
    "not_a_voter",
    "other_cluster",
    "other_version",
    "precondition_failed",
    "tokens_exist",
    "too_large",
    "too_many_jobs",
    "too_many_label_sets",
    "too_many_leases",
    "too_many_members",
    "too_many_objects",
    "too_many_queues",
    "too_many_quotas",
    "too_many_schedules",
    "too_many_tokens",
    "too_many_voids",
    "too_many_waiters",
    "too_many_workers",
    "unknown",
    "unknown_field",
    "unsupported_media_type",
    "upgrade_required",
    "upload_differs",
    "upload_expired",
    "upload_finished",
    "upload_incomplete",
    "upload_not_found",
    "url_too_long",
    "worker_exists",
    "worker_removed",
    "wrong_digest",
    "wrong_shard",
];

/// What stands before a code in the sources of the nodes; between the two there is nothing but a status.
const MARKS: &[&str] = &[
    "Problem::new(",
    "Problem::new(status, ",
    "not_found(",
    "refuse(",
    "bad_document(",
    "field.is_some() { ",
    "code: ",
    "(503, ",
    "(507, ",
];

/// Codes that a source gives.
fn codes_in(source: &str, into: &mut BTreeSet<String>) {
    let is_between = |one: char| one.is_ascii_digit() || one == ',' || one.is_whitespace();
    for mark in MARKS {
        for (place, _) in source.match_indices(mark) {
            let rest = source[place + mark.len()..].trim_start_matches(is_between);
            let Some((code, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'))
            else {
                continue;
            };
            if code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                into.insert(code.to_owned());
            }
        }
    }
}

fn sources(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        match path.is_dir() {
            true if !name.ends_with("_test") => sources(&path, into),
            false if name.ends_with(".rs") && !name.ends_with("_test.rs") => {
                let source = std::fs::read_to_string(&path).expect("a source");
                codes_in(source.split("#[cfg(test)]").next().unwrap_or_default(), into);
            }
            _ => {}
        }
    }
}

/// Every code that a node can give.
fn all_codes() -> BTreeSet<String> {
    let mut all: BTreeSet<String> =
        RefusalCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["node/src/http", "replica/src/gate", "replica/src/origin", "api/src/convert"] {
        sources(&crates.join(folder), &mut all);
    }
    all
}

#[test]
fn every_code_of_a_node_has_a_next_step_or_words_of_its_own() {
    let advised: Vec<&str> = ADVICE.iter().flat_map(|(codes, _)| codes.iter().copied()).collect();
    let ours: BTreeSet<String> =
        advised.iter().chain(PLAIN).map(|code| (*code).to_owned()).collect();
    assert_eq!(ours.len(), advised.len() + PLAIN.len(), "a code stands in one place only");
    let all = all_codes();
    assert!(all.len() > 100, "only {} codes were found", all.len());
    let missing: Vec<&String> = all.difference(&ours).collect();
    assert!(
        missing.is_empty(),
        "new codes: advise something, or leave it to their words: {missing:?}"
    );
    let gone: Vec<&String> = ours.difference(&all).collect();
    assert!(gone.is_empty(), "no node gives these codes: {gone:?}");
}

#[test]
fn every_next_step_names_commands_that_exist() {
    let mut count = 0;
    for (_, advice) in ADVICE {
        for part in advice.match_indices("ikada ").map(|(place, _)| &advice[place..]) {
            let line = part.split([';', ')']).next().unwrap_or_default();
            let line = line.trim_end_matches(|last: char| !last.is_alphanumeric());
            let fault = crate::args::fault_of(line);
            assert_eq!(fault, None, "{line}");
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} commands were found");
}
