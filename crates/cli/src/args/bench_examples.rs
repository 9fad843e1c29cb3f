//! Examples in the help of `ikada bench`: each bench shows its own, the group the first of each.

/// Of the group.
pub(super) const ALL: &str = "\
Examples:
  ikada bench startup                           100 cold starts of three nodes, about two minutes
  ikada bench failover                          50 times kill -9 of a leader under 200 writes/s
  ikada bench queue                             all phases on a cluster of its own, a few minutes
  ikada bench floods                            six floods on a cluster of its own, about three minutes
  ikada bench jobs                              commands, functions, 256 MiB of words, a million tasks
  ikada bench objects                           five nodes, seven clients, spikes, one minute

Use a release build. Exit code 1 if a start never settles, or if anything acknowledged is missing or doubled.";

/// Of `startup`.
pub(super) const STARTUP: &str = "\
Examples:
  ikada bench startup                           100 cold starts of three nodes, about two minutes
  ikada bench startup --runs 10 --shards 16

Use a release build. Exit code 1 if a start never settles.";

/// Of `failover`.
pub(super) const FAILOVER: &str = "\
Examples:
  ikada bench failover                          50 times kill -9 of a leader under 200 writes/s
  ikada bench failover --kills 5 --output json
  ikada bench failover --kills 10 --beside etcd,nats   the same for three servers of each, in one table
  ikada bench failover --graceful               the same with leaders that are asked to stop
  ikada bench failover --log postgres://ikada@127.0.0.1/bench   leases in a database instead

Use a release build. Exit code 1 if anything acknowledged is missing or doubled.";

/// Of `queue`.
pub(super) const QUEUE: &str = "\
Examples:
  ikada bench queue                             all phases on a cluster of its own, a few minutes
  ikada bench queue --only lifecycle,drain --tasks 200000
  ikada bench queue --only enqueue,lifecycle,drain --beside nats,redis   the same for others, with ratios
  ikada bench queue --only lifecycle --log postgres://ikada@127.0.0.1/bench --beside postgres   the same server, both ways
  ikada bench queue --secure --rounds 5         whole lives with and without TLS and tokens, in turn
  ikada bench queue --url http://127.0.0.1:7400 --only enqueue

Use a release build. Exit code 1 if a task was handed out twice or is missing at the end.";

/// Of `floods`.
pub(super) const FLOODS: &str = "\
Examples:
  ikada bench floods                            six floods on a cluster of its own, about three minutes
  ikada bench floods --secure                   the same behind TLS and tokens, and unfinished handshakes
  ikada bench floods --only slow-heads,idle --connections 2000 --seconds 15
  ikada bench floods --rounds 3                 each flood three times, its calls judged together

Use a release build. Exit code 1 if a node ended or a call of the well-behaved caller failed.";

/// Of `jobs`.
pub(super) const JOBS: &str = "\
Examples:
  ikada bench jobs                              commands, functions, 256 MiB of words, a million tasks
  ikada bench jobs --only expansion --tasks 100000
  ikada bench jobs --only handlers,words --rounds 5         medians of five rounds
  ikada bench jobs --only commands --slots 8 --hyperqueue venv/bin/python   the same through HyperQueue, in one table

Use a release build.";

/// Of `objects`.
pub(super) const OBJECTS: &str = "\
Examples:
  ikada bench objects                           five nodes, seven clients, spikes, one minute
  ikada bench objects --shed upload=0:50        the same with half of all uploads turned away
  ikada bench objects --workload transfers --nodes 3
  ikada bench objects --workload cached --nodes 3         beside nginx
  ikada bench objects --workload overload --nodes 3       five times what the cluster can take

Use a release build.";
