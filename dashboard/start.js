// The page: theme, shell, pulse, and the loop that loads and shows the page that the address names.

import { known, start, watch } from "./lib/pulse.js";
import { h, show } from "./lib/dom.js";
import { here } from "./lib/route.js";
import { trouble } from "./lib/parts.js";
import { applyTheme, banner, needs, shell } from "./shell.js";
import { askForToken } from "./lib/session.js";
import { pageFor } from "./pages/index.js";

let current = { place: null, where: null, page: null, data: null, problem: null, loading: false, stop: new AbortController() };

applyTheme();
addEventListener("hashchange", () => turn(false));
addEventListener("dashboard:afresh", () => turn(true));
addEventListener("dashboard:reload", () => load(current));
addEventListener("dashboard:draw", draw);
document.addEventListener("visibilitychange", () => document.hidden || load(current));
watch(() => {
  if (known.trouble?.status === 401) askForToken();
  else due(current) ? load(current) : draw();
});
turn(true);
start();

/**
 * Goes to the page that the address names. Another query of the same page changes nothing until its answer is there, so that
 * whoever types into a search keeps the field, and a list does not blink. What the page before still asks for is not waited for.
 * `anew`: nothing that was shown may stay, since it was for someone else.
 */
function turn(anew) {
  const where = here();
  const place = JSON.stringify(where.parts);
  const same = place === current.place && !anew;
  const kept = same && current.data !== null ? { data: current.data, shown: current.shown } : { data: null, shown: where };
  if (!same || ["after", "prefix"].some((name) => where.query[name] !== current.where.query[name])) scrollTo(0, 0);
  current.stop.abort();
  current = { place, where, page: pageFor(where), problem: null, loading: false, again: false, loaded_ms: 0, stop: new AbortController(), ...kept };
  load(current);
  // On a phone the ways are wider than the screen.
  if (!same) document.querySelector("nav [aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

/** Time between two looks, which may hang on what was seen last. What did not come is asked for as if it were new. */
function every_ms({ page, data, problem }) {
  const { every_ms: own = 2000 } = page;
  return typeof own === "function" ? own(problem ? null : data) : own;
}

const due = (view) => view.page.load && !document.hidden && Date.now() - view.loaded_ms >= every_ms(view);

/** Loads what the page shows; keeps what it had if that fails. */
async function load(view) {
  if (!view.page?.load) return draw();
  // An answer that is under way may be older than what was done meanwhile.
  if (view.loading) return (view.again = true);
  view.loading = true;
  draw();
  try {
    [view.data, view.problem] = [await view.page.load(view.where, view.data, view.stop.signal), null];
    view.shown = view.where;
  } catch (problem) {
    if (view !== current) return;
    if (problem.code === undefined) console.error(problem);
    view.problem = problem;
    // What was kept belongs to another query.
    if (view.shown !== view.where && !problem.offline) Object.assign(view, { data: null, shown: view.where });
  }
  Object.assign(view, { loading: false, loaded_ms: Date.now() });
  if (view !== current) return;
  draw();
  if (view.again) {
    view.again = false;
    load(view);
  }
}

function draw() {
  const { page, data, problem, place } = current;
  const where = page.load ? current.shown : current.where;
  document.title = `${needs().size > 0 ? "! " : ""}${page.title(where)} · Ikada`;
  show(document.getElementById("shell"), shell(where, h("main", { id: "content", tabindex: "-1", "data-key": place }, banner(), body(page, data, problem, where))));
}

/** The page, below its trouble. Both have keys: what is below keeps its focus when what is above comes and goes. */
function body(page, data, problem, where) {
  const none = page.load && data === null;
  // Trouble with the node itself is told by the banner, once there is something to keep.
  const told = problem && (none || !problem.offline) ? h("div", { "data-key": "trouble" }, trouble(problem)) : null;
  const shown = none ? bare(page, problem, where) : page.view(data, where);
  shown.setAttribute("data-key", "view");
  return h("div", { class: "page", "data-key": "page" }, told, shown);
}

/** What is shown without data: of pages with filters the filters, so that one that was refused can be changed. */
function bare(page, problem, where) {
  const rest = problem ? null : h("p", { class: "loading" }, "Looking …");
  if (page.bare) return h("div", {}, page.bare(where), rest);
  return problem ? h("div", {}, h("h1", {}, page.title(where))) : rest;
}
