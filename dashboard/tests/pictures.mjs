// Pictures of every page, light, dark and as a phone shows it, over a cluster with some life in it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call } from "./cluster.mjs";
import { rest } from "./chrome.mjs";

const PAGES = { overview: "", jobs: "jobs", job: "jobs/word-count", queues: "queues", queue: "queues/mail", tasks: "tasks?queue=mail", task: "tasks/welcome-ann", workers: "workers", schedules: "schedules", buckets: "objects", objects: "objects/docs", leases: "leases", elections: "elections?minutes=1", cluster: "cluster" };
const LOOKS = { light: {}, dark: { dark: true }, phone: { phone: true, width: 390, height: 844 } };
/** How long there is something to see before the first picture. */
const LIFE_MS = 55_000;
/** Between two leaders that are moved, so that there are elections to see. */
const MOVE_EVERY_MS = 4_000;

/** Takes the pictures into a folder. */
export async function takePictures(browser, { cluster, node }, folder) {
  await prepare(cluster, node);
  const over = { now: false };
  const living = live(cluster, node, over);
  const tabs = [];
  for (const [look, options] of Object.entries(LOOKS)) {
    const tab = await browser.open({ width: 1280, height: 860, ...options });
    await tab.go(`${node.url}/`);
    tabs.push([look, tab]);
  }
  await Promise.all([rest(LIFE_MS), moveLeaders(cluster, node)]);
  for (const [look, tab] of tabs) {
    for (const [name, page] of Object.entries(PAGES)) {
      await tab.go(`${node.url}/#/${page}`);
      await tab.until("!document.querySelector('.loading')");
      await rest(400);
      writeFileSync(join(folder, `${name}-${look}.png`), await tab.picture());
    }
    await tab.close();
  }
  over.now = true;
  await living;
}

async function prepare(cluster, node) {
  await call(cluster, node, "PUT", "/v1/schedules/nightly-report", { cron: "30 2 * * *", zone: "Europe/Berlin", task: { queue: "reports" } });
  await call(cluster, node, "PUT", "/v1/schedules/heartbeat", { every_ms: 5000, task: { queue: "mail" } });
  for (const bucket of ["films", "invoices", "site"]) await call(cluster, node, "PUT", `/v1/objects/${bucket}/readme.md`, `# ${bucket}\n`, { "Content-Type": "text/markdown" });
  for (const name of ["2026/invoice-0117.pdf", "2026/report.md", "logo.svg", "readme.md"]) await call(cluster, node, "PUT", `/v1/objects/docs/${name}`, `# ${name}\n`.repeat(400), { "Content-Type": "text/markdown" });
  await call(cluster, node, "POST", "/v1/jobs", { id: "word-count", name: "words of all letters", queue: "batch", ttl_ms: 600_000, map: { program: "wordcount", range: { from: 0, to: 280 } }, reduce: { program: "merge" } });
  for (const [name, holder] of [["primary", "billing-1"], ["nightly-report", "reporter-2"]]) await call(cluster, node, "POST", `/v1/leases/${name}/acquire`, { holder, ttl_ms: 600_000 });
  await call(cluster, node, "POST", "/v1/leases/primary/acquire", { holder: "billing-2", ttl_ms: 600_000, wait_ms: 100 });
  await call(cluster, node, "POST", "/v1/queues/invoices/pause", {}).catch(() => null);
  await call(cluster, node, "POST", "/v1/tasks", { id: "welcome-ann", queue: "welcome", payload: { to: "ann@example.org", template: "welcome", locale: "en" }, priority: 9, max_attempts: 3, backoff: { base_ms: 200, cap_ms: 400 } });
  const { tasks } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "mailer-2", queues: ["welcome"], count_max: 1, wait_ms: 5000 });
  await hold(cluster, node);
  if (tasks.length) await call(cluster, node, "POST", "/v1/tasks/fail", { worker: "mailer-2", tasks: [{ id: tasks[0].id, fence: tasks[0].fence, error: "smtp: 451 try again later" }] });
}

/** Tasks that workers hold for a while, and what one of them says. */
async function hold(cluster, node) {
  const long = { ttl_ms: 600_000, timeout_ms: 600_000 };
  const films = ["harbour", "delta", "upstream", "rapids", "locks", "weir"].map((name) => ({ id: `film-${name}`, queue: "films", payload: { film: name, height: 1080 }, ...long }));
  await call(cluster, node, "POST", "/v1/tasks", { tasks: films });
  for (const [worker, count] of [["mailer-1", 2], ["mailer-2", 3]]) {
    for (let held = 0; held < count;) held += (await call(cluster, node, "POST", "/v1/tasks/claim", { worker, queues: ["films"], count_max: count - held, wait_ms: 5000 })).tasks.length;
  }
  const { tasks: [counted] } = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: "mailer-2", queues: ["batch"], count_max: 1, wait_ms: 5000 });
  for (let held = 1; held < 7;) held += (await call(cluster, node, "POST", "/v1/tasks/claim", { worker: `mailer-${held % 3}`, queues: ["batch"], count_max: 2, wait_ms: 5000 })).tasks.length;
  await call(cluster, node, "PUT", `/v1/objects/logs/${counted.id}/1`, "reading letters-000.txt\n4,218 words, 1,102 of them once\nreading letters-001.txt\n");
}

/** Hands leaders on while the pictures are being prepared. */
async function moveLeaders(cluster, node) {
  for (let turn = 0; turn < (LIFE_MS - 5000) / MOVE_EVERY_MS; turn += 1) {
    await call(cluster, node, "POST", "/v1/cluster/transfer", { shard: turn % 4 }).catch(() => null);
    await rest(MOVE_EVERY_MS);
  }
}

/** Submits and works until it is over. */
async function live(cluster, node, over) {
  for (let turn = 0; !over.now; turn += 1) {
    const count = 6 + Math.round(5 * Math.sin(turn / 6)) + (turn % 5);
    const tasks = Array.from({ length: count }, (_, place) => ({ queue: ["mail", "thumbnails", "invoices"][(turn + place) % 3], payload: { to: `guest-${turn}-${place}@example.org` } }));
    await call(cluster, node, "POST", "/v1/tasks", { tasks });
    const claim = await call(cluster, node, "POST", "/v1/tasks/claim", { worker: `mailer-${turn % 3}`, queues: ["mail", "thumbnails", "welcome", ...(turn % 4 ? [] : ["batch"])], count_max: count, wait_ms: 50 });
    for (const [place, queue] of ["mail", "thumbnails", "batch"].entries()) {
      await call(cluster, node, "PUT", `/v1/workers/mailer-${place}`, { session: String(place + 1), slots: 4 + 4 * place, busy: [1 + (turn % 3), 2, 4][place], queues: [queue], labels: place ? { zone: `eu-${place}` } : {}, version: "0.1.0" });
    }
    await rest(120);
    const done = claim.tasks.map((task) => ({ id: task.id, fence: task.fence, result: { sent: true } }));
    if (done.length) await call(cluster, node, "POST", "/v1/tasks/complete", { worker: `mailer-${turn % 3}`, tasks: done });
    await rest(150);
  }
}
