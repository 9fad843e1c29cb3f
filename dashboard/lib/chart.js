// Live charts in SVG: lines and areas over up to five minutes, with gaps where nothing could be seen.
//
// A chart is drawn anew from its samples each time. What is pointed at, by mouse, finger or arrow keys, is one moment for all charts of
// the page: each tells what it was then, in the place of what it is now.

import { h, s } from "./dom.js";
import { clock, span } from "./format.js";

const [WIDTH, HEIGHT] = [600, 130];
/** A young page shows a short stretch, so that its first seconds already have a shape. */
const [SPAN_MIN_MS, SPAN_MAX_MS] = [30_000, 300_000];

/** The moment that is pointed at, as ms before the newest sample; null if none is. */
let pointed_ms = null;
let waiting = false;

/**
 * A chart. `series` is a list of `{ name, tone, of, fill }` where `of(sample)` is a number or null; `unit` prints numbers.
 */
export function chart({ title, samples, series, unit }) {
  const end = samples.at(-1)?.time_ms ?? Date.now();
  const length = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, end - (samples[0]?.time_ms ?? end)));
  const shown = samples.filter((sample) => sample.time_ms > end - length);
  const top = niceTop(Math.max(0, ...shown.flatMap((sample) => series.map((line) => value(line, sample) ?? 0))));
  const x = (time_ms) => WIDTH - ((end - time_ms) / length) * WIDTH;
  const y = (number) => HEIGHT - 4 - (number / top) * (HEIGHT - 18);
  const then = pointed_ms === null ? null : nearest(shown, end - pointed_ms);
  const told = then ?? shown.findLast((sample) => !sample.gap);
  return h("figure", { class: "chart panel" },
    h("figcaption", {}, h("h3", {}, title), h("ul", { class: "legend" }, series.map((line) => h("li", {},
      h("i", { class: `swatch tone-${line.tone}` }), h("span", {}, line.name), h("b", {}, print(line, told, unit)))))),
    plot(title, shown, end, length,
      s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        [0.5, 1].map((part) => s("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(top * part), y2: y(top * part) })),
        gaps(shown, x).map(([from, to]) => s("rect", { class: "gap", x: from, y: 0, width: Math.max(2, to - from), height: HEIGHT })),
        series.map((line) => draw(line, shown, x, y)),
        s("line", { class: "ground", x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }),
        then && s("line", { class: "pointed", x1: x(then.time_ms), x2: x(then.time_ms), y1: 0, y2: HEIGHT })),
      scale(top, unit).map((number) => h("span", { class: "scale", style: { top: `${(y(number) / HEIGHT) * 100}%` } }, unit(number)))),
    h("p", { class: "axis" }, h("span", {}, `${span(length)} ago`), then && h("b", {}, `${clock(then.time_ms)}${then.gap ? ", no answer" : ""}`), h("span", {}, "now")));
}

/** The part that can be pointed at. */
function plot(title, shown, end, length, ...inside) {
  const step = (by) => {
    const at = pointed_ms === null ? shown.length : shown.indexOf(nearest(shown, end - pointed_ms));
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))];
    point(next ? end - next.time_ms : null);
  };
  const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Escape: () => point(null) };
  const follow = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    point(Math.max(0, 1 - (event.clientX - box.left) / box.width) * length);
  };
  return h("div", { class: "plot", tabindex: "0", role: "img", "aria-label": `${title} over time; arrow keys go through it`,
    onpointermove: follow, onpointerdown: follow, onpointerleave: () => point(null), onblur: () => point(null),
    onkeydown: (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    } }, inside);
}

/** Points at a moment; all charts are drawn anew with the next picture of the screen. */
function point(ms) {
  if (ms === pointed_ms) return;
  pointed_ms = ms;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    dispatchEvent(new Event("dashboard:draw"));
  });
}

const nearest = (shown, time_ms) => shown.reduce((best, sample) => (best && Math.abs(best.time_ms - time_ms) <= Math.abs(sample.time_ms - time_ms) ? best : sample), null);

const value = (line, sample) => (sample.gap ? null : (line.of(sample) ?? null));

function print(line, sample, unit) {
  const number = sample ? value(line, sample) : null;
  return number === null ? "–" : unit(number);
}

function draw(line, shown, x, y) {
  const runs = [[]];
  for (const sample of shown) {
    const number = value(line, sample);
    if (number === null) runs.push([]);
    else runs.at(-1).push([x(sample.time_ms).toFixed(1), y(number).toFixed(1)]);
  }
  return runs.filter((run) => run.length).map((run) => {
    const path = run.map(([left, up], place) => `${place ? "L" : "M"}${left} ${up}`).join("");
    const area = `${path}L${run.at(-1)[0]} ${y(0)}L${run[0][0]} ${y(0)}Z`;
    return [
      line.fill && s("path", { class: `area tone-${line.tone}`, d: area }),
      s("path", { class: `line tone-${line.tone}`, d: run.length > 1 ? path : `${path}h2` }),
    ];
  });
}

/** Stretches in which this node did not answer. */
function gaps(shown, x) {
  const found = [];
  shown.forEach((sample, place) => {
    if (!sample.gap) return;
    const from = x(shown[place - 1]?.time_ms ?? sample.time_ms);
    if (found.length && found.at(-1)[1] >= from) found.at(-1)[1] = x(sample.time_ms);
    else found.push([from, x(sample.time_ms)]);
  });
  return found;
}

function niceTop(number) {
  if (number <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= number * 1.05) ?? power * 20;
}

/** The numbers at the lines; the half only where its words are true, since units round. */
const scale = (top, unit) => (unit(top / 2) === unit(top) || unit(top / 2).startsWith("0 ") ? [top] : [top / 2, top]);
