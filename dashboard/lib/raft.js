// The cluster drawn as what it is named after: one timber per node, one lashing per shard, a knot where the two meet.
// A filled knot leads. A timber that has come loose is a node that is not connected.

import { h } from "./dom.js";
import { count, span } from "./format.js";
import { tag } from "./parts.js";

/** Beyond so many shards knots have no numbers. */
const NUMBERED_MAX = 24;

/** Leaders tell other nodes every second or two how far their followers are; what is older than this says so. */
const OLD_MS = 5000;

/** Draws the raft; `node` is what the answering node says about itself, if it may be asked. */
export function raft(cluster, node) {
  const wide = cluster.shards.length > NUMBERED_MAX;
  return h("section", { class: `raft panel ${wide ? "raft-wide" : ""}`, "aria-label": "Nodes and the shards they lead" },
    h("div", { class: "raft-scroll", tabindex: "0", role: "region", "aria-label": "The raft" },
      h("div", { class: "raft-row raft-head", "aria-hidden": "true" }, h("span", { class: "raft-name" }),
        h("span", { class: "timber-space" }, cluster.shards.map((shard) => h("span", { class: "knot-head" }, wide ? "" : shard.shard)))),
      cluster.members.map((member) => timber(member, cluster, node))),
    h("p", { class: "raft-legend" }, h("span", {}, h("i", { class: "knot knot-leader" }), "leads"), h("span", {}, h("i", { class: "knot knot-follower" }), "follows"),
      h("span", {}, h("i", { class: "knot knot-learner" }), "learns"), h("span", { class: "quiet" }, "one timber per node, one lashing per shard")),
    h("details", { class: "terms" }, h("summary", {}, "Leader and term of each shard"),
      h("ul", {}, cluster.shards.map((shard) => h("li", { "data-key": `term-${shard.shard}` }, `shard ${shard.shard}: ${shard.leader ? `node ${shard.leader}` : "no leader"}, term ${count(shard.term)}`)))));
}

function timber(member, cluster, node) {
  const self = member.node === cluster.answered_by;
  return h("div", { class: `raft-row ${member.connected ? "" : "adrift"}`, "data-key": `node-${member.node}` },
    h("span", { class: "raft-name" }, h("b", {}, `node ${member.node}`), self && tag("this one", "plain"), member.cordoned && tag("cordoned", "warn"),
      member.part && member.part !== "voter" && tag(member.part, "warn"), h("small", {}, about(member, self, node, cluster))),
    h("span", { class: "timber" }, cluster.shards.map((shard) => knot(shard, member, self ? node : null))));
}

function about(member, self, node, cluster) {
  if (!member.connected) return member.heard_ms_ago === undefined ? "not connected" : `not connected, heard ${span(member.heard_ms_ago)} ago`;
  const own = self && node ? node.shards.reduce((sum, shard) => sum + behind(shard), 0) : null;
  const lag = followed(member, cluster) ?? (own === null ? null : count(own));
  return `${member.client_addr}, leads ${member.leads}${lag === null ? "" : `, lag ${lag}`}`;
}

/** Entries that a follower is not known to have, over all shards whose leaders have said so lately, in words; null if none has. */
function followed(member, cluster) {
  const of = (shard) => shard.followers?.find((follower) => follower.node === member.node);
  const known = cluster.shards.filter(of);
  if (known.length === 0) return null;
  const age_ms = Math.max(...known.map((shard) => shard.followers_heard_ms_ago ?? 0));
  return `${count(known.reduce((sum, shard) => sum + of(shard).behind, 0))}${told(age_ms)}`;
}

/** When an old word was said; nothing for one of now. */
const told = (age_ms) => (age_ms >= OLD_MS ? ` as of ${span(age_ms)} ago` : "");

/** Committed entries that the state has not seen yet; `applied` is `shard:term:index`. */
const behind = (shard) => Math.max(0, shard.commit - Number(String(shard.applied).split(":").at(-1)));

function knot(shard, member, node) {
  const role = shard.leader === member.node ? "leader" : shard.voters.includes(member.node) ? "follower" : shard.learners.includes(member.node) ? "learner" : "none";
  const mine = node?.shards.find((one) => one.shard === shard.shard);
  const words = { leader: "leads", follower: "follows", learner: "learns", none: "has no part in" }[role];
  const follower = shard.followers?.find((one) => one.node === member.node);
  const more = follower ? `, ${count(follower.behind)} entries behind${told(shard.followers_heard_ms_ago ?? 0)}` : mine ? `, applied ${mine.applied}, ${mine.repairing ? "repairing" : "log whole"}` : "";
  return h("span", { class: `knot knot-${role} ${shard.leader ? "" : "knot-open"}`, role: "img",
    "aria-label": `node ${member.node} ${words} shard ${shard.shard}`, title: `node ${member.node} ${words} shard ${shard.shard}, term ${shard.term}, commit ${count(shard.commit)}${more}` });
}
