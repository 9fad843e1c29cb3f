// Numbers, times and sizes as people read them.

const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 1,234,567 */
export const count = (value) => COUNT.format(value ?? 0);

/** 1.2M where room is scarce. */
export const brief = (value) => (value < 10000 ? COUNT.format(value ?? 0) : SHORT.format(value));

/** A rate per second from one per 1,000 s. */
export const rate = (per_1000_s) => perSecond((per_1000_s ?? 0) / 1000);

/** 0.2/s, 12/s, 1.3K/s */
export function perSecond(value) {
  if (value === 0) return "0/s";
  if (value < 10) return `${value.toFixed(1)}/s`;
  return `${brief(Math.round(value))}/s`;
}

/** A length of time: 340 ms, 12 s, 3 min, 5 h, 2 d. */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** How long ago, or in how long. */
export function when(time_ms, now_ms = Date.now()) {
  if (!time_ms) return "–";
  const away = now_ms - time_ms;
  if (Math.abs(away) < 1500) return "now";
  return away > 0 ? `${span(away)} ago` : `in ${span(-away)}`;
}

/** 2026-11-15 18:42:07 */
export function instant(time_ms) {
  if (!time_ms) return "–";
  const date = new Date(time_ms);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(time_ms)}`;
}

/** 18:42:07 */
export function clock(time_ms) {
  const date = new Date(time_ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((value) => String(value).padStart(2, "0")).join(":");
}

/** 12 B, 3.4 KiB, 1.2 GiB */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes ?? 0, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return unit === 0 ? `${value} B` : `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Singular or plural: 1 node, 3 nodes. */
export const some = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** Text cut to a length, with a mark. */
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Words of the API for people: `claim_age` is claim age. */
export const words = (code) => String(code ?? "").replaceAll("_", " ");
