// Questions before something happens, forms, and short notes afterwards. Uses the browser's own dialog: focus, Escape and
// the rest of the keyboard work as people know them.

import { freshKey } from "./api.js";
import { h } from "./dom.js";
import { trouble } from "./parts.js";

const NOTE_MS = 6000;

/** Shows a note for a few seconds; kind is calm or bad. */
export function note(text, kind = "calm") {
  const shown = h("p", { class: `toast toast-${kind}` }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), NOTE_MS);
}

/**
 * Asks, then acts. `fields` are `{ name, label, kind, value, options, hint, required, type_this }`; `run(values, key, tell)` does the
 * work and may throw a Problem, which is shown in place while the dialog stays. The key is the same again where nobody knows
 * whether the same was carried out before. `tell(node)` shows how far long work is, in the dialog and, once that is closed, among the notes.
 */
export function dialog({ title, text, fields = [], yes, kind = "main", run }) {
  const [wrong, far] = [h("div", { class: "dialog-trouble" }), h("div", { class: "dialog-far", role: "status" })];
  const sure = h("button", { type: "submit", class: `button button-${kind}` }, yes);
  const box = h("dialog", { class: "dialog", "aria-label": title });
  const form = h("form", { method: "dialog" },
    h("h2", {}, title), text && h("p", {}, text), fields.map(field), wrong, far,
    h("menu", {}, h("button", { type: "button", class: "button button-plain", onclick: () => box.close() }, "Cancel"), sure));
  // Notes lie below a dialog, where nobody sees them.
  const tell = (node) => (box.open ? far : document.getElementById("toasts")).append(node);
  let [key, unknown] = [freshKey(), null];
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(fields.map(({ name }) => [name, valueOf(form.elements[name])]));
    const unlike = fields.find((one) => one.type_this && values[one.name] !== one.type_this);
    if (unlike) return wrong.replaceChildren(trouble({ code: "not_the_same", detail: `type ${unlike.type_this} to confirm` }));
    sure.disabled = true;
    wrong.replaceChildren();
    if (unknown !== JSON.stringify(values)) key = freshKey();
    try {
      await run(values, key, tell);
      box.close();
    } catch (problem) {
      if (!box.open) return note(problem.detail ?? problem.message, "bad");
      unknown = problem.offline ? JSON.stringify(values) : null;
      wrong.replaceChildren(trouble(problem));
      sure.disabled = false;
    }
  });
  box.append(form);
  box.addEventListener("close", () => {
    document.getElementById("toasts").append(...far.childNodes);
    box.remove();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

function valueOf(input) {
  if (input.type === "checkbox") return input.checked;
  if (input.type === "file") return input.files[0] ?? null;
  return input.value.trim();
}

function field({ name, label, kind = "text", value = "", options, hint, required, placeholder }) {
  const id = `field-${name}`;
  const common = { id, name, required: required && true, "aria-describedby": hint ? `${id}-hint` : null };
  const input = options
    ? h("select", common, options.map(([word, shown]) => h("option", { value: word, selected: word === value }, shown)))
    : kind === "long"
      ? h("textarea", { ...common, rows: 6, spellcheck: "false", placeholder, value })
      : h("input", { ...common, type: kind, autocomplete: "off", spellcheck: "false", placeholder, ...(kind === "file" ? {} : { value }) });
  return h("label", { class: "field", for: id }, h("span", {}, label), input, hint && h("small", { id: `${id}-hint` }, hint));
}
