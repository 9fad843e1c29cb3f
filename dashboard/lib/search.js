// A search that goes on while one types: it waits for a pause, keeps its field, and obeys Enter at once.

import { h } from "./dom.js";
import { here } from "./route.js";

/** Letters that follow one another faster are one search. */
const PAUSE_MS = 200;

let waiting = null;

/**
 * The field for `find` in the address of `page`. `change(text)` is called when what was typed changed; `enter(text)` after that
 * when Enter was pressed.
 */
export function searchField({ page, change, enter, ...props }) {
  const tell = (field) => tellOnce(field, page, change);
  return h("input", {
    type: "search", spellcheck: "false", autocomplete: "off", ...props,
    oninput: ({ target }) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => tell(target), PAUSE_MS);
    },
    // Whoever leaves the field, or presses Enter, waits for nothing.
    onchange: ({ target }) => tell(target),
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      tell(event.target);
      enter?.(event.target.value.trim());
    },
  });
}

/**
 * Tells of what the address does not say yet. A browser also tells of a change when it takes away a field in which somebody
 * was typing: that must not lead back to a page that was left.
 */
function tellOnce(field, page, change) {
  clearTimeout(waiting);
  const [text, { parts, query }] = [field.value.trim(), here()];
  if (field.isConnected && parts.join("/") === page && text !== (query.find ?? "")) change(text);
}
