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
import { buckets } from "./buckets.js";
import { objects } from "./objects.js";
import { cluster } from "./cluster.js";

/** The ways in the side bar: first part of the address, and its word. */
export const WAYS = [
  ["", "Overview"], ["queues", "Queues"], ["tasks", "Tasks"], ["schedules", "Schedules"], ["objects", "Objects"],
  ["elections", "Elections"], ["cluster", "Cluster"],
];

const PAGES = { "": overview, queues, tasks, schedules, objects: buckets, elections, cluster };
const NAMED = { queues: queue, tasks: task, objects };

const lost = {
  title: () => "Nothing here",
  view: () => h("div", {}, head("Nothing here", "No page goes by this address."), h("p", {}, h("a", { href: to([]) }, "Back to the overview"))),
};

/** The page for an address. */
export function pageFor({ parts }) {
  const [first = "", name] = parts;
  return (name === undefined ? PAGES[first] : NAMED[first]) ?? lost;
}
