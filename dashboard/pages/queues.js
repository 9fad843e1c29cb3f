// Queues: depth, age, rates, alerts, pause and resume.

import { h } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { brief, count, rate, span, words } from "../lib/format.js";
import { button, empty, head, table, tag, turns } from "../lib/parts.js";
import { go, swap, to } from "../lib/route.js";
import { searchField } from "../lib/search.js";
import { hold } from "../lib/queue_actions.js";

/** Queues on a page. */
const PAGE = 100;

export const queues = {
  title: () => "Queues",
  every_ms: 1000,
  load: (where, _former, signal) => get("/v1/queues", { find: where.query.find, after: where.query.after, limit: PAGE, consistency: "stale" }, { signal }),
  view: (data, where) => {
    const find = where.query.find ?? "";
    const found = data.queues;
    const top = head("Queues", data.total > PAGE ? `${count(data.total)} queues${find && ` with “${find}” in their names`}, ${count(data.sum.ready)} tasks ready in them.` : "A queue comes into being with its first task.", search(find, found));
    if (data.total === 0 && !find) return h("div", {}, top, empty("No queues yet", "Name one when you submit a task:", "ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'"));
    const most = Math.max(1, ...found.map((queue) => queue.counts.ready + queue.counts.claimed + queue.counts.scheduled));
    const columns = [["queue"], ["in line", "wide"], ["ready", "number"], ["claimed", "number"], ["oldest ready", "number"], ["in", "number"], ["done", "number"], ["failed", "number"], ["needs"], ["", "act"]];
    return h("div", {}, top, found.length > 0 ? table("Queues", columns, found.map((queue) => row(queue, most))) : h("p", { class: "quiet" }, `No queue has “${find}” in its name.`),
      turns(["queues"], { find: where.query.find }, where.query.after, data.next, "Pages of queues"));
  },
  bare: (where) => head("Queues", "…", search(where.query.find ?? "", [])),
};

/** Enter opens the queue of this name, or the only one that is found. */
const search = (find, found) => searchField({ page: "queues", placeholder: "Find by name", "aria-label": "Find by name", value: find, change: (text) => swap(["queues"], { find: text }),
  enter: (text) => {
    const meant = found.find((one) => one.name === text) ?? (found.length === 1 && text === find ? found[0] : null);
    if (meant) go(["queues", meant.name]);
  } });

function row(queue, most) {
  const { name, counts, health, settings } = queue;
  return { key: name, cells: [
    h("a", { href: to(["queues", name]) }, name), depth(counts, most), brief(counts.ready), brief(counts.claimed),
    span(health.oldest_ready_age_ms), rate(health.submitted_per_1000_s), rate(health.done_per_1000_s), rate(health.failed_per_1000_s),
    [settings.paused && tag("paused", "warn"), health.alerts.map((alert) => tag(words(alert), "bad"))],
    button(settings.paused ? "Resume" : "Pause", () => hold(name, !settings.paused), "plain", { "aria-label": `${settings.paused ? "Resume" : "Pause"} ${name}` })] };
}

/** Ready, claimed and scheduled as one bar; longest for the fullest queue. */
export function depth(counts, most) {
  const part = (kind) => h("i", { class: `depth-${kind}`, style: { "flex-grow": String(counts[kind]) } });
  const all = counts.ready + counts.claimed + counts.scheduled;
  const told = `${counts.ready} ready, ${counts.claimed} claimed, ${counts.scheduled} scheduled`;
  return h("span", { class: "depth", role: "img", "aria-label": told, title: told, style: { width: `${all ? Math.max(3, (all / most) * 100) : 0}%` } }, part("ready"), part("claimed"), part("scheduled"));
}
