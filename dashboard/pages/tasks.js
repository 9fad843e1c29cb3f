// Tasks: search, filter, page, submit.

import { h } from "../lib/dom.js";
import { act, get, namespace, parseExact } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { known } from "../lib/pulse.js";
import { cut, instant, when } from "../lib/format.js";
import { button, empty, head, state, table, turns } from "../lib/parts.js";
import { go, here, swap, to } from "../lib/route.js";

const STATES = ["scheduled", "ready", "claimed", "done", "dead", "cancelled"];
/** Tasks on a page; fewer when their payloads are too much for one answer. */
const PAGES = [50, 10, 1];
/** A node looks at so many tasks at a time and answers with those that fit; so many answers are asked for until one has any. */
const LOOKS_MAX = 10;

let asked = null;

export const tasks = {
  title: () => "Tasks",
  every_ms: 3000,
  load: async (where) => {
    for (const limit of PAGES) {
      try {
        return await look(where.query, limit);
      } catch (problem) {
        if (!problem.tooLarge || limit === 1) throw problem;
      }
    }
  },
  view: (data, where) => {
    if (where.query.new && asked !== where.text) {
      asked = where.text;
      submit(where.query.queue);
    }
    return h("div", {}, head("Tasks", "In no particular order; tasks that change meanwhile may be met twice.", button("New task", () => submit(where.query.queue), "main")),
      filters(where.query), data.tasks.length === 0 ? nothing(where.query, data.next) : list(data.tasks), turns(["tasks"], chosen(where.query), where.query.after, data.next, "Pages of tasks"));
  },
};

const chosen = ({ find, queue, state: wanted, worker }) => ({ find, queue, state: wanted, worker });

/** The next tasks that fit. */
async function look(query, limit) {
  let [found, after] = [null, query.after];
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    found = await get("/v1/tasks", { ...chosen(query), after, limit, consistency: "stale" });
    if (found.tasks.length > 0 || !found.next) break;
    after = found.next;
  }
  return found;
}

function filters(query) {
  const change = (more) => go(["tasks"], { ...chosen(query), ...more });
  const names = (known.queues ?? []).map((one) => one.name).sort();
  return h("form", { class: "filters", onsubmit: (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get("id").trim();
    if (id) go(["tasks", id]);
  } },
    h("label", {}, h("span", {}, "Find by id"), h("input", { name: "id", type: "search", placeholder: "part of an id; Enter opens it", spellcheck: "false", autocomplete: "off", value: query.find ?? "",
      oninput: (event) => swap(["tasks"], { ...chosen(query), find: event.target.value.trim() }) })),
    // A form with several fields obeys Enter only if it has a button.
    h("button", { class: "unseen", type: "submit", tabindex: "-1" }, "Find"),
    h("label", {}, h("span", {}, "Queue"), h("input", { name: "queue", type: "search", list: "queue-names", placeholder: "all", spellcheck: "false", autocomplete: "off", value: query.queue ?? "", onchange: (event) => change({ queue: event.target.value.trim() }) }),
      h("datalist", { id: "queue-names" }, names.map((name) => h("option", { value: name })))),
    h("label", {}, h("span", {}, "State"), h("select", { name: "state", onchange: (event) => change({ state: event.target.value }) },
      h("option", { value: "" }, "all"), STATES.map((name) => h("option", { value: name, selected: name === query.state }, name)))),
    h("label", {}, h("span", {}, "Worker"), h("input", { name: "worker", type: "search", placeholder: "all", spellcheck: "false", value: query.worker ?? "", onchange: (event) => change({ worker: event.target.value.trim() }) })));
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
    run: async (values) => {
      const outcome = await act("POST", "/v1/tasks", { body: bodyOf(values) });
      const id = outcome.id ?? outcome.tasks?.[0]?.id;
      note(`Task ${id} is submitted.`);
      go(["tasks", id]);
    },
  }).addEventListener("close", () => here().query.new && go(["tasks"], {}));
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
