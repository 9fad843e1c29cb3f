// One task: where it stands and why, its attempts, payload and result.

import { h, s } from "../lib/dom.js";
import { act, get, getFresh, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { count, instant, span, when, words } from "../lib/format.js";
import { button, facts, head, longText, moment, state, table, tag } from "../lib/parts.js";
import { go, to } from "../lib/route.js";
import { logPanel } from "../lib/logs.js";

const reload = () => dispatchEvent(new Event("dashboard:reload"));
const isFinished = (task) => ["done", "dead", "cancelled"].includes(task.state);

/** A task that has ended changes only by a hand, and seldom. */
const EVERY_MS = 2000;
const ENDED_EVERY_MS = 15_000;

export const task = {
  title: (where) => where.parts[1],
  every_ms: (data) => (data && isFinished(data.shown) ? ENDED_EVERY_MS : EVERY_MS),
  load: async (where) => {
    const { body: shown, old } = await getFresh(path("v1", "tasks", where.parts[1]));
    const why = isFinished(shown) || old ? null : await get(path("v1", "tasks", where.parts[1], "explain")).catch(() => null);
    return { shown, why, old };
  },
  view: ({ shown, why, old }) => h("div", {},
    head(shown.id, h("span", {}, state(shown.state), shown.dead_reason && tag(words(shown.dead_reason), "bad"), " in ", h("a", { href: to(["queues", shown.queue]) }, shown.queue),
      shown.work?.job && [", part of job ", h("a", { href: to(["jobs", shown.work.job.job]) }, shown.work.job.job)]),
      actions(shown)),
    old && h("p", { class: "more", role: "status" }, `This is the task as this node has it; its leader did not answer: ${old.detail}.`),
    why && reasons(why), attempts(shown), shown.work && work(shown.work),
    shown.work && shown.attempts_begun > 0 && logPanel(isFinished(shown), "tasks", shown.id),
    h("div", { class: "two" }, body("Payload", shown.payload, shown.payload_base64), body("Result", shown.result, shown.result_base64)),
    settings(shown)),
};

function actions(shown) {
  const { id } = shown;
  if (!isFinished(shown)) return button("Cancel task", () => confirm("Cancel", id, "A worker that holds it is told at its next renewal; its result will not count.", () => act("POST", path("v1", "tasks", id, "cancel"))), "quiet-danger");
  return [
    shown.state !== "done" && button("Retry", () => run("has fresh attempts", id, act("POST", path("v1", "tasks", id, "retry"))), "main"),
    button("Remove", () => confirm("Remove", id, "Its payload, result and attempts are gone for good.", async () => {
      await act("DELETE", path("v1", "tasks", id));
      go(["tasks"], { queue: shown.queue });
    }), "quiet-danger"),
  ];
}

async function run(done, id, promise) {
  try {
    await promise;
    note(`${id} ${done}.`);
  } catch (problem) {
    note(problem.detail, "bad");
  }
  reload();
}

function confirm(verb, id, text, work) {
  dialog({ title: `${verb} task ${id}?`, text, yes: verb, kind: "danger", run: async () => {
    await work();
    note(`${id}: done.`);
    reload();
  } });
}

function reasons(why) {
  return h("section", { class: "panel reasons" }, h("h2", {}, "Why it is not finished"),
    h("ul", {}, why.reasons.map((reason) => h("li", {}, tag(words(reason.code), reason.code === "claimed" || reason.code === "next_in_line" ? "calm" : "warn"), " ", reason.sentence))));
}

/** Inputs that are named; all others are a number. */
const INPUTS_SHOWN = 20;

/** The program, what it is told and what it reads. */
function work({ program, settings: told, inputs = [], job }) {
  const more = inputs.length - INPUTS_SHOWN;
  return h("section", { class: "panel" }, h("h2", {}, "Runs"), facts([
    ["program", [h("b", {}, program.name), " ", h("span", { class: "quiet" }, words(program.kind))]], job && ["place in the job", `${job.stage}, ${count(job.index)}`],
    Object.keys(told ?? {}).length > 0 && ["settings", Object.entries(told).map(([name, value]) => tag(`${name}=${value}`))],
    inputs.length > 0 && ["reads", h("ul", { class: "inputs" }, inputs.slice(0, INPUTS_SHOWN).map((one) => h("li", {}, source(one))), more > 0 && h("li", { class: "quiet" }, `and ${count(more)} more`))]]));
}

function source(input) {
  if (input.bucket === undefined) return [input.name, " ", h("span", { class: "quiet" }, input.url ?? "a text")];
  const folder = input.key.slice(0, input.key.lastIndexOf("/") + 1);
  return h("a", { href: to(["objects", input.bucket], { prefix: folder }), title: `${input.bucket}/${input.key}` }, input.name);
}

/** Attempts over time, then as a table. */
function attempts(shown) {
  if (shown.attempts.length === 0) return h("section", { class: "panel" }, h("h2", {}, "Attempts"), h("p", { class: "quiet" }, "No worker has had it yet."));
  const columns = [["attempt"], ["worker"], ["began"], ["took", "number"], ["fence", "number"], ["error", "wide"]];
  const rows = shown.attempts.map((attempt) => ({ key: attempt.fence, cells: [state(attempt.outcome), h("a", { href: to(["tasks"], { worker: attempt.worker }) }, attempt.worker), h("time", { title: instant(attempt.started_ms) }, when(attempt.started_ms)),
    attempt.ended_ms ? span(attempt.ended_ms - attempt.started_ms) : "runs", h("code", {}, attempt.fence), attempt.error ? longText(attempt.error, 500) : ""] }));
  const known = shown.attempts.filter((attempt) => attempt.program_digest || attempt.inputs_digest || attempt.outputs_digest);
  const digests = known.map((attempt) => ({ key: attempt.fence, cells: [attempt.fence, attempt.program_digest, attempt.inputs_digest, attempt.outputs_digest].map((text) => h("code", { title: text ?? "" }, text ? text.slice(0, 16) : "-")) }));
  return h("section", { class: "attempts" }, h("h2", {}, `Attempts, ${count(shown.attempts_begun)} of ${count(shown.max_attempts)}`), life(shown), table("Attempts", columns, rows),
    shown.attempts_dropped > 0 && h("p", { class: "quiet" }, `${count(shown.attempts_dropped)} earlier ones are no longer kept.`),
    digests.length > 0 && table("What was run, read and brought", [["fence", "number"], ["program"], ["inputs"], ["outputs"]], digests));
}

function life(shown) {
  const end = shown.finished_ms ?? Date.now();
  const length = Math.max(1, end - shown.created_ms);
  const x = (time_ms) => ((time_ms - shown.created_ms) / length) * 600;
  const bars = shown.attempts.map((attempt) => s("rect", { class: `life life-${attempt.outcome}`, x: x(attempt.started_ms), y: 4, width: Math.max(3, x(attempt.ended_ms ?? end) - x(attempt.started_ms)), height: 12 },
    s("title", {}, `${words(attempt.outcome)} on ${attempt.worker}`)));
  return h("figure", { class: "life-frame panel" }, s("svg", { viewBox: "0 0 600 20", preserveAspectRatio: "none", role: "img", "aria-label": "Attempts over the life of the task" }, s("line", { class: "ground", x1: 0, x2: 600, y1: 10, y2: 10 }), bars),
    h("p", { class: "axis" }, h("span", {}, `submitted ${when(shown.created_ms)}`), h("span", {}, shown.finished_ms ? `${words(shown.state)} ${span(length)} later` : `${span(length)} so far`)));
}

function body(title, json, base64) {
  const text = json !== undefined ? JSON.stringify(json, null, 2) : base64;
  return h("section", { class: "panel" }, h("h2", {}, title, base64 && tag("base64")), text === undefined ? h("p", { class: "quiet" }, "None.") : longText(text));
}

function settings(shown) {
  const labels = Object.entries(shown.labels ?? {}).map(([name, value]) => tag(`${name}=${value}`));
  return h("section", { class: "panel" }, h("h2", {}, "Settings"), facts([
    ["submitted", instant(shown.created_ms)], shown.ready_at_ms && ["ready", moment(shown.ready_at_ms)], shown.finished_ms && ["finished", instant(shown.finished_ms)],
    ["priority", shown.priority], shown.key && ["key", shown.key], shown.worker && ["worker", shown.worker],
    shown.progress && ["progress", `${shown.progress.permille / 10} % ${shown.progress.note ?? ""}`], shown.fence && ["fence", h("code", {}, shown.fence)],
    ["claim lives", span(shown.ttl_ms)], shown.timeout_ms && ["time for an attempt", span(shown.timeout_ms)], shown.deadline_ms && ["deadline", instant(shown.deadline_ms)],
    ["wait after failure", `${span(shown.backoff.base_ms)} to ${span(shown.backoff.cap_ms)}`], labels.length > 0 && ["wants of the worker", labels],
    shown.then?.length > 0 && ["then", shown.then.map((id) => h("a", { class: "chip", href: to(["tasks", id]) }, id))]]));
}
