// Overview: is it well, who leads what, how much is going on.

import { h } from "../lib/dom.js";
import { known } from "../lib/pulse.js";
import { to } from "../lib/route.js";
import { chart } from "../lib/chart.js";
import { brief, count, perSecond, some, span, when, words } from "../lib/format.js";
import { empty, tag } from "../lib/parts.js";
import { raft } from "../lib/raft.js";

/** Queues in a list; the queues' own page has all. */
const ROWS_MAX = 8;

export const overview = {
  title: () => "Overview",
  view: () => {
    const { cluster, queues, samples } = known;
    if (!cluster && !queues) return h("p", { class: "loading" }, known.trouble ? "" : "Looking …");
    return h("div", { class: "overview" }, cluster && hero(cluster, queues ?? []), cluster && raft(cluster, known.node), charts(samples), attention(queues ?? []), recent());
  },
};

/** One sentence on how things are. */
function hero(cluster, queues) {
  const missing = cluster.members.filter((member) => !member.connected);
  const leaderless = cluster.shards.filter((shard) => !shard.leader);
  const alarmed = queues.filter((queue) => queue.health.alerts.length > 0);
  const [kind, sentence] =
    leaderless.length > 0 ? ["bad", leaderless.length === cluster.shards.length ? "No leader is known." : `${some(leaderless.length, "shard")} without a leader.`]
    : missing.length > 0 ? ["warn", missing.length === 1 ? `Node ${missing[0].node} is missing.` : `${missing.length} nodes are missing.`]
    : alarmed.length > 0 ? ["look", alarmed.length === 1 ? "One queue needs a look." : `${count(alarmed.length)} queues need a look.`]
    : ["calm", "All is calm."];
  const term = Math.max(0, ...cluster.shards.map((shard) => shard.term));
  return h("section", { class: `hero hero-${kind}` },
    h("h1", {}, sentence),
    h("p", {}, kind === "look" && "The cluster itself is well. ", `${some(cluster.members.length, "node")}, ${some(cluster.shards.length, "shard")}, highest term ${count(term)}, as node ${cluster.answered_by} sees it.`),
    kind === "warn" && h("p", {}, "Everything goes on as long as a majority of the nodes is here."),
    cluster.change && h("p", {}, tag("membership", "warn"), ` ${cluster.change.stage}: ${cluster.change.shards_done} of ${some(cluster.change.shards, "shard")} done.`),
    cluster.growth && h("p", {}, tag("growth", "warn"), ` from ${cluster.growth.from} to ${some(cluster.growth.to, "shard")}: ${count(cluster.growth.moved)} of ${count(cluster.growth.slots)} slots moved.`));
}

function charts(samples) {
  const line = (name, tone, of, fill) => ({ name, tone, of, fill });
  return h("section", { class: "charts", "aria-label": "The last five minutes" },
    chart({ title: "Throughput", samples, unit: perSecond, series: [
      line("submitted", "timber", (sample) => sample.submitted), line("done", "water", (sample) => sample.done, true), line("failed", "rust", (sample) => sample.failed)] }),
    chart({ title: "Backlog", samples, unit: (value) => brief(Math.round(value)), series: [
      line("ready", "water", (sample) => sample.ready, true), line("claimed", "timber", (sample) => sample.claimed), line("scheduled", "slate", (sample) => sample.scheduled)] }),
    chart({ title: "Answer time", samples, unit: span, series: [
      line("from all leaders", "water", (sample) => sample.probe_ms, true), line("disk sync here", "timber", (sample) => sample.sync_ms)] }),
    chart({ title: "This node’s door", samples, unit: perSecond, series: [
      line("calls", "water", (sample) => sample.calls, true), line("told to wait", "rust", (sample) => sample.shed)] }));
}

function attention(queues) {
  if (queues.length === 0) {
    return empty("No task has come by yet", "Submit the first one: through any node, by command, HTTP or client.",
      "ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'",
      h("p", {}, "or ", h("a", { href: to(["tasks"], { new: "1" }) }, "write it here"), "."));
  }
  const alarmed = queues.filter((queue) => queue.health.alerts.length > 0 || queue.settings.paused);
  const others = busiest(queues.filter((queue) => !alarmed.includes(queue) && weight(queue) > 0));
  return h("div", { class: "two lists" }, alarmed.length > 0 && lines("Queues that need a look", alarmed),
    (others.length > 0 || alarmed.length === 0) && lines("Busiest queues", others.length > 0 ? others : busiest(queues)));
}

const lines = (title, queues) => h("section", { class: "panel list", "data-key": title }, h("h2", {}, title),
  h("ul", {}, queues.slice(0, ROWS_MAX).map((queue) => h("li", { "data-key": queue.name },
    h("a", { href: to(["queues", queue.name]) }, queue.name), " ",
    queue.settings.paused && tag("paused", "warn"), queue.health.alerts.map((alert) => tag(words(alert), "bad")),
    h("span", { class: "right" }, `${brief(queue.counts.ready)} ready · ${brief(queue.counts.claimed)} claimed`)))), more(queues.length));

/** Says that a list is cut, and leads to the whole. Of very many queues only those first in need are known here. */
const more = (there) => there > ROWS_MAX && h("p", { class: "more" }, `${count(ROWS_MAX)} of ${count(there)}${known.queues_total > known.queues.length ? " or more" : ""}. `, h("a", { href: to(["queues"]) }, "See all queues"));

const busiest = (queues) => [...queues].sort((one, other) => weight(other) - weight(one));
const weight = ({ counts }) => counts.ready + counts.claimed + counts.scheduled;

function recent() {
  const newest = known.events.slice(-6).reverse();
  return h("section", { class: "panel list" }, h("h2", {}, h("a", { href: to(["elections"]) }, "Latest role changes of this node")),
    newest.length === 0 ? h("p", { class: "quiet" }, known.roles === "forbidden" ? "Your token does not show them." : "None since it started.")
      : h("ul", {}, newest.map((event) => h("li", { "data-key": `event-${event.sequence}` }, `shard ${event.shard} `, tag(words(event.role), event.role === "leader" ? "calm" : "plain"),
        ` ${event.reason}`, h("span", { class: "right" }, when(event.wall_ms))))));
}
