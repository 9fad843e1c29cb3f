// The heartbeat of the page: what the cluster and its queues look like now, and how they did in the last minutes.
//
// One stream (`/v1/live`) tells of roles, cluster and queues as they change; while it is not there, they are asked for once a
// second. Promises: one look after the other, never two at once; rests while the tab is hidden, the stream too, since a browser has
// few connections to a node; after trouble it keeps what was seen last, says since when, and goes on looking, so that a change of
// leaders happens before the user's eyes. What it reads is this node's own view, except for the probe, which asks all leaders.

import { Problem, ask, follow, get } from "./api.js";
import { parse } from "./metrics.js";

const LOOK_EVERY_MS = 1000;
const SAMPLES_MAX = 300;
const EVENTS_MAX = 2000;
/** Queues known one by one, those first that need a look; of the others the sum is known. */
const QUEUES_MAX = 100;
/** The node looks once a second: counts that come later than this were unchanged until then. */
const UNCHANGED_MS = 1300;
/** The probe asks every leader what became of a request that nobody sends. */
const PROBE = "/v1/requests/dashboard-probe";
const PROBE_TIMEOUT_MS = 1500;

/**
 * What is known. `trouble` is the Problem of the newest look, or null; `busy` is one by which the node turned a call away under
 * load; `seen_ms` is when a look last succeeded; `live` while the stream tells.
 */
export const known = {
  busy: null, cluster: null, queues: null, queues_total: 0, node: null, caller: null, trouble: null, seen_ms: 0, since_ms: Date.now(),
  samples: [], events: [], live: false, roles: "starting", looks: 0,
};

const watchers = new Set();
const STILL = { submitted: 0, done: 0, failed: 0 };
let [before, metrics_denied, epoch, turned_away, counted, flow, listening] = [null, false, 0, null, null, null, null];

/** Calls `watcher` after each look and each change; gives the way to stop that. */
export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

const wake = () => watchers.forEach((watcher) => watcher());

/** Forgets what belongs to another caller or namespace, and looks again. */
export function restart() {
  [before, metrics_denied, counted, flow] = [null, false, null, null];
  epoch += 1;
  Object.assign(known, { samples: [], events: [], cluster: null, queues: null, queues_total: 0, node: null, caller: null, busy: null, trouble: null, live: false });
  listening?.abort();
}

/** Begins to look, for as long as the page lives. */
export async function start() {
  listen();
  document.addEventListener("visibilitychange", () => document.hidden && listening?.abort());
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
    if (!known.live) await poll(begun, quick);
    const caller = known.caller ?? (await allowed(get("/v1/whoami", {}, quick), null));
    const [probe_ms, numbers, node] = await Promise.all([probe(), measure(begun), allowed(get("/v1/nodes/self", {}, quick), known.node)]);
    // Who was someone else when this look began has no place in what is known of them.
    if (begun !== epoch) return;
    Object.assign(known, { caller, node, busy: turned_away, trouble: null, seen_ms: Date.now() });
    sample(probe_ms, numbers);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (begun !== epoch) return;
    known.trouble = problem;
    known.samples.push({ time_ms: Date.now(), gap: true });
    [before, counted, flow] = [null, null, null];
  }
  known.samples.splice(0, known.samples.length - SAMPLES_MAX);
  known.looks += 1;
  wake();
}

/** Asks for what the stream would tell. */
async function poll(begun, quick) {
  const [cluster, page] = await Promise.all([
    allowed(get("/v1/cluster", {}, quick), known.cluster),
    allowed(get("/v1/queues", { order: "need", limit: QUEUES_MAX, consistency: "stale" }, quick), undefined),
  ]);
  if (begun !== epoch || known.live) return;
  Object.assign(known, { cluster, trouble: null, seen_ms: Date.now() });
  if (page === null) known.queues = null;
  else if (page) hearQueues(page, Date.now() - (counted?.time_ms ?? 0));
}

/** What a role may not see is null; when the node is too busy to answer, or its answer is too much, it is what was seen before. */
async function allowed(promise, former) {
  try {
    return await promise;
  } catch (problem) {
    if (problem.status === 403) return null;
    if (problem.status !== 429 && problem.status !== 503 && !problem.tooLarge) throw problem;
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
    if (problem.offline || problem.status === 401) throw problem;
    return null;
  }
}

async function measure(begun) {
  if (metrics_denied) return null;
  try {
    return parse(await ask("GET", "/metrics", { timeout_ms: 3000 }, (response) => response.text()));
  } catch (problem) {
    if (problem.offline) throw problem;
    if (begun === epoch) metrics_denied = problem.status === 403;
    return null;
  }
}

/** Takes in queues and their sum; rates are those of the last `since_ms`. */
function hearQueues({ queues, total, sum }, since_ms) {
  const rose = (name) => (Math.max(0, sum[name] - counted.sum[name]) * 1000) / Math.max(since_ms, 200);
  flow = counted ? { submitted: rose("submitted_total"), done: rose("done_total"), failed: rose("failed_attempts_total") } : null;
  counted = { time_ms: Date.now(), sum };
  Object.assign(known, { queues, queues_total: total });
}

function sample(probe_ms, numbers) {
  const time_ms = Date.now();
  const taken = { time_ms, probe_ms, queues: new Map((known.queues ?? []).map((queue) => [queue.name, queue.counts])) };
  if (counted) Object.assign(taken, { ready: counted.sum.ready, scheduled: counted.sum.scheduled, claimed: counted.sum.claimed });
  if (flow) Object.assign(taken, known.live && time_ms - counted.time_ms > UNCHANGED_MS ? STILL : flow);
  if (before) Object.assign(taken, rates(before.numbers, numbers, (time_ms - before.time_ms) / 1000));
  before = { time_ms, numbers };
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

/** Hears of changes as they happen; comes back after every end of the stream. */
async function listen() {
  for (;;) {
    while (document.hidden) await rest(LOOK_EVERY_MS);
    listening = new AbortController();
    known.events = [];
    try {
      await follow("/v1/live", {}, heard, listening.signal);
    } catch (problem) {
      known.roles = problem.status === 403 ? "forbidden" : "waiting";
      if (problem.status === 401 || problem.status === 403) await rest(4000);
    }
    known.live = false;
    await rest(LOOK_EVERY_MS);
  }
}

function heard(kind, data) {
  if (kind === "role") {
    known.events.push(data);
    known.events.splice(0, known.events.length - EVENTS_MAX);
  }
  if (kind === "cluster") known.cluster = data;
  if (kind === "queues") {
    // Callers who may not see the cluster hear of queues alone, and the cluster comes first.
    if (!known.live) Object.assign(known, { live: true, roles: known.cluster ? "live" : "forbidden" });
    hearQueues(data, Math.min(Date.now() - (counted?.time_ms ?? 0), UNCHANGED_MS));
  }
  if (kind === "cluster" || kind === "queues") {
    known.seen_ms = Date.now();
    wake();
  }
}
