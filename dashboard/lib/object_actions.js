// Upload with progress, download, preview, removal. Bytes of users are shown as text or as a picture, never as a page.

import { Problem, act, ask, headers, path, textUpTo } from "./api.js";
import { h } from "./dom.js";
import { dialog, note } from "./dialog.js";
import { cut, size } from "./format.js";
import { facts, longText, trouble } from "./parts.js";
import { SAVED_BYTES_MAX, save } from "./save.js";

const PREVIEW_BYTES_MAX = 64 * 1024;
const PICTURE_BYTES_MAX = 8 * 1024 * 1024;
const LONG_MS = 110_000;

const reload = () => dispatchEvent(new Event("dashboard:reload"));
const address = (one) => path("v1", "objects", one.bucket, one.key);

/** The dialog that uploads a file. */
export function upload(bucket, prefix = "") {
  dialog({
    title: "Upload a file", yes: "Upload",
    fields: [
      { name: "bucket", label: "Bucket", value: bucket, required: true },
      { name: "key", label: "Name", value: prefix, hint: "May hold slashes. Empty, or ending in one: the file’s own name is added." },
      { name: "file", label: "File", kind: "file", required: true },
    ],
    run: ({ bucket: where, key, file }, _key, tell) => send(where, !key || key.endsWith("/") ? key + file.name : key, file, tell),
  });
}

/** Takes files that were dropped on a page. */
export function drop(event, bucket, prefix) {
  event.preventDefault();
  for (const file of event.dataTransfer.files) send(bucket, prefix + file.name, file).catch((problem) => note(`${file.name}: ${problem.detail}`, "bad"));
}

const among = (node) => document.getElementById("toasts").append(node);

// fetch cannot tell how far an upload is; the older interface can. `tell` shows that somewhere.
function send(bucket, key, file, tell = among) {
  const shown = h("progress", { max: file.size || 1, value: 0, "aria-label": `Uploading ${key}` });
  const far = h("span", {}, ` 0 B of ${size(file.size)}`);
  const line = h("p", { class: "toast upload" }, `${cut(key, 40)} `, shown, far);
  tell(line);
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path("v1", "objects", bucket, key));
    const all = headers({ "Content-Type": file.type || "application/octet-stream", "Ikada-Timeout-Ms": String(LONG_MS) });
    for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => {
      shown.value = event.loaded;
      far.textContent = ` ${size(Math.min(event.loaded, file.size))} of ${size(file.size)}`;
    };
    request.onerror = () => failed(new Problem(0, "offline", "the upload broke off; what was there before is unchanged"));
    request.onload = () => (request.status < 300 ? done() : failed(problemOf(request)));
    request.onloadend = () => line.remove();
    request.send(file);
  }).then(() => {
    note(`${cut(key, 60)} is stored.`);
    reload();
  });
}

function problemOf(request) {
  try {
    const told = JSON.parse(request.responseText);
    return new Problem(request.status, told.code, told.detail);
  } catch {
    return new Problem(request.status, "no_problem", `the node answered ${request.status}`);
  }
}

/** Saves the bytes of a version. */
export async function download(one) {
  if (one.size > SAVED_BYTES_MAX) return note(`${size(one.size)} is much for a browser. Use: ikada object get ${one.bucket}/${one.key}`, "bad");
  return save(address(one), { version: one.version }, one.key.split("/").at(-1));
}

/** Shows what an object is, and its beginning. */
export async function preview(one) {
  const inside = h("div", { class: "preview" }, h("p", { class: "loading" }, "Looking …"));
  const box = h("dialog", { class: "dialog dialog-wide", "aria-label": one.key }, h("h2", {}, one.key),
    facts([["size", size(one.size)], ["type", one.content_type], ["version", one.version], ["BLAKE3", h("code", { class: "break" }, one.digest)]]), inside,
    h("menu", {}, h("button", { type: "button", class: "button button-main", onclick: () => download(one) }, "Download"), h("button", { type: "button", class: "button button-plain", onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  inside.replaceChildren(await contents(one).catch(trouble));
}

async function contents(one) {
  const query = { version: one.version };
  if (/^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/.test(one.content_type) && one.size <= PICTURE_BYTES_MAX) {
    const bytes = await ask("GET", address(one), { query }, (response) => response.arrayBuffer());
    const blob = URL.createObjectURL(new Blob([bytes], { type: one.content_type }));
    setTimeout(() => URL.revokeObjectURL(blob), 60_000);
    return h("img", { src: blob, alt: one.key });
  }
  if (one.size === 0) return h("p", { class: "quiet" }, "Empty.");
  const part = { query, headers: { Range: `bytes=0-${PREVIEW_BYTES_MAX - 1}` } };
  const text = await ask("GET", address(one), part, (response) => textUpTo(response, PREVIEW_BYTES_MAX * 2));
  if (text.includes("\u0000")) return h("p", { class: "quiet" }, "These bytes are no text.");
  return h("div", {}, longText(text, PREVIEW_BYTES_MAX), one.size > PREVIEW_BYTES_MAX && h("p", { class: "more" }, `The first ${size(PREVIEW_BYTES_MAX)} of ${size(one.size)}.`));
}

/** Asks, then removes an object with all its versions. */
export function remove(one) {
  dialog({ title: `Delete ${one.key}?`, text: "All its versions go.", yes: "Delete", kind: "danger", run: async () => {
    await act("DELETE", address(one));
    note(`${cut(one.key, 60)} is deleted.`);
    reload();
  } });
}
