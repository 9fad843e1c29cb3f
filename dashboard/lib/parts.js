// Small pieces that pages share: states, tables, empty places, paragraphs about trouble.

import { h } from "./dom.js";
import { instant, when, words } from "./format.js";
import { to } from "./route.js";

/** The word for a state, with its colour as a second sign. */
export const state = (name) => h("span", { class: `state state-${name}` }, words(name));

/** A small label; `kind` is calm, warn, bad or plain. */
export const tag = (text, kind = "plain") => h("span", { class: `tag tag-${kind}` }, text);

/** Head of a page. */
export const head = (title, about, ...actions) =>
  h("header", { class: "page-head" }, h("div", {}, h("h1", {}, title), about && h("p", { class: "about" }, about)),
    actions.length > 0 && h("div", { class: "actions" }, actions));

/** A button that acts. */
export const button = (text, onclick, kind = "plain", more = {}) =>
  h("button", { type: "button", class: `button button-${kind}`, onclick, ...more }, text);

/** A table. Columns are `[title, class]`; rows are lists of cells. It scrolls by itself where the screen is narrow. */
export const table = (caption, columns, rows) =>
  h("div", { class: "table-frame panel", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
      h("tbody", {}, rows.map(({ key, cells }) => h("tr", { "data-key": key },
        cells.map((cell, place) => h("td", { class: columns[place][1], "data-label": columns[place][0] }, cell)))))));

/** An empty place that teaches the next step. */
export const empty = (title, text, ...lines) =>
  h("section", { class: "empty panel" }, raftMark(), h("h2", {}, title), h("p", {}, text),
    lines.map((line) => (typeof line === "string" ? h("pre", { class: "command" }, line) : line)));

const raftMark = () => h("img", { src: "/dashboard/icon.svg", alt: "", width: 44, height: 44 });

/** Names and values. */
export const facts = (pairs) =>
  h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));

/** A moment as a date, and how long ago it was. */
export const moment = (time_ms) => [instant(time_ms), ", ", h("span", { class: "moment" }, when(time_ms))];

/** A problem in words, with what to do where that is known. */
export function trouble(problem) {
  return h("p", { class: "trouble", role: "alert" }, h("b", {}, words(problem.code)), " ", problem.detail ?? problem.message);
}

/** Text that may be long: cut, with a way to see the rest. */
export function longText(text, shown_max = 20_000) {
  if (text.length <= shown_max) return h("pre", { class: "text" }, text);
  const whole = () => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    h("a", { href: address, download: "text.txt" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };
  return h("div", {}, h("pre", { class: "text" }, text.slice(0, shown_max)),
    h("p", { class: "more" }, `The first ${shown_max.toLocaleString("en")} of ${text.length.toLocaleString("en")} characters. `,
      button("Download all", whole, "quiet")));
}

/** Ways to the first and the next page of a list; null when there is but one. `name` is what its place is called in the query. */
export function turns(parts, query, after, next, label, [first_word, next_word] = ["First page", "Next page"], name = "after") {
  if (!next && !after) return null;
  return h("nav", { class: "pages", "aria-label": label },
    after && h("a", { class: "button button-plain", href: to(parts, query) }, first_word),
    next && h("a", { class: "button button-plain", href: to(parts, { ...query, [name]: next }) }, next_word));
}
