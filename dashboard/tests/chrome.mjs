// Drives headless Chromium over its DevTools pipe, without any package.
//
// Every tab notes what must never happen: requests to other hosts, reports of the content policy, uncaught errors, and
// scripts' dialogs. Leaves out: everything that these tests do not use.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe"];
/** Take the page's files from this folder instead of the program, to see a change without a build. */
const FILES = process.env.IKADA_DASHBOARD;
const TYPES = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html" };
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 50;
/** Paths that a tab remembers having asked for. */
const ASKED_MAX = 10_000;

export const rest = (ms) => new Promise((done) => setTimeout(done, ms));

/** Starts a browser. */
export async function launch(program = "chromium") {
  const folder = mkdtempSync(join(tmpdir(), "ikada-chromium-"));
  const child = spawn(program, [...FLAGS, `--user-data-dir=${folder}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [waiting, heard] = [new Map(), new Map()];
  let [number, rest_] = [0, Buffer.alloc(0)];
  child.stdio[4].on("data", (piece) => {
    rest_ = Buffer.concat([rest_, piece]);
    for (let end = rest_.indexOf(0); end >= 0; end = rest_.indexOf(0)) {
      take(JSON.parse(rest_.subarray(0, end).toString()));
      rest_ = rest_.subarray(end + 1);
    }
  });
  function take(message) {
    if (message.id === undefined) return heard.get(message.sessionId)?.(message.method, message.params);
    const { done, failed } = waiting.get(message.id);
    waiting.delete(message.id);
    message.error ? failed(new Error(`${message.error.message} ${message.error.data ?? ""}`)) : done(message.result);
  }
  const send = (method, params = {}, sessionId) => new Promise((done, failed) => {
    const late = setTimeout(() => failed(new Error(`the browser does not answer ${method} ${JSON.stringify(params).slice(0, 200)}`)), PATIENCE_MS);
    const settle = (work) => (value) => {
      clearTimeout(late);
      work(value);
    };
    waiting.set(++number, { done: settle(done), failed: settle(failed) });
    child.stdio[3].write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
  });
  const close = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    await send("Browser.close").catch(() => child.kill());
    await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { open: (options) => openTab(send, heard, options), close };
}

/** Opens a tab in a profile of its own: no storage is shared. */
async function openTab(send, heard, { width = 1360, height = 900, dark = false, phone = false } = {}) {
  const { browserContextId } = await send("Target.createBrowserContext");
  const { targetId } = await send("Target.createTarget", { url: "about:blank", browserContextId, width, height });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  const tab = new Tab(call, () => send("Target.disposeBrowserContext", { browserContextId }));
  heard.set(sessionId, (method, params) => tab.hear(method, params));
  for (const domain of ["Page", "Runtime", "Network", "Log", "DOM"]) await call(`${domain}.enable`);
  // A tab in the background would wait for ever for its next frame, and input with it.
  await call("Emulation.setFocusEmulationEnabled", { enabled: true });
  await call("Page.bringToFront");
  if (FILES) await call("Fetch.enable", { patterns: ["*/dashboard/*", "http://*/"].map((urlPattern) => ({ urlPattern, requestStage: "Response" })) });
  await call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: phone });
  await call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }] });
  return tab;
}

class Tab {
  constructor(call, close) {
    Object.assign(this, { call, close, hosts: new Set(), trouble: [], origin: null, asked: [] });
  }

  hear(method, params) {
    if (method === "Fetch.requestPaused") this.serve(params);
    if (method === "Network.requestWillBeSent") this.noteRequest(params.request.url);
    if (method === "Network.webSocketCreated") this.noteRequest(params.url);
    if (method === "Runtime.exceptionThrown") this.trouble.push(`uncaught: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
    if (method === "Log.entryAdded" && (params.entry.source === "security" || /Content.Security|Trusted/i.test(params.entry.text))) this.trouble.push(`policy: ${params.entry.text}`);
    if (method === "Runtime.consoleAPICalled" && params.type === "error") this.trouble.push(`console: ${params.args.map((argument) => argument.description ?? argument.value).join(" ")}`);
    if (method === "Page.javascriptDialogOpening") {
      this.trouble.push(`dialog of a script: ${params.message}`);
      this.call("Page.handleJavaScriptDialog", { accept: false });
    }
  }

  noteRequest(address) {
    const url = new URL(address);
    if (["http:", "https:", "ws:", "wss:"].includes(url.protocol)) this.hosts.add(url.host);
    this.asked.push(url.pathname);
    this.asked.splice(0, this.asked.length - ASKED_MAX);
  }

  /** Answers with a file of the folder, under the headers of the program's own. */
  async serve({ requestId, request, responseHeaders = [] }) {
    const { pathname } = new URL(request.url);
    // An address may end as the page's own does.
    if (pathname !== "/" && !pathname.startsWith("/dashboard/")) return this.call("Fetch.continueRequest", { requestId }).catch(() => null);
    const name = pathname.replace(/^\/(dashboard\/)?/, "") || "index.html";
    const kept = responseHeaders.filter((header) => !/^(content-type|content-length|etag)$/i.test(header.name));
    const type = { name: "Content-Type", value: `${TYPES[name.split(".").at(-1)]}; charset=utf-8` };
    await this.call("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders: [...kept, type], body: readFileSync(join(FILES, name)).toString("base64") }).catch(() => null);
  }

  /** Goes to an address and waits until the page has drawn itself. */
  async go(address) {
    const same = this.origin && new URL(address).origin === this.origin;
    this.origin = new URL(address).origin;
    await this.call("Page.navigate", { url: address });
    if (same) await rest(100);
    const drawn = () => this.until("document.querySelector('#content')", "the page is drawn");
    await drawn().catch(async (error) => {
      // A script that did not come leaves the page blank: told, and loaded again as a person would.
      console.log(`loading again: ${error.message.slice(0, 200)}`);
      await this.call("Page.reload", {});
      await drawn();
    });
  }

  /** The value of an expression in the page. */
  async value(expression) {
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** Waits until an expression holds; gives its value. */
  async until(expression, what = expression, patience_ms = PATIENCE_MS) {
    const end = Date.now() + patience_ms;
    for (;;) {
      const value = await this.value(`(() => { const value = ${expression}; return value instanceof Node ? true : value; })()`).catch((error) => (Date.now() > end ? Promise.reject(error) : null));
      if (value) return value;
      if (Date.now() > end) throw new Error(`waited in vain until ${what}; the page says: ${await this.value("document.body.innerText.slice(0, 1500)")}`);
      await rest(LOOK_EVERY_MS);
    }
  }

  /** Waits until a text is shown. */
  text(text, patience_ms) {
    return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`, `“${text}” is shown`, patience_ms);
  }

  /** Clicks the first element that fits, as the mouse does: in its middle, where it must be on top. */
  async click(selector, label) {
    const find = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => ${label === undefined} || one.textContent.trim() === ${JSON.stringify(label ?? "")} || one.getAttribute("aria-label") === ${JSON.stringify(label ?? "")})`;
    await this.until(`${find}`, `there is ${selector} ${label ?? ""}`);
    const place = await this.value(`(() => { const one = ${find}; one.scrollIntoView({ block: "center" }); const box = one.getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; })()`);
    for (const type of ["mousePressed", "mouseReleased"]) await this.call("Input.dispatchMouseEvent", { type, ...place, button: "left", clickCount: 1 });
  }

  /** Puts text into a field, in place of what is there. */
  async type(selector, text) {
    await this.until(`document.querySelector(${JSON.stringify(selector)})`);
    await this.value(`(() => { const one = document.querySelector(${JSON.stringify(selector)}); one.focus(); one.select?.(); })()`);
    await this.call("Input.insertText", { text });
  }

  async press(key, code = key, virtual = { Enter: 13, Escape: 27, Tab: 9 }[key]) {
    for (const type of ["keyDown", "keyUp"]) await this.call("Input.dispatchKeyEvent", { type, key, code, windowsVirtualKeyCode: virtual, text: type === "keyDown" && key === "Enter" ? "\r" : undefined });
  }

  /** Chooses files in a file field. */
  async choose(selector, files) {
    const { root } = await this.call("DOM.getDocument");
    const { nodeId } = await this.call("DOM.querySelector", { nodeId: root.nodeId, selector });
    await this.call("DOM.setFileInputFiles", { nodeId, files });
  }

  /** A picture of the page as PNG bytes. */
  async picture(whole = false) {
    const { data } = await this.call("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    return Buffer.from(data, "base64");
  }
}
