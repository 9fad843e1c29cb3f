// What surrounds every page: mark, ways, caller, namespace, theme, and the banner that tells when something is wrong.

import { h, s } from "./lib/dom.js";
import { known } from "./lib/pulse.js";
import { to } from "./lib/route.js";
import { some, span } from "./lib/format.js";
import { askForToken, changeNamespace, forgetToken } from "./lib/session.js";
import { namespace, token } from "./lib/api.js";
import { WAYS } from "./pages/index.js";

const THEME = "ikada.theme";
const THEMES = { auto: "dark", dark: "light", light: "auto" };
/** Data older than this is worth a word. */
const OLD_MS = 4000;

const theme = () => localStorage.getItem(THEME) ?? "auto";

/** Light, dark, or as the system has it. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

function nextTheme() {
  localStorage.setItem(THEME, THEMES[theme()] ?? "auto");
  applyTheme();
  dispatchEvent(new Event("dashboard:reload"));
}

/** Ways behind which something needs a look, with the words for it. */
export function needs() {
  const found = new Map();
  const { cluster, queues } = known;
  const alarmed = (queues ?? []).filter((queue) => queue.health.alerts.length > 0).length;
  const missing = (cluster?.members ?? []).filter((member) => !member.connected).length;
  const leaderless = (cluster?.shards ?? []).filter((shard) => !shard.leader).length;
  if (alarmed) found.set("queues", `${some(alarmed, "queue")} ${alarmed === 1 ? "has an alert" : "have alerts"}`);
  if (leaderless) found.set("elections", `${some(leaderless, "shard")} without a leader`);
  if (missing) found.set("cluster", `${some(missing, "node")} missing`);
  return found;
}

/** The frame around a page. */
export function shell(where, main) {
  const [at, marks] = [where.parts[0] ?? "", needs()];
  return h("div", { class: "frame" },
    h("header", { class: "side" },
      h("a", { class: "mark", href: to([]), "aria-label": "Ikada, overview" }, mark(), h("span", {}, "Ikada")),
      h("nav", { "aria-label": "Pages" }, h("ul", {}, WAYS.map(([name, word, kind]) =>
        h("li", { class: kind }, h("a", { href: to(name ? [name] : []), "aria-current": name === at ? "page" : null, title: marks.get(name) }, word, marks.has(name) && h("i", { class: "way-mark" })))))),
      h("div", { class: "side-foot" }, pulseLine(), caller(), settings())),
    main);
}

function mark() {
  return s("svg", { viewBox: "0 0 32 32", width: 30, height: 30, "aria-hidden": "true" },
    [6, 12.5, 19].map((y) => s("rect", { class: "mark-log", x: 3, y, width: 26, height: 5, rx: 2.5 })),
    s("path", { class: "mark-rope", d: "M10 4v22M22 4v22" }), s("path", { class: "mark-wave", d: "M2 29q3.5-2.5 7 0t7 0 7 0 7 0" }));
}

function pulseLine() {
  const old = Date.now() - known.seen_ms > OLD_MS;
  const word = known.trouble || old ? (known.seen_ms ? `last seen ${span(Date.now() - known.seen_ms)} ago` : "connecting") : "live";
  return h("p", { class: `pulse ${word === "live" ? "pulse-live" : "pulse-lost"}`, role: "status" }, h("i", {}), word,
    known.cluster && h("span", {}, ` · node ${known.cluster.answered_by}`));
}

function caller() {
  const who = known.caller;
  if (!who || !token.get()) return null;
  return h("p", { class: "caller" }, `${who.name ?? "someone"} (${who.role ?? "?"}) `, h("button", { class: "link", type: "button", onclick: forgetToken }, "sign out"));
}

function settings() {
  return h("p", { class: "settings" },
    h("button", { class: "link", type: "button", onclick: changeNamespace, title: "Whose things are shown" }, `namespace ${namespace.get()}`),
    h("button", { class: "link", type: "button", onclick: nextTheme, title: "Light, dark, or as the system" }, `theme ${theme()}`));
}

/** Tells what is wrong right now, and what one can do about it. Null when all is well. */
export function banner() {
  const { trouble, cluster, seen_ms } = known;
  if (trouble?.status === 401) {
    return box("bad", "This cluster asks for a token.", h("button", { class: "button button-main", type: "button", onclick: () => askForToken(true) }, "Enter a token"));
  }
  if (trouble && seen_ms) {
    const others = (cluster?.members ?? []).filter((member) => member.node !== cluster.answered_by);
    const scheme = location.protocol;
    return box("bad", `This node has not answered for ${span(Date.now() - seen_ms)}; what you see is from then. Trying again every second. `,
      others.length > 0 && h("span", {}, "Other nodes: ", others.map((member) => h("a", { href: `${scheme}//${member.client_addr}/${location.hash}` }, `node ${member.node}`))));
  }
  if (trouble && !seen_ms) return box("bad", `${trouble.detail}. Trying again every second.`);
  if (known.busy) return box("warn", `This node turns some calls away, so parts of this page may be old: ${known.busy.detail}.`);
  const leaderless = (cluster?.shards ?? []).filter((shard) => shard.leader === undefined || shard.leader === null);
  if (leaderless.length > 0) {
    return box("warn", `Shard ${leaderless.map((shard) => shard.shard).join(", ")} is electing a leader. Writes wait for it; nothing that was acknowledged is lost.`);
  }
  return null;
}

const box = (kind, ...inside) => h("div", { class: `banner banner-${kind}`, role: "alert", "data-key": "banner" }, inside);
