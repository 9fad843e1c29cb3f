// The heartbeat of the page: what the cluster and its queues look like now, and how they did in the last minutes.
//
// Promises: one look after the other, never two at once; rests while the tab is hidden; after trouble it keeps what was
// seen last, says since when, and goes on looking, so that a change of leaders happens before the user's eyes. What it
// reads is this node's own view (stale reads), except for the probe, which asks the leaders of all shards.

import { Problem, ask, follow, get, token } from "./api.js";
import { parse } from "./metrics.js";

const LOOK_EVERY_MS = 1000;
const SAMPLES_MAX = 300;
const EVENTS_MAX = 2000;
/** The probe asks every leader what became of a request that nobody sends. */
const PROBE = "/v1/requests/dashboard-probe";
const PROBE_TIMEOUT_MS = 1500;

/**
 * What is known. `trouble` is the Problem of the newest look, or null; `busy` is one by which the node turned a call away under
 * load; `seen_ms` is when a look last succeeded.
 */
export const known = {
  busy: null, cluster: null, queues: null, node: null, caller: null, trouble: null, seen_ms: 0, since_ms: Date.now(),
  samples: [], events: [], stream: "starting", looks: 0,
};

const watchers = new Set();
let [before, metrics_denied, epoch, turned_away] = [null, false, 0, null];

/** Calls `watcher` after each look; gives the way to stop that. */
export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Forgets what belongs to another caller or namespace, and looks again. */
export function restart() {
  [before, metrics_denied] = [null, false];
  epoch += 1;
  Object.assign(known, { samples: [], events: [], queues: null, caller: null });
  listening?.abort();
}

/** Begins to look, for as long as the page lives. */
export async function start() {
  listen();
  for (;;) {
    if (!document.hidden || known.looks === 0) await look();
    await rest(LOOK_EVERY_MS);
  }
}

const rest = (ms) => new Promise((done) => setTimeout(done, ms));

async function look() {
  const begun = epoch;
  turned_away = null;
  try {
    const quick = { timeout_ms: 3000 };
    const [cluster, page] = await Promise.all([
      allowed(get("/v1/cluster", {}, quick), known.cluster),
      allowed(get("/v1/queues", { consistency: "stale" }, quick), known.queues && { queues: known.queues }),
    ]);
    if (begun !== epoch) return;
    Object.assign(known, { cluster, queues: page?.queues ?? null, trouble: null, seen_ms: Date.now() });
    known.caller ??= await allowed(get("/v1/whoami", {}, quick), null);
    const [probe_ms, numbers, node] = await Promise.all([probe(), measure(), allowed(get("/v1/nodes/self", {}, quick), known.node)]);
    if (begun !== epoch) return;
    Object.assign(known, { node, busy: turned_away });
    sample(page?.queues ?? [], probe_ms, numbers);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (begun !== epoch) return;
    known.trouble = problem;
    known.samples.push({ time_ms: Date.now(), gap: true });
    before = null;
  }
  known.samples.splice(0, known.samples.length - SAMPLES_MAX);
  known.looks += 1;
  for (const watcher of watchers) watcher();
}

/** What a role may not see is null; when the node is too busy to answer, it is what was seen before. */
async function allowed(promise, former) {
  try {
    return await promise;
  } catch (problem) {
    if (problem.status === 403) return null;
    if (problem.status !== 429 && problem.status !== 503) throw problem;
    turned_away = problem;
    return former;
  }
}

/** How long it takes to hear from the leaders of all shards; null when one cannot be reached in time. */
async function probe() {
  const begun = performance.now();
  try {
    await get(PROBE, {}, { timeout_ms: PROBE_TIMEOUT_MS });
    return performance.now() - begun;
  } catch (problem) {
    if (problem.offline) throw problem;
    return null;
  }
}

async function measure() {
  if (metrics_denied) return null;
  try {
    return parse(await (await ask("GET", "/metrics", { timeout_ms: 3000 })).text());
  } catch (problem) {
    if (problem.offline) throw problem;
    metrics_denied = problem.status === 403;
    return null;
  }
}

function sample(queues, probe_ms, numbers) {
  const time_ms = Date.now();
  const totals = {};
  const names = ["submitted_total", "done_total", "failed_attempts_total", "ready", "scheduled", "claimed"];
  for (const name of names) totals[name] = queues.reduce((sum, queue) => sum + (queue.counts[name] ?? 0), 0);
  const now = { time_ms, totals, numbers, queues: new Map(queues.map((queue) => [queue.name, queue.counts])) };
  const taken = { time_ms, probe_ms, ready: totals.ready, scheduled: totals.scheduled, claimed: totals.claimed, queues: now.queues };
  if (before) {
    const seconds = (time_ms - before.time_ms) / 1000;
    const rose = (name) => Math.max(0, totals[name] - before.totals[name]) / seconds;
    Object.assign(taken, { submitted: rose("submitted_total"), done: rose("done_total"), failed: rose("failed_attempts_total") });
    Object.assign(taken, rates(before.numbers, numbers, seconds));
  }
  before = now;
  known.samples.push(taken);
}

/** What two looks at the metrics tell about the time between them. */
function rates(earlier, later, seconds) {
  if (!earlier || !later) return {};
  const rose = (name) => Math.max(0, (later.get(name) ?? 0) - (earlier.get(name) ?? 0));
  const syncs = rose("ikada_log_syncs_total");
  const sync_ms = syncs ? rose("ikada_log_sync_microseconds_total") / syncs / 1000 : null;
  return { sync_ms, shed: rose("ikada_http_shed_total") / seconds, calls: rose("ikada_calls_total") / seconds };
}

let listening = null;

/** Hears role changes as they happen; comes back after every end of the stream. */
async function listen() {
  for (;;) {
    listening = new AbortController();
    known.events = [];
    try {
      known.stream = "live";
      await follow("/v1/cluster/events", {}, heardEvent, listening.signal);
      known.stream = "waiting";
    } catch (problem) {
      known.stream = problem.status === 403 ? "forbidden" : "waiting";
      await rest(problem.status === 403 || (problem.status === 401 && !token.get()) ? 5000 : 0);
    }
    await rest(1000);
  }
}

function heardEvent(kind, event) {
  if (kind !== "role") return;
  known.events.push(event);
  known.events.splice(0, known.events.length - EVENTS_MAX);
}
