// All pages, and which one an address means.

import { h } from "../lib/dom.js";
import { head } from "../lib/parts.js";
import { to } from "../lib/route.js";
import { overview } from "./overview.js";
import { elections } from "./elections.js";
import { queues } from "./queues.js";
import { queue } from "./queue.js";
import { tasks } from "./tasks.js";
import { task } from "./task.js";
import { schedules } from "./schedules.js";
import { job } from "./job.js";
import { jobs } from "./jobs.js";
import { workers } from "./workers.js";
import { leases } from "./leases.js";
import { buckets } from "./buckets.js";
import { objects } from "./objects.js";
import { cluster } from "./cluster.js";

/** The ways in the side bar: first part of the address, its word, and `apart` where another kind of thing begins: work, what is kept, the cluster. */
export const WAYS = [
  ["", "Overview"], ["jobs", "Jobs", "apart"], ["queues", "Queues"], ["tasks", "Tasks"], ["workers", "Workers"], ["schedules", "Schedules"], ["objects", "Objects", "apart"], ["leases", "Leases"],
  ["elections", "Elections", "apart"], ["cluster", "Cluster"],
];

// Maps: an address such as `__proto__` names nothing.
const PAGES = new Map(Object.entries({ "": overview, workers, jobs, queues, tasks, schedules, objects: buckets, leases, elections, cluster }));
const NAMED = new Map(Object.entries({ jobs: job, queues: queue, tasks: task, objects }));

const lost = {
  title: () => "Nothing here",
  view: () => h("div", {}, head("Nothing here", "No page goes by this address."), h("p", {}, h("a", { href: to([]) }, "Back to the overview"))),
};

/** The page for an address. */
export function pageFor({ parts }) {
  const [first = "", name] = parts;
  return (name === undefined ? PAGES : NAMED).get(first) ?? lost;
}
