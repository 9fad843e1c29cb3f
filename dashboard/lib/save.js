// Saves what a node has as a file. A plain link could not carry the token.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { note } from "./dialog.js";

/** More than this is left to the command line: the browser holds it in memory. */
export const SAVED_BYTES_MAX = 1024 * 1024 * 1024;
const LONG_MS = 110_000;

/** Saves the bytes at a path under a name. */
export async function save(where, query, name) {
  try {
    const response = await ask("GET", where, { query, timeout_ms: LONG_MS });
    if (Number(response.headers.get("Content-Length") ?? 0) > SAVED_BYTES_MAX) return note("This is much for a browser. Use the command line.", "bad");
    const blob = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "application/octet-stream" }));
    h("a", { href: blob, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(blob), 60_000);
  } catch (problem) {
    note(problem.detail ?? "the download broke off", "bad");
  }
}
