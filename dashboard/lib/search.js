// A search that goes on while one types: it waits for a pause, keeps its field, and obeys Enter at once.

import { h } from "./dom.js";

/** Letters that follow one another faster are one search. */
const PAUSE_MS = 200;

let waiting = null;

/** The field. `change(text)` is called when what was typed changed; `enter(text)` after that when Enter was pressed. */
export function searchField({ change, enter, ...props }) {
  return h("input", {
    type: "search", spellcheck: "false", autocomplete: "off", ...props,
    oninput: ({ target }) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => tell(target, change), PAUSE_MS);
    },
    // Whoever leaves the field, or presses Enter, waits for nothing.
    onchange: ({ target }) => tell(target, change),
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      tell(event.target, change);
      enter?.(event.target.value.trim());
    },
  });
}

/** Tells of a change once, and of none in a field that is gone with its page. */
function tell(field, change) {
  clearTimeout(waiting);
  if (field.isConnected) change(field.value.trim());
}
