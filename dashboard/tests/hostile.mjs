// Fifty strings that try to become more than text, in every field that users write (X14): payloads, results, errors, notes on progress, object names,
// contents and types, settings and inputs of tasks, settings of queues, namespaces and the cluster, jobs, their results and outputs, logs, workers, leases, schedules, callers, addresses, searches, names of nodes. Each must be shown as it is, and nothing may happen.

import assert from "node:assert/strict";
import { call } from "./cluster.mjs";

const RUN = "window.hit=1";
const AWAY = "//outside.invalid/x";

/** The strings. */
export const STRINGS = [
  `<script>${RUN}</script>`, `<ScRiPt>${RUN}</sCrIpT>`, `"><script>${RUN}</script>`, `</script><script>${RUN}</script>`, `<script src=${AWAY}.js></script>`,
  `<img src=x onerror=${RUN}>`, `<img src="${AWAY}.png">`, `"><img src=x onerror="${RUN}">`, `<img/src='x'/onerror='${RUN}'>`, `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`, `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`, `<svg><use href="data:image/svg+xml,<svg id=x>"/></svg>`, `<math><mtext><img src=x onerror=${RUN}></mtext></math>`, `<body onload=${RUN}>`,
  `<iframe src="javascript:parent.hit=1"></iframe>`, `<iframe srcdoc="<script>parent.hit=1</script>">`, `<iframe src=${AWAY}></iframe>`, `<object data="${AWAY}">`, `<embed src="${AWAY}">`,
  `<a href="javascript:${RUN}">go</a>`, `javascript:${RUN}`, `JaVaScRiPt:${RUN}`, `data:text/html,<script>${RUN}</script>`, `vbscript:${RUN}`,
  `<link rel=stylesheet href=${AWAY}.css>`, `<style>@import '${AWAY}.css';</style>`, `<style>*{display:none}</style>`, `<div style="position:fixed;inset:0;background:url(${AWAY})">`, `<base href="${AWAY}">`,
  `<meta http-equiv=refresh content="0;url=${AWAY}">`, `<form action=${AWAY}><button>Submit</button></form>`, `<input autofocus onfocus=${RUN}>`, `<details open ontoggle=${RUN}>`, `<video><source onerror=${RUN}></video>`,
  `<template><img src=x onerror=${RUN}></template>`, `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`, `<!--><img src=x onerror=${RUN}>-->`, `<![CDATA[<script>${RUN}</script>]]>`, `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `&#60;img src=x onerror=${RUN}&#62;`, `\\u003cscript\\u003e${RUN}\\u003c/script\\u003e`, `%3Cscript%3E${RUN}%3C/script%3E`, `{{constructor.constructor('${RUN}')()}}`, `\${${RUN}}`,
  `'; ${RUN}; //`, `__proto__`, `\u202e<script>${RUN}</script>`, `<img src=x onerror=${RUN}>\u0000tail`, `${"<b>".repeat(200)}deep`,
];

/** Payloads, results and errors of tasks, in the list and on their pages. */
export async function tasksStayText({ tab, base, cluster, node }) {
  assert.equal(STRINGS.length, 50);
  const tasks = STRINGS.map((text, place) => ({ id: `h-${place}`, queue: "hostile", max_attempts: 2, backoff: { base_ms: 1, cap_ms: 1 }, payload: { [text]: text } }));
  await call(cluster, node, "POST", "/v1/tasks", { tasks });
  for (const settle of ["fail", "complete"]) {
    // All are held before the first is settled: a task that failed would be met again in the same round.
    const held = [];
    while (held.length < STRINGS.length) held.push(...(await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w", queues: ["hostile"], count_max: 50, wait_ms: 5000 })).tasks);
    const about = (task) => STRINGS[Number(task.id.slice(2))];
    const reports = held.map((task) => ({ id: task.id, fence: task.fence, ...(settle === "fail" ? { error: about(task) } : { result: [about(task)] }) }));
    await call(cluster, node, "POST", `/v1/tasks/${settle}`, { worker: "w", tasks: reports });
  }
  await tab.go(`${base}/#/tasks?queue=hostile`);
  await tab.until("document.querySelectorAll('tbody tr').length === 50");
  for (const [place, text] of STRINGS.entries()) {
    await tab.go(`${base}/#/tasks/h-${place}`);
    const printed = JSON.stringify(text).slice(1, -1);
    await tab.until(`document.querySelector("h1")?.textContent === "h-${place}" && document.querySelectorAll("pre").length >= 3`, `task ${place} is shown`);
    const shown = await tab.value("[...document.querySelectorAll('pre')].map((one) => one.textContent).join('\\n')");
    assert.ok(shown.includes(`"${printed}": "${printed}"`), `payload ${place}`);
    assert.ok(shown.includes(`"${printed}"\n]`), `result ${place}`);
    assert.ok(shown.includes(text.replaceAll("\u0000", "").slice(0, 20)), `error ${place}`);
    await quiet(tab);
  }
}

/** Names, types and contents of objects. */
export async function objectsStayText({ tab, base, cluster, node }) {
  const names = [];
  for (const [place, text] of STRINGS.entries()) {
    const name = `${place} ${text}`;
    const address = `/v1/objects/hostile/${encodeURIComponent(name)}`;
    const type = place % 2 ? "text/html" : "image/svg+xml";
    try {
      await call(cluster, node, "PUT", address, `<svg xmlns="http://www.w3.org/2000/svg"><script>${RUN}</script></svg>${text}`, { "Content-Type": type });
      names.push(name);
    } catch (error) {
      assert.equal(error.status, 400, error.message);
    }
  }
  assert.ok(names.length >= 20, `${names.length} names are good names`);
  await tab.go(`${base}/#/objects/hostile`);
  await tab.until("document.querySelector('tbody tr')");
  for (const name of names) {
    const slash = name.indexOf("/");
    const shown = slash < 0 ? name : name.slice(0, slash + 1);
    await tab.until(`[...document.querySelectorAll("tbody td:first-child")].some((one) => one.textContent === ${JSON.stringify(shown)})`, `object ${shown} is listed`);
  }
  for (const name of names.filter((one) => !one.includes("/"))) {
    await tab.click("tbody button.link", name);
    await tab.until("document.querySelector('dialog .preview pre, dialog .preview img')", `${name} is previewed`);
    await tab.press("Escape");
    await tab.until("!document.querySelector('dialog')");
    await quiet(tab);
  }
}

/** Types of objects, as their uploader names them. */
export async function typesStayText({ tab, base, cluster, node }) {
  const types = [];
  for (const [place, text] of STRINGS.entries()) {
    const upload = `/v1/uploads/${String(place).padStart(32, "0")}`;
    try {
      await call(cluster, node, "PUT", upload, { bucket: "hostile-types", key: `t-${place}`, content_type: text.slice(0, 100) });
    } catch (error) {
      assert.equal(error.status, 400, error.message);
      continue;
    }
    await call(cluster, node, "PUT", `${upload}/parts/1`, text);
    await call(cluster, node, "POST", `${upload}/finish`, { parts: 1 });
    types.push(place);
  }
  assert.ok(types.length >= 30, `${types.length} types were taken`);
  await tab.go(`${base}/#/objects/hostile-types`);
  await tab.until(`document.querySelectorAll("tbody tr").length === ${types.length}`, "all are listed");
  const rows = await tab.value("[...document.querySelectorAll('tbody tr')].map((row) => row.textContent)");
  for (const place of types) assert.ok(rows.some((row) => row.includes(`t-${place}`) && row.includes(STRINGS[place].slice(0, 30))), `type ${place}`);
  await quiet(tab);
  for (const place of types) {
    await tab.click("tbody button.link", `t-${place}`);
    await tab.until("document.querySelector('dialog .preview')", `t-${place} is previewed`);
    await tab.press("Escape");
    await tab.until("!document.querySelector('dialog')");
    await quiet(tab);
  }
}

/** What workers say of their progress, what jobs came to, and the names of their outputs. */
export async function resultsStayText({ tab, base, cluster, node }) {
  let named = 0;
  for (const [place, text] of STRINGS.entries()) {
    const id = `hr-${place}`;
    await call(cluster, node, "POST", "/v1/jobs", { id, queue: id, ttl_ms: 600_000, map: { program: "wordcount", range: { from: 0, to: 1 } } });
    const { tasks: [held] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w", queues: [id], wait_ms: 5000 });
    const told = text.slice(0, 100);
    const renewed = await call(cluster, node, "POST", "/v1/tasks/renew", { worker: "w", tasks: [{ id: held.id, fence: held.fence, progress: { permille: 5, note: told } }] });
    assert.ok(!renewed.tasks[0].problem, `note ${place}: ${JSON.stringify(renewed.tasks[0])}`);
    await tab.go(`${base}/#/tasks/${held.id}`);
    const plain = JSON.stringify(told.replaceAll("\u0000", "").slice(0, 20));
    await tab.until(`[...document.querySelectorAll(".facts dd")].some((one) => one.textContent.includes(${plain}))`, `note ${place} is shown`);
    await quiet(tab);
    const bytes = await call(cluster, node, "POST", "/v1/uploads", "abc");
    const settle = async (outputs) => (await call(cluster, node, "POST", "/v1/tasks/complete", { worker: "w", tasks: [{ id: held.id, fence: held.fence, result: [text], outputs }] })).tasks[0];
    const first = await settle([{ name: text, size: bytes.size, digest: bytes.digest }]);
    if (first.problem) await settle([]);
    else named += 1;
    await tab.go(`${base}/#/jobs/${id}`);
    const printed = JSON.stringify(`"${JSON.stringify(text).slice(1, -1)}"`);
    await tab.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(id)} && [...document.querySelectorAll("pre")].some((one) => one.textContent.includes(${printed}))`, `result ${place} is shown`);
    if (!first.problem) await tab.until(`[...document.querySelectorAll(".outputs li")].some((one) => one.textContent.endsWith(${JSON.stringify(text)}))`, `output ${place} is shown`);
    await quiet(tab);
  }
  assert.ok(named >= 10, `${named} names are good names of outputs`);
}

/** What tasks are told beside their payload: settings of programs, inputs, labels, keys, follow-ups. Each is refused or shown as text. */
export async function inputsStayText({ tab, base, cluster, node }) {
  await call(cluster, node, "POST", "/v1/programs", { name: "hostile-handler", kind: "handler" });
  const shown = { settings: 0, setting: 0, input: 0, words: 0, url: 0, label: 0, key: 0, then: 0 };
  for (const [place, text] of STRINGS.entries()) {
    const own = { queue: "hostile-inputs", program: "hostile-handler" };
    const told = {
      settings: { settings: { mark: text } }, setting: { settings: { [text]: "x" } }, input: { inputs: [{ name: text, text: "x" }] }, words: { inputs: [{ name: "a.txt", text }] },
      url: { inputs: [{ name: "a.txt", url: `https://example.org/${text}` }] }, label: { labels: { zone: text.slice(0, 60) } }, key: { key: text }, then: { then: [{ id: text }] },
    };
    for (const [kind, part] of Object.entries(told)) {
      const made = await refusable(cluster, node, "POST", "/v1/tasks", { tasks: [{ id: `hi-${place}-${kind}`, ...own, ...part }] });
      const [task] = made?.tasks ?? [];
      if (!task || task.problem) continue;
      shown[kind] += 1;
      await tab.go(`${base}/#/tasks/${encodeURIComponent(task.id)}`);
      const seen = JSON.stringify(text.replaceAll("\u0000", "").slice(0, 20));
      await tab.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(task.id)} && document.querySelector(".facts")`, `task ${place} with ${kind} is shown`);
      // The words of an input are read by its program alone.
      if (kind !== "words") assert.ok(await tab.value(`document.querySelector("#content").textContent.includes(${seen})`), `${kind} of task ${place}`);
      await quiet(tab);
    }
  }
  assert.ok(shown.settings >= 40 && shown.words >= 40, JSON.stringify(shown));
}

/** Settings of queues, namespaces and the cluster: their names and addresses are refused or shown as text. */
export async function settingsStayText({ tab, base, cluster, node }) {
  const queues = [];
  let refused = 0;
  for (const [place, text] of STRINGS.entries()) {
    const name = encodeURIComponent(text);
    if (await refusable(cluster, node, "PUT", `/v1/queues/${name}`, { max_attempts: 3 })) queues.push(text);
    for (const attempt of [
      ["PUT", `/v1/queues/hostile-settings`, { [text]: 1 }], ["PUT", `/v1/queues/hostile-settings`, { alerts: { [text]: 1 } }], ["PUT", `/v1/queues/hostile-settings`, { max_attempts: text }],
      ["PUT", `/v1/namespaces/${name}`, { pending_max: 1000 }], ["PUT", "/v1/cluster/elections", { timeout_ms: text }], ["POST", "/v1/cluster/nodes", { peer_addr: text }],
      ["PUT", `/v1/cluster/nodes/${name}`, { cordoned: false }], ["PUT", "/v1/cluster/nodes/1", { priority: text }],
    ]) refused += (await refusable(cluster, node, ...attempt)) ? 0 : 1;
    await tab.go(`${base}/#/queues/${name}`);
    await quiet(tab);
    await tab.go(`${base}/#/cluster`);
    await tab.until("document.querySelector('tbody tr')", `the cluster is shown after ${place}`);
    await quiet(tab);
  }
  assert.ok(refused >= 7 * STRINGS.length, `${refused} were refused`);
  await tab.go(`${base}/#/queues`);
  await tab.until("document.querySelector('tbody tr')");
  await quiet(tab);
  for (const text of queues) {
    await tab.go(`${base}/#/queues/${encodeURIComponent(text)}`);
    await tab.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(text)}`, `queue ${text} is shown`);
    await quiet(tab);
  }
}

/** Calls; null for what is refused as bad. */
async function refusable(cluster, node, ...what) {
  try {
    return (await call(cluster, node, ...what)) ?? {};
  } catch (error) {
    assert.ok([400, 404, 409].includes(error.status), error.message);
    return null;
  }
}

/** The address itself, and what is typed into searches. */
export async function addressesStayText({ tab, base }) {
  for (const text of STRINGS) {
    for (const page of ["tasks", "queues", "objects", "nothing"]) {
      await tab.go(`${base}/#/${page}/${encodeURIComponent(text)}`);
      await quiet(tab);
    }
    await tab.go(`${base}/#/queues?find=${encodeURIComponent(text)}`);
    await tab.go(`${base}/#/objects/hostile?prefix=${encodeURIComponent(text)}`);
    await tab.go(`${base}/#/${text.replaceAll("\u0000", "")}`);
    await quiet(tab);
  }
}

/** Nothing ran, nothing was asked of others, and the page is still ours. */
async function quiet(tab) {
  assert.equal(await tab.value("window.hit ?? null"), null, "a script ran");
  assert.deepEqual(tab.trouble, []);
  assert.deepEqual([...tab.hosts], [new URL(tab.origin).host]);
  assert.equal(await tab.value("document.querySelectorAll('#shell script, #shell iframe, #shell base, #shell form[action], #shell object, #shell embed').length"), 0);
}

/** Names and reasons of jobs, what programs say, labels and versions of workers, names and holders of leases, schedules: each is refused or shown as text. */
export async function namesStayText({ tab, base, cluster, node }) {
  let refused = 0;
  const attempt = async (...what) => {
    try {
      return await call(cluster, node, ...what);
    } catch (error) {
      assert.equal(error.status, 400, error.message);
      refused += 1;
      return null;
    }
  };
  const jobs = [];
  for (const [place, text] of STRINGS.entries()) {
    const job = await attempt("POST", "/v1/jobs", { id: `hj-${place}`, name: text.slice(0, 100), queue: `hj-${place}`, max_attempts: 1, map: { program: "wordcount", range: { from: 0, to: 1 } } });
    if (job) jobs.push(place);
    await attempt("PUT", `/v1/workers/${encodeURIComponent(text)}`, { session: "3", slots: 1 });
    await attempt("PUT", `/v1/workers/hw-${place}`, { session: "3", slots: 1, labels: { [text.slice(0, 60)]: text.slice(0, 60) } });
    await attempt("PUT", `/v1/workers/hv-${place}`, { session: "3", slots: 1, version: text.slice(0, 60) });
    await attempt("POST", `/v1/leases/${encodeURIComponent(text)}/acquire`, { holder: `hh-${place}`, ttl_ms: 60_000 });
    await attempt("POST", `/v1/leases/hl-${place}/acquire`, { holder: text, ttl_ms: 60_000 });
    await attempt("PUT", `/v1/schedules/hs-${place}`, { cron: "30 2 1 1 *", zone: "UTC", task: { queue: "hostile", payload: { [text]: text } } });
    await attempt("PUT", `/v1/schedules/${encodeURIComponent(text)}`, { cron: "30 2 1 1 *", zone: text, task: { queue: "hostile" } });
  }
  assert.ok(jobs.length >= 40, `${jobs.length} names are good names of jobs`);
  assert.ok(refused >= 100, `${refused} were refused`);
  for (const place of jobs) {
    const { tasks: [held] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "w", queues: [`hj-${place}`], wait_ms: 5000 });
    await call(cluster, node, "PUT", `/v1/objects/logs/${held.id}/1`, `\u001b[31m${STRINGS[place]}\u001b[0m\u001b[2J\n`);
    await call(cluster, node, "POST", "/v1/tasks/fail", { worker: "w", tasks: [{ id: held.id, fence: held.fence, error: STRINGS[place] }] });
  }
  for (const page of ["workers", "leases", "schedules", "jobs", "queues"]) {
    await tab.go(`${base}/#/${page}`);
    await tab.until("document.querySelector('tbody tr')", `page ${page} is drawn`);
    await quiet(tab);
  }
  for (const place of jobs) {
    const text = STRINGS[place];
    const seen = JSON.stringify(text.replaceAll("\u0000", "").slice(0, 40));
    await tab.go(`${base}/#/jobs/hj-${place}`);
    await tab.until(`document.querySelector("h1")?.textContent === "hj-${place}" && document.querySelector(".log-line")?.textContent.includes(${seen})`, `the log of job ${place} is shown as text`);
    assert.ok((await tab.value("document.querySelector('.page-head .about').textContent")).includes(text.slice(0, 20)), `name of job ${place}`);
    assert.ok((await tab.value("document.querySelector('.trouble').textContent")).includes(text.slice(0, 20)), `reason of job ${place}`);
    assert.ok(!(await tab.value("document.querySelector('.log').textContent")).includes("\u001b"), "nothing for terminals is left");
    await quiet(tab);
  }
}

/** Names of callers: refused, or shown as text beside the way out. */
export async function callersStayText({ tab, cluster }) {
  const [node] = cluster.nodes;
  for (const text of STRINGS) {
    let made = null;
    try {
      made = await call(cluster, node, "POST", "/v1/tokens", { name: text, role: "viewer" });
    } catch (error) {
      assert.equal(error.status, 400, error.message);
      continue;
    }
    await tab.go(node.url);
    await tab.value("sessionStorage.clear()");
    await tab.call("Page.reload", {});
    await tab.type("#field-token", made.token);
    await tab.click("dialog button[type=submit]", "Look");
    await tab.text(text);
    await quiet(tab);
  }
}
