// Calls to the node that served this page: token, namespace, time limits, problem documents, event streams.
//
// The token lives in sessionStorage only: it ends with the tab. Calls go to our own origin and nowhere else.

const TOKEN = "ikada.token";
const NAMESPACE = "ikada.namespace";
/** No document that the page asks for is larger; lists are asked for in smaller pages instead. */
const BYTES_MAX = 24 * 1024 * 1024;
/** No event of a stream is longer. */
const EVENT_CHARS_MAX = 8 * 1024 * 1024;
/** Time beyond what the node was given: for the way there and back. */
const GRACE_MS = 2000;
/** A stream says something every 15 s, if only that it lives; one that says nothing for so long is gone. */
const SILENCE_MS = 40_000;

/** What a node said instead of an answer; `code` is stable, `offline` when there was no answer at all. */
export class Problem extends Error {
  constructor(status, code, detail, extra = {}) {
    super(detail);
    Object.assign(this, { status, code, detail, ...extra });
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text) => (text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN)),
};

export const namespace = {
  get: () => sessionStorage.getItem(NAMESPACE) || "default",
  set: (name) => sessionStorage.setItem(NAMESPACE, name || "default"),
};

/** Headers that every call carries. */
export function headers(more = {}) {
  const all = { "Ikada-Namespace": namespace.get(), ...more };
  if (token.get()) all.Authorization = `Bearer ${token.get()}`;
  return all;
}

/** A path from its parts; each is escaped. */
export function path(...parts) {
  return "/" + parts.map((part) => String(part).split("/").map(encodeURIComponent).join("/")).join("/");
}

/** Path and query; empty values are left out. */
export function withQuery(where, query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return pairs.length ? `${where}?${new URLSearchParams(pairs)}` : where;
}

/**
 * Asks; gives what `take` reads from the response, within the time of the call. Without `take` it is the raw response, whose body may
 * take as long as it likes. Throws a Problem for anything that is no success.
 */
export async function ask(method, where, { query, body, headers: more, timeout_ms = 8000, signal } = {}, take = (response) => response) {
  const all = headers({ "Ikada-Timeout-Ms": String(timeout_ms), ...more });
  if (body !== undefined) all["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  return within(timeout_ms + GRACE_MS, signal, async (ended) => {
    const response = await fetch(withQuery(where, query), { method, headers: all, body: text, signal: ended, cache: "no-store" });
    if (!response.ok) throw await problemOf(response);
    return take(response);
  });
}

/** Carries out work that ends with its time, or when `signal` ends it. */
async function within(time_ms, signal, work) {
  const ended = new AbortController();
  const end = () => ended.abort();
  const timer = setTimeout(end, time_ms);
  signal?.addEventListener("abort", end);
  if (signal?.aborted) end();
  try {
    return await work(ended.signal);
  } catch (problem) {
    if (problem instanceof Problem) throw problem;
    throw new Problem(0, "offline", "this node does not answer", { offline: true });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

async function problemOf(response) {
  try {
    const told = await response.json();
    return new Problem(response.status, told.code ?? "unknown", told.detail ?? told.title ?? "", { field: told.field });
  } catch {
    return new Problem(response.status, "no_problem", `the node answered ${response.status}`);
  }
}

/** Asks for a document. */
export async function get(where, query, options = {}) {
  return read(await ask("GET", where, { query, ...options }, whole));
}

/** A leader that has not answered by then is taken to be away. */
const LEADER_MS = 3000;

/** Asks for a document as the leaders have it; where none answers, as this node has it. `old` is then the Problem that stood in the way. */
export async function getFresh(where, query) {
  try {
    return { body: await get(where, query, { timeout_ms: LEADER_MS }), old: null };
  } catch (problem) {
    if (![429, 503, 504].includes(problem.status)) throw problem;
    return { body: await get(where, { ...query, consistency: "stale" }), old: problem };
  }
}

/** Changes something; `key` makes it safe to send again. */
export async function act(method, where, { key = freshKey(), ...options } = {}) {
  try {
    return read(await ask(method, where, { ...options, headers: { "Idempotency-Key": key, ...options.headers } }, whole));
  } catch (problem) {
    if (problem.offline) problem.detail += "; whether it was carried out is not known";
    throw problem;
  }
}

/** A key under which a change is carried out at most once. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return "web-" + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const whole = (response) => textUpTo(response, BYTES_MAX);

function read(text) {
  if (text === null) throw new Problem(0, "too_large", "the answer is larger than this page can show", { tooLarge: true });
  return text ? parseExact(text) : null;
}

/** Reads JSON; numbers that JavaScript would round keep their digits where the browser can. */
export const parseExact = (text) => JSON.parse(text, exact);

function exact(_name, value, context) {
  if (typeof value !== "number" || !context?.source || !JSON.rawJSON) return value;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(context.source) : value;
}

/** The text of a body, or null when it goes beyond the bound. */
export async function textUpTo(response, bytes_max) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > bytes_max) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Follows an event stream until `signal` or its own silence ends it; calls `heard(kind, data)`. EventSource cannot carry a token. */
export async function follow(where, query, heard, signal) {
  const own = new AbortController();
  const end = () => own.abort();
  let late = setTimeout(end, SILENCE_MS);
  const alive = () => {
    clearTimeout(late);
    late = setTimeout(end, SILENCE_MS);
  };
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  try {
    const response = await fetch(withQuery(where, query), { headers: headers({ Accept: "text/event-stream" }), signal: own.signal, cache: "no-store" });
    if (!response.ok) throw await problemOf(response);
    await tell(response.body.pipeThrough(new TextDecoderStream()).getReader(), heard, alive);
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", end);
  }
}

async function tell(reader, heard, alive) {
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop();
    if (rest.length > EVENT_CHARS_MAX) throw new Problem(0, "too_large", "an event is larger than this page can show", { tooLarge: true });
    for (const piece of pieces) {
      const lines = piece.split("\n");
      const field = (name) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length).trim()).join("\n");
      if (field("data:")) heard(field("event:"), JSON.parse(field("data:")));
      else heard("alive", null);
    }
  }
}
