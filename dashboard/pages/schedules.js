// Schedules: what comes when, what came, what was missed.

import { h } from "../lib/dom.js";
import { act, get, parseExact, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { count, instant, span, when, words } from "../lib/format.js";
import { button, empty, head, table, tag, turns } from "../lib/parts.js";
import { to } from "../lib/route.js";

/** Schedules on a page. */
const PAGE = 100;

const reload = () => dispatchEvent(new Event("dashboard:reload"));

export const schedules = {
  title: () => "Schedules",
  load: (where) => get("/v1/schedules", { after: where.query.after, limit: PAGE, consistency: "stale" }),
  view: (data, where) => {
    const { after } = where.query;
    const top = head("Schedules", "Each instant submits one task, whoever leads.", button("New schedule", create, "main"));
    if (data.schedules.length === 0 && !after) return h("div", {}, top, empty("Nothing is scheduled", "A cron line with a time zone, or an interval:", "ikada schedule set nightly --cron '30 2 * * *' --zone Europe/Berlin --queue mail"));
    const columns = [["schedule"], ["when"], ["submits to"], ["next"], ["last"], ["kept", "number"], ["missed", "number"], ["needs"], ["", "act"]];
    return h("div", {}, top, data.schedules.length > 0 ? table("Schedules", columns, data.schedules.map(row)) : h("p", { class: "quiet" }, "No schedules behind this one."),
      turns(["schedules"], {}, after, data.next, "Pages of schedules"));
  },
};

function row(one) {
  const next = one.next_ms[0];
  const upcoming = one.next_ms.map(instant).join("\n");
  return { key: one.name, cells: [
    h("b", {}, one.name), one.cron ? [h("code", {}, one.cron), " ", h("span", { class: "quiet" }, one.zone ?? "UTC")] : `every ${span(one.every_ms)}`,
    h("a", { href: to(["queues", one.task.queue]) }, one.task.queue), next ? h("time", { title: upcoming }, when(next)) : "–",
    one.last_task ? h("a", { class: "moment", href: to(["tasks", one.last_task]), title: instant(one.last_ms) }, when(one.last_ms)) : "–",
    count(one.fired_total), count(one.missed_total + one.overlapped_total), [one.paused && tag("paused", "warn"), one.alarms.map((alarm) => tag(words(alarm), "bad"))],
    [button(one.paused ? "Resume" : "Pause", () => hold(one), "plain", { "aria-label": `${one.paused ? "Resume" : "Pause"} ${one.name}` }),
      button("Delete", () => remove(one.name), "quiet-danger", { "aria-label": `Delete ${one.name}` })]] };
}

async function hold(one) {
  try {
    await act("POST", path("v1", "schedules", one.name, one.paused ? "resume" : "pause"));
    note(one.paused ? `${one.name} goes on from now.` : `${one.name} rests.`);
  } catch (problem) {
    note(problem.detail, "bad");
  }
  reload();
}

function remove(name) {
  dialog({ title: `Delete schedule ${name}?`, text: "No more tasks come from it. Those it submitted stay.", yes: "Delete", kind: "danger", run: async () => {
    await act("DELETE", path("v1", "schedules", name));
    note(`${name} is deleted.`);
    reload();
  } });
}

function create() {
  dialog({
    title: "New schedule", yes: "Schedule",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "cron", label: "Cron line", placeholder: "30 2 * * *", hint: "Minute, hour, day of month, month, day of week; or a word such as @daily.", required: true },
      { name: "zone", label: "Time zone", value: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" },
      { name: "queue", label: "Queue", value: "default", required: true },
      { name: "payload", label: "Payload", kind: "long", hint: "Any JSON value; empty is none." },
    ],
    run: async ({ name, cron, zone, queue, payload }) => {
      const task = payload ? { queue, payload: parseExact(payload) } : { queue };
      await act("PUT", path("v1", "schedules", name), { body: { cron, zone, task, expected_version: 0 } });
      note(`${name} is scheduled.`);
      reload();
    },
  });
}
