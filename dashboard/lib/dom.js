// Elements from values, and bringing a shown tree up to date without losing focus, selection or scroll.
//
// Promise: text is only ever set as text. There is no way from here to markup, so what users name their things stays a name.

const SVG = "http://www.w3.org/2000/svg";
const HEARD = Symbol("listeners");

/** Makes an HTML element. Children: nodes, text, numbers, lists of those; null and false are left out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) listen(element, name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

// One real listener per kind of event looks its handler up when it is needed: a newer tree only brings newer handlers.
function listen(element, kind, handler) {
  const handlers = (element[HEARD] ??= new Map());
  if (!handlers.has(kind)) element.addEventListener(kind, (event) => element[HEARD].get(kind)?.call(element, event));
  handlers.set(kind, handler);
}

/** Makes `parent` show exactly `children`, keeping what is already there wherever it fits. */
export function show(parent, ...children) {
  const wanted = document.createDocumentFragment();
  append(wanted, children);
  mendChildren(parent, wanted);
}

function mendChildren(parent, wanted) {
  const keyed = new Map();
  const staying = new Set([...wanted.childNodes].map(keyOf));
  // What goes, goes first: what stays then keeps its place, and with it focus and scroll, which are lost by a move.
  for (const child of [...parent.childNodes]) {
    const key = keyOf(child);
    if (key && staying.has(key)) keyed.set(key, child);
    else if (key) child.remove();
  }
  let at = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = keyOf(next);
    const match = key ? keyed.get(key) : at && !keyOf(at) && alike(at, next) ? at : null;
    if (!match || !alike(match, next)) {
      parent.insertBefore(next, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else parent.insertBefore(match, at);
    mend(match, next);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function mend(node, next) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== next.data) node.data = next.data;
    return;
  }
  // A part that looks after itself, such as an open form, is left alone.
  if (node.hasAttribute("data-own")) return;
  for (const { name } of [...node.attributes]) {
    if (!next.hasAttribute(name) && !(name === "open" && node.nodeName === "DETAILS")) node.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) === value) continue;
    // The content policy forbids style attributes, not styles set by our own script.
    if (name === "style") node.style.cssText = next.style.cssText;
    else node.setAttribute(name, value);
  }
  for (const [kind, handler] of next[HEARD] ?? []) listen(node, kind, handler);
  const isForm = node.nodeName === "INPUT" || node.nodeName === "TEXTAREA";
  if (isForm && node !== document.activeElement && node.value !== next.value && node.type !== "file") node.value = next.value;
  mendChildren(node, next);
  if (node.nodeName === "SELECT" && node !== document.activeElement) node.value = next.value;
}
