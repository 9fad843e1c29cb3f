// What is seen at a glance and by pointing: what needs a look, a moment in all charts, a search that keeps its field, the way from a
// task to its job.

import assert from "node:assert/strict";
import { call } from "./cluster.mjs";

const content = "document.querySelector('#content').innerText";

/** A queue with an alert is named by the sentence on top, marked beside its way, and told by the title of the tab. */
export async function tellsWhatNeedsALook({ tab, base, cluster, node }) {
  await call(cluster, node, "PUT", "/v1/queues/crowded", { alerts: { pending: 2 } });
  await call(cluster, node, "POST", "/v1/tasks", { tasks: Array.from({ length: 5 }, () => ({ queue: "crowded" })) });
  await tab.go(`${base}/`);
  await tab.until("/needs? a look\\./.test(document.querySelector('.hero-look h1')?.textContent ?? '')", "the sentence says so");
  await tab.until(`document.querySelector('a[href="#/queues"] .way-mark') && !document.querySelector('a[href="#/cluster"] .way-mark')`, "the queues are marked, the cluster is not");
  assert.ok((await tab.value("document.title")).startsWith("! "));
  await tab.until(`${content}.includes("Queues that need a look") && ${content}.includes("crowded")`);
  await call(cluster, node, "PUT", "/v1/queues/crowded", { alerts: { pending: 0 } });
  await call(cluster, node, "POST", "/v1/queues/crowded/purge");
  await tab.until("!document.querySelector('.list')?.innerText.includes('crowded') || !document.querySelector('.list').innerText.includes('pending')", "it needs no look any more");
}

/** Pointing at a chart tells what was then, in all charts; so do arrow keys. */
export async function pointsAtAMoment({ tab, base }) {
  await tab.go(`${base}/`);
  const moments = "[...document.querySelectorAll('.chart .axis b')].map((one) => one.textContent)";
  await tab.until("document.querySelectorAll('.chart .line').length >= 4", "there is something to point at");
  const place = await tab.value("(() => { const box = document.querySelector('.plot').getBoundingClientRect(); return { x: box.right - 3, y: box.y + box.height / 2 }; })()");
  await tab.call("Input.dispatchMouseEvent", { type: "mouseMoved", ...place });
  await tab.until(`${moments}.length === 4 && new Set(${moments}).size === 1 && /^\\d\\d:\\d\\d:\\d\\d/.test(${moments}[0])`, "all charts tell one moment");
  assert.equal(await tab.value("document.querySelectorAll('.chart .pointed').length"), 4);
  await tab.call("Input.dispatchMouseEvent", { type: "mouseMoved", x: 2, y: 2 });
  await tab.until(`${moments}.length === 0`, "nothing is pointed at");
  await tab.until("document.querySelectorAll('.chart .line')[0]?.getAttribute('d').split('L').length > 2", "some seconds are drawn");
  await tab.value("document.querySelectorAll('.plot')[2].focus()");
  await tab.press("ArrowLeft", "ArrowLeft", 37);
  await tab.until(`${moments}.length === 4`);
  const newest = await tab.value(`${moments}[0]`);
  await tab.press("ArrowLeft", "ArrowLeft", 37);
  await tab.until(`${moments}[0] !== ${JSON.stringify(newest)}`, "the key goes on");
  await tab.press("Escape");
  await tab.until(`${moments}.length === 0`);
}

/** What is typed into a search changes the list and nothing else: the field stays, and the way back does not lead through every letter. */
export async function searchesWhileOneTypes({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/tasks", { tasks: Array.from({ length: 30 }, (_, place) => ({ id: `parcel-${place}`, queue: "parcels" })) });
  await tab.go(`${base}/#/tasks?queue=parcels`);
  await tab.until("document.querySelectorAll('tbody tr').length === 30");
  const before = await tab.value("history.length");
  await tab.value("document.querySelector('input[name=id]').focus()");
  for (const letter of "cel-2") await tab.call("Input.insertText", { text: letter });
  await tab.until("document.querySelectorAll('tbody tr').length === 11", "those with the text in their ids are listed");
  assert.deepEqual(await tab.value("[document.activeElement.name, document.activeElement.value, history.length]"), ["id", "cel-2", before]);
  await tab.go(`${base}/#/queues`);
  await tab.until("document.querySelector('input[type=search]')");
  await tab.value("document.querySelector('input[type=search]').focus()");
  for (const letter of "parc") await tab.call("Input.insertText", { text: letter });
  await tab.until("document.querySelectorAll('tbody tr').length === 1");
  assert.equal(await tab.value("document.activeElement.value"), "parc");
  await call(cluster, node, "POST", "/v1/queues/parcels/purge");
  for (const id of ["meadow", "meander", "moor"]) await call(cluster, node, "POST", "/v1/jobs", { id, queue: "parcels", map: { program: "wordcount", range: { from: 0, to: 1 } } });
  await tab.go(`${base}/#/jobs`);
  await tab.type("input[name=find]", "mea");
  await tab.until("[...document.querySelectorAll('tbody tr')].map((row) => row.querySelector('a').textContent).sort().join() === 'meadow,meander'");
  for (const id of ["meadow", "meander", "moor"]) await call(cluster, node, "POST", `/v1/jobs/${id}/cancel`);
}

/** A task of a job names its program, what it reads, and its job; buckets of jobs lead to the jobs. */
export async function leadsFromTasksToJobs({ tab, base, cluster, node }) {
  await call(cluster, node, "PUT", "/v1/objects/texts/letters/a.txt", "one two two");
  const inputs = [{ name: "a.txt", bucket: "texts", key: "letters/a.txt" }];
  await call(cluster, node, "POST", "/v1/jobs", { id: "trail", queue: "trail", map: { program: "wordcount", inputs, settings: { top: "5" } } });
  const { tasks: [held] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w1", queues: ["trail"], wait_ms: 5000 });
  await tab.go(`${base}/#/tasks/${encodeURIComponent(held.id)}`);
  for (const text of ["wordcount", "top=5", "a.txt", "part of job"]) await tab.text(text);
  await tab.click(".page-head a", "trail");
  await tab.until("location.hash.endsWith('/trail')");
  await tab.go(`${base}/#/jobs/trail`);
  await tab.text("0 of 1 tasks done");
  await tab.go(`${base}/#/objects/jobs`);
  await tab.text("Kept by job and task");
  await tab.click("a", "Look at the jobs");
  await tab.until("document.querySelector('h1')?.textContent === 'Jobs'");
  await call(cluster, node, "POST", "/v1/jobs/trail/cancel");
}
