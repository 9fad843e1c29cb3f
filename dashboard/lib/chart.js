// Live charts in SVG: lines and areas over up to five minutes, with gaps where nothing could be seen.
//
// A chart is drawn anew from its samples each time; it keeps nothing. It describes itself in words for screen readers.

import { h, s } from "./dom.js";
import { span } from "./format.js";

const [WIDTH, HEIGHT] = [600, 130];
/** A young page shows a short stretch, so that its first seconds already have a shape. */
const [SPAN_MIN_MS, SPAN_MAX_MS] = [30_000, 300_000];

/**
 * A chart. `series` is a list of `{ name, tone, of, fill }` where `of(sample)` is a number or null; `unit` prints numbers.
 */
export function chart({ title, samples, series, unit, note }) {
  const end = samples.at(-1)?.time_ms ?? Date.now();
  const length = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, end - (samples[0]?.time_ms ?? end)));
  const shown = samples.filter((sample) => sample.time_ms > end - length);
  const top = niceTop(Math.max(0, ...shown.flatMap((sample) => series.map((line) => value(line, sample) ?? 0))));
  const x = (time_ms) => WIDTH - ((end - time_ms) / length) * WIDTH;
  const y = (number) => HEIGHT - 4 - (number / top) * (HEIGHT - 18);
  const newest = shown.findLast((sample) => !sample.gap);
  const told = series.map((line) => `${line.name} ${print(line, newest, unit)}`).join(", ");
  return h("figure", { class: "chart panel" },
    h("figcaption", {}, h("h3", {}, title), h("ul", { class: "legend" }, series.map((line) => h("li", {},
      h("i", { class: `swatch tone-${line.tone}` }), h("span", {}, line.name), h("b", {}, print(line, newest, unit)))))),
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${told}` },
      [0.5, 1].map((part) => s("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(top * part), y2: y(top * part) })),
      gaps(shown, x).map(([from, to]) => s("rect", { class: "gap", x: from, y: 0, width: Math.max(2, to - from), height: HEIGHT })),
      series.map((line) => draw(line, shown, x, y)),
      s("line", { class: "ground", x1: 0, x2: WIDTH, y1: y(0), y2: y(0) })),
    h("p", { class: "axis" }, h("span", {}, `${span(length)} ago`), h("span", {}, note ?? `top of the chart: ${unit(top)}`), h("span", {}, "now")));
}

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
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= number * 1.05) ?? power * 20;
}
