// Buckets that have objects.

import { h } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { button, empty, head, turns } from "../lib/parts.js";
import { to } from "../lib/route.js";
import { upload } from "../lib/object_actions.js";

export const buckets = {
  title: () => "Objects",
  every_ms: 5000,
  load: (where) => get("/v1/objects", { limit: 200, after: where.query.after, consistency: "stale" }),
  view: (data, where) => {
    const top = head("Objects", "Files by name, kept on a majority of the nodes before they are acknowledged.", button("Upload", () => upload(""), "main"));
    if (data.buckets.length === 0 && !where.query.after) return h("div", {}, top, empty("No objects yet", "A bucket comes into being with its first object:", "ikada object put report.pdf docs/2026/report.pdf"));
    return h("div", {}, top, h("ul", { class: "tiles" }, data.buckets.map((name) => h("li", { "data-key": name }, h("a", { class: "tile panel", href: to(["objects", name]) }, name)))),
      turns(["objects"], {}, where.query.after, data.next, "Pages of buckets"));
  },
};
