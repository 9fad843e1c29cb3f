// The page: theme, shell, pulse, and the loop that loads and shows the page that the address names.

import { known, start, watch } from "./lib/pulse.js";
import { h, show } from "./lib/dom.js";
import { here } from "./lib/route.js";
import { trouble } from "./lib/parts.js";
import { applyTheme, banner, needs, shell } from "./shell.js";
import { askForToken } from "./lib/session.js";
import { pageFor } from "./pages/index.js";

let current = { place: null, page: null, data: null, problem: null, loading: false };

applyTheme();
addEventListener("hashchange", turn);
addEventListener("dashboard:reload", () => load(current));
addEventListener("dashboard:draw", draw);
document.addEventListener("visibilitychange", () => document.hidden || load(current));
watch(() => {
  if (known.trouble?.status === 401) askForToken();
  else due(current) ? load(current) : draw();
});
turn();
start();

/**
 * Goes to the page that the address names. Another query of the same page changes nothing until its answer is there, so that
 * whoever types into a search keeps the field, and a list does not blink.
 */
function turn() {
  const where = here();
  const place = JSON.stringify(where.parts);
  const same = place === current.place && current.data !== null;
  const kept = same ? { data: current.data, shown: current.shown } : { data: null, shown: where };
  if (!same || where.query.after !== current.where.query.after) scrollTo(0, 0);
  current = { place, where, page: pageFor(where), problem: null, loading: false, loaded_ms: 0, ...kept };
  load(current);
  // On a phone the ways are wider than the screen.
  if (!same) document.querySelector("nav [aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

const due = (view) => view.page.load && !document.hidden && Date.now() - view.loaded_ms >= (view.page.every_ms ?? 2000);

/** Loads what the page shows; keeps what it had if that fails. */
async function load(view) {
  if (!view.page?.load) return draw();
  if (view.loading) return;
  view.loading = true;
  draw();
  try {
    [view.data, view.problem] = [await view.page.load(view.where, view.data), null];
    view.shown = view.where;
  } catch (problem) {
    if (problem.code === undefined) console.error(problem);
    view.problem = problem;
    // What was kept belongs to another query.
    if (view.shown !== view.where && !problem.offline) Object.assign(view, { data: null, shown: view.where });
  }
  view.loading = false;
  view.loaded_ms = Date.now();
  if (view === current) draw();
}

function draw() {
  const { page, data, problem, place } = current;
  const where = page.load ? current.shown : current.where;
  document.title = `${needs().size > 0 ? "! " : ""}${page.title(where)} · Ikada`;
  show(document.getElementById("shell"), shell(where, h("main", { id: "content", tabindex: "-1", "data-key": place }, banner(), body(page, data, problem, where))));
}

function body(page, data, problem, where) {
  if (page.load && data === null) return problem ? h("div", {}, h("h1", {}, page.title(where)), trouble(problem)) : h("p", { class: "loading" }, "Looking …");
  // Trouble with the node itself is told by the banner.
  const told = problem && !problem.offline ? trouble(problem) : null;
  return h("div", { class: "page" }, told, page.view(data, where));
}
