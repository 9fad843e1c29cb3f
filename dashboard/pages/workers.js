// Workers: slots, labels, queues, whether they are heard, and draining.

import { h } from "../lib/dom.js";
import { act, get, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { count, instant, span, when, words } from "../lib/format.js";
import { button, empty, head, state, table, tag } from "../lib/parts.js";
import { to } from "../lib/route.js";

const ROWS_MAX = 300;

export const workers = {
  title: () => "Workers",
  load: () => get("/v1/workers"),
  view: (data) => {
    const all = data.workers;
    const alive = all.filter((worker) => worker.state !== "dead");
    const busy = alive.reduce((sum, worker) => sum + worker.busy, 0);
    const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
    const top = head("Workers", all.length ? `${count(busy)} of ${count(slots)} slots are busy.` : "They claim tasks, run them in slots, and report.");
    if (all.length === 0) return h("div", {}, top, empty("No workers", "Start one; it finds its work through any node:", "ikada worker --slots 4 --queue mail", "python3 -m ikada worker shop:app --slots 8"));
    const columns = [["worker"], ["state"], ["slots", "wide"], ["busy", "number"], ["takes from"], ["labels"], ["since"], ["heard", "number"], ["", "act"]];
    return h("div", {}, top, table("Workers", columns, all.slice(0, ROWS_MAX).map(row)), all.length > ROWS_MAX && h("p", { class: "more" }, `The first ${ROWS_MAX} of ${count(all.length)}.`));
  },
};

function row(worker) {
  return { key: worker.id, cells: [
    [h("b", {}, worker.id), worker.impostor && tag("another process uses this name", "bad")], state(worker.state), squares(worker), `${count(worker.busy)} of ${count(worker.slots)}`,
    (worker.queues ?? []).map((queue) => h("a", { class: "chip", href: to(["queues", queue]) }, queue)), Object.entries(worker.labels ?? {}).map(([name, value]) => tag(`${name}=${value}`)),
    h("time", { title: instant(worker.since_ms) }, when(worker.since_ms)), worker.heard_ms_ago === undefined ? "–" : `${span(worker.heard_ms_ago)} ago`,
    worker.state === "dead" ? button("Remove", () => ask("Remove", worker.id, "It is forgotten. If it lives after all, it is told to stop.", "DELETE", []), "quiet-danger", { "aria-label": `Remove ${worker.id}` })
      : worker.state === "alive" && button("Drain", () => ask("Drain", worker.id, "It finishes what it has and takes no more.", "POST", ["drain"]), "plain", { "aria-label": `Drain ${worker.id}` })] };
}

/** One square per slot, filled while it is busy. */
function squares(worker) {
  const told = `${worker.busy} of ${worker.slots} slots are busy`;
  const shown = Math.min(worker.slots, 64);
  return h("span", { class: "map", role: "img", "aria-label": told, title: told }, Array.from({ length: shown }, (_, place) => h("i", { class: `cell ${place < worker.busy ? "cell-claimed" : "cell-to_come"}` })));
}

function ask(verb, id, text, method, tail) {
  dialog({ title: `${verb} worker ${id}?`, text, yes: verb, kind: method === "DELETE" ? "danger" : "main", run: async () => {
    const answer = await act(method, path("v1", "workers", id, ...tail));
    note(`${id} is ${words(answer.outcome)}.`);
    dispatchEvent(new Event("dashboard:reload"));
  } });
}
