// Elections: who led each shard when, as this node saw it, and why roles changed.

import { h, s } from "../lib/dom.js";
import { known } from "../lib/pulse.js";
import { clock, count, instant, span, when, words } from "../lib/format.js";
import { empty, head, table, tag } from "../lib/parts.js";
import { to } from "../lib/route.js";

const SPANS = { 1: "a minute", 5: "5 minutes", 60: "an hour", 1440: "a day" };
const [WIDTH, LANE, TOP] = [900, 22, 6];
const ROWS_MAX = 200;

export const elections = {
  title: () => "Elections",
  view: (_data, where) => {
    const about = "Every change of role has a reason. This is what the node that answers you has seen since it started.";
    if (known.roles === "forbidden") return h("div", {}, head("Elections", about), empty("Not for this token", "Role changes are shown to tokens that are not bound to namespaces."));
    const minutes = Number(where.query.minutes ?? 5);
    const choice = Object.entries(SPANS).map(([value, word]) => h("a", { class: "button button-plain", href: to(["elections"], { minutes: value }), "aria-current": Number(value) === minutes ? "true" : null }, word));
    return h("div", {}, head("Elections", about, h("nav", { class: "choice", "aria-label": "How far back" }, choice)), lanes(minutes), list());
  },
};

/** One lane per shard: a bar while a leader is known, in the colour of the node. */
function lanes(minutes) {
  const shards = known.cluster?.shards ?? [];
  const nodes = (known.cluster?.members ?? []).map((member) => member.node);
  const [end, length] = [Date.now(), minutes * 60_000];
  const x = (time_ms) => Math.max(0, WIDTH - ((end - time_ms) / length) * WIDTH);
  const height = shards.length * LANE + TOP * 2;
  return h("section", { class: "panel lanes" },
    h("div", { class: "lanes-names", "aria-hidden": "true" }, shards.map((shard) => h("span", {}, `shard ${shard.shard}`))),
    s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": sentence(shards), style: { height: `${height}px` } },
      shards.map((shard, place) => lane(known.events.filter((event) => event.shard === shard.shard), place, nodes, x, end))),
    h("p", { class: "axis" }, h("span", {}, `${SPANS[minutes] ?? `${minutes} minutes`} ago`), h("span", { class: "legend" }, nodes.map((node, place) => h("span", {}, h("i", { class: `swatch node-${place % 7}` }), `node ${node}`)),
      h("span", {}, h("i", { class: "swatch swatch-none" }), "no leader known")), h("span", {}, "now")));
}

function lane(events, place, nodes, x, end) {
  const y = TOP + place * LANE;
  const parts = events.map((event, at) => {
    const from = x(event.wall_ms);
    const to_ = x(events[at + 1]?.wall_ms ?? end);
    const node = event.leader === undefined || event.leader === null ? "lane-none" : `node-${nodes.indexOf(event.leader) % 7}`;
    return to_ <= 0 ? null : [
      s("rect", { class: `lane ${node}`, x: from, y: y + 4, width: Math.max(1, to_ - from), height: LANE - 8 }, s("title", {}, `${instant(event.wall_ms)}: ${event.reason}, term ${event.term}`)),
      from > 0 && s("line", { class: "lane-mark", x1: from, x2: from, y1: y + 1, y2: y + LANE - 1 }),
    ];
  });
  return s("g", {}, s("line", { class: "grid", x1: 0, x2: WIDTH, y1: y + LANE / 2, y2: y + LANE / 2 }), parts);
}

const sentence = (shards) => shards.map((shard) => (shard.leader ? `shard ${shard.shard} is led by node ${shard.leader} in term ${shard.term}` : `shard ${shard.shard} has no leader`)).join("; ");

function list() {
  const newest = known.events.slice(-ROWS_MAX).reverse();
  if (newest.length === 0) return empty("Quiet so far", "Nothing has changed since this node started. Move a leader to see it happen:", "ikada cluster transfer --shard 0");
  const rows = newest.map((event, place) => ({
    key: String(event.sequence),
    cells: [h("time", { title: instant(event.wall_ms) }, clock(event.wall_ms), " ", h("span", { class: "quiet" }, when(event.wall_ms))), event.shard, count(event.term),
      tag(words(event.role), event.role === "leader" ? "calm" : "plain"), event.leader ? `node ${event.leader}` : "none", event.reason, votes(event), gap(newest, place)],
  }));
  const older = known.events.length - newest.length;
  const shown = table("Role changes", [["when"], ["shard", "number"], ["term", "number"], ["became"], ["leader"], ["why"], ["votes"], ["without a leader", "number"]], rows);
  return [shown, older > 0 && h("p", { class: "more" }, `The newest ${count(newest.length)} of ${count(known.events.length)} changes. All that the node keeps: `, h("code", {}, "ikada cluster events"))];
}

/** Who granted and who refused, in the pre-vote and in the vote that this change ends. */
function votes(event) {
  const rounds = [["pre-vote", event.pre_votes], ["vote", event.votes]].filter(([, ballot]) => ballot);
  return rounds.map(([name, { granted, refused }]) => h("div", {}, `${name} ${granted.join(", ")}`, refused.length > 0 && h("span", { class: "quiet" }, ` against: ${refused.join(", ")}`)));
}

/** How long the shard had no leader before this event gave it one. */
function gap(newest, place) {
  const event = newest[place];
  const earlier = newest.slice(place + 1).filter((other) => other.shard === event.shard);
  if (!event.leader || earlier.length === 0 || earlier[0].leader) return "";
  const led = earlier.findIndex((other) => other.leader);
  const lost = led < 0 ? null : earlier[led - 1];
  return lost ? span(event.wall_ms - lost.wall_ms) : "";
}
