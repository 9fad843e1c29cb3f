// The live log of a task or of a job's tasks: one stream while its page is shown, the newest lines in memory.
//
// Promises: lines are only ever text; a line has a bound, and beyond it is cut with a way to the whole log; a stream that ends
// before its time begins anew, from the first line.

import { h } from "./dom.js";
import { follow, path } from "./api.js";
import { count, some } from "./format.js";
import { here } from "./route.js";
import { save } from "./save.js";

/** Lines that are kept; older ones are told as a number. */
const LINES_MAX = 500;
/** Characters of a line that are kept. */
const LINE_CHARS_MAX = 2000;
/** Pause before a stream that broke off is asked for again. */
const AGAIN_MS = 2000;
/** Colours and moves that programs send to terminals, and characters that nobody can see. */
const TERMINAL = /\u001b\[[0-9;:?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

let shown = null;

/** The panel with the log of what is at `parts`, as in `"jobs", id`; `over` when nothing more can come. */
export function logPanel(over, ...parts) {
  const where = path("v1", ...parts, "logs");
  // What had ended and was given fresh attempts speaks again.
  if (shown?.where !== where || (!over && shown.state === "ended" && Date.now() - shown.ended_ms > AGAIN_MS)) begin(where, parts);
  const { lines, dropped, state } = shown;
  const words = { open: "live", waiting: "waiting for a node", ended: "complete", absent: "" }[state];
  return h("section", { class: "panel log-panel" },
    h("h2", {}, "Log ", words && h("span", { class: "quiet" }, words), lines.length > 0 && h("button", { class: "link log-save", type: "button", onclick: () => saveAll(parts) }, parts[0] === "tasks" ? "save the newest attempt’s" : "save all")),
    dropped > 0 && h("p", { class: "more" }, `${some(dropped, "earlier line")} ${dropped === 1 ? "is" : "are"} not shown.`),
    lines.length > 0 ? h("pre", { class: "text log", tabindex: 0, "aria-label": "Log" }, lines.map(row)) : h("p", { class: "quiet" }, state === "ended" ? "Nothing was said." : "Nothing was said yet."));
}

function row(line) {
  const whole = () => save(path("v1", "tasks", line.task, "logs"), { attempt: line.attempt }, `${line.task}-${line.attempt}.log`);
  return h("span", { class: "log-line", "data-key": line.number }, line.name && h("span", { class: "quiet" }, line.name), line.text,
    line.cut > 0 && [h("span", { class: "quiet" }, `… ${count(line.cut)} more characters, `), h("button", { class: "link", type: "button", onclick: whole }, "save the whole log")]);
}

const saveAll = (parts) => save(path("v1", ...parts, "logs"), {}, `${parts[1]}.log`);

function begin(where, parts) {
  shown?.stop.abort();
  shown = { where, place: JSON.stringify(parts), prefix: `${parts[1]}:`, alone: parts[0] === "tasks", state: "open", stop: new AbortController(), ended_ms: 0, ...afresh() };
  listen(shown);
}

const afresh = () => ({ lines: [], dropped: 0, within: null, number: 0 });

function leave() {
  shown?.stop.abort();
  shown = null;
}

// Another part of the same job's map leaves its log alone.
addEventListener("hashchange", () => shown?.place === JSON.stringify(here().parts) || leave());
addEventListener("dashboard:afresh", leave);

async function listen(own) {
  while (!own.stop.signal.aborted) {
    Object.assign(own, { state: "open", ...afresh() });
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
  if (kind === "log") hearText(own, data);
  if (kind === "gap") add(own, data, `[a part is missing: ${data.reason}]`);
  if (kind === "end") Object.assign(own, { state: "ended", ended_ms: Date.now() });
}

/** A line that is longer than one event comes in parts, one behind the other. */
function hearText(own, data) {
  const log = `${data.task}/${data.attempt}`;
  const pieces = textOf(data).split("\n");
  const rest = pieces.at(-1) === "" && pieces.length > 1 ? pieces.pop() : null;
  if (own.within === log) extend(own.lines.at(-1), pieces.shift());
  for (const piece of pieces) add(own, data, piece);
  own.within = rest === null ? log : null;
}

function add(own, data, text) {
  const line = { number: String((own.number += 1)), name: data.task ? nameOf(own, data) : "", task: data.task, attempt: data.attempt, text: "", cut: 0 };
  extend(line, text);
  own.within = null;
  own.lines.push(line);
  if (own.lines.length > LINES_MAX) {
    own.lines.shift();
    own.dropped += 1;
  }
}

function extend(line, text) {
  const room = LINE_CHARS_MAX - line.text.length;
  // Cut before it is cleaned: a pattern over megabytes would hold the page up.
  line.text += text.slice(0, room).replace(TERMINAL, "");
  line.cut += Math.max(0, text.length - room);
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
