// The live log of a task or of a job's tasks: one stream while its page is shown, the newest lines in memory.
//
// Promise: lines are only ever text. A stream that ends before its time begins anew, from the first line.

import { h } from "./dom.js";
import { follow, path } from "./api.js";

/** Lines that are kept; older ones are told as a number. */
const LINES_MAX = 500;
/** Pause before a stream that broke off is asked for again. */
const AGAIN_MS = 2000;

let shown = null;

/** The panel with the log of what is at `parts`, as in `"jobs", id`. */
export function logPanel(...parts) {
  const where = path("v1", ...parts, "logs");
  if (shown?.where !== where) begin(where, parts);
  const { lines, dropped, state } = shown;
  const words = { open: "live", waiting: "waiting for a node", absent: "" }[state] ?? "complete";
  return h("section", { class: "panel log-panel" }, h("h2", {}, "Log ", words && h("span", { class: "quiet" }, words)),
    dropped > 0 && h("p", { class: "more" }, `${dropped} earlier lines are not shown.`),
    lines.length > 0 ? h("pre", { class: "text log", tabindex: 0, "aria-label": "Log" }, lines.join("\n")) : h("p", { class: "quiet" }, "Nothing was said yet."));
}

function begin(where, parts) {
  shown?.stop.abort();
  shown = { where, prefix: `${parts[1]}:`, alone: parts[0] === "tasks", lines: [], dropped: 0, state: "open", stop: new AbortController() };
  addEventListener("hashchange", leave, { once: true });
  listen(shown);
}

function leave() {
  shown?.stop.abort();
  shown = null;
}

async function listen(own) {
  while (!own.stop.signal.aborted) {
    Object.assign(own, { lines: [], dropped: 0, state: "open" });
    try {
      await follow(own.where, {}, (kind, data) => hear(own, kind, data), own.stop.signal);
    } catch (problem) {
      if (problem?.status === 404) own.state = "absent";
    }
    if (own.state !== "open") return;
    own.state = "waiting";
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

function hear(own, kind, data) {
  if (kind === "log") for (const line of textOf(data).replace(/\n$/, "").split("\n")) add(own, nameOf(own, data) + line);
  if (kind === "gap") add(own, `${data.task ? nameOf(own, data) : ""}[a part is missing: ${data.reason}]`);
  if (kind === "end") own.state = data.state;
}

function add(own, line) {
  own.lines.push(line);
  if (own.lines.length > LINES_MAX) {
    own.lines.shift();
    own.dropped += 1;
  }
}

function nameOf(own, { task, attempt }) {
  if (own.alone) return attempt > 1 ? `${attempt}: ` : "";
  const name = task.startsWith(own.prefix) ? task.slice(own.prefix.length) : task;
  return attempt > 1 ? `${name}/${attempt}: ` : `${name}: `;
}

function textOf({ text, text_base64 }) {
  if (text !== undefined) return text;
  return new TextDecoder().decode(Uint8Array.from(atob(text_base64 ?? ""), (letter) => letter.charCodeAt(0)));
}
