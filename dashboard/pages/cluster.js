// Cluster: members and shards, and the few things one does to them, each after a question.

import { h } from "../lib/dom.js";
import { act, path } from "../lib/api.js";
import { dialog, note } from "../lib/dialog.js";
import { known } from "../lib/pulse.js";
import { count, span } from "../lib/format.js";
import { button, empty, facts, head, moment, table, tag } from "../lib/parts.js";

const reload = () => dispatchEvent(new Event("dashboard:reload"));

export const cluster = {
  title: () => "Cluster",
  view: () => {
    const view = known.cluster;
    if (!view) return known.caller ? h("div", {}, head("Cluster"), empty("Not for this token", "The cluster as a whole is shown to tokens that are not bound to namespaces.")) : h("p", { class: "loading" }, "Looking …");
    return h("div", {}, head("Cluster", `Cluster ${BigInt(view.cluster).toString(16).padStart(16, "0")}: ${view.status}, as node ${view.answered_by} sees it.`, button("Move all leaders", () => transfer(view, null), "plain")),
      members(view), h("h2", {}, "Shards"), shards(view), known.node && self(known.node, view.members.find((member) => member.load)?.load));
  },
};

function members(view) {
  const columns = [["node"], ["clients"], ["peers"], ["connected"], ["leads", "number"], ["priority", "number"], ["", "act"]];
  return table("Members", columns, view.members.map((member) => ({ key: member.node, cells: [
    [h("b", {}, `node ${member.node}`), member.node === view.answered_by && tag("this one"), member.cordoned && tag("cordoned", "warn"), member.part && member.part !== "voter" && tag(member.part, "warn")],
    h("code", {}, member.client_addr), h("code", {}, member.peer_addr),
    member.connected ? tag("yes", "calm") : tag(member.heard_ms_ago === undefined ? "no" : `no, heard ${span(member.heard_ms_ago)} ago`, "bad"), count(member.leads), member.priority,
    button(member.cordoned ? "Uncordon" : "Cordon", () => cordon(member), "plain", { "aria-label": `${member.cordoned ? "Uncordon" : "Cordon"} node ${member.node}` })] })));
}

function cordon(member) {
  const [verb, text] = member.cordoned ? ["Uncordon", "It may lead again."] : ["Cordon", "Its leaderships move away, and it takes none while another voter can lead. It goes on voting and storing."];
  dialog({ title: `${verb} node ${member.node}?`, text, yes: verb, run: async () => {
    await act("PUT", path("v1", "cluster", "nodes", member.node), { body: { cordoned: !member.cordoned } });
    note(`Node ${member.node} is ${member.cordoned ? "uncordoned" : "cordoned"}.`);
    reload();
  } });
}

function shards(view) {
  const columns = [["shard", "number"], ["leader"], ["term", "number"], ["committed", "number"], ["voters"], ["ready", "number"], ["claimed", "number"], ["scheduled", "number"], ["finished", "number"], ["", "act"]];
  return table("Shards", columns, view.shards.map((shard) => ({ key: String(shard.shard), cells: [
    shard.shard, shard.leader ? `node ${shard.leader}` : tag("electing", "bad"), count(shard.term), count(shard.commit), [shard.voters.join(", "), shard.learners.length > 0 && ` and learner ${shard.learners.join(", ")}`, shard.joint && tag("changing", "warn")],
    count(shard.ready), count(shard.claimed), count(shard.scheduled), count(shard.finished),
    button("Move", () => transfer(view, shard), "plain", { "aria-label": `Move the leader of shard ${shard.shard}` })] })));
}

function transfer(view, shard) {
  const choices = view.members.filter((member) => member.connected && member.node !== shard?.leader).map((member) => [member.node, `node ${member.node}${member.cordoned ? " (cordoned)" : ""}`]);
  dialog({
    title: shard ? `Move the leader of shard ${shard.shard}?` : "Move the leaders of all shards?",
    text: "The old leader hands over when the new one has everything; writes pause for a moment.",
    fields: [{ name: "to", label: "To", options: [["", "the most caught-up other voter"], ...choices] }], yes: "Move",
    run: async ({ to }) => {
      const body = { ...(shard && { shard: shard.shard }), ...(to && { to }) };
      const answer = await act("POST", "/v1/cluster/transfer", { body });
      const refused = answer.shards.filter((one) => !one.accepted);
      if (refused.length > 0 && refused.length === answer.shards.length) throw refused[0].problem;
      note(refused.length ? `${refused.length} of ${answer.shards.length} shards did not move: ${refused[0].problem.detail}` : "On its way; the elections page shows its end.", refused.length ? "bad" : "calm");
      reload();
    },
  });
}

function self(node, load) {
  return h("section", { class: "panel" }, h("h2", {}, `Node ${node.node}${node.name ? `, ${node.name}` : ""}`), facts([
    ["version", node.version], ["started", moment(node.started_ms)], ["clock against the median", `${node.clock_offset_ms} ms`], ["calls waiting", count(node.calls_waiting)], ["claims parked", count(node.claims_parked)],
    load && ["processor, memory", `${Math.round(load.cpu_percent)} %, ${Math.round(load.memory_percent)} %`], load && ["turned away in the last minute", `${count(load.shed_last_minute)} of ${count(load.admitted_last_minute + load.shed_last_minute)}`],
    ["shards repairing", count(node.shards.filter((shard) => shard.repairing).length)], node.stopping && ["state", tag("stopping", "warn")]]));
}
