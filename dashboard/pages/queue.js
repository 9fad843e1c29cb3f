// One queue: its line, its history, its settings, what can be done.

import { h } from "../lib/dom.js";
import { get, path } from "../lib/api.js";
import { known } from "../lib/pulse.js";
import { chart } from "../lib/chart.js";
import { brief, count, perSecond, rate, span, words } from "../lib/format.js";
import { button, facts, head, tag } from "../lib/parts.js";
import { to } from "../lib/route.js";
import { dropDead, hold, purge, retryDead } from "../lib/queue_actions.js";

const SAMPLES_MAX = 300;

export const queue = {
  title: (where) => where.parts[1],
  every_ms: 1000,
  load: async (where, former) => {
    const shown = await get(path("v1", "queues", where.parts[1]), { consistency: "stale" });
    const seen = { time_ms: Date.now(), queues: new Map([[shown.name, shown.counts]]) };
    return { shown, seen: [...(former?.seen ?? []).slice(1 - SAMPLES_MAX), seen] };
  },
  view: ({ shown, seen }) => {
    const { name, settings, counts, health } = shown;
    const marks = [settings.paused && tag("paused", "warn"), health.alerts.map((alert) => tag(words(alert), "bad"))];
    return h("div", {},
      head(name, h("span", {}, "Queue ", marks),
        button(settings.paused ? "Resume" : "Pause", () => hold(name, !settings.paused), settings.paused ? "main" : "plain"),
        counts.dead > 0 && button("Retry dead", () => retryDead(name)), button("Purge", () => purge(name), "quiet-danger"), counts.dead > 0 && button("Drop dead", () => dropDead(name), "quiet-danger")),
      numbers(name, counts, health), history(name, seen), h("div", { class: "two" }, settingsOf(settings), alertsOf(settings.alerts)));
  },
};

function numbers(name, counts, health) {
  const link = (state, value) => h("a", { class: "figure", href: to(["tasks"], { queue: name, state }) }, h("b", {}, brief(value)), h("span", {}, state));
  const plain = (word, value) => h("span", { class: "figure" }, h("b", {}, value), h("span", {}, word));
  return h("section", { class: "figures panel" }, link("ready", counts.ready), link("claimed", counts.claimed), link("scheduled", counts.scheduled),
    plain("dead now", brief(counts.dead)), plain("dead, ever", brief(counts.dead_total)), plain("oldest ready", span(health.oldest_ready_age_ms)), plain("oldest claim", span(health.oldest_claim_age_ms)),
    plain("in", rate(health.submitted_per_1000_s)), plain("done", rate(health.done_per_1000_s)));
}

/** This queue's part of the pulse; of a queue that the pulse does not follow, what this page has seen itself. */
function history(name, seen) {
  const samples = known.samples.at(-1)?.queues?.has(name) ? known.samples : seen;
  const own = samples.map((sample, place) => {
    const now = sample.queues?.get(name);
    if (sample.gap || !now) return { time_ms: sample.time_ms, gap: sample.gap };
    const earlier = samples[place - 1];
    const was = earlier?.queues?.get(name);
    const seconds = was ? (sample.time_ms - earlier.time_ms) / 1000 : 0;
    const rose = (total) => (was ? Math.max(0, now[total] - was[total]) / seconds : null);
    return { time_ms: sample.time_ms, ready: now.ready, claimed: now.claimed, submitted: rose("submitted_total"), done: rose("done_total") };
  });
  const line = (word, tone, fill) => ({ name: word, tone, of: (sample) => sample[word], fill });
  return h("section", { class: "charts" },
    chart({ title: "In line", samples: own, unit: (value) => brief(Math.round(value)), series: [line("ready", "water", true), line("claimed", "timber")] }),
    chart({ title: "Rates", samples: own, unit: perSecond, series: [line("submitted", "timber"), line("done", "water", true)] }));
}

function settingsOf(settings) {
  return h("section", { class: "panel" }, h("h2", {}, "Settings"), facts([
    ["attempts", count(settings.max_attempts)], ["claim lives", span(settings.ttl_ms)], ["wait after failure", `${span(settings.backoff.base_ms)} to ${span(settings.backoff.cap_ms)}`],
    ["time for an attempt", settings.timeout_ms ? span(settings.timeout_ms) : "no limit"], ["deadline", settings.deadline_in_ms ? span(settings.deadline_in_ms) : "none"],
    ["per key at a time", settings.key_limit === 0 ? "no limit" : count(settings.key_limit)], ["most unfinished per shard", settings.pending_max ? count(settings.pending_max) : "no bound of its own"],
    ["done kept", `${count(settings.retention_count)} per shard, ${span(settings.retention_ms)}`],
    ["dead kept", `${span(settings.dead_retention_ms)}, ${settings.dead_max ? `at most ${count(settings.dead_max)} per shard` : "no limit"}`], ["version", settings.version ? count(settings.version) : "defaults"]]),
    h("p", { class: "quiet" }, "Change them with ", h("code", {}, "ikada queue set"), "."));
}

function alertsOf(alerts) {
  const threshold = (value, unit) => (value ? `${count(value)}${unit}` : "off");
  return h("section", { class: "panel" }, h("h2", {}, "Alerts at"), facts([
    ["waiting tasks", threshold(alerts.pending, "")], ["age of a claim", threshold(alerts.claim_age_percent, " % of its life")],
    ["dead among finished", threshold(alerts.dead_percent, " %")], ["growing for", threshold(alerts.growing_s, " s")]]));
}
