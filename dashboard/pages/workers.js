// Workers: slots, labels, queues, what runs where, whether they are heard, and draining.

import { h } from "../lib/dom.js";
import { act, get, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { count, cut, instant, some, span, when, words } from "../lib/format.js";
import { button, empty, head, state, table, tag, turns } from "../lib/parts.js";
import { swap, to } from "../lib/route.js";
import { searchField } from "../lib/search.js";

/** Workers on a page. */
const PAGE = 100;
/** Held tasks that are asked for at a time, and those named per worker; all are a link away. */
const [HELD_MAX, NAMED_MAX] = [1000, 4];

export const workers = {
  title: () => "Workers",
  load: async (where, _former, signal) => {
    const [page, held] = await Promise.all([
      get("/v1/workers", { find: where.query.find, after: where.query.after, limit: PAGE }, { signal }),
      get("/v1/tasks", { state: "claimed", brief: true, limit: HELD_MAX, consistency: "stale" }, { signal }),
    ]);
    return { page, held: gather(held.tasks) };
  },
  view: ({ page, held }, where) => {
    const { summary, workers: found, next } = page;
    const [all, { find, after }] = [summary.alive + summary.dead, where.query];
    const about = all ? `${some(summary.alive, "worker")} alive${summary.dead ? `, ${count(summary.dead)} dead` : ""}; ${count(summary.slots.open)} of ${some(summary.slots.total, "slot")} open.` : "They claim tasks, run them in slots, and report.";
    const top = head("Workers", about, (all > PAGE || find) && search(find ?? ""));
    if (all === 0) return h("div", {}, top, empty("No workers", "Start one; it finds its work through any node:", "ikada worker --slots 4 --queue mail", "python3 -m ikada worker shop:app --slots 8"));
    const columns = [["worker"], ["state", "fit"], ["slots", "fit"], ["runs", "runs-column"], ["takes from"], ["labels"], ["heard", "number"], ["", "act"]];
    return h("div", {}, top, found.length > 0 ? table("Workers", columns, found.map((worker) => row(worker, held.get(worker.id) ?? []))) : h("p", { class: "quiet" }, `No worker has “${find}” in its name.`),
      turns(["workers"], { find }, after, next, "Pages of workers"));
  },
  bare: (where) => head("Workers", "…", where.query.find !== undefined && search(where.query.find)),
};

function gather(tasks) {
  const by = new Map();
  for (const task of tasks) by.has(task.worker) ? by.get(task.worker).push(task) : by.set(task.worker, [task]);
  return by;
}

const search = (find) => searchField({ page: "workers", placeholder: "Find by name", "aria-label": "Find by name", value: find, change: (text) => swap(["workers"], { find: text }) });

function row(worker, held) {
  return { key: worker.id, cells: [
    [h("b", {}, worker.id), worker.impostor && tag("another process uses this name", "bad"), h("small", { class: "quiet since", title: instant(worker.since_ms) }, `since ${when(worker.since_ms)}`)], state(worker.state), squares(worker), runs(worker, held),
    (worker.queues ?? []).map((queue) => h("a", { class: "chip", title: queue, href: to(["queues", queue]) }, queue)), Object.entries(worker.labels ?? {}).map(([name, value]) => h("span", { class: "tag tag-plain", title: `${name}=${value}` }, `${name}=${value}`)),
    worker.heard_ms_ago === undefined ? "–" : `${span(worker.heard_ms_ago)} ago`,
    worker.state === "dead" ? button("Remove", () => ask("Remove", worker.id, "It is forgotten. If it lives after all, it is told to stop.", "DELETE", []), "quiet-danger", { "aria-label": `Remove ${worker.id}` })
      : worker.state === "alive" && button("Drain", () => ask("Drain", worker.id, "It finishes what it has and takes no more.", "POST", ["drain"]), "plain", { "aria-label": `Drain ${worker.id}` })] };
}

/** The tasks it holds, those first that it has held longest. */
function runs(worker, held) {
  if (held.length === 0 && worker.busy === 0) return h("span", { class: "quiet" }, "nothing");
  const began = (task) => task.attempts.at(-1)?.started_ms ?? 0;
  const named = [...held].sort((one, other) => began(one) - began(other)).slice(0, NAMED_MAX);
  const more = Math.max(held.length, worker.busy) - named.length;
  return h("ul", { class: "runs" }, named.map((task) => h("li", { "data-key": task.id }, h("a", { href: to(["tasks", task.id]), title: `${task.id}, queue ${task.queue}` }, cut(task.id, 40)), " ", h("span", { class: "quiet moment" }, span(Date.now() - began(task))))),
    more > 0 && h("li", { "data-key": "more" }, h("a", { href: to(["tasks"], { worker: worker.id, state: "claimed" }) }, named.length ? `and ${count(more)} more` : some(more, "task"))));
}

/** One square per slot, filled while it is busy. */
function squares(worker) {
  const told = `${worker.busy} of ${worker.slots} slots are busy`;
  const shown = Math.min(worker.slots, 32);
  return [h("span", { class: "map slots", role: "img", "aria-label": told, title: told }, Array.from({ length: shown }, (_, place) => h("i", { class: `cell ${place < worker.busy ? "cell-claimed" : "cell-to_come"}` }))),
    h("small", { class: "quiet" }, `${count(worker.busy)} of ${count(worker.slots)}`)];
}

function ask(verb, id, text, method, tail) {
  dialog({ title: `${verb} worker ${id}?`, text, yes: verb, kind: method === "DELETE" ? "danger" : "main", run: async () => {
    const answer = await act(method, path("v1", "workers", id, ...tail));
    note(`${id} is ${words(answer.outcome)}.`);
    dispatchEvent(new Event("dashboard:reload"));
  } });
}
