// The address after `#`: a page, its names and its query. Links are plain links, so that the back button and new tabs work.

/** Where we are: the parts of the path, unescaped, and the query. */
export function here() {
  const [where, query] = (location.hash.slice(1) || "/").split("?");
  const parts = where.split("/").filter(Boolean).map(unescape);
  return { parts, query: Object.fromEntries(new URLSearchParams(query ?? "")), text: location.hash };
}

function unescape(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A link to a page. */
export function to(parts, query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const tail = pairs.length ? `?${new URLSearchParams(pairs)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${tail}`;
}

/** Goes to a page. */
export function go(parts, query) {
  location.hash = to(parts, query);
}

/** Shows the page with another query, in the place of what is shown: the way back does not lead through every letter that was typed. */
export function swap(parts, query) {
  location.replace(to(parts, query));
}
