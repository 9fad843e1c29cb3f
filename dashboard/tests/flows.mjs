// What people do with the page: look, submit, find, understand, retry, cancel, pause, schedule, store, steer; with and
// without a token; while a leader is killed.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, leaderOf } from "./cluster.mjs";
import { rest } from "./chrome.mjs";

const content = "document.querySelector('#content').innerText";

/** An empty cluster teaches the next step, and the first task comes from the page itself. */
export async function submitsTheFirstTask({ tab, base }) {
  await tab.go(`${base}/`);
  await tab.text("No task has come by yet");
  await tab.text("All is calm.");
  await tab.click("a", "write it here");
  await tab.type("#field-queue", "mail");
  await tab.type("#field-payload", "{\"to\": ");
  await tab.click("button", "Submit");
  await tab.text("the payload is no JSON value");
  await tab.type("#field-payload", "{\"to\": \"ann\", \"exact\": 12345678901234567890}");
  await tab.type("#field-id", "first");
  await tab.click("button", "Submit");
  await tab.text("Why it is not finished");
  await tab.text("12345678901234567890");
  await tab.until(`${content}.includes("no worker asked")`);
}

/** Filters, the search for an id, and a task that does not exist. */
export async function findsTasks({ tab, base, cluster, node }) {
  const tasks = Array.from({ length: 60 }, (_, place) => ({ id: `report-${place}`, queue: "reports", payload: { place } }));
  await call(cluster, node, "POST", "/v1/tasks", { tasks });
  await tab.go(`${base}/#/tasks?queue=reports&state=ready`);
  await tab.until("document.querySelectorAll('tbody tr').length === 50");
  await tab.click("a", "Next page");
  await tab.until("document.querySelectorAll('tbody tr').length === 10");
  await tab.type("input[name=id]", "report-7");
  await tab.press("Enter");
  await tab.until("document.querySelector('h1')?.textContent === 'report-7'");
  await tab.go(`${base}/#/tasks/no-such-task`);
  await tab.text("task not found");
}

/** A task fails, dies, is retried, and is cancelled. */
export async function mendsATask({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/tasks", { id: "fragile", queue: "fragile", max_attempts: 1 });
  const { tasks: [claimed] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w1", queues: ["fragile"], wait_ms: 5000 });
  await tab.go(`${base}/#/tasks/fragile`);
  await tab.until(`${content}.includes("running")`);
  await call(cluster, node, "POST", "/v1/tasks/fail", { worker: "w1", tasks: [{ id: "fragile", fence: claimed.fence, error: "the printer is out of ink" }] });
  await tab.text("attempts exhausted");
  await tab.text("the printer is out of ink");
  await tab.click("button", "Retry");
  await tab.text("Why it is not finished");
  await tab.click("button", "Cancel task");
  await tab.click("dialog button[type=submit]", "Cancel");
  await tab.until("document.querySelector('.page-head .state-cancelled')");
}

/** Pause and resume; a purge wants the name of the queue. */
export async function runsAQueue({ tab, base, cluster, node }) {
  await tab.go(`${base}/#/queues`);
  await tab.click("button", "Pause reports");
  await tab.until("document.querySelector('[aria-label=\"Resume reports\"]')");
  assert.equal((await call(cluster, node, "GET", "/v1/queues/reports")).settings.paused, true);
  await tab.click("a", "reports");
  await tab.until("document.querySelector('h1')?.textContent === 'reports'");
  await tab.click("button", "Resume");
  await tab.until("[...document.querySelectorAll('button')].some((one) => one.textContent === 'Pause')");
  await tab.click("button", "Purge");
  await tab.type("#field-sure", "report");
  await tab.click("dialog button[type=submit]", "Cancel them");
  await tab.text("type reports to confirm");
  await tab.type("#field-sure", "reports");
  await tab.click("dialog button[type=submit]", "Cancel them");
  await tab.text("60 tasks cancelled.");
  assert.equal((await call(cluster, node, "GET", "/v1/queues/reports")).counts.ready, 0);
}

/** A schedule is made, rests, and is deleted. */
export async function keepsASchedule({ tab, base, cluster, node }) {
  await tab.go(`${base}/#/schedules`);
  await tab.text("Nothing is scheduled");
  await tab.click("button", "New schedule");
  await tab.type("#field-name", "nightly");
  await tab.type("#field-cron", "99 2 * * *");
  await tab.click("dialog button[type=submit]", "Schedule");
  await tab.until("document.querySelector('dialog .trouble')");
  await tab.type("#field-cron", "30 2 * * *");
  await tab.click("dialog button[type=submit]", "Schedule");
  await tab.click("button", "Pause nightly");
  await tab.until("document.querySelector('[aria-label=\"Resume nightly\"]')");
  assert.equal((await call(cluster, node, "GET", "/v1/schedules/nightly")).paused, true);
  await tab.click("button", "Delete nightly");
  await tab.click("dialog button[type=submit]", "Delete");
  await tab.text("Nothing is scheduled");
}

/** A file goes up, is looked at, and is deleted. */
export async function storesAnObject({ tab, base, cluster, node }) {
  const file = join(cluster.folder, "note.txt");
  writeFileSync(file, "carried over the water\n");
  await tab.go(`${base}/#/objects`);
  await tab.text("No objects yet");
  await tab.click("button", "Upload");
  await tab.type("#field-bucket", "docs");
  await tab.type("#field-key", "2026/");
  await tab.choose("#field-file", [file]);
  await tab.click("dialog button[type=submit]", "Upload");
  await tab.click("a", "docs");
  await tab.click("a", "2026/");
  await tab.click("button", "note.txt");
  await tab.text("carried over the water");
  await tab.press("Escape");
  const response = await fetch(`${node.url}/v1/objects/docs/2026/note.txt`);
  assert.equal(await response.text(), "carried over the water\n");
  await tab.click("button", "Delete 2026/note.txt");
  await tab.click("dialog button[type=submit]", "Delete");
  await tab.text("Nothing here");
}

/** How far an upload is stands where one looks: in its dialog while that is open, else among the notes; what becomes of it is told there, too. */
export async function tellsHowFarAnUploadIs({ tab, base, cluster }) {
  const file = join(cluster.folder, "raft.bin");
  writeFileSync(file, Buffer.alloc(3 << 20, 7));
  const slow = (bytes) => tab.call("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
  const begin = async (bucket) => {
    await tab.go(`${base}/#/objects`);
    await tab.click("button", "Upload");
    await tab.type("#field-bucket", bucket);
    await tab.type("#field-key", "raft.bin");
    await tab.choose("#field-file", [file]);
    await tab.click("dialog button[type=submit]", "Upload");
  };
  await slow(256 << 10);
  await begin("rafts");
  await tab.until("document.querySelector('dialog .dialog-far progress')?.value > 0", "the dialog shows how far it is");
  await tab.until("/ of 3\\.0 MiB/.test(document.querySelector('dialog .dialog-far')?.textContent)");
  await tab.press("Escape");
  await tab.until("!document.querySelector('dialog') && document.querySelector('#toasts progress')", "it goes on among the notes");
  await slow(-1);
  await tab.text("raft.bin is stored.");
  await tab.until("!document.querySelector('#toasts progress')");
  await begin("no such place");
  await tab.until("document.querySelector('dialog .trouble') && !document.querySelector('dialog progress')", "a refusal is told in the dialog");
}

/** A job of many tasks: its stages, the map of its tasks, a task of it, what they say, its end. */
export async function watchesAJob({ tab, base, cluster, node }) {
  await tab.go(`${base}/#/jobs`);
  await tab.text("No jobs yet");
  await call(cluster, node, "POST", "/v1/jobs", { id: "count", name: "count numbers", queue: "jobs", map: { program: "wordcount", range: { from: 0, to: 40 } }, reduce: { program: "merge" } });
  await tab.click("a", "count");
  await tab.until("document.querySelectorAll('.map li').length >= 40", "every task is on the map");
  await tab.text("0 of 41 tasks done");
  const { tasks: [claimed] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w1", queues: ["jobs"], wait_ms: 5000 });
  await tab.until("document.querySelectorAll('.map .cell-claimed').length === 1");
  await tab.click(".cell-claimed");
  await tab.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(claimed.id)}`);
  await tab.go(`${base}/#/jobs/count`);
  await tab.text("Nothing was said yet.");
  const log = (text) => fetch(`${node.url}/v1/objects/logs/${claimed.id}/1`, { method: "PUT", body: text });
  await log("casting off\n");
  await tab.text("casting off");
  await log("casting off\n<b>under way</b>\n");
  await tab.until("document.querySelector('.log')?.textContent.endsWith(': <b>under way</b>')", "the log goes on, as text");
  await tab.click("button", "Cancel job");
  await tab.click("dialog button[type=submit]", "Cancel job");
  await tab.until("document.querySelector('.page-head .state-cancelled')");
}

/** Workers with their slots; one is asked to drain. */
export async function drainsAWorker({ tab, base, cluster, node }) {
  await tab.go(`${base}/#/workers`);
  await tab.text("No workers");
  const beat = { session: "7", slots: 4, busy: 1, labels: { gpu: "a100" }, queues: ["mail"], version: "0.1.0" };
  await call(cluster, node, "PUT", "/v1/workers/hauler-1", beat);
  await tab.until(`${content}.includes("hauler-1") && ${content}.includes("gpu=a100") && ${content}.includes("1 of 4")`);
  await tab.click("button", "Drain hauler-1");
  await tab.click("dialog button[type=submit]", "Drain");
  await tab.until("document.querySelector('.state-draining')");
  assert.equal((await call(cluster, node, "PUT", "/v1/workers/hauler-1", beat)).wanted, "drain");
}

/** Who holds a lease is shown, with who waits; an operator may take it away. */
export async function seesALease({ tab, base, cluster, node }) {
  await tab.go(`${base}/#/leases`);
  await tab.text("Nobody holds a lease");
  await call(cluster, node, "POST", "/v1/leases/nightly/acquire", { holder: "ann", ttl_ms: 60_000 });
  await call(cluster, node, "POST", "/v1/leases/nightly/acquire", { holder: "bob", ttl_ms: 60_000, wait_ms: 300 });
  await tab.until(`${content}.includes("ann") && ${content}.includes("bob")`);
  await tab.click("button", "Release nightly");
  await tab.click("dialog button[type=submit]", "Release");
  await tab.until(`${content}.includes("bob") && !${content}.includes("ann")`, "bob has it now");
}

/** Leaders move, nodes are cordoned, and the elections page tells why. */
export async function steersTheCluster({ tab, base, cluster }) {
  await tab.go(`${base}/#/cluster`);
  const before = await leaderOf(cluster, 0);
  await tab.click("button", "Move the leader of shard 0");
  await tab.click("dialog button[type=submit]", "Move");
  await tab.until(`![...document.querySelectorAll('tr')].some((row) => row.dataset.key === "0" && (row.innerText.includes("node ${before}") || row.innerText.includes("electing")))`, "shard 0 has another leader");
  const now = await leaderOf(cluster, 0);
  await tab.click("button", `Cordon node ${now}`);
  await tab.click("dialog button[type=submit]", "Cordon");
  await tab.until(`document.querySelector('[aria-label="Uncordon node ${now}"]')`);
  await tab.until(`[...document.querySelectorAll('tr')].some((row) => row.dataset.key === "${now}" && row.children[4].innerText === "0")`, "it leads nothing any more");
  await tab.click("button", `Uncordon node ${now}`);
  await tab.click("dialog button[type=submit]", "Uncordon");
  await tab.until(`document.querySelector('[aria-label="Cordon node ${now}"]')`);
  await tab.go(`${base}/#/elections`);
  await tab.until("document.querySelectorAll('tbody tr').length > 2");
}

/** Everything can be reached by keyboard: the first stop skips to the content, the ways follow. */
export async function worksByKeyboard({ tab, base }) {
  await tab.go(`${base}/#/queues`);
  await tab.until("document.querySelector('table')");
  await tab.value("document.activeElement.blur()");
  const stops = [];
  for (let place = 0; place < 14; place += 1) {
    await tab.press("Tab");
    stops.push(await tab.value("document.activeElement.textContent.trim() || document.activeElement.getAttribute('aria-label')"));
  }
  for (const word of ["Skip to content", "Overview", "Cluster", "Queues"]) assert.ok(stops.includes(word), `${word} is among ${stops.join(" | ")}`);
}

/** A leader is killed while somebody watches: the page says so, and goes on by itself. */
export async function survivesALeader({ tab, cluster }) {
  const leader = await leaderOf(cluster, 0);
  const watched = cluster.nodes.find((node) => node.id !== leader);
  await tab.go(`${watched.url}/`);
  await tab.until("document.querySelector('.hero-calm, .hero-look')", "the cluster is well");
  await cluster.kill(leader);
  await tab.text(`Node ${leader} is missing.`);
  await tab.until("document.querySelectorAll('.raft-row .knot-leader').length === 4", "every shard has a leader again");
  await tab.until(`!document.querySelector('.banner')`, "nothing is wrong any more");
  await call(cluster, watched, "POST", "/v1/tasks", { id: "after-the-storm", queue: "mail" });
  await tab.go(`${watched.url}/#/tasks/after-the-storm`);
  await tab.text("Why it is not finished");
  await tab.go(`${watched.url}/#/elections`);
  await tab.until(`document.querySelectorAll('tbody tr').length > 2`);
}

/** Without a majority there are no leaders: a task's page says so, and shows what its node has. */
export async function showsATaskWithoutALeader({ tab, cluster }) {
  // With logs in a database the one node that is left leads.
  if (process.env.IKADA_TEST_LOG_URL) return;
  const [watched, ...others] = cluster.nodes.filter((node) => node.child.signalCode === null);
  await call(cluster, watched, "POST", "/v1/tasks", { id: "adrift", queue: "mail" });
  await tab.go(`${watched.url}/#/tasks/adrift`);
  await tab.text("Why it is not finished");
  others.forEach((other) => other.child.kill("SIGSTOP"));
  try {
    await tab.text("This is the task as this node has it");
    await tab.until("document.querySelector('h1')?.textContent === 'adrift'");
  } finally {
    others.forEach((other) => other.child.kill("SIGCONT"));
  }
  await tab.text("Why it is not finished");
}

/** The node that serves the page is killed: the page keeps what it had and names the others. */
export async function outlivesItsNode({ tab, cluster, lastNode }) {
  await tab.go(`${lastNode.url}/#/queues`);
  await tab.until("document.querySelector('tbody tr')");
  await cluster.kill(lastNode.id);
  await tab.text("This node has not answered for");
  assert.ok(await tab.value("document.querySelectorAll('tbody tr').length") > 0, "the queues are still shown");
  assert.ok(await tab.value("document.querySelectorAll('.banner a').length") >= 1, "other nodes are named");
}

/** A cluster that asks for tokens: nothing is shown before, a wrong one is told, a good one opens. */
export async function asksForAToken({ tab, cluster }) {
  const [node] = cluster.nodes;
  await call(cluster, node, "POST", "/v1/tasks", { id: "secret-plan", queue: "plans" });
  await tab.go(`${node.url}/`);
  await tab.type("#field-token", "ikada_000000000000_wrong");
  await tab.click("dialog button[type=submit]", "Look");
  await tab.text("this token does not hold here");
  assert.ok(!(await tab.value("document.body.innerText")).includes("plans"));
  await tab.type("#field-token", cluster.token);
  await tab.click("dialog button[type=submit]", "Look");
  await tab.text("plans");
  await tab.text("All is calm.");
  const kept = await tab.value("JSON.stringify([localStorage, document.cookie])");
  assert.ok(!kept.includes(cluster.token), "the token is in this tab's session only");
  const viewer = await call(cluster, node, "POST", "/v1/tokens", { name: "eve", role: "viewer", namespaces: ["blue"] });
  await tab.click("button", "sign out");
  await rest(100);
  await tab.type("#field-token", viewer.token);
  await tab.click("dialog button[type=submit]", "Look");
  await tab.text("eve (viewer)");
  await tab.text("namespace blue");
  assert.ok(!(await tab.value("document.body.innerText")).includes("plans"), "another namespace is not shown");
}

/** Payloads of a megabyte each: the list comes in smaller pages, the task is cut with a way to save it whole. */
export async function bearsLargeThings({ tab, base, cluster, node }) {
  for (let batch = 0; batch < 4; batch += 1) {
    const tasks = Array.from({ length: 7 }, (_, place) => ({ id: `large-${batch}-${place}`, queue: "large", payload: "x".repeat(1_000_000) }));
    await call(cluster, node, "POST", "/v1/tasks", { tasks });
  }
  await tab.go(`${base}/#/tasks?queue=large`);
  await tab.until("document.querySelectorAll('tbody tr').length === 10");
  await tab.text("Next page");
  await tab.go(`${base}/#/tasks/large-0-0`);
  await tab.text("The first 20,000 of 1,000,002 characters.");
  assert.ok(await tab.value("document.body.innerText.length") < 40_000);
  await call(cluster, node, "POST", "/v1/queues/large/purge");
  await call(cluster, node, "POST", "/v1/queues/large/drop?finished=true");
}
