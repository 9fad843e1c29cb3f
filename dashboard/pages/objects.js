// The objects of a bucket: folders by slash, versions, preview, upload, download.

import { h } from "../lib/dom.js";
import { get, path } from "../lib/api.js";
import { instant, size, when } from "../lib/format.js";
import { button, empty, head, table, turns } from "../lib/parts.js";
import { to } from "../lib/route.js";
import { download, drop, preview, remove, upload } from "../lib/object_actions.js";

/** Folders and objects on a page. */
const PAGE = 200;

export const objects = {
  title: (where) => where.parts[1],
  every_ms: 5000,
  load: async (where) => {
    try {
      return await get(path("v1", "objects", where.parts[1]), { prefix: where.query.prefix, delimiter: "/", after: where.query.after, limit: PAGE, consistency: "stale" });
    } catch (problem) {
      if (problem.code !== "bad_parameter" || problem.field !== "prefix" || where.query.prefix) throw problem;
      return { byOwner: true };
    }
  },
  view: (data, where) => {
    const [bucket, prefix] = [where.parts[1], where.query.prefix ?? ""];
    if (data.byOwner) return h("div", {}, head(bucket, crumbs(bucket, prefix)), ofOwners());
    const rows = [...(data.prefixes ?? []).map((name) => folder(bucket, name, prefix)), ...data.objects.map((one) => file(one, prefix))];
    return h("div", { class: "drop-here", ondragover: (event) => event.preventDefault(), ondrop: (event) => drop(event, bucket, prefix) },
      head(bucket, crumbs(bucket, prefix), button("Upload", () => upload(bucket, prefix), "main")),
      rows.length === 0 ? empty("Nothing here", "Drop a file on this page, or:", `ikada object put report.pdf ${bucket}/${prefix}report.pdf`)
        : table("Objects", [["name", "wide"], ["size", "number"], ["type"], ["written"], ["version", "number"], ["", "act"]], rows),
      turns(["objects", bucket], { prefix: where.query.prefix }, where.query.after, data.next, "Pages of objects"));
  },
};

/** What jobs bring and tasks say has its place below their ids. */
const ofOwners = () => empty("Kept by job and task", "These files are listed below the id of the job or task that they belong to. A job’s page has its outputs, a task’s page its log.",
  h("p", {}, h("a", { href: to(["jobs"]) }, "Look at the jobs"), "."));

const folder = (bucket, name, prefix) => ({ key: name, cells: [h("a", { href: to(["objects", bucket], { prefix: name }) }, name.slice(prefix.length)), "", "folder", "", "", ""] });

const file = (one, prefix) => ({ key: `${one.key} ${one.version}`, cells: [
  h("button", { class: "link", type: "button", onclick: () => preview(one) }, one.key.slice(prefix.length)), size(one.size), one.content_type,
  h("time", { title: instant(one.modified_ms) }, when(one.modified_ms)), one.version,
  [button("Download", () => download(one), "plain", { "aria-label": `Download ${one.key}` }), button("Delete", () => remove(one), "quiet-danger", { "aria-label": `Delete ${one.key}` })]] });

function crumbs(bucket, prefix) {
  const parts = prefix.split("/").filter(Boolean);
  return h("nav", { class: "crumbs", "aria-label": "Folders" }, h("a", { href: to(["objects"]) }, "objects"), " / ", h("a", { href: to(["objects", bucket]) }, bucket),
    parts.map((part, place) => [" / ", h("a", { href: to(["objects", bucket], { prefix: `${parts.slice(0, place + 1).join("/")}/` }) }, part)]));
}
