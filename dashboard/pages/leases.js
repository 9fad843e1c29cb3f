// Leases: who holds which lock, with which fence, and who waits.

import { h } from "../lib/dom.js";
import { act, get, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { instant, span, when } from "../lib/format.js";
import { button, empty, head, table, turns } from "../lib/parts.js";
import { to } from "../lib/route.js";

export const leases = {
  title: () => "Leases",
  load: (where) => get("/v1/leases", { after: where.query.after, consistency: "stale" }),
  view: (data, where) => {
    const top = head("Leases", "Locks and elections with a time to live and a fence that only rises.");
    if (data.leases.length === 0 && !where.query.after) return h("div", {}, top, empty("Nobody holds a lease", "Run a command under a lock; it is given back when the command ends:", "ikada lease run --name nightly -- ./report.sh"));
    const columns = [["lease"], ["holder"], ["since"], ["lives", "number"], ["fence", "number"], ["ends with"], ["waiting", "wide"], ["", "act"]];
    return h("div", {}, top, table("Leases", columns, data.leases.map(row)),
      turns(["leases"], {}, where.query.after, data.next, "Pages of leases"));
  },
};

function row(lease) {
  const waiting = (lease.waiters ?? []).map((one) => one.holder).join(", ");
  return { key: lease.name, cells: [
    h("b", {}, lease.name), lease.holder ?? "–", h("time", { title: instant(lease.since_ms) }, when(lease.since_ms)), span(lease.ttl_ms), h("code", {}, lease.fence ?? ""),
    lease.task ? h("a", { href: to(["tasks", lease.task]) }, lease.task) : "", waiting, button("Release", () => release(lease), "quiet-danger", { "aria-label": `Release ${lease.name}` })] };
}

function release(lease) {
  dialog({ title: `Release ${lease.name}?`, text: `${lease.holder} loses it at once, and may not know before its next renewal. Whatever the lease protects must refuse its fence ${lease.fence}.`, yes: "Release", kind: "danger", run: async () => {
    await act("POST", path("v1", "leases", lease.name, "release"), { body: { holder: lease.holder, fence: lease.fence, force: true } });
    note(`${lease.name} is free.`);
    dispatchEvent(new Event("dashboard:reload"));
  } });
}
