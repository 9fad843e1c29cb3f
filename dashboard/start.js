// The page: theme, shell, pulse, and the loop that loads and shows the page that the address names.

import { known, start, watch } from "./lib/pulse.js";
import { h, show } from "./lib/dom.js";
import { here } from "./lib/route.js";
import { trouble } from "./lib/parts.js";
import { applyTheme, banner, shell } from "./shell.js";
import { askForToken } from "./lib/session.js";
import { pageFor } from "./pages/index.js";

let current = { text: null, page: null, data: null, problem: null, loading: false };

applyTheme();
addEventListener("hashchange", turn);
addEventListener("dashboard:reload", () => load(current));
document.addEventListener("visibilitychange", () => document.hidden || load(current));
watch(() => {
  if (known.trouble?.status === 401) askForToken();
  else due(current) ? load(current) : draw();
});
turn();
start();

/** Goes to the page that the address names. */
function turn() {
  const where = here();
  current = { text: where.text, where, page: pageFor(where), data: null, problem: null, loading: false, loaded_ms: 0 };
  scrollTo(0, 0);
  load(current);
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
  } catch (problem) {
    if (problem.code === undefined) console.error(problem);
    view.problem = problem;
  }
  view.loading = false;
  view.loaded_ms = Date.now();
  if (view === current) draw();
}

function draw() {
  const { page, data, problem, where } = current;
  document.title = `${page.title(where)} · Ikada`;
  show(document.getElementById("shell"), shell(where, h("main", { id: "content", tabindex: "-1", "data-key": current.text }, banner(), body(page, data, problem, where))));
}

function body(page, data, problem, where) {
  if (page.load && data === null) return problem ? h("div", {}, h("h1", {}, page.title(where)), trouble(problem)) : h("p", { class: "loading" }, "Looking …");
  // Trouble with the node itself is told by the banner.
  const told = problem && !problem.offline ? trouble(problem) : null;
  return h("div", { class: "page" }, told, page.view(data, where));
}
