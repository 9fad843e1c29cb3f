// Tasks: search, filter, page, submit.

import { h } from "../lib/dom.js";
import { act, get, namespace, parseExact, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { known } from "../lib/pulse.js";
import { cut, instant, when } from "../lib/format.js";
import { button, empty, head, state, table, turns } from "../lib/parts.js";
import { go, here, swap, to } from "../lib/route.js";
import { searchField } from "../lib/search.js";

const STATES = ["scheduled", "ready", "claimed", "done", "dead", "cancelled"];
/** Tasks on a page; fewer when their payloads are too much for one answer. */
const PAGES = [50, 10, 1];
/** A node looks at so many tasks at a time and answers with those that fit; so many answers are asked for until one has any. */
const LOOKS_MAX = 10;
/** Looks are not begun after so long: what is shown by then is nothing, with a way to look on. */
const LOOKS_MS = 10_000;

/** The address whose wish for a new task was met. */
let asked = null;

export const tasks = {
  title: () => "Tasks",
  every_ms: 3000,
  load: async (where, _former, signal) => {
    for (const limit of PAGES) {
      try {
        return await look(where.query, limit, signal);
      } catch (problem) {
        if (!problem.tooLarge || limit === 1) throw problem;
      }
    }
  },
  view: (data, where) => {
    openIfAsked();
    const { query } = where;
    return h("div", {}, top(query), data.tasks.length === 0 ? nothing(query, data.next) : list(data.tasks),
      h("div", { class: "foot" }, turns(["tasks"], chosen(query), query.after, data.next, "Pages of tasks"),
        data.tasks.length > 0 && h("p", { class: "quiet" }, "In no particular order; a task that changes meanwhile may be met twice.")));
  },
  bare: (where) => top(where.query),
};

const top = (query) => [head("Tasks", "One line each; a task tells why it waits.", button("New task", () => submit(query.queue), "main")), filters(query)];

/** An address may ask for the dialog. It is opened once for each time that somebody comes to it. */
function openIfAsked() {
  const { query, text } = here();
  if (!query.new || asked === text) return;
  asked = text;
  submit(query.queue);
}

const isShown = () => here().parts.join("/") === "tasks";

const chosen = ({ find, queue, state: wanted, worker }) => ({ find, queue, state: wanted, worker });

/** The next tasks that fit. */
async function look(query, limit, signal) {
  let [found, after] = [null, query.after];
  const end = Date.now() + LOOKS_MS;
  for (let looks = 0; looks < LOOKS_MAX && Date.now() < end; looks += 1) {
    found = await get("/v1/tasks", { ...chosen(query), after, limit, consistency: "stale" }, { signal });
    if (found.tasks.length > 0 || !found.next) break;
    after = found.next;
  }
  return found;
}

function filters(query) {
  // A field that is taken away with its page tells of a change, too.
  const change = (more) => isShown() && go(["tasks"], { ...chosen(query), ...more });
  const names = (known.queues ?? []).map((one) => one.name).sort();
  return h("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
    h("label", {}, h("span", {}, "Find by id"), searchField({ page: "tasks", name: "id", placeholder: "part of an id; Enter opens it", value: query.find ?? "",
      change: (find) => swap(["tasks"], { ...chosen(query), find }), enter: open })),
    h("label", {}, h("span", {}, "Queue"), h("input", { name: "queue", type: "search", list: "queue-names", placeholder: "all", spellcheck: "false", autocomplete: "off", value: query.queue ?? "", onchange: (event) => change({ queue: event.target.value.trim() }) }),
      h("datalist", { id: "queue-names" }, names.map((name) => h("option", { value: name })))),
    h("label", {}, h("span", {}, "State"), h("select", { name: "state", onchange: (event) => change({ state: event.target.value }) },
      h("option", { value: "" }, "all"), STATES.map((name) => h("option", { value: name, selected: name === query.state }, name)))),
    h("label", {}, h("span", {}, "Worker"), h("input", { name: "worker", type: "search", placeholder: "all", spellcheck: "false", value: query.worker ?? "", onchange: (event) => change({ worker: event.target.value.trim() }) })));
}

/** Opens the task of this id; else the only one that has the text in its id; else the list of them stays. */
async function open(text) {
  if (!text) return;
  try {
    const exact = await get(path("v1", "tasks", text), {}).catch((problem) => (problem.offline ? Promise.reject(problem) : null));
    const { tasks: found, next } = exact ? { tasks: [exact] } : await look({ find: text }, 2);
    if (found.length === 1 && !next && isShown()) go(["tasks", found[0].id]);
  } catch (problem) {
    note(problem.detail, "bad");
  }
}

function list(found) {
  const columns = [["task"], ["state"], ["queue"], ["worker"], ["attempts", "number"], ["submitted"], ["payload", "wide"]];
  return table("Tasks", columns, found.map((task) => ({ key: task.id, cells: [
    h("a", { href: to(["tasks", task.id]) }, task.id), state(task.state), h("a", { href: to(["queues", task.queue]) }, task.queue), latest(task),
    `${task.attempts_begun} of ${task.max_attempts}`, h("time", { title: instant(task.created_ms) }, when(task.created_ms)), h("code", { class: "one-line" }, glimpse(task))] })));
}

/** Who has it now, or had it last. */
function latest(task) {
  const worker = task.worker ?? task.attempts.at(-1)?.worker;
  return worker ? h("a", { href: to(["tasks"], { worker }), class: task.worker ? null : "faded" }, worker) : "";
}

function glimpse(task) {
  if (task.payload !== undefined) return cut(JSON.stringify(task.payload), 90);
  return task.payload_base64 ? cut(`base64 ${task.payload_base64}`, 90) : "";
}

function nothing({ find, queue, state: wanted, worker, after }, next) {
  if (next) return empty("None so far", "Many tasks were looked at and none of them fits; there are more to look at.");
  if (find || queue || wanted || worker || after) return empty("No such tasks here", "Nothing fits the filters now. Finished tasks go after their retention time.");
  return empty("No tasks yet", `Nothing has been submitted to namespace ${namespace.get()}.`, "ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'",
    "curl -s localhost:7400/v1/tasks --json '{\"queue\": \"mail\", \"payload\": {\"to\": \"ann\"}}'");
}

/** The dialog that submits a task. */
function submit(queue) {
  dialog({
    title: "New task", yes: "Submit",
    fields: [
      { name: "queue", label: "Queue", value: queue || "default", required: true },
      { name: "payload", label: "Payload", kind: "long", placeholder: '{"to": "ann"}', hint: "Any JSON value; empty is none." },
      { name: "id", label: "Id", hint: "Drawn when empty." },
      { name: "delay_s", label: "Delay in seconds", kind: "number", hint: "At once when empty." },
    ],
    run: async (values, key) => {
      const outcome = await act("POST", "/v1/tasks", { key, body: bodyOf(values) });
      const id = outcome.id ?? outcome.tasks?.[0]?.id;
      note(`Task ${id} is submitted.`);
      go(["tasks", id]);
    },
  }).addEventListener("close", () => {
    if (here().query.new) go(["tasks"], {});
    asked = null;
  });
}

function bodyOf({ queue, payload, id, delay_s }) {
  const body = { queue };
  if (payload) {
    try {
      body.payload = parseExact(payload);
    } catch (error) {
      throw Object.assign(new Error(), { code: "bad_json", detail: `the payload is no JSON value: ${error.message}` });
    }
  }
  if (id) body.id = id;
  if (delay_s) body.delay_ms = Math.round(Number(delay_s) * 1000);
  return body;
}
