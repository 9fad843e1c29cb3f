// Jobs: how far each is.

import { h } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count, instant, span, when, words } from "../lib/format.js";
import { empty, head, state, table, turns } from "../lib/parts.js";
import { go, swap, to } from "../lib/route.js";
import { searchField } from "../lib/search.js";

const STATUSES = ["not_started", "in_progress", "halted", "done", "error", "cancelled"];

export const jobs = {
  title: () => "Jobs",
  load: (where, _former, signal) => get("/v1/jobs", { ...chosen(where.query), order: "newest", after: where.query.after, consistency: "stale" }, { signal }),
  view: (data, where) => {
    const { query } = where;
    if (data.jobs.length === 0 && !query.after) {
      if (query.find || query.status) return h("div", {}, top(query), empty("No such jobs here", "Nothing fits the filters now. Finished jobs go after their retention time."));
      return h("div", {}, top(query), empty("No jobs yet", "Count the words of some files; wordcount and merge are built into every worker:", "ikada worker --slots 4", "ikada job run --map wordcount --input 'texts/*.txt' --reduce merge"));
    }
    const columns = [["job"], ["status"], ["progress", "wide"], ["tasks", "number"], ["queue"], ["submitted"], ["took", "number"]];
    return h("div", {}, top(query), table("Jobs", columns, data.jobs.map(row)),
      turns(["jobs"], chosen(query), query.after, data.next, "Pages of jobs"));
  },
  bare: (where) => top(where.query),
};

const chosen = ({ find, status }) => ({ find, status });

const top = (query) => [head("Jobs", "A job is a program with inputs: stages of tasks that end in one result. The newest come first."), filters(query)];

function filters(query) {
  return h("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
    h("label", {}, h("span", {}, "Find"), searchField({ page: "jobs", name: "find", placeholder: "part of an id or a name", value: query.find ?? "",
      change: (find) => swap(["jobs"], { ...chosen(query), find }) })),
    h("label", {}, h("span", {}, "Status"), h("select", { name: "status", onchange: (event) => go(["jobs"], { ...chosen(query), status: event.target.value }) },
      h("option", { value: "" }, "all"), STATUSES.map((name) => h("option", { value: name, selected: name === query.status }, words(name))))));
}

function row(job) {
  return { key: job.id, cells: [
    [h("a", { href: to(["jobs", job.id]) }, job.id), job.name && h("div", { class: "quiet" }, job.name)], state(job.status), bar(job.tasks_done, job.tasks_total, job.status),
    `${count(job.tasks_done)} of ${count(job.tasks_total)}`, h("a", { href: to(["queues", job.queue]) }, job.queue),
    h("time", { title: instant(job.created_ms) }, when(job.created_ms)), took(job)] };
}

/** Time from the first claim to the end, or until now. */
export const took = (job) => (job.started_ms ? span((job.finished_ms ?? Date.now()) - job.started_ms) : "–");

/** How much is done, as a bar. */
export function bar(done, total, status) {
  const told = `${done} of ${total} tasks done, ${words(status)}`;
  return h("span", { class: "bar", role: "img", "aria-label": told, title: told },
    h("i", { class: status === "error" ? "bar-bad" : "bar-done", style: { width: `${total ? (done / total) * 100 : 0}%` } }));
}
