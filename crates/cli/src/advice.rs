//! What a person at a shell can do about what a node said, by its stable code.
//!
//! Promise: what is advised helps with every problem of that code, whichever command met it. Codes whose own words say it all are left out.

/// The next step; none where the problem's own words say it all.
pub(crate) fn next_step(code: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(codes, _)| codes.contains(&code)).map(|(_, advice)| *advice)
}

/// Codes, and what to do about each of them.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &["task_not_found"],
        "look for it: ikada task list; finished tasks go after their retention time",
    ),
    (&["queue_not_found"], "see which there are: ikada queue list"),
    (&["job_not_found"], "see which there are: ikada job list"),
    (&["schedule_not_found"], "see which there are: ikada schedule list"),
    (
        &["program_not_found", "unknown_program"],
        "see which there are: ikada program list; add one: ikada program push",
    ),
    (&["object_not_found"], "see which there are: ikada object list"),
    (&["worker_not_found"], "see which there are: ikada worker-pool list"),
    (&["token_not_found"], "see which there are: ikada auth token list"),
    (&["node_not_found", "shard_not_found"], "see which there are: ikada cluster status"),
    (
        &["stale_fence", "not_owner"],
        "the claim is lost: throw the result away; ikada task show tells who has the task now",
    ),
    (&["task_finished"], "see what came of it: ikada task show"),
    (&["job_finished"], "see what came of it: ikada job show"),
    (&["task_not_finished"], "see what it waits for: ikada task explain"),
    (&["conflict"], "the id is taken: look at what has it, or choose another id"),
    (&["idempotency_conflict"], "use another --idempotency-key for another request"),
    (&["request_voided"], "submit it again under another --idempotency-key"),
    (&["version_conflict"], "someone else was faster: look again, then repeat the change"),
    (&["lease_held"], "see who has it and who waits: ikada lease show"),
    (
        &["unauthenticated"],
        "give a token: IKADA_TOKEN, --token-file, or a context (ikada context --help)",
    ),
    (&["forbidden", "forbidden_namespace"], "see what your token may do: ikada auth whoami"),
    (
        &["namespace_full", "namespace_bytes_full", "namespace_objects_full", "rate_exceeded"],
        "see the quota and what is used: ikada namespace show",
    ),
    (&["queue_full"], "let workers catch up, or raise the bound: ikada queue set --pending-max"),
    (
        &["change_pending", "members_changing", "growth_running", "node_lagging"],
        "wait for it: ikada cluster status -f",
    ),
    (
        &["node_unreachable", "not_waiting"],
        "start the new node with --join, and give its --peer-listen address",
    ),
    (&["copies_missing"], "wait until the other nodes have fetched the files, then repeat this"),
    (&["last_voter"], "to replace it, add the new node first: ikada cluster add"),
    (&["level_too_low"], "upgrade the older nodes: ikada cluster status shows levels"),
    (
        &[
            "leader_address_unknown",
            "no_leader",
            "not_founded",
            "not_ready",
            "outbox_full",
            "outbox_gap",
            "overloaded",
            "piece_missing",
            "shed_cpu",
            "shed_deadline",
            "shed_memory",
            "shed_miss",
            "shed_priority",
            "shed_wait",
            "slot_moved",
            "stopping",
            "too_few_copies",
            "too_many_failures",
        ],
        "try again in a moment; how the cluster is: ikada cluster status",
    ),
];

#[cfg(test)]
mod advice_test;
