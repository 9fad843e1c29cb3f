// X6: after a look at every page no secret is in the document, in its fields, in the address or in what the browser keeps.

import assert from "node:assert/strict";
import { call } from "./cluster.mjs";

const PAGES = ["", "queues", "queues/plain", "tasks", "tasks/told", "jobs", "workers", "objects", "objects/told", "schedules", "leases", "elections", "cluster"];
/** All that a page shows or keeps, but for the tab's own session, where the token has its place. */
const EVERYTHING = `JSON.stringify([
  document.documentElement.outerHTML, document.title, location.href, document.cookie, { ...localStorage },
  [...document.querySelectorAll("input, textarea, select")].map((one) => one.value),
  performance.getEntriesByType("resource").map((one) => one.name), history.state])`;

/** Signs in, makes what has secrets, and looks at every page. */
export async function showsNoSecrets({ tab, cluster }) {
  const [node] = cluster.nodes;
  const worker = await call(cluster, node, "POST", "/v1/tokens", { name: "hands", role: "worker" });
  const door = await call(cluster, node, "POST", "/v1/tokens", { name: "boto", role: "submitter", s3: true });
  const others = [];
  for (let number = 0; number < 17; number += 1) {
    const role = ["admin", "operator", "submitter", "worker", "viewer"][number % 5];
    const s3 = number % 2 === 1 && role !== "admin";
    others.push(await call(cluster, node, "POST", "/v1/tokens", { name: `canary-${number}`, role, s3 }));
  }
  await call(cluster, node, "POST", "/v1/tasks", { tasks: [{ id: "told", queue: "plain", payload: { shown: true } }] });
  await call(cluster, node, "PUT", "/v1/objects/told/text", "plain", { "Content-Type": "text/plain" });
  await tab.go(node.url);
  await tab.type("#field-token", cluster.token);
  await tab.click("dialog button[type=submit]", "Look");
  await tab.until("!document.querySelector('dialog')");
  const texts = [cluster.token, worker.token, door.token, ...others.map((made) => made.token)];
  const secrets = texts.map((text) => text.slice(text.lastIndexOf("_") + 1));
  assert.equal(new Set(secrets).size, 20, "twenty secrets");
  assert.ok(secrets.every((text) => text.length >= 20), "secrets are long");
  for (const page of PAGES) {
    await tab.go(`${node.url}/#/${page}`);
    await tab.until("document.querySelector('h1')", `page ${page} is shown`);
    const kept = await tab.value(EVERYTHING);
    assert.ok(kept.includes("<h1"), "the look sees the page");
    for (const text of secrets) assert.ok(!kept.includes(text), `a secret is on page ${page}`);
  }
  // The look can find what is there.
  await tab.value(`document.querySelector("h1").append(${JSON.stringify(secrets[0])})`);
  assert.ok((await tab.value(EVERYTHING)).includes(secrets[0]));
}
