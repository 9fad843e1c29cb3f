// Runs the browser tests: node run.mjs <ikada program> <folder for pictures> [part of a name]
//
// Promises: every flow has a tab of its own; a failure leaves a picture of what was on the screen; whatever the flow, there
// were no requests to other hosts, no reports of the content policy and no uncaught errors.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./chrome.mjs";
import { startCluster } from "./cluster.mjs";
import * as bounds from "./bounds.mjs";
import * as flows from "./flows.mjs";
import * as glance from "./glance.mjs";
import * as hostile from "./hostile.mjs";
import { takePictures } from "./pictures.mjs";
import { showsNoSecrets } from "./secrets.mjs";

const [program, folder, wanted = ""] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
let [passed, failed] = [0, 0];

async function run(name, work, setting) {
  if (!name.includes(wanted)) return;
  const tab = await browser.open();
  try {
    await work({ ...setting, tab });
    // Attempts to reach a node that was killed are told by the browser as console lines of its own, not as ours.
    assert.deepEqual(tab.trouble, [], "the page had trouble");
    const own = new Set(setting.cluster.nodes.map((node) => new URL(node.url).host));
    assert.deepEqual([...tab.hosts].filter((host) => !own.has(host)), [], "requests to other hosts");
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
    writeFileSync(join(folder, `failed-${name}.png`), await tab.picture().catch(() => Buffer.alloc(0)));
  }
  await tab.close();
}

const cluster = await startCluster(program, 3, ["--name", hostile.STRINGS[5]]);
const [node] = cluster.nodes;
const setting = { browser, cluster, node, base: node.url };
for (const name of ["submitsTheFirstTask", "findsTasks", "mendsATask", "runsAQueue", "keepsASchedule", "storesAnObject", "tellsHowFarAnUploadIs", "watchesAJob", "drainsAWorker", "seesALease", "steersTheCluster", "worksByKeyboard", "bearsLargeThings"]) await run(name, flows[name], setting);
for (const name of ["tellsWhatNeedsALook", "pointsAtAMoment", "searchesWhileOneTypes", "leadsFromTasksToJobs"]) await run(name, glance[name], setting);
for (const name of ["pagesManyTasks", "pagesManyOutputs", "saysThatElectionsAreCut", "pagesManyQueues", "pagesManyWorkers", "pagesManySchedules", "foldsManyObjects", "cutsALongLine", "tellsTheLag", "tellsOldBrowsers", "losesItsConnection", "hearsByStream", "fitsAPhone", "walksEveryPage"]) await run(name, bounds[name], setting);
for (const name of ["tasksStayText", "namesStayText", "objectsStayText", "typesStayText", "resultsStayText", "inputsStayText", "settingsStayText", "addressesStayText"]) await run(name, hostile[name], setting);
await run("survivesALeader", flows.survivesALeader, setting);
await run("showsATaskWithoutALeader", flows.showsATaskWithoutALeader, setting);
const lastNode = cluster.nodes.find((one) => one.child.signalCode === null);
await run("outlivesItsNode", flows.outlivesItsNode, { ...setting, lastNode });
await cluster.stop();

if ("pictures".includes(wanted)) {
  // A cluster of its own, with names that people give.
  const calm = await startCluster(program, 3, ({ id }) => ["--name", ["north", "east", "south"][id - 1]]);
  await run("pictures", (all) => takePictures(browser, all, folder), { cluster: calm, node: calm.nodes[0] });
  await calm.stop();
}

const guarded = await startCluster(program, 1, ["--auth"]);
await run("asksForAToken", flows.asksForAToken, { cluster: guarded });
await run("callersStayText", hostile.callersStayText, { cluster: guarded });
await run("showsNoSecrets", showsNoSecrets, { cluster: guarded });
await guarded.stop();
await browser.close();
console.log(`${passed} passed, ${failed} failed; pictures are in ${folder}`);
process.exit(failed ? 1 : 0);
