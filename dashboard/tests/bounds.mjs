// What is too much, too long, too old or gone: the page says so, comes in pages, cuts with a way to the whole, and stays small.

import assert from "node:assert/strict";
import { call } from "./cluster.mjs";
import { rest } from "./chrome.mjs";

const content = "document.querySelector('#content').innerText";
/** No page has more elements than this, however long the list behind it is. */
const ELEMENTS_MAX = 6000;
/** Tasks of the long list: rows that nobody could scroll through. */
const ROWS = 100_000;

async function isSmall(tab, what) {
  const elements = await tab.value("document.querySelectorAll('*').length");
  assert.ok(elements < ELEMENTS_MAX, `${what} has ${elements} elements`);
}

const rows = (count) => `document.querySelectorAll('tbody tr').length === ${count}`;

/** A hundred thousand tasks of a job: the map and the list come in parts. */
export async function pagesManyTasks({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/jobs", { id: "endless", queue: "endless", map: { program: "wordcount", range: { from: 0, to: ROWS } } });
  await tab.go(`${base}/#/jobs/endless`);
  await tab.until("document.querySelectorAll('.map li').length === 1000", "the first part of the map is drawn");
  await tab.until(`${content}.includes("1,000 of 100,00")`);
  await isSmall(tab, "the job's page");
  await tab.click("a", "Next 1,000 tasks");
  await tab.until("document.querySelector('.map a')?.getAttribute('aria-label').includes('1000')", "the map goes on");
  await isSmall(tab, "the job's second page");
  await tab.go(`${base}/#/tasks?queue=endless`);
  await tab.until(rows(50));
  await tab.text("Next page");
  await call(cluster, node, "POST", "/v1/jobs/endless/cancel");
}

/** Hundreds of outputs of a job: the list says that there are more, and leads to them, whatever part of the map is shown. */
export async function pagesManyOutputs({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/jobs", { id: "prolific", queue: "prolific", ttl_ms: 600_000, map: { program: "wordcount", range: { from: 0, to: 1 } } });
  const { tasks: [held] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w", queues: ["prolific"], wait_ms: 5000 });
  const { size, digest } = await call(cluster, node, "POST", "/v1/uploads", "abc");
  const outputs = Array.from({ length: 450 }, (_, place) => ({ name: `out-${String(place).padStart(3, "0")}`, size, digest }));
  const { tasks: [settled] } = await call(cluster, node, "POST", "/v1/tasks/complete", { worker: "w", tasks: [{ id: held.id, fence: held.fence, outputs }] });
  assert.ok(!settled.problem, JSON.stringify(settled.problem));
  const part = (from, to, count) => `(all => all.length === ${count} && all[0].textContent.endsWith("${from}") && all.at(-1).textContent.endsWith("${to}"))([...document.querySelectorAll(".outputs li")])`;
  await tab.go(`${base}/#/jobs/prolific`);
  await tab.until(part("out-000", "out-199", 200), "the first outputs are listed");
  await tab.text("200 outputs are shown, and there are more.");
  await tab.text("ikada job result prolific --to FOLDER");
  await tab.click("a", "Next outputs");
  await tab.until(part("out-200", "out-399", 200), "the next ones are listed");
  await tab.click("a", "Next outputs");
  await tab.until(part("out-400", "out-449", 50), "the last ones are listed");
  await tab.text("These are the last ones.");
  await tab.click("a", "First outputs");
  await tab.until(part("out-000", "out-199", 200), "the first ones are listed again");
  // What has ended is looked at seldom: of a look a second there would be four.
  const asks = () => tab.asked.filter((path) => path === "/v1/jobs/prolific").length;
  const before = asks();
  await rest(4500);
  assert.ok(asks() - before <= 1, `asked ${asks() - before} times for a job that has ended`);
}

/** More role changes than the list has rows: it says so, and where all are. */
export async function saysThatElectionsAreCut({ tab, base }) {
  await tab.go(`${base}/#/elections`);
  await tab.until("document.querySelector('tbody tr')");
  await tab.value(`import("/dashboard/lib/pulse.js").then(({ known }) => void known.events.push(...Array.from({ length: 300 }, (_, place) => ({ ...known.events[0], sequence: 1_000_000 + place }))))`);
  await tab.until(rows(200));
  await tab.until(`/The newest 200 of 3[0-9]+ changes\\. All that the node keeps: ikada cluster events/.test(${content})`, "it says that it is cut");
}

/** Hundreds of queues: a page of them, a search, and an overview that does not grow with them. */
export async function pagesManyQueues({ tab, base, cluster, node }) {
  const tasks = Array.from({ length: 250 }, (_, place) => ({ id: `many-${place}`, queue: `many-${String(place).padStart(3, "0")}` }));
  await call(cluster, node, "POST", "/v1/tasks", { tasks });
  await tab.go(`${base}/#/queues?find=many-`);
  await tab.until(rows(100));
  await tab.text("250 queues with");
  await tab.click("a", "Next page");
  await tab.until(`${content}.includes("many-100") && !${content}.includes("many-099")`);
  await tab.go(`${base}/#/queues?find=many-249`);
  await tab.until(rows(1));
  await tab.click("a", "many-249");
  await tab.until("document.querySelector('h1')?.textContent === 'many-249' && document.querySelectorAll('.chart').length === 2");
  await tab.go(`${base}/`);
  await tab.until("document.querySelector('.list li')");
  await tab.until(`/8 of [0-9]+ or more\\. See all queues/.test(${content})`, "the overview says that its list is cut");
  await isSmall(tab, "the overview");
}

/** More workers than a page holds, and more tasks of one than its row names. */
export async function pagesManyWorkers({ tab, base, cluster, node }) {
  const beat = { session: "9", slots: 8, busy: 6, queues: ["haul"], version: "0.1.0" };
  await Promise.all(Array.from({ length: 120 }, (_, place) => call(cluster, node, "PUT", `/v1/workers/mule-${String(place).padStart(3, "0")}`, beat)));
  await call(cluster, node, "POST", "/v1/tasks", { tasks: Array.from({ length: 6 }, (_, place) => ({ id: `haul-${place}`, queue: "haul" })) });
  const held = [];
  while (held.length < 6) held.push(...(await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "mule-007", session: "9", queues: ["haul"], count_max: 6 - held.length, wait_ms: 5000 })).tasks);
  await tab.go(`${base}/#/workers`);
  await tab.until(rows(100));
  const row = "document.querySelector('tr[data-key=mule-007]')";
  await tab.until(`${row}?.querySelectorAll('.runs a').length === 5 && ${row}.innerText.includes('and 2 more')`, "what runs where is shown");
  await tab.value(`${row}.querySelector('.runs li:last-child a').click()`);
  await tab.until(rows(6));
  await tab.until(`[...document.querySelectorAll('tbody tr')].every((one) => one.innerText.includes('mule-007'))`);
  await tab.go(`${base}/#/workers`);
  await tab.click("a", "Next page");
  await tab.until(`document.querySelector('tr[data-key=mule-119]') && !document.querySelector('tr[data-key=mule-000]')`);
  await tab.go(`${base}/#/workers?find=mule-11`);
  await tab.until(rows(10));
}

/** More schedules than a page holds. */
export async function pagesManySchedules({ tab, base, cluster, node }) {
  const name = (place) => `tide-${String(place).padStart(3, "0")}`;
  const places = Array.from({ length: 230 }, (_, place) => place);
  const each = (method, body) => Promise.all(places.map((place) => call(cluster, node, method, `/v1/schedules/${name(place)}`, body)));
  await each("PUT", { every_ms: 3_600_000, paused: true, task: { queue: "tides" } });
  await tab.go(`${base}/#/schedules?after=tide-`);
  await tab.until(rows(100));
  await tab.click("a", "Next page");
  await tab.until(`${rows(100)} && document.querySelector('tr[data-key=tide-199]') && !document.querySelector('tr[data-key=tide-099]')`, "the second page is drawn");
  await isSmall(tab, "a page of schedules");
  await tab.click("a", "Next page");
  await tab.until("document.querySelector('tr[data-key=tide-229]') && !document.querySelector('tr[data-key=tide-199]')", "the last page is drawn");
  await each("DELETE");
}

/** A folder of many objects is one row of its bucket; within it they come in pages. */
export async function foldsManyObjects({ tab, base, cluster, node }) {
  const names = Array.from({ length: 230 }, (_, place) => `2026/${String(place).padStart(3, "0")}`);
  for (let from = 0; from < names.length; from += 20) {
    await Promise.all([...names.slice(from, from + 20), "readme"].map((name) => call(cluster, node, "PUT", `/v1/objects/piles/${name}`, "x")));
  }
  await tab.go(`${base}/#/objects/piles`);
  await tab.until(rows(2));
  await tab.click("a", "2026/");
  await tab.until(rows(200));
  await tab.click("a", "Next page");
  await tab.until(rows(30));
}

/** Whichever node is asked, the overview says how far every node is behind the leaders. */
export async function tellsTheLag({ tab, cluster }) {
  for (const node of cluster.nodes) {
    await tab.go(`${node.url}/`);
    const told = "[...document.querySelectorAll('.raft-row:not(.raft-head) small')].map((one) => one.textContent)";
    await tab.until(`${told}.length === ${cluster.nodes.length} && ${told}.every((text) => /, lag [0-9]/.test(text))`, `node ${node.id} tells the lag of all`);
  }
}

/** Ten megabytes without a line break: cut, with a way to save the whole; what comes behind it is shown. */
export async function cutsALongLine({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/jobs", { id: "talker", queue: "talkers", ttl_ms: 600_000, map: { program: "wordcount", range: { from: 0, to: 1 } } });
  const { tasks: [claimed] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w1", queues: ["talkers"], wait_ms: 5000 });
  await call(cluster, node, "PUT", `/v1/objects/logs/${claimed.id}/1`, `first\n${"x".repeat(10_000_000)}\nlast\n`);
  await tab.go(`${base}/#/tasks/${encodeURIComponent(claimed.id)}`);
  await tab.until("document.querySelectorAll('.log-line').length === 3 && document.querySelector('.log').textContent.endsWith('last')", "three lines are shown");
  await tab.text("9,998,000 more characters");
  assert.ok(await tab.value("document.body.innerText.length") < 10_000);
  await tab.value("URL.createObjectURL = (blob) => { window.saved = blob.size; return 'blob:x'; }; HTMLAnchorElement.prototype.click = () => {}");
  await tab.value("[...document.querySelectorAll('.log button')].at(-1).click()");
  await tab.until("window.saved === 10_000_012", "the whole log is saved");
  await call(cluster, node, "POST", "/v1/tasks/complete", { worker: "w1", tasks: [{ id: claimed.id, fence: claimed.fence }] });
  await tab.until("document.querySelector('.log-panel h2').innerText.includes('complete')", "the log has ended");
}

/** An old browser is told what it lacks; one without scripts what there is instead. */
export async function tellsOldBrowsers({ tab, base }) {
  const { identifier } = await tab.call("Page.addScriptToEvaluateOnNewDocument", { source: "delete Array.prototype.findLast" });
  await tab.call("Page.navigate", { url: `${base}/` });
  await tab.text("needs a browser from 2023 or newer");
  await tab.text("This one lacks: lists read from their end.");
  await tab.text("ikada cluster status");
  await tab.call("Page.removeScriptToEvaluateOnNewDocument", { identifier });
  await tab.call("Emulation.setScriptExecutionDisabled", { value: true });
  await tab.call("Page.reload", {});
  await rest(500);
  const { root } = await tab.call("DOM.getDocument", { depth: -1 });
  assert.ok(JSON.stringify(root).includes("needs a browser from 2023 or newer"));
  await tab.call("Emulation.setScriptExecutionDisabled", { value: false });
}

/** The connection is lost and comes back: the page says since when, keeps what it had, and is live again by itself. */
export async function losesItsConnection({ tab, base, node }) {
  await tab.go(`${base}/#/queues`);
  await tab.until("document.querySelector('tbody tr') && document.querySelector('.pulse-live')");
  const lost = "This node has not answered for";
  const network = (offline) => tab.call("Network.emulateNetworkConditions", { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await network(true);
  await tab.text(lost);
  assert.ok(await tab.value("document.querySelectorAll('tbody tr').length") > 0, "the queues are still shown");
  await network(false);
  await tab.until("!document.querySelector('.banner') && document.querySelector('.pulse-live')", "it is live again");
  // A node that stands still keeps its connections and answers nothing.
  node.child.kill("SIGSTOP");
  try {
    await tab.text(lost);
  } finally {
    node.child.kill("SIGCONT");
  }
  await tab.until("!document.querySelector('.banner-bad') && document.querySelector('.pulse-live')", "it is live again");
}

/** What changes arrives by one stream; without it the page asks every second. */
export async function hearsByStream({ tab, base, cluster, node }) {
  await tab.go(`${base}/`);
  await tab.until("document.querySelector('.list li')");
  const asks = () => tab.asked.filter((path) => path === "/v1/queues" || path === "/v1/cluster").length;
  await rest(2500);
  const before = asks();
  await call(cluster, node, "POST", "/v1/tasks", { tasks: Array.from({ length: 500 }, () => ({ queue: "streamed" })) });
  await tab.until(`${content}.includes("streamed")`, "the new queue is heard of");
  assert.equal(asks(), before, "nothing was asked for that the stream tells");
  await tab.call("Network.setBlockedURLs", { urls: ["*/v1/live*"] });
  await tab.call("Page.reload", {});
  await tab.until(`${content}.includes("streamed")`, "asked for instead");
  assert.ok(asks() > before);
  await tab.call("Network.setBlockedURLs", { urls: [] });
  await call(cluster, node, "POST", "/v1/queues/streamed/purge");
}

const PAGES = ["", "jobs", "jobs/count", "queues", "queues/reports", "tasks", "tasks/fragile", "workers", "schedules", "objects", "objects/piles", "leases", "elections", "cluster"];

/** On a phone no page is wider than the screen. */
export async function fitsAPhone({ browser, base }) {
  const tab = await browser.open({ phone: true, width: 390, height: 844 });
  for (const page of PAGES) {
    await tab.go(`${base}/#/${page}`);
    await tab.until("document.querySelector('h1') && !document.querySelector('.loading')", `page ${page} is drawn`);
    const [wide, has] = await tab.value("[document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wide <= has, `page ${page} is ${wide} wide on a screen of ${has}`);
    const gap = await tab.value("document.querySelector('#content .page').getBoundingClientRect().top - document.querySelector('.side').getBoundingClientRect().bottom");
    assert.ok(gap < 40, `page ${page} begins ${gap} below the ways`);
    const thin = await tab.value("[...document.querySelectorAll('td .bar')].filter((one) => one.getBoundingClientRect().width < 60).length");
    assert.equal(thin, 0, `page ${page} has bars that nobody sees`);
  }
  assert.deepEqual(tab.trouble, []);
  await tab.close();
}

const LABELS = `[...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")].filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)`;
const LABEL = "((one) => (one.getAttribute('aria-label') || one.textContent.trim() || one.name || one.placeholder || '').slice(0, 60))";

/** Every page is walked by Tab from its first stop to its last; nothing that acts is left out, and what has the focus shows it. */
export async function walksEveryPage({ tab, base }) {
  for (const page of PAGES) {
    await tab.go(`${base}/#/${page}`);
    await tab.until("document.querySelector('h1') && !document.querySelector('.loading')", `page ${page} is drawn`);
    // From the first stop on: a browser goes on from where the focus was, also on another page.
    await tab.value("document.querySelector('.skip').focus()");
    const wanted = new Set((await tab.value(`${LABELS}.slice(0, 60).map(${LABEL})`)));
    const reached = new Set(["Skip to content"]);
    for (let press = 0; press < 140 && [...wanted].some((one) => !reached.has(one)); press += 1) {
      await tab.press("Tab");
      const [label, seen] = await tab.value(`((one) => [${LABEL}(one), getComputedStyle(one).outlineStyle !== "none" || one.matches("body, input, select, textarea")])(document.activeElement)`);
      reached.add(label);
      assert.ok(seen, `“${label}” on page ${page} does not show that it has the focus`);
    }
    const missed = [...wanted].filter((one) => !reached.has(one) && !/ago|last seen|live/.test(one));
    assert.deepEqual(missed, [], `page ${page}: not reached by Tab`);
  }
}
