// One job: its stages, a map of its tasks, its result.

import { h } from "../lib/dom.js";
import { act, get, getFresh, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { count, instant, span, words } from "../lib/format.js";
import { button, facts, head, longText, moment, state, tag, trouble, turns } from "../lib/parts.js";
import { to } from "../lib/route.js";
import { download } from "../lib/object_actions.js";
import { logPanel } from "../lib/logs.js";
import { bar, took } from "./jobs.js";

/** Tasks on the map at a time. */
const TASKS_MAX = 1000;
/** Outputs in the list at a time. */
const OUTPUTS_MAX = 200;
/** A job that has ended changes only by a hand, and seldom. */
const EVERY_MS = 1000;
const ENDED_EVERY_MS = 15_000;
const isFinished = (job) => ["done", "error", "cancelled"].includes(job.status);

export const job = {
  title: (where) => where.parts[1],
  every_ms: (data) => (data && isFinished(data.shown) ? ENDED_EVERY_MS : EVERY_MS),
  load: async (where) => {
    const shown = await get(path("v1", "jobs", where.parts[1]), { consistency: "stale" });
    const page = await get(path("v1", "jobs", where.parts[1], "tasks"), { limit: TASKS_MAX, after: where.query.after, consistency: "stale" }).catch(() => ({ tasks: [] }));
    const result = isFinished(shown) ? await getFresh(path("v1", "jobs", where.parts[1], "result"), { limit: OUTPUTS_MAX, after: where.query.outputs }).then(({ body }) => body, (problem) => ({ problem })) : null;
    return { shown, page, result };
  },
  view: ({ shown, page, result }, where) => h("div", {},
    head(shown.id, h("span", {}, state(shown.status), !isFinished(shown) && tag(words(shown.assignment)), " ", shown.name, " in ", h("a", { href: to(["queues", shown.queue]) }, shown.queue)),
      !isFinished(shown) && button("Cancel job", () => cancel(shown.id), "quiet-danger")),
    shown.reason && h("p", { class: "trouble" }, shown.reason), stages(shown), map(shown, page, where.query), result && outcome(shown.id, result, where.query), logPanel(isFinished(shown), "jobs", shown.id), times(shown)),
};

function cancel(id) {
  dialog({ title: `Cancel job ${id}?`, text: "Tasks that workers hold are told at their next renewal; their results will not count.", yes: "Cancel job", kind: "danger", run: async () => {
    await act("POST", path("v1", "jobs", id, "cancel"));
    note(`${id} is cancelled.`);
    dispatchEvent(new Event("dashboard:reload"));
  } });
}

/** The stages in order, each a timber that fills. */
function stages(shown) {
  return h("section", { class: "panel" }, h("h2", {}, `${count(shown.tasks_done)} of ${count(shown.tasks_total)} tasks done`, left(shown)),
    h("ol", { class: "stages" }, shown.stages.map((stage) => h("li", { "data-key": stage.name },
      h("div", { class: "stage-head" }, h("b", {}, stage.name), h("span", { class: "quiet" }, stage.program), stage.settled && tag("settled", "calm"),
        stage.dead > 0 && tag(`${count(stage.dead)} dead`, "bad"), h("span", { class: "right" }, `${count(stage.done)} of ${count(stage.tasks)} done, ${count(stage.claimed)} held`)),
      bar(stage.done, stage.tasks, stage.dead ? "error" : "in_progress")))));
}

/** What the pace so far says of the rest; nothing while that is too early to say. */
function left(shown) {
  const [done, rest] = [shown.tasks_done, shown.tasks_total - shown.tasks_done];
  if (isFinished(shown) || !shown.started_ms || done < 5 || rest === 0) return null;
  return h("span", { class: "quiet" }, ` · about ${span(((Date.now() - shown.started_ms) / done) * rest)} left at this pace`);
}

/** Every task a square. */
function map(shown, page, { after, outputs }) {
  if (page.tasks.length === 0 && !after) return null;
  const part = page.tasks.length < shown.tasks_total && page.tasks.length > 0;
  const own = (task) => task.id.slice(shown.id.length + 1);
  return h("section", { class: "panel" }, h("h2", {}, "Tasks ", part && h("span", { class: "quiet" }, `${own(page.tasks[0])} to ${own(page.tasks.at(-1))}, ${count(page.tasks.length)} of ${count(shown.tasks_total)}`)),
    h("ul", { class: "map" }, page.tasks.map((task) => h("li", { "data-key": task.id }, h("a", { class: `cell cell-${task.state}`, href: to(["tasks", task.id]),
      title: `${task.id}: ${words(task.state)}${task.worker ? ` on ${task.worker}` : ""}${task.error ? `, ${task.error}` : ""}`, "aria-label": `${task.id}, ${words(task.state)}` })))),
    h("p", { class: "legend" }, ["to_come", "ready", "claimed", "done", "dead"].map((name) => h("span", {}, h("i", { class: `swatch cell-${name}` }), words(name)))),
    turns(["jobs", shown.id], { outputs }, after, page.next, "Parts of the map", ["First tasks", `Next ${count(TASKS_MAX)} tasks`]));
}

function outcome(id, result, { after, outputs: from }) {
  if (result.problem) return h("section", { class: "panel" }, h("h2", {}, "Result"), trouble(result.problem));
  const text = result.result !== undefined ? JSON.stringify(result.result, null, 2) : result.result_base64;
  const outputs = result.outputs ?? [];
  return h("section", { class: "panel" }, h("h2", {}, "Result"), text === undefined ? null : longText(text),
    outputs.length > 0 && h("ul", { class: "outputs" }, outputs.map((one) => h("li", { "data-key": one.key }, h("button", { class: "link", type: "button", onclick: () => download(one) }, one.key)))),
    (result.next || from) && [h("p", { class: "more" }, result.next ? `${count(outputs.length)} outputs are shown, and there are more. All of them: ` : "These are the last ones. All of them: ", h("code", {}, `ikada job result ${id} --to FOLDER`)),
      turns(["jobs", id], { after }, from, result.next, "Parts of the outputs", ["First outputs", "Next outputs"], "outputs")],
    text === undefined && outputs.length === 0 && h("p", { class: "quiet" }, from ? "There are no outputs behind this place." : "None."));
}

const times = (shown) => h("section", { class: "panel" }, facts([
  ["submitted", moment(shown.created_ms)], ["started", shown.started_ms && instant(shown.started_ms)], ["finished", shown.finished_ms && instant(shown.finished_ms)], ["took", took(shown)]]));
